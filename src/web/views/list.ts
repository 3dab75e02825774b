import { createHash } from 'node:crypto'
import { html } from 'ghtml'
import type { Caller } from '../../core/model.ts'
import type { DecidedLately } from '../../handoffs/approvals.ts'
import type { WaitingItem, WaitingList } from '../../handoffs/waiting.ts'
import { agoTag, availableIn, beginningOf, expiresIn, labelTags, visible, waitingFor } from '../text.ts'
import { decisionBar, pick } from './decide-many.ts'
import type { ManyDraft } from './decide-many.ts'
import { nameOf } from './handoff.ts'
import { layout, notice } from './layout.ts'

/** How much of a task or a question the list shows, in characters. */
const textShown = 240

/** The same of what was decided. */
const decidedShown = 120

/** What the list is narrowed to, as it was typed, and what is wrong with that. */
export interface ListFilters { inbox: string, labels: string, only?: 'questions' | undefined, problem?: string }

/** A short hash of what the list has and, if it goes on, of how many wait: equal for two lists that look the same. */
export function fingerprint ({ items, next, approvals, questions }: WaitingList): string {
  const ids = items.map(({ id, kind, since, digest }) => `${kind} ${id} ${since} ${digest}`)
  return createHash('sha256').update([...ids, ...next === null ? [] : [approvals ?? '', questions]].join())
    .digest('base64url').slice(0, 16)
}

interface ListPage {
  caller: Caller
  part: WaitingList
  /** HTML. */
  flash: string
  /** Where this part begins; undefined at the start. */
  cursor: string | undefined
  filters: ListFilters
  /** A decision that was refused. */
  draft?: ManyDraft
}

export function listPage ({ caller, part, flash, cursor, filters, draft }: ListPage): string {
  const isNarrow = filters.inbox + filters.labels !== ''
  const isFirst = cursor === undefined
  const view = { caller, filters, chosen: draft?.chosen, focus: draft === undefined && (flash !== '' || !isFirst) }
  const back = isFirst ? '' : html`<p><a href="!${addressOf(filters)}">Back to the oldest</a></p>`
  const list = isFirst ? liveList(part, view) : html`<div id="list">!${items(part, view)}</div>!${back}`
  const reload = '<p class="quiet">Without JavaScript, reload the page to see what is new.</p>'
  return layout({
    title: 'Waiting for you',
    caller,
    main: html`!${flash}<h1>Waiting for a person</h1>
<p id="count" role="status" aria-live="polite">${waitingCount(part, isFirst, filters)}</p>
!${filterForm(filters, isNarrow)}
!${list}
<noscript>!${reload}</noscript>
!${decisionBar({ ...filters, cursor }, draft)}
!${isAll(filters) && isFirst ? decidedPart(caller, part) : ''}`,
  })
}

/** Folded as long as it isn't used: most have one list. */
function filterForm (filters: ListFilters, isNarrow: boolean): string {
  const { inbox, labels, only, problem } = filters
  const field = (name: string, title: string, value: string, example: string) =>
    html`<div><label for="${name}">${title}</label><input id="${name}" name="${name}" value="${value}" placeholder="${example}" maxlength="900" autocomplete="off" autocapitalize="off" spellcheck="false"></div>`
  return html`<details class="narrow"!${isNarrow ? ' open' : ''}><summary>Filter</summary>
!${problem === undefined ? '' : notice('bad', html`<p>${problem}</p>`)}<form class="filters" action="/approvals" aria-label="Filter">!${only === undefined ? '' : html`<input type="hidden" name="only" value="${only}">`}
!${field('inbox', 'Inbox', inbox, 'any')}!${field('labels', 'Labels', labels, 'run:42,team:red')}
<div class="buttons"><button>Filter</button>!${isNarrow ? ' <a href="/approvals">Show all</a>' : ''}</div>
</form></details>!${only === undefined ? '' : html`<p><a href="!${addressOf({ ...filters, only: undefined })}">Show what waits for approval too</a></p>`}`
}

function isAll ({ inbox, labels, only }: ListFilters): boolean {
  return inbox + labels === '' && only === undefined
}

/** The list's address, as HTML. */
export function addressOf (filters: ListFilters, cursor?: string): string {
  const words = queryOf(filters, cursor)
  return words === '' ? '/approvals' : `/approvals?${words}`
}

function queryOf ({ inbox, labels, only }: ListFilters, cursor = ''): string {
  return Object.entries({ cursor, inbox, labels, only: only ?? '' }).filter(([, value]) => value !== '')
    .map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join('&amp;')
}

/**
 * How the entries are shown: to whom, which of them are chosen (the values of their boxes), and whether the first gets
 * the focus.
 */
interface ListView { caller: Caller, filters?: ListFilters, chosen?: ReadonlySet<string> | undefined, focus?: boolean }

/** The list, which polls for its next state as soon as it is loaded. */
function liveList (part: WaitingList, view: ListView): string {
  // A draining service answers polls at once; the pause keeps the page from polling it in a tight loop.
  const query = [queryOf(view.filters ?? noFilters), `seen=${fingerprint(part)}`].filter(words => words !== '')
  return html`<div id="list" hx-get="/approvals/list?!${query.join('&amp;')}" hx-trigger="load delay:250ms, again" hx-swap="outerHTML">!${items(part, view)}</div>`
}

/** The list's next state. It replaces the count only if that changed, because screen readers read it out each time. */
export function listFragment (caller: Caller, part: WaitingList, filters: ListFilters, changed: boolean): string {
  const changedCount = changed
    ? html`<p id="count" role="status" aria-live="polite" hx-swap-oob="innerHTML">${waitingCount(part, true, filters)}</p>`
    : ''
  return liveList(part, { caller, filters }) + changedCount +
    (changed && isAll(filters) ? decidedPart(caller, part, true) : '')
}

/** What was decided last. @param isSwap as a part of the list's next state */
function decidedPart (caller: Caller, { decided, now }: WaitingList, isSwap = false): string {
  const rows = decided.map(one => decidedRow(caller, one, now))
  return html`<div id="decided"!${isSwap ? ' hx-swap-oob="innerHTML"' : ''}>!${rows.length === 0
    ? ''
    : html`<section aria-labelledby="lately"><h2 id="lately">Decided last</h2><ol class="handoffs">!${rows}</ol></section>`}</div>`
}

function decidedRow (caller: Caller, { id, record, decision, task }: DecidedLately, now: number): string {
  const verdict = record.approval === 'rejected' ? 'rejected' : 'approved'
  const text = task === null
    ? html`<code>${id}</code>`
    : visible(beginningOf(JSON.parse(task.text) as string, decidedShown)) + (task.truncated ? '…' : '')
  return html`<li><div class="row"><a href="/approvals/${id}"><span class="some" dir="auto">!${text}</span></a>
<span class="facts"><span><strong class="status ${verdict === 'approved' ? 'good' : 'bad'}">${verdict}</strong> by ${nameOf(decision.by, caller).replace('You', 'you')}</span> <span>!${agoTag(decision.at, now)}</span>!${task === null
  ? ''
  : html` <span><code>${id}</code></span>`}</span></div></li>`
}

/** How many wait, as far as the page knows. */
function waitingCount (part: WaitingList, isFirst: boolean, filters: ListFilters): string {
  const isNarrow = filters.inbox + filters.labels !== ''
  const kind = filters.only === undefined ? 'handoff' : 'question'
  const { items, next, approvals, questions, areMore } = part
  if (items.length === 0 && next !== null) return 'The oldest no longer wait. Later ones may.'
  if (items.length === 0) return `No ${kind}${isNarrow ? ' like this' : ''} waits. ${comes}`
  // A part doesn't know how many others are like this, or how many questions came before.
  const isWhole = isFirst && next === null
  if ((isNarrow && !isWhole) || approvals === null || (!isFirst && questions > 0)) return 'The oldest first.'
  const count = isNarrow ? items.filter(({ kind }) => kind === 'approval').length : approvals
  const what = [...count > 0 ? [handoffsIn(count)] : [], ...questions > 0 ? [questionsIn(questions, areMore)] : []]
  const isOne = count + questions === 1 && !areMore
  const words = `${what.join(' and ')} ${isOne ? 'waits.' : 'wait, the oldest first.'}`
  return words.charAt(0).toUpperCase() + words.slice(1)
}

const comes = 'New ones appear here by themselves.'

function handoffsIn (count: number): string {
  return count === 1 ? 'one handoff' : `${count.toLocaleString('en')} handoffs`
}

function questionsIn (count: number, areMore: boolean): string {
  return count === 1 && !areMore ? 'one question' : `${areMore ? 'more than ' : ''}${count.toLocaleString('en')} questions`
}

const noFilters = { inbox: '', labels: '' }

/** Behind many handoffs a question would be on a later page, while an agent waits for its answer. */
function toQuestions ({ items, questions, areMore }: WaitingList, filters: ListFilters): string {
  const shown = items.filter(({ kind }) => kind === 'question').length
  if (filters.only !== undefined || (shown === questions && !areMore)) return ''
  const words = `${questionsIn(questions, areMore)} ${questions === 1 && !areMore ? 'waits' : 'wait'} for an answer.`
  return html`<p>${words.charAt(0).toUpperCase() + words.slice(1)} <a href="!${addressOf({ ...filters, only: 'questions' })}">Show questions alone</a></p>`
}

function items (part: WaitingList, view: ListView): string {
  const { items, next, now } = part
  const { filters = noFilters, focus = false } = view
  const rows = items.map((one, index) => row(one, now, view, focus && index === 0))
  const more = next === null ? '' : html`<p><a href="!${addressOf(filters, next)}">Later ones</a></p>`
  const list = rows.length === 0 ? '' : html`<ol class="waiting">!${rows}</ol>`
  return toQuestions(part, filters) + list + more
}

function row (item: WaitingItem, now: number, { caller, chosen }: ListView, focus: boolean): string {
  const { kind, id, record, since, text, isWhole } = item
  const all = JSON.parse(text) as string
  const shown = beginningOf(all, textShown)
  const { to, labels, ask } = record.extra
  const availableAt = kind === 'approval' ? record.extra.availableAt ?? 0 : 0
  const facts = [
    kind === 'question'
      ? html`<strong class="asks">question</strong> from ${record.caught!.by}`
      : html`from ${record.passedBy}`,
    waitingFor(since, now),
    expiresIn(kind === 'question' ? ask!.expiresAt : record.expiresAt, now),
    availableAt > now ? availableIn(availableAt, now) : '',
    kind === 'approval' && !(isWhole && shown.length === all.length) ? '<strong>more inside</strong>' : '',
    to === undefined ? '' : html`inbox ${to}`,
    html`<code>${id}</code>`,
    labels === undefined ? '' : labelTags(labels)
  ]
  return html`<li>!${pick(item, caller, chosen)}<a id="h-${id}" href="/approvals/${id}"!${focus ? ' autofocus' : ''}>
<span class="task" id="t-${id}" dir="auto">!${visible(shown)}${shown.length < all.length ? '…' : ''}</span>
<span class="facts">!${facts.filter(fact => fact !== '').map(fact => html`<span>!${fact}</span> `)}</span>
</a></li>`
}
