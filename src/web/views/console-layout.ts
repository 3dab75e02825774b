import { html } from 'ghtml'
import { hasScope } from '../../auth/scopes.ts'
import type { Caller } from '../../core/model.ts'
import { consoleArea } from '../area.ts'
import { layout } from './layout.ts'

/** The console's pages that its navigation leads to. */
const places = [
  ['/console', 'Overview'], ['/console/failed', 'Failed'], ['/console/agents', 'Who holds what'],
  ['/console/activity', 'What happens']
] as const
type ConsolePlace = typeof places[number][0]

interface ConsolePage {
  caller: Caller
  title: string
  /** Where in the navigation this page is, if it is there. */
  at?: ConsolePlace
  /** HTML. */
  main: string
  /** What the person was looking for. */
  sought?: string
}

/** A page of the console, with its navigation, and the field that finds a handoff. */
export function consoleLayout ({ caller, title, at, main, sought = '' }: ConsolePage): string {
  const links = places.map(([path, name]) => html`<a href="${path}"!${path === at
    ? ' aria-current="page"'
    : ''}>${name}</a> `)
  const navigation = html`<div class="places"><nav aria-label="Console">!${links}</nav>
<form class="find" role="search" method="get" action="/console/find"><label class="unseen" for="find">Handoff’s id, or label</label>
<input id="find" name="q" type="search" required maxlength="400" placeholder="id, or label as in run:42" value="${sought}" autocapitalize="off" autocomplete="off" spellcheck="false"> <button class="plain">Find</button></form></div>`
  return layout({ area: consoleArea, caller, title, main: main + stale, navigation, isWide: true })
}

/** Shown by page.js while the page can't get what is new. */
const stale = '<p id="stale" class="stale" role="status" hidden>' +
  'This page isn’t up to date: the service doesn’t answer.</p>'

/**
 * A part of a page that keeps itself up to date. Screen readers don't announce each time.
 * @param url the page's own, from which the part with this id is taken
 */
export function liveSection (id: string, url: string, inside: string): string {
  return html`<div id="${id}" data-live hx-get="${url}" hx-select="#${id}" hx-trigger="every 5s" hx-swap="outerHTML">
!${inside}
</div>`
}

/** May this person change what there is? Only then pages have buttons. */
export function mayChange (caller: Caller): boolean {
  return hasScope(caller, 'operate')
}

/** May this person decide on what waits for one? */
export function mayDecide (caller: Caller): boolean {
  return hasScope(caller, 'approve')
}
