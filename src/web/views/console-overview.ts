import { html } from 'ghtml'
import type { Caller } from '../../core/model.ts'
import type { Memory } from '../../store/health.ts'
import type { InboxAnswer } from '../../core/schemas/inboxes.ts'
import type { HandoffItem } from '../console-routes.ts'
import { age, agoTag, dateTag } from '../text.ts'
import { activityPart } from './console-activity.ts'
import type { ShownActivity } from './console-activity.ts'
import {
  consoleLayout, liveSection, mayDecide, inboxLink, inboxState, isAtLimit, isFull, number, table, tiles
} from './console-layout.ts'

/** The data of the first page. Times in milliseconds. */
export interface Overview {
  /** A page of inboxes, by name. */
  inboxes: readonly InboxAnswer[]
  /** Where this page begins, if it isn't the first, and where the next one does. */
  cursor: string | undefined
  next: string | null
  /** The latest failure of all inboxes; `mayBe`: there may be some that weren't found at once. */
  failed: { latest: HandoffItem | undefined, mayBe: boolean }
  /** How many wait for a person, and since when the first does. */
  waiting: { count: number, since: number | undefined }
  /** By Redis's clock. */
  now: number
}

/** From when on it is worth a look that the oldest handoff of an inbox waits, in milliseconds. */
const waitsLong = 10 * 60_000
/** How many inboxes are named for one thing that is worth a look. */
const named = 5

/**
 * @param activity what happens; null where that isn't known, or not shown
 * @param memory Redis's; null for who may not know
 */
export function overviewPage (
  caller: Caller, overview: Overview, activity: ShownActivity | null, memory: Memory | null
): string {
  const { cursor } = overview
  const url = cursor === undefined ? '/console' : `/console?cursor=${encodeURIComponent(cursor)}`
  const inside = html`!${verdict(caller, overview)}
!${totals(overview)}
<h2>Inboxes</h2>
!${inboxTable(overview)}
!${pages(overview)}
!${memory === null ? '' : memoryPart(memory)}
<p class="quiet">As of !${dateTag(overview.now)}, and kept up to date.</p>`
  return consoleLayout({
    caller,
    title: 'Overview',
    at: '/console',
    main: html`<h1>Overview</h1>!${liveSection('overview', url, inside)}
!${activity === null ? '' : activityPart(activity)}`
  })
}

/** Is anything wrong? */
function verdict (caller: Caller, overview: Overview): string {
  const found = findings(caller, overview)
  const where = overview.next === null && overview.cursor === undefined ? '' : ' in these inboxes'
  if (found.length === 0) {
    return html`<section class="verdict good" aria-labelledby="verdict"><h2 id="verdict">Nothing is wrong${where}</h2></section>`
  }
  const title = found.length === 1 ? 'One thing needs a look' : `${found.length} things need a look`
  return html`<section class="verdict bad" aria-labelledby="verdict"><h2 id="verdict">${title}</h2>
<ul>!${found.map(finding => html`<li>!${finding}</li>
`)}</ul></section>`
}

function findings (caller: Caller, { inboxes, failed, waiting, now }: Overview): string[] {
  const some = (is: (inbox: InboxAnswer) => boolean, words: string, more: (inbox: InboxAnswer) => string) => {
    const those = inboxes.filter(is)
    if (those.length === 0) return []
    const place = words.toLowerCase().replaceAll(' ', '-')
    const names = those.slice(0, named).map(one => html`!${inboxLink(one.inbox, place)} !${more(one)}`).join(', ')
    return [html`${words}: !${names}${those.length > named ? `, and ${those.length - named} more` : ''}`]
  }
  const waits = ({ pending }: InboxAnswer) => html`(${number(pending)} pending)`
  return [
    ...failures(inboxes, failed, now),
    ...some(isFull, 'Takes no more', ({ max_pending: max }) => html`(${number(max!)} pending at most)`),
    ...some(
      one => isAtLimit(one) && one.pending > 0, 'At the limit of caught handoffs',
      ({ caught, max_caught: max, pending }) => html`(${number(caught)} of ${number(max!)}; ${number(pending)} wait)`
    ),
    ...some(({ paused }) => paused, 'Paused', waits),
    ...some(
      one => one.oldest_at !== null && now - Date.parse(one.oldest_at) >= waitsLong && !one.paused && !isAtLimit(one),
      'Nobody catches', ({ oldest_at: at }) => html`(the oldest waits for !${age(Date.parse(at!), now)})`
    ),
    ...waiting.count === 0 ? [] : [forPeople(caller, waiting, now)],
  ]
}

function failures (inboxes: readonly InboxAnswer[], { latest, mayBe }: Overview['failed'], now: number): string[] {
  const count = inboxes.reduce((sum, { failed }) => sum + failed, 0)
  if (count === 0 && latest === undefined && !mayBe) return []
  const some = latest === undefined ? 'Handoffs may have' : 'Handoffs'
  const those = count === 0 ? some : count === 1 ? 'One handoff' : `${number(count)} handoffs`
  const last = latest?.ended_at === undefined
    ? ''
    : html`; the latest !${agoTag(Date.parse(latest.ended_at), now)}!${latest.to === undefined
      ? ''
      : html`, in !${inboxLink(latest.to, 'latest')}`}`
  return [html`<a id="to-failed" href="/console/failed">${those} failed</a>!${last}`]
}

function forPeople (caller: Caller, { count, since }: Overview['waiting'], now: number): string {
  const words = count === 1 ? 'One handoff waits' : `${number(count)} handoffs wait`
  const who = mayDecide(caller)
    ? html`<a id="to-approvals" href="/approvals">${words}</a>`
    : html`${words}`
  return html`!${who} for a person!${since === undefined ? '' : html`, the first for !${age(since, now)}`}`
}

/** The numbers of all inboxes of the page together. */
function totals ({ inboxes, next, cursor, waiting, now }: Overview): string {
  const sum = (of: (inbox: InboxAnswer) => number) => number(inboxes.reduce((sum, inbox) => sum + of(inbox), 0))
  const oldest = inboxes.flatMap(({ inbox, oldest_at: at }) => at === null ? [] : [{ inbox, at: Date.parse(at) }])
    .reduce<{ inbox: string, at: number } | undefined>((one, other) =>
      one !== undefined && one.at <= other.at ? one : other, undefined)
  const all = tiles([
    ['Pending', sum(({ pending }) => pending)],
    ['Oldest waits', oldest === undefined ? '–' : html`!${age(oldest.at, now)} <small>in !${inboxLink(oldest.inbox, 'oldest')}</small>`],
    ['Caught', sum(({ caught }) => caught)],
    ['Failed', sum(({ failed }) => failed)],
    ['For a person', number(waiting.count)],
  ])
  const note = next === null && cursor === undefined
    ? ''
    : '<p class="quiet">There are more inboxes than one page shows: these are the numbers of this page.</p>'
  return all + note
}

/** What a pending handoff of 1 KB takes of Redis at most, in bytes: docs/performance.md. */
const bytesOfHandoff = 1024 + 725

/** How full Redis is, of all tenants. */
function memoryPart ({ used, limit }: Memory): string {
  const size = (bytes: number) => bytes < 1024 ** 3 ? `${number(Math.round(bytes / 1024 ** 2))} MB` : `${(bytes / 1024 ** 3).toFixed(1)} GB`
  const words = limit === 0
    ? `Redis uses ${size(used)}, and has no limit of its own: set maxmemory, so that it refuses what is too much.`
    : `Redis uses ${size(used)} of ${size(limit)}, ${Math.floor(100 * used / limit)} %. That leaves room for about ${number(Math.floor(Math.max(0, limit - used) / bytesOfHandoff))} handoffs of 1 KB.`
  return html`<h2 id="memory">Memory</h2>
<p>${words}</p>`
}

function inboxTable ({ inboxes, now, next, cursor }: Overview): string {
  if (inboxes.length === 0) {
    return next === null && cursor === undefined
      ? '<p>There is none yet: an inbox is there as soon as something is passed to it.</p>'
      : '<p>None of these has anything by now.</p>'
  }
  return table({
    label: 'Inboxes',
    columns: ['Inbox', 'Pending', 'Oldest waits', 'For a person', 'Later', 'Caught', 'Failed', 'State', 'Listening'],
    rows: inboxes.map(one => [
      inboxLink(one.inbox, 'row'),
      number(one.pending),
      one.oldest_at === null ? '' : age(Date.parse(one.oldest_at), now),
      number(one.waiting_approval),
      number(one.delayed + one.blocked),
      number(one.caught) + (one.max_caught === null ? '' : ` of ${number(one.max_caught)}`),
      one.failed === 0 ? '0' : html`<a id="failed-${one.inbox}" href="/console/failed?inbox=${one.inbox}">${number(one.failed)}</a>`,
      inboxState(one),
      number(one.listening),
    ]),
  })
}

function pages ({ next, cursor }: Overview): string {
  const links = [
    ...cursor === undefined ? [] : ['<a href="/console">Back to the first</a>'],
    ...next === null ? [] : [html`<a href="/console?cursor=${encodeURIComponent(next)}">Next inboxes</a>`],
  ]
  return links.length === 0 ? '' : html`<p>!${links.join(' ')}</p>`
}
