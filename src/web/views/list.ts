import { createHash } from 'node:crypto'
import { html } from 'ghtml'
import type { Listed, ListPart } from '../../handoff/approvals.ts'
import type { Caller } from '../../model.ts'
import { beginningOf, visible } from '../text.ts'
import { availableIn, expiresIn, waitingFor } from '../words.ts'
import { layout } from './layout.ts'

/** How much of a task stands in the list, in characters. */
const taskShown = 240

/** Which ones it has and whether it goes on, in a word: two lists that look the same have the same. */
export function fingerprint ({ items, next }: ListPart): string {
  return createHash('sha256').update([...items.map(({ id }) => id), next === null].join()).digest('base64url').slice(0, 16)
}

export interface ListPage { base: string, caller: Caller, part: ListPart, flash: string, isFirst: boolean }

export function listPage ({ base, caller, part, flash, isFirst }: ListPage): string {
  const list = isFirst
    ? liveList(base, part, flash !== '')
    : html`<div id="list">!${items(base, part, true)}</div><p><a href="${base}/approvals">Back to the oldest</a></p>`
  return layout({
    base,
    title: 'What waits for a person',
    caller,
    main: html`!${flash}<h1>What waits for you</h1>
<p id="count" role="status" aria-live="polite">${count(part)}</p>
!${list}
<noscript><p class="quiet">Without JavaScript, new ones show when you load the page again.</p></noscript>`,
  })
}

/** The list, which asks for its next state as soon as it is there. @param focus put the keyboard on the first one */
export function liveList (base: string, part: ListPart, focus: boolean): string {
  // The pause keeps a service that is about to stop, and so answers at once, from being asked in a circle.
  return html`<div id="list" hx-get="${base}/approvals/list?seen=${fingerprint(part)}" hx-trigger="load delay:250ms, again" hx-swap="outerHTML">!${items(base, part, focus)}</div>`
}

/** The list's next state; the count is told anew only where it changed, since it is read out then. */
export function listFragment (base: string, part: ListPart, changed: boolean): string {
  const told = changed ? html`<p id="count" role="status" aria-live="polite" hx-swap-oob="innerHTML">${count(part)}</p>` : ''
  return liveList(base, part, false) + told
}

function count ({ items, next }: ListPart): string {
  if (items.length === 0 && next !== null) return 'The oldest are over by now. There may be others that wait.'
  if (items.length === 0) return 'Nothing waits. New handoffs appear here by themselves.'
  if (next !== null) return `More than ${items.length} handoffs wait, the oldest first.`
  return items.length === 1 ? 'One handoff waits.' : `${items.length} handoffs wait, the oldest first.`
}

function items (base: string, { items, next }: ListPart, focus: boolean): string {
  const now = Date.now()
  const rows = items.map((one, index) => row(base, one, now, focus && index === 0))
  const more = next === null ? '' : html`<p><a href="${base}/approvals?cursor=${next}">Those that came later</a></p>`
  return rows.length === 0 ? more : html`<ol class="waiting">!${rows}</ol>!${more}`
}

function row (base: string, { id, record, task }: Listed, now: number, focus: boolean): string {
  const all = JSON.parse(task) as string
  const shown = beginningOf(all, taskShown)
  const { availableAt = 0 } = record.extra
  return html`<li><a id="h-${id}" href="${base}/approvals/${id}"!${focus ? ' autofocus' : ''}>
<span class="task" dir="auto">!${visible(shown)}${shown.length < all.length ? '…' : ''}</span>
<span class="facts"><span>from ${record.passedBy}</span> <span>!${waitingFor(record.createdAt, now)}</span> <span>!${expiresIn(record.expiresAt, now)}</span>!${availableAt > now ? html` <span>!${availableIn(availableAt, now)}</span>` : ''}</span>
</a></li>`
}
