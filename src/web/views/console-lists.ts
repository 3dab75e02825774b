import { html } from 'ghtml'
import type { HandoffItem } from '../console-routes.ts'
import { age, agoTag, availableIn, beginningOf, inTag, labelTags, visible } from '../text.ts'
import { table } from './console-parts.ts'

/** Tables of handoffs. */

/** How much of what agents wrote a cell shows, in characters. */
const textShown = 200

export function pendingTable (items: readonly HandoffItem[], now: number): string {
  return table({
    label: 'Pending',
    columns: ['Handoff', 'From', 'Since', 'Expires', 'State'],
    rows: items.map(item => [
      handoffCell(item),
      agent(item.passed_by),
      age(Date.parse(item.created_at), now),
      inTag(Date.parse(item.expires_at), now),
      pendingState(item, now),
    ])
  })
}

export function caughtTable (items: readonly HandoffItem[], now: number): string {
  return table({
    label: 'Caught',
    columns: ['Handoff', 'By', 'Since', 'Last heartbeat', 'Progress'],
    rows: items.map(item => [
      handoffCell(item),
      agent(item.caught_by ?? ''),
      item.caught_at === undefined ? '' : age(Date.parse(item.caught_at), now),
      heardOf(item, now),
      progressCell(item, now),
    ])
  })
}

export function failedTable (items: readonly HandoffItem[], now: number): string {
  return table({
    label: 'Failed',
    columns: ['Handoff', 'How', 'Ended', 'Caught by', 'Why'],
    rows: items.map(item => [
      handoffCell(item),
      item.status,
      item.ended_at === undefined ? '' : agoTag(Date.parse(item.ended_at), now),
      item.caught_by === undefined ? '' : agent(item.caught_by),
      why(item),
    ])
  })
}

/** A link to the handoff's page: its id, and for operators what its task begins with. */
function handoffCell ({ handoff_id: id, task, task_truncated: isCut, labels }: HandoffItem): string {
  return html`<a id="h-${id}" href="/console/handoffs/${id}"><code>${id}</code></a>!${task === undefined
    ? ''
    : html` <span class="some" dir="auto">!${some(task, isCut === true)}</span>`}!${labels === undefined
    ? ''
    : ` ${labelTags(Object.entries(labels).map(([name, value]) => `${name}:${String(value)}`))}`}`
}

function agent (name: string): string {
  return html`<span class="name">${name}</span>`
}

/** The beginning of what an agent wrote. @param isCut there is more of it than this text */
function some (text: string, isCut = false): string {
  const shown = beginningOf(text, textShown)
  return visible(shown) + (isCut || shown.length < text.length ? '…' : '')
}

function pendingState ({ approval, available_at: at, cancel_requested_at: cancel }: HandoffItem, now: number): string {
  const isWaiting = (approval as { state?: string } | undefined)?.state === 'waiting'
  return [
    ...isWaiting ? ['waits for a person'] : [],
    ...at !== undefined && Date.parse(at) > now ? [availableIn(Date.parse(at), now)] : [],
    ...cancel === undefined ? [] : ['cancel requested'],
  ].join('; ')
}

/** When its catcher was last heard of: with its catch, if not since. */
function heardOf ({ heartbeat_at: at, caught_at: caughtAt }: HandoffItem, now: number): string {
  if (at !== undefined) return agoTag(Date.parse(at), now)
  return caughtAt === undefined ? '' : 'not since the catch'
}

/** What its catcher said of its progress. */
function progressCell ({ progress, cancel_requested_at: cancel }: HandoffItem, now: number): string {
  const { message, percent } = (progress ?? {}) as { message?: string | null, percent?: number | null }
  return [
    ...percent == null ? [] : [html`${percent} %`],
    ...message == null ? [] : [html`<span dir="auto" class="some">!${some(message)}</span>`],
    ...cancel === undefined ? [] : [html`<span class="badge">asked to stop !${agoTag(Date.parse(cancel), now)}</span>`],
  ].join(' ')
}

/** Why it failed, as far as is known. */
function why ({ error, reason, expired_because: because }: HandoffItem): string {
  if (error !== undefined) {
    return html`!${error.code === undefined ? '' : html`<code>${error.code}</code> `}<span dir="auto" class="some">!${some(
      error.message
    )}</span>`
  }
  if (reason !== undefined) return html`<span dir="auto" class="some">!${some(reason)}</span>`
  return because === undefined ? '' : html`${because}`
}
