import { html } from 'ghtml'
import { hasScope } from '../../auth/scopes.ts'
import { partsOf } from '../../clients/typescript/command/common/names.ts'
import type { Caller, NeededScope, Scope } from '../../core/model.ts'
import { consoleArea } from '../area.ts'
import { layout } from './layout.ts'
import type { InboxAnswer } from '../../core/schemas/inboxes.ts'

/** Who sees keys and limits. */
export const keyViewers = ['operate'] as const satisfies readonly Scope[]
/** Who sees webhooks. Only `webhooks` may make and test them. */
export const webhookViewers = ['operate', 'webhooks'] as const satisfies readonly Scope[]

/** The console's pages that its navigation leads to, and what a key needs besides `status` to see one. */
const places: ReadonlyArray<[path: string, name: string, needs?: NeededScope]> = [
  ['/console', 'Overview'], ['/console/runs', 'Runs'], ['/console/schedules', 'Schedules'],
  ['/console/failed', 'Failed'], ['/console/ended', 'Ended'],
  ['/console/agents', 'Who holds what'], ['/console/activity', 'What happens'],
  ['/console/webhooks', 'Webhooks', webhookViewers], ['/console/keys', 'Keys', keyViewers]
]

interface ConsolePage {
  caller: Caller
  title: string
  /** Where in the navigation this page is, if it is there. */
  at?: string
  /** HTML. */
  main: string
  /** The person's search. */
  sought?: string
}

/** A page of the console, with its navigation, and the field that finds a handoff. */
export function consoleLayout ({ caller, title, at, main, sought = '' }: ConsolePage): string {
  const links = places.filter(([, , needs]) => hasScope(caller, needs)).map(([path, name]) => html`<a href="${path}"!${path === at
    ? ' aria-current="page"'
    : ''}>${name}</a> `)
  const navigation = html`<div class="places"><nav aria-label="Console">!${links}</nav>
<form class="find" role="search" method="get" action="/console/find"><label class="unseen" for="find">Handoff’s id, or label</label>
<input id="find" name="q" type="search" required maxlength="400" placeholder="id, or label as in run:42" value="${sought}" autocapitalize="off" autocomplete="off" spellcheck="false"> <button class="plain">Find</button></form></div>`
  return layout({ area: consoleArea, caller, title, main: main + stale, navigation, isWide: true })
}

/** Shown by page.js while the page can't be renewed. */
const stale = '<p id="stale" class="stale" role="status" hidden>' +
  'This page isn’t up to date: the service doesn’t answer.</p>'

/**
 * A part of a page that keeps itself up to date. Screen readers don't announce each time.
 * @param url the page's own, from which the part with this id is taken
 * @param more the id of another part, which is brought up to date with it
 */
export function liveSection (id: string, url: string, inside: string, more?: string): string {
  return html`<div id="${id}" data-live hx-get="${url}" hx-select="#${id}"!${more === undefined ? '' : html` hx-select-oob="#${more}"`} hx-trigger="every 5s" hx-swap="outerHTML">
!${inside}
</div>`
}

/** May this person change what there is? Only then pages have buttons. */
export function mayChange (caller: Caller): boolean {
  return hasScope(caller, 'operate')
}

/** May this person decide on handoffs that wait for approval? */
export function mayDecide (caller: Caller): boolean {
  return hasScope(caller, 'approve')
}

/** A count as people read it: `12,345`. */
export function number (count: number): string {
  return count.toLocaleString('en')
}

/** The path of an inbox's page. */
export function inboxPath (name: string): string {
  return `/console/inboxes/${name}`
}

/** The path of a schedule's page. */
export function schedulePath (name: string): string {
  return `/console/schedules/${encodeURIComponent(name)}`
}

/** The path of a run's page. @param label `name:value` */
export function runPath (label: string): string {
  const [name, value] = partsOf(label)
  return `/console/run?label=${encodeURIComponent(name)}&value=${encodeURIComponent(value)}`
}

/** @param place in the page: with it the link keeps the focus when the page is brought up to date */
export function inboxLink (name: string, place?: string): string {
  return html`<a!${place === undefined ? '' : html` id="${place}-${name}"`} class="name" href="${inboxPath(name)}">${name}</a>`
}

/** In words, for what isn't usual; empty otherwise. */
export function inboxState (inbox: InboxAnswer): string {
  const words = [
    ...inbox.paused ? ['paused'] : [], ...isAtLimit(inbox) ? ['at its limit'] : [], ...isFull(inbox) ? ['full'] : []
  ]
  return words.map(word => html`<span class="badge">${word}</span>`).join(' ')
}

/** Are as many of its handoffs caught as may be? */
export function isAtLimit ({ caught, max_caught: max }: InboxAnswer): boolean {
  return max !== null && caught >= max
}

/** Does it take no more? */
export function isFull (
  { pending, waiting_approval: waiting, delayed, blocked, max_pending: max }: InboxAnswer
): boolean {
  return max !== null && pending + waiting + delayed + blocked >= max
}

/** Numbers with their names, each value as HTML. */
export function tiles (all: ReadonlyArray<readonly [name: string, value: string]>): string {
  return html`<dl class="tiles">!${all.map(([name, value]) => html`<div><dt>${name}</dt><dd>!${value}</dd></div>
`)}</dl>`
}

interface Table {
  /** Its name, for screen readers. */
  label: string
  columns: readonly string[]
  /** HTML of each cell; the first one of a row names it. */
  rows: ReadonlyArray<readonly string[]>
}

/**
 * A table that is a list of cards where there is no room for columns. Its roles are written out, since browsers forget
 * them where a table is laid out in another way.
 */
export function table ({ label, columns, rows }: Table): string {
  const head = columns.map(name => html`<th role="columnheader" scope="col">${name}</th>`).join('')
  const body = rows.map(([first, ...cells]) => html`<tr role="row"><th role="rowheader" scope="row">!${first!}</th>!${cells.map((cell, at) =>
    html`<td role="cell" data-name="${columns[at + 1]!}"!${cell === '' || cell === '0' ? ' class="none"' : ''}>!${cell}</td>`)}</tr>
`).join('')
  return html`<table role="table" aria-label="${label}"><thead role="rowgroup"><tr role="row">!${head}</tr></thead>
<tbody role="rowgroup">!${body}</tbody></table>`
}
