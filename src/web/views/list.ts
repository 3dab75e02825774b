import { html } from 'ghtml'
import type { Caller } from '../../core/model.ts'
import type { DecidedLately } from '../../handoffs/people/decisions.ts'
import type { PeopleItem, PeopleList } from '../../handoffs/people/people.ts'
import { agoTag, availableIn, beginningOf, beginningView, expiresIn, labelTags, waitingFor } from '../text.ts'
import { decisionBar, pick, wordsOf } from './decide-many.ts'
import type { ManyDraft } from './decide-many.ts'
import { withoutText } from './decided.ts'
import { nameOf } from './handoff.ts'
import { layout } from './layout.ts'
import { addressOf, filterForm, fingerprint, isNarrowed, listQuery, tabsView, waitingCount } from './list-filters.ts'
import type { ListFilters } from './list-filters.ts'

/** How much of a task or a question the list shows, in characters. */
const textShown = 240

const allWords = 'Select all that are shown'

/** The same of decided handoffs. */
const decidedShown = 120

interface ListPage {
  caller: Caller
  part: PeopleList
  /** HTML. */
  flash: string
  /** Where this part begins; undefined at the start. */
  cursor: string | undefined
  filters: ListFilters
  /** A decision that was refused. */
  draft?: ManyDraft
}

export function listPage ({ caller, part, flash, cursor, filters, draft }: ListPage): string {
  const isFirst = cursor === undefined
  const { kind } = part
  // The list that is shown stays the one that is shown.
  const own = { ...filters, tab: kind }
  const view = { caller, filters: own, chosen: draft?.chosen, focus: draft === undefined && (flash !== '' || !isFirst) }
  const back = isFirst ? '' : html`<p><a href="!${addressOf(own)}">Back to the first</a></p>`
  const list = isFirst ? liveList(part, view) : html`<div id="list">!${items(part, view)}</div>!${back}`
  const all = kind === 'approvals'
    ? `<p class="all" hidden><label><input type="checkbox" id="all" autocomplete="off"> ${allWords}</label></p>`
    : ''
  return layout({
    title: 'Waiting for you',
    caller,
    main: html`!${flash}<h1>Waiting for a person</h1>
<nav id="tabs" class="tabs" aria-label="What waits">!${tabsView(part, filters)}</nav>
!${filterForm(own)}
<p id="count" role="status" aria-live="polite">${waitingCount(part, filters)}</p>
!${all}
!${list}
<noscript><p class="quiet">Without JavaScript, reload the page to see what is new.</p></noscript>
!${kind === 'approvals' ? decisionBar({ ...own, cursor }, draft) : ''}
!${kind === 'approvals' && !isNarrowed(filters) && isFirst ? decidedPart(caller, part) : ''}
<p><a href="/approvals/decided">All that was decided</a></p>`,
  })
}

/**
 * How the entries are shown: to whom, which of them are chosen (the values of their boxes), and whether the first gets
 * the focus.
 */
interface ListView { caller: Caller, filters: ListFilters, chosen?: ReadonlySet<string> | undefined, focus?: boolean }

/** The list, which polls for its next state as soon as it is loaded. */
function liveList (part: PeopleList, view: ListView): string {
  // A draining service answers polls at once; the pause keeps the page from polling it in a tight loop.
  const query = [listQuery(view.filters), `seen=${fingerprint(part)}`].filter(words => words !== '')
  return html`<div id="list" hx-get="/approvals/list?!${query.join('&amp;')}" hx-trigger="load delay:250ms, again" hx-swap="outerHTML">!${items(part, view)}</div>`
}

/** The list's next state. It replaces the count only if that changed, because screen readers read it out each time. */
export function listFragment (caller: Caller, part: PeopleList, filters: ListFilters, changed: boolean): string {
  const changedCount = changed
    ? html`<p id="count" role="status" aria-live="polite" hx-swap-oob="innerHTML">${waitingCount(part, filters)}</p>
<nav id="tabs" hx-swap-oob="innerHTML">!${tabsView(part, filters)}</nav>`
    : ''
  const hasDecided = changed && part.kind === 'approvals' && !isNarrowed(filters)
  return liveList(part, { caller, filters }) + changedCount + (hasDecided ? decidedPart(caller, part, true) : '')
}

/** The last decisions. @param isSwap as a part of the list's next state */
function decidedPart (caller: Caller, { decided, now }: PeopleList, isSwap = false): string {
  const rows = decided.map(one => decidedRow(caller, one, now))
  return html`<div id="decided"!${isSwap ? ' hx-swap-oob="innerHTML"' : ''}>!${rows.length === 0
    ? ''
    : html`<section aria-labelledby="lately"><h2 id="lately">Decided last</h2><ol class="handoffs">!${rows}</ol></section>`}</div>`
}

function decidedRow (caller: Caller, one: DecidedLately, now: number): string {
  const { id, state, by, at, passedBy, task, isLocked } = one
  const text = task === null
    ? html`Handoff from ${passedBy}, ${withoutText(isLocked)}`
    : beginningView(JSON.parse(task.text) as string, decidedShown, task.truncated)
  return html`<li><div class="row"><a href="/approvals/${id}"><span class="some" dir="auto">!${text}</span></a>
<span class="facts"><span><strong class="status ${state === 'approved' ? 'good' : 'bad'}">${state}</strong> by ${nameOf(by, caller).replace('You', 'you')}</span> <span>!${agoTag(at, now)}</span></span></div></li>`
}

function items (part: PeopleList, view: ListView): string {
  const { items, next, now } = part
  const rows = items.map((one, index) => row(one, now, view, view.focus === true && index === 0))
  const more = next === null ? '' : html`<p><a href="!${addressOf(view.filters, next)}">The next ones</a></p>`
  const list = rows.length === 0 ? '' : html`<ol class="waiting">!${rows}</ol>`
  return list + more
}

function row (item: PeopleItem, now: number, { caller, chosen }: ListView, focus: boolean): string {
  const { kind, id, record, since, until, text, isWhole } = item
  const all = wordsOf(text)
  const { to, labels } = record.extra
  const isQuestion = kind === 'questions'
  const availableAt = isQuestion ? 0 : record.extra.availableAt ?? 0
  const isMore = !isQuestion && !(isWhole && beginningOf(all, textShown) === all)
  const facts = [
    isQuestion
      ? html`<strong class="asks">question</strong> from ${record.caught!.by}`
      : html`from ${record.passedBy}`,
    waitingFor(since, now),
    expiresIn(until, now),
    availableAt > now ? availableIn(availableAt, now) : '',
    isMore ? '<strong>more inside</strong>' : '',
    to === undefined ? '' : html`inbox ${to}`,
    labels === undefined ? '' : labelTags(labels)
  ]
  return html`<li>!${pick(item, caller, chosen)}<div class="entry"><a id="h-${id}" href="/approvals/${id}"!${focus ? ' autofocus' : ''}>
<span class="task" id="t-${id}" dir="auto">!${beginningView(all, textShown)}</span>
<span class="facts">!${facts.filter(fact => fact !== '').map(fact => html`<span>!${fact}</span> `)}</span>
</a>!${unfolding(item)}</div></li>`
}

/** All that the entry's page shows, once it is unfolded. It stays unfolded in the list's next state. */
function unfolding ({ id, since, digest }: PeopleItem): string {
  const query = digest === '' ? '' : html`?digest=!${encodeURIComponent(digest)}`
  return html`<details class="unfold" id="more-${id}-${since}" hx-preserve="true" hx-get="/approvals/${id}/inside!${query}" hx-trigger="toggle once" hx-target="find .inside" hx-swap="innerHTML"><summary>Show all of it</summary>
<div class="inside"><p><a href="/approvals/${id}">On its own page</a></p></div></details>`
}
