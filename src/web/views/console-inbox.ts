import { html } from 'ghtml'
import type { Caller } from '../../core/model.ts'
import type { GroupsAnswer, InboxAnswer, WorkersAnswer } from '../../core/schemas/inboxes.ts'
import type { Handoffs } from '../console-routes.ts'
import { age, dateTag } from '../text.ts'
import { groupsPart } from './console-groups.ts'
import { caughtTable, failedTable, pendingTable } from './console-lists.ts'
import { consoleLayout, liveSection, mayChange, inboxPath, inboxState, number, tiles } from './console-layout.ts'
import { workersTable } from './console-workers.ts'
import { notice } from './layout.ts'

/** The limits of an inbox. */
export type LimitName = 'max_caught' | 'max_pending' | 'max_caught_per_group'

type List = 'caught' | 'pending' | 'failed'

/** The lists of an inbox's page. `now` by Redis's clock. */
export interface InboxLists extends Record<List, Handoffs> { now: number }

/** The result of a form on this page. */
interface DoneToMany {
  cancelled: number | undefined
  reissued: number | undefined
  skipped: number | undefined
  more: boolean
}

interface InboxPage {
  caller: Caller
  inbox: InboxAnswer
  lists: InboxLists
  /** Who works on it, the latest first. */
  workers: WorkersAnswer
  /** The first of its groups. */
  groups: GroupsAnswer
  /** Where each list begins, if not at its start. */
  cursors: Record<List, string | undefined>
  done: DoneToMany
  /** Limits that were refused, and why. */
  draft?: { problem: string, typed: Record<LimitName, string> }
}

export function inboxPage (page: InboxPage): string {
  const { caller, inbox, cursors, done, draft } = page
  const query = new URLSearchParams(Object.entries(cursors).filter((one): one is [string, string] =>
    one[1] !== undefined))
  const url = inboxPath(inbox.inbox) + (query.size === 0 ? '' : `?${query}`)
  return consoleLayout({
    caller,
    title: `Inbox ${inbox.inbox}`,
    main: html`!${doneNotice(inbox, done)}!${draft === undefined
      ? ''
      : notice('bad', html`<p id="problem">${draft.problem}</p>`)}<h1><small>Inbox</small> ${inbox.inbox}</h1>
!${mayChange(caller) ? steering(inbox, draft) : ''}
!${liveSection('inbox', url, contents(page))}`
  })
}

function contents ({ inbox, lists, cursors, workers, groups }: InboxPage): string {
  const { caught, pending, failed, now } = lists
  const state = inboxState(inbox)
  const all = inbox.pending + inbox.waiting_approval + inbox.delayed + inbox.blocked
  return html`!${tiles([
    ['Pending', html`${number(all)}!${all === inbox.pending ? '' : html` <small>${number(inbox.pending)} can be caught now</small>`}`],
    ['Oldest waits', inbox.oldest_at === null ? '–' : age(Date.parse(inbox.oldest_at), now)],
    ['For a person', number(inbox.waiting_approval)],
    ['Later', number(inbox.delayed + inbox.blocked)],
    ['Caught', number(inbox.caught)],
    ['Failed', number(inbox.failed)],
    ['Listening', number(inbox.listening)],
  ])}
<p>!${state === '' ? '' : html`!${state} `}${settingsWords(inbox)}</p>
!${list('caught', 'Caught', caught, cursors, inbox, caughtTable(caught.items, now))}
!${workersPart(inbox.inbox, workers, now)}
!${groupsPart(inbox.inbox, groups)}
!${list('pending', 'Pending', pending, cursors, inbox, pendingTable(pending.items, now))}
!${list('failed', 'Failed', failed, cursors, inbox, failedTable(failed.items, now))}
<p class="quiet">As of !${dateTag(now)}, and kept up to date.</p>`
}

/** How many of its workers the inbox's page shows. */
const workersShown = 10

function workersPart (inbox: string, { items, more }: WorkersAnswer, now: number): string {
  const isMore = more || items.length > workersShown
  return html`<h2 id="workers">Who works on it</h2>
!${items.length === 0
  ? '<p class="quiet">Nobody waits there, has asked there within a minute, or has one of its handoffs caught.</p>'
  : workersTable(items.slice(0, workersShown), now)}!${isMore
  ? html`<p><a id="all-workers" href="${inboxPath(inbox)}/workers">All ${number(items.length)}${more ? ', and more' : ''}</a></p>`
  : ''}`
}

function settingsWords (
  { paused, max_caught: maxCaught, max_pending: maxPending, max_caught_per_group: ofGroup }: InboxAnswer
): string {
  const limits = [
    ...maxCaught === null ? [] : [`at most ${number(maxCaught)} are caught at a time`],
    ...ofGroup === null ? [] : [`at most ${number(ofGroup)} of a group`],
    ...maxPending === null ? [] : [`at most ${number(maxPending)} may be pending`],
  ]
  const gives = paused ? 'Nothing is caught from it by next' : 'It gives what agents catch next'
  return `${[gives, ...limits].join('; ')}.`
}

/** @param items HTML of what there is */
function list (
  id: List, title: string, { items, next }: Handoffs, cursors: InboxPage['cursors'], { inbox }: InboxAnswer,
  shown: string
): string {
  const path = inboxPath(inbox)
  const isFirst = cursors[id] === undefined
  const links = [
    ...isFirst ? [] : [html`<a id="${id}-first" href="${path}#${id}">Back to the first</a>`],
    ...next === null
      ? []
      : [html`<a id="${id}-next" href="${path}?${id}=${encodeURIComponent(next)}#${id}">${items.length === 0
        ? 'Look further'
        : 'More'}</a>`],
  ]
  const none = next !== null ? 'None found so far.' : isFirst ? 'None.' : 'No more.'
  return html`<h2 id="${id}">${title}</h2>
!${items.length === 0 ? html`<p class="quiet">${none}</p>` : shown}
!${links.length === 0 ? '' : html`<p>!${links.join(' ')}</p>`}`
}

/** What the form calls them. */
export const limitLabels: Record<LimitName, string> = {
  max_caught: 'Caught at most', max_pending: 'Pending at most', max_caught_per_group: 'Caught of a group at most'
}

/** Operators' forms. They are outside of the parts that renew themselves, so that nothing is lost while they type. */
function steering (inbox: InboxAnswer, draft: InboxPage['draft']): string {
  const { inbox: name, paused } = inbox
  const path = inboxPath(name)
  const shown = Object.fromEntries(Object.keys(limitLabels).map(id =>
    [id, String(inbox[id as LimitName] ?? '')])) as Record<LimitName, string>
  const typed = draft?.typed ?? shown
  const field = ([id, label]: [LimitName, string]) => html`<div><label for="${id}">${label}</label>
<input id="${id}" name="${id}" inputmode="numeric" maxlength="10" placeholder="any number" value="${typed[id]}" autocomplete="off"!${draft === undefined
  ? ''
  : ' aria-describedby="problem"'}><input type="hidden" name="shown_${id}" value="${shown[id]}"></div>`
  return html`<div class="steering">
<form method="post" action="${path}/pause"><input type="hidden" name="paused" value="${String(
  !paused
)}"><button class="onward">${paused ? 'Resume' : 'Pause'}</button></form>
<a class="onward" href="${path}/purge">Cancel what is pending…</a>
<a class="onward" href="${path}/redrive">Reissue what failed…</a>
</div>
<details class="limits"!${draft === undefined ? '' : ' open'}><summary>Limits</summary>
<form method="post" action="${path}/limits">!${(Object.entries(limitLabels) as Array<[LimitName, string]>).map(
  field
)}<button class="good">Set the limits</button></form></details>`
}

function doneNotice ({ inbox }: InboxAnswer, { cancelled, reissued, skipped, more }: DoneToMany): string {
  const path = inboxPath(inbox)
  const changedNotice = (count: number, what: string, onward: string) => notice('good', html`<p>${count === 1
    ? 'One handoff was'
    : `${number(count)} handoffs were`} ${what}.!${skipped === undefined || skipped === 0
    ? ''
    : html` ${number(skipped)} could not be: they are gone, or had changed before.`}!${more
    ? html` There are more: <a href="${path}/${onward}">go on</a>.`
    : ''}</p>`)
  if (cancelled !== undefined) return changedNotice(cancelled, 'cancelled', 'purge')
  return reissued === undefined ? '' : changedNotice(reissued, 'reissued', 'redrive')
}
