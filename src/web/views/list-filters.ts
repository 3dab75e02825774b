import { createHash } from 'node:crypto'
import { html } from 'ghtml'
import type { Count, WaitingKind, PeopleList } from '../../handoffs/people/people.ts'
import { inWords } from '../text.ts'
import { notice } from './layout.ts'

/** Above the list: its tabs, how many are in them, and what narrows and sorts it. */

/** The list's filters, as they were typed, and their fault. */
export interface ListFilters {
  inbox: string
  labels: string
  /** A part of the text. */
  q: string
  tab: WaitingKind | undefined
  order: 'expiry' | undefined
  problem?: string
}

/** A short hash of what the lists have: equal for two that look the same. */
export function fingerprint ({ kind, items, next, counts: { approvals, questions } }: PeopleList): string {
  const ids = items.map(({ id, since, digest }) => `${id} ${since} ${digest}`)
  const counts = [next === null, approvals.count, questions.count, questions.areMore]
  return createHash('sha256').update([kind, ...ids, ...counts].join()).digest('base64url').slice(0, 16)
}

export function isNarrowed ({ inbox, labels, q, order }: ListFilters): boolean {
  return inbox + labels + q !== '' || order !== undefined
}

/** The list's address, as HTML. */
export function addressOf (filters: ListFilters, cursor?: string): string {
  const words = listQuery(filters, cursor)
  return words === '' ? '/approvals' : `/approvals?${words}`
}

export function listQuery ({ inbox, labels, q, tab, order }: ListFilters, cursor = ''): string {
  return Object.entries({ cursor, inbox, labels, q, order: order ?? '', tab: tab ?? '' })
    .filter(([, value]) => value !== '')
    .map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join('&amp;')
}

const tabNames: Record<WaitingKind, string> = { questions: 'Questions', approvals: 'Approvals' }

/** Questions come first: agents stand still until they are answered. */
export function tabsView ({ kind, counts }: PeopleList, filters: ListFilters): string {
  return (['questions', 'approvals'] as const).map(one =>
    html`<a id="tab-${one}" href="!${addressOf({ ...filters, tab: one })}"!${one === kind
      ? ' aria-current="page"'
      : ''}>${tabNames[one]} <span class="amount">${amount(counts[one])}</span></a>`).join('\n')
}

function amount ({ count, areMore }: Count): string {
  return inWords(count) + (areMore ? '+' : '')
}

const thing: Record<WaitingKind, string> = { questions: 'question', approvals: 'handoff' }
const comes = 'New ones appear here by themselves.'

/** How many wait in this list, in words. */
export function waitingCount ({ kind, items, next, counts, isPart }: PeopleList, filters: ListFilters): string {
  const { count, areMore } = counts[kind]
  const one = thing[kind]
  const isNarrow = filters.inbox + filters.labels + filters.q !== ''
  const searched = isPart ? ' Only the 10,000 that wait longest were looked through; more wait.' : ''
  if (count === 0 && next === null) return `No ${one}${isNarrow ? ' like this' : ''} waits. ${comes}${searched}`
  if (items.length === 0 && next !== null) return 'The oldest no longer wait. Later ones may.'
  const order = filters.order === 'expiry' ? 'what expires first comes first' : 'the oldest first'
  const words = count === 1 && !areMore ? `One ${one} waits.` : `${inWords(count)} ${one}s wait, ${order}.`
  return words + searched
}

/** Search, order, and, folded as long as they aren't used, inbox and labels. */
export function filterForm (filters: ListFilters): string {
  const { inbox, labels, q, tab, order, problem } = filters
  const field = (name: string, title: string, value: string, example: string) =>
    html`<div><label for="${name}">${title}</label><input id="${name}" name="${name}" value="${value}" placeholder="${example}" maxlength="900" autocomplete="off" autocapitalize="off" spellcheck="false"></div>`
  const option = (value: string, words: string) =>
    html`<option value="${value}"!${value === (order ?? '') ? ' selected' : ''}>${words}</option>`
  return html`!${problem === undefined ? '' : notice('bad', html`<p>${problem}</p>`)}<form class="filters" action="/approvals" role="search" aria-label="Filter">!${tab === undefined ? '' : html`<input type="hidden" name="tab" value="${tab}">`}
<div class="search"><label class="unseen" for="q">Search</label><input id="q" type="search" name="q" value="${q}" placeholder="Search" maxlength="200" autocomplete="off">
<label class="unseen" for="order">Order</label><select id="order" name="order">!${option('', 'Oldest first')}!${option('expiry', 'Expires first')}</select> <button>Show</button></div>
<details class="narrow"!${inbox + labels !== '' ? ' open' : ''}><summary>Filter</summary><div class="fields">
!${field('inbox', 'Inbox', inbox, 'any')}!${field('labels', 'Labels', labels, 'run:42,team:red')}
<div class="buttons"><button>Filter</button></div></div></details>!${isNarrowed(filters) ? html` <a href="!${addressOf({ inbox: '', labels: '', q: '', order: undefined, tab })}">Show all</a>` : ''}
</form>`
}
