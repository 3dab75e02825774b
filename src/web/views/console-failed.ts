import { html } from 'ghtml'
import type { Caller } from '../../core/model.ts'
import type { OperationOutcome } from '../../operations/operation.ts'
import { failures } from '../console-routes.ts'
import type { Filters, Query, HandoffItem, Handoffs } from '../console-routes.ts'
import { consoleLayout, mayChange, inboxLink, number, table } from './console-layout.ts'
import { address, agentLink, ago, capital, counted, handoffRow, said, statusTag } from './console-handoffs.ts'
import { notice } from './layout.ts'
import { timeFields } from './time-fields.ts'
import { dateTag } from '../text.ts'

/** Failures of one inbox that ended alike. `inbox`, `code`: empty for none. */
interface Group { inbox: string, status: string, code: string, count: number, latest: string }

/** Groups the handoffs that were read, the largest group first. */
function groupsOf (items: readonly HandoffItem[]): Group[] {
  const groups = new Map<string, Group>()
  for (const { to: inbox = '', status, error, ended_at: latest = '' } of items) {
    const code = error?.code ?? ''
    const name = [inbox, status, code].join(' ')
    const group = groups.get(name)
    if (group === undefined) groups.set(name, { inbox, status, code, count: 1, latest })
    else group.count++
  }
  return [...groups.values()].sort((one, other) => other.count - one.count)
}

interface FailedPage {
  caller: Caller
  filters: Filters
  /** The handoffs that the page lists. */
  part: Handoffs
  /** The handoffs to be grouped; null if the page begins with later ones. */
  grouped: Handoffs | null
}

/** Why handoffs failed, and which. */
export function failedPage ({ caller, filters, part, grouped }: FailedPage): string {
  const { query, problem } = filters
  return consoleLayout({
    caller,
    title: 'Failed',
    at: '/console/failed',
    main: html`<h1>Failed</h1>
<p class="quiet">Failed, declined or expired, and without a new attempt. Redriven, each is passed again by its own passer.</p>
!${problem === undefined ? '' : notice('bad', html`<p>${problem}</p>`)}
!${filterForm('/console/failed', query, failures)}
!${grouped === null || grouped.items.length === 0 ? '' : groupTable({ ...grouped, now: part.now }, query)}
!${problem === undefined ? list(caller, query, part, grouped === null) : ''}`,
  })
}

/** The fields that narrow a list. @param path of its page @param statuses those that it has */
export function filterForm (path: string, query: Query, statuses: readonly string[]): string {
  const { inbox = '', status = '', error_code: code = '', labels = '' } = query
  const isNarrow = Object.keys(query).length > 0
  const options = statuses.map(name => html`<option value="${name}"!${name === status ? ' selected' : ''}>${name}</option>`)
  const field = (name: string, title: string, value: string, example: string) =>
    html`<div><label for="${name}">${title}</label><input id="${name}" name="${name}" value="${value}" placeholder="${example}" maxlength="300" autocomplete="off" autocapitalize="off" spellcheck="false"></div>`
  return html`<form class="filters" action="${path}" aria-label="Filter">
!${field('inbox', 'Inbox', inbox, 'any')}
<div><label for="status">How it ended</label><select id="status" name="status"><option value="">any way</option>!${options}</select></div>
!${field('error_code', 'Error code', code, 'any')}
!${field('labels', 'Labels', labels, 'run:42,team:red')}
!${timeFields(query)}
<div class="buttons"><button>Filter</button>!${isNarrow ? html` <a href="${path}">Show all</a>` : ''}</div>
</form>`
}

function groupTable ({ items, next, now }: Handoffs, query: Query): string {
  const label = next === null
    ? `${capital(counted(items.length, 'handoff'))}, by inbox and error code`
    : `The latest ${number(items.length)}, by inbox and error code`
  const groups = groupsOf(items)
  const rows = groups.map(({ inbox, status, code, count, latest }) => {
    // No filter wants none: where the page that it leads to would have others too, there is no link.
    const found = groups.filter(other => (inbox === '' || other.inbox === inbox) && other.status === status &&
      (code === '' || other.code === code))
    const filters = address('/console/failed', { ...query, inbox, status, error_code: code })
    return [
      inbox === '' ? '<span class="quiet">for no inbox</span>' : inboxLink(inbox),
      statusTag(status),
      code === '' ? '' : html`<code>${code}</code>`,
      found.length > 1
        ? number(count)
        : html`<a href="${filters}">${number(count)}<span class="unseen"> of these</span></a>`,
      latest === '' ? '' : ago(latest, now),
    ]
  })
  return html`<h2>${label}</h2>!${table({
    label, columns: ['Inbox', 'How it ended', 'Error code', 'Handoffs', 'Latest'], rows
  })}!${next === null ? '' : '<p class="quiet">There are more; a filter shows more of one kind.</p>'}
<h2>One by one</h2>`
}

function list (caller: Caller, query: Query, { items, next, now }: Handoffs, isLater: boolean): string {
  const on = next === null
    ? ''
    : html`<p><a href="${address('/console/failed', { ...query, cursor: next })}">Earlier ones</a></p>`
  const back = isLater ? html`<p><a href="${address('/console/failed', { ...query })}">Back to the latest</a></p>` : ''
  if (items.length === 0) {
    const nothing = next === null
      ? (isLater ? 'There are no earlier ones.' : 'Nothing failed.')
      : 'None found so far. There may be earlier ones.'
    return html`<p role="status">${nothing}</p>!${on}!${back}`
  }
  const isHers = mayChange(caller)
  const rows = items.map(item => handoffRow(
    item, endFacts(item, now), isHers
      ? html`<input type="checkbox" name="id" value="${item.handoff_id}" aria-label="Choose ${item.handoff_id}">`
      : ''
  ))
  const all = html`<ol class="handoffs">!${rows}</ol>`
  if (!isHers) return all + on + back
  return html`<form method="post" action="/console/failed/chosen" aria-label="Redrive">
!${hidden(query)}!${all}!${on}!${back}
<div class="buttons steady"><button class="good">Redrive the chosen</button> <a class="onward" href="${address(
  '/console/failed/redrive', { ...query }
)}">Redrive all that match…</a></div>
</form>`
}

/** How it ended, of what, and what its catcher said. */
export function endFacts (item: HandoffItem, now: number): string[] {
  const { to, status, passed_by: passer, caught_by: catcher, error, reason, attempt } = item
  const end = item.completed_at ?? item.ended_at
  const why = error !== undefined
    ? (error.code === undefined ? '' : html`<code>${error.code}</code> `) + said(error.message)
    : reason !== undefined ? said(reason) : because[item.expired_because ?? ''] ?? ''
  return [
    `${statusTag(status)} ${end === undefined ? '' : ago(end, now)}`,
    to === undefined ? '' : `in ${inboxLink(to)}`,
    catcher === undefined ? '' : `by ${agentLink(catcher)}`,
    item.worker === undefined ? '' : html`worker <code>${item.worker}</code>`,
    html`from ${passer}`,
    attempt === undefined ? '' : html`attempt ${String(attempt)}`,
    why,
  ]
}

const because: Record<string, string> = {
  not_caught: 'not caught in time',
  not_decided: 'nobody decided on it in time',
  not_done: 'not done in time',
  stalled: 'no heartbeat in time'
}

function hidden (query: Query): string {
  return html`!${Object.entries(query).map(([name, value]) =>
    html`<input type="hidden" name="${name}" value="${value as string}">`)}`
}

/** The filters in words; empty for none. */
function filterWords ({ inbox, status, error_code: code, labels, since, until }: Query): string[] {
  return [
    inbox === undefined ? '' : html`in the inbox <strong>${inbox}</strong>`,
    status === undefined ? '' : html`that <strong>${status === 'failed' ? 'failed' : status === 'declined' ? 'were declined' : 'expired'}</strong>`,
    code === undefined ? '' : html`with the error code <code>${code}</code>`,
    labels === undefined ? '' : html`with the labels <code>${labels}</code>`,
    since === undefined ? '' : html`that ended from !${dateTag(Date.parse(since))} on`,
    until === undefined ? '' : html`that ended before !${dateTag(Date.parse(until))}`,
  ].filter(words => words !== '')
}

/** How many one press of the button redrives at most. */
export const redrivenAtOnce = 1000

/** Asks before all that match are redriven. */
export function redrivePage (caller: Caller, { query, problem }: Filters, { items, next }: Handoffs): string {
  const back = html`<a class="onward" href="${address('/console/failed', { ...query })}">Back</a>`
  const words = filterWords(query)
  const many = next === null ? counted(items.length, 'handoff') : `more than ${items.length.toLocaleString('en')} handoffs`
  const question = html`<p>This redrives <strong>${many}</strong>!${words.length === 0
    ? ': <strong>all</strong> that failed.'
    : html`: those !${words.join(', ')}.`} Each gets a new attempt with the same payload, and can be caught at once. That can’t be taken back: a new attempt can only be cancelled.</p>`
  return consoleLayout({
    caller,
    title: 'Redrive all that match',
    at: '/console/failed',
    main: problem !== undefined
      ? html`<h1>Redrive all that match</h1>!${notice('bad', html`<p>${problem}</p>`)}<p>!${back}</p>`
      : items.length === 0 && next === null
        ? html`<h1>Redrive all that match</h1><p>Nothing matches.</p><p>!${back}</p>`
        : html`<h1>Redrive all that match?</h1>!${question}
<form method="post" action="/console/failed/redrive">!${hidden(query)}
<div class="buttons"><button class="good">Redrive ${next === null ? 'them' : `the first ${redrivenAtOnce.toLocaleString('en')}`}</button> !${back}</div></form>`,
  })
}

/** The result of a redrive. @param all whether it was of all that match */
export function redrivenPage (
  caller: Caller, query: Query, { moved: { ids: changed = [] }, answer }: OperationOutcome, all: boolean
): string {
  const { skipped, more } = answer as { skipped: number, more: boolean }
  const words = [
    `${capital(counted(changed.length, 'handoff'))} ${changed.length === 1 ? 'was' : 'were'} redriven.`,
    skipped === 0
      ? ''
      : `${capital(counted(skipped, 'handoff'))} could not be: gone, or already redriven.`,
    more && !all ? 'Then the service could not go on. Look at what is left, and try again.' : '',
    more && all ? 'More of them match.' : '',
  ].filter(sentence => sentence !== '').join(' ')
  const made = changed.slice(0, 20).map(id => html`<li><a href="/console/handoffs/${id}"><code>${id}</code></a></li>`)
  return consoleLayout({
    caller,
    title: 'Redriven',
    at: '/console/failed',
    main: html`<h1>Redriven</h1>!${notice(changed.length === 0 ? 'bad' : 'good', html`<p>${words}</p>`)}
!${made.length === 0 ? '' : html`<p>${changed.length > made.length ? 'The first new attempts:' : 'The new attempts:'}</p><ul class="plain-list">!${made}</ul>`}
!${more && all
  ? html`<form method="post" action="/console/failed/redrive">!${hidden(query)}<div class="buttons"><button class="good">Redrive the next ${redrivenAtOnce.toLocaleString('en')}</button></div></form>`
  : ''}
<p><a class="onward" href="${address('/console/failed', { ...query })}">Back to what failed</a></p>`,
  })
}
