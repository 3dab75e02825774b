import { createHash } from 'node:crypto'
import { html } from 'ghtml'
import type { Caller } from '../../core/model.ts'
import type { ListPart, Listed } from '../../handoffs/approvals.ts'
import { about } from '../../http/openapi.ts'
import { availableIn, beginningOf, expiresIn, labelTags, visible, waitingFor } from '../text.ts'
import { layout, notice } from './layout.ts'

/** How much of a task the list shows, in characters. */
const taskShown = 240

/** A short hash of the list's ids and, if it goes on, of how many wait: equal for two lists that look the same. */
export function fingerprint ({ items, next, count }: ListPart): string {
  return createHash('sha256').update([...items.map(({ id }) => id), next === null ? '' : count].join())
    .digest('base64url').slice(0, 16)
}

export interface ListPage { caller: Caller, part: ListPart, flash: string, isFirst: boolean }

export function listPage ({ caller, part, flash, isFirst }: ListPage): string {
  const list = isFirst
    ? liveList(part, flash !== '')
    : html`<div id="list">!${items(part, true)}</div><p><a href="/approvals">Back to the oldest</a></p>`
  return layout({
    title: 'Waiting for approval',
    caller,
    main: html`!${flash}<h1>Waiting for your approval</h1>
<p id="count" role="status" aria-live="polite">${waitingCount(part, isFirst)}</p>
!${list}
<noscript><p class="quiet">Without JavaScript, reload the page to see new handoffs.</p></noscript>`,
  })
}

/** The list, which polls for its next state as soon as it is loaded. @param focus put the focus on the first handoff */
export function liveList (part: ListPart, focus: boolean): string {
  // A draining service answers polls at once; the pause keeps the page from polling it in a tight loop.
  return html`<div id="list" hx-get="/approvals/list?seen=${fingerprint(
    part
  )}" hx-trigger="load delay:250ms, again" hx-swap="outerHTML">!${items(part, focus)}</div>`
}

/** The list's next state. It replaces the count only if that changed, because screen readers read it out each time. */
export function listFragment (part: ListPart, changed: boolean): string {
  const changedCount = changed
    ? html`<p id="count" role="status" aria-live="polite" hx-swap-oob="innerHTML">${waitingCount(part, true)}</p>`
    : ''
  return liveList(part, false) + changedCount
}

/** How many wait. Where the page has all of them, they are counted there: it leaves out what has expired. */
function waitingCount ({ items, next, count }: ListPart, isFirst: boolean): string {
  if (items.length === 0 && next !== null) return 'The oldest handoffs no longer wait. Later ones may.'
  if (items.length === 0) return 'No handoff waits. New ones appear here by themselves.'
  const all = isFirst && next === null ? items.length : Math.max(count, items.length)
  return all === 1 ? 'One handoff waits.' : `${all.toLocaleString('en')} handoffs wait, the oldest first.`
}

function items ({ items, next, now }: ListPart, focus: boolean): string {
  const rows = items.map((one, index) => row(one, now, focus && index === 0))
  const more = next === null ? '' : html`<p><a href="/approvals?cursor=${next}">Later handoffs</a></p>`
  return rows.length === 0 ? more : html`<ol class="waiting">!${rows}</ol>!${more}`
}

function row ({ id, record, task }: Listed, now: number, focus: boolean): string {
  const all = JSON.parse(task) as string
  const shown = beginningOf(all, taskShown)
  const { availableAt = 0, labels } = record.extra
  return html`<li><a id="h-${id}" href="/approvals/${id}"!${focus ? ' autofocus' : ''}>
<span class="task" dir="auto">!${visible(shown)}${shown.length < all.length ? '…' : ''}</span>
<span class="facts"><span>from ${record.passedBy}</span> <span>!${waitingFor(
  record.createdAt, now
)}</span> <span>!${expiresIn(record.expiresAt, now)}</span>!${availableAt > now
  ? html` <span>!${availableIn(availableAt, now)}</span>`
  : ''}!${labels === undefined ? '' : ` ${labelTags(labels)}`}</span>
</a></li>`
}

/** @param next the path to go to afterwards @param problem in plain words */
export function signInPage (baseUrl: () => string, next: string, problem?: string): string {
  return layout({
    title: 'Sign in', main: signInForm(baseUrl().replace(/^https?:\/\//, ''), next, problem)
  })
}

/** @param host whose service it is: a person should know where a key goes before typing it */
function signInForm (host: string, next: string, problem?: string): string {
  return html`<h1>Sign in</h1>
<p>To the ${about.title} at <strong class="host">${host}</strong>, where people approve or reject what agents pass on.</p>
!${problem === undefined ? '' : notice('bad', html`<p id="problem">${problem}</p>`)}
<form class="sign-in" method="post" action="/approvals/sign-in">
<input type="hidden" name="next" value="${next}">
<label for="key">Approver key</label>
<input id="key" name="key" type="password" required autofocus autocomplete="off" autocapitalize="off" spellcheck="false"!${problem === undefined
  ? ''
  : ' aria-describedby="problem"'}>
<button class="good">Sign in</button>
</form>
<p class="quiet">The operator of this service hands out the keys. You stay signed in for at most 8 hours.</p>`
}

/**
 * For a link from another site: browsers don't send a SameSite=Strict cookie with it, so the person isn't known yet.
 * This page requests the same URL again, now from this site, with the cookie.
 */
export function againPage (url: string): string {
  return html`<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Approvals</title><meta http-equiv="refresh" content="0; url=${url}"></head>
<body><main><h1>Approvals</h1><p><a href="${url}">Continue</a></p></main></body></html>`
}
