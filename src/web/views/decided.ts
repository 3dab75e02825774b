import { html } from 'ghtml'
import { decisionStates } from '../../core/model.ts'
import type { Caller, DecisionState } from '../../core/model.ts'
import { handoffOfEntry } from '../../handoffs/people/decisions.ts'
import type { DecisionPage } from '../../handoffs/people/decisions.ts'
import type { DecisionEntry } from '../../store/decision-entry.ts'
import { beginningView, dateTag, labelTags } from '../text.ts'
import { nameOf } from './handoff.ts'
import { layout, notice } from './layout.ts'
import { timeFields } from './time-fields.ts'
import { excerpt } from '../../handoffs/lists/excerpt.ts'

/** The page of what people decided. */

/** The filters as they were typed, and their fault. */
export interface DecidedFilters {
  by: string
  inbox: string
  state: DecisionState | undefined
  since?: string
  until?: string
  problem?: string
}

/** How much of a task, and of a note, a row shows, in characters. */
const rowShown = { task: 120, note: 500 }

interface DecidedView { caller: Caller, page: DecisionPage, filters: DecidedFilters, isFirst: boolean }

export function decidedPage ({ caller, page, filters, isFirst }: DecidedView): string {
  const { items, next } = page
  const rows = items.map(entry => decisionRow(entry, caller))
  const nothing = next === null
    ? html`<p class="quiet">No decision${isFirst ? '' : ' comes after these'}${isNarrow(filters) ? ' is like this' : ''}.</p>`
    : '<p class="quiet">None of the latest is like this. Earlier ones may be.</p>'
  return layout({
    title: 'What was decided',
    caller,
    main: html`<p><a href="/approvals">To the list</a></p>
<h1>What was decided</h1>
!${form(filters)}
!${rows.length === 0 ? nothing : html`<ol class="handoffs">!${rows}</ol>`}
!${next === null ? '' : html`<p><a href="!${addressIn('/approvals/decided', filters, next)}">Earlier ones</a></p>`}
!${isFirst ? '' : html`<p><a href="!${addressIn('/approvals/decided', filters)}">Back to the latest</a></p>`}
!${rows.length === 0 ? '' : html`<p><a href="!${addressIn('/approvals/decided.csv', filters)}">The latest 50 as a file (CSV)</a></p>`}`,
  })
}

function isNarrow (filters: DecidedFilters): boolean {
  return addressIn('', filters) !== ''
}

function addressIn (path: string, filters: DecidedFilters, cursor = ''): string {
  const { by, inbox, state, since, until } = filters
  const query = Object.entries({ cursor, by, inbox, state: state ?? '', since: since ?? '', until: until ?? '' })
    .filter(([, value]) => value !== '')
    .map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join('&amp;')
  return query === '' ? path : `${path}?${query}`
}

const wordOf: Record<DecisionState, string> = { approved: 'good', rejected: 'bad', answered: 'good' }

/** Said of a decision without its text. */
export function withoutText (isLocked: boolean): string {
  return isLocked ? 'which can’t be decrypted here' : 'forgotten since'
}

function decisionRow (entry: DecisionEntry, caller: Caller): string {
  const { id, score, state, by, passedBy, askId, extra: { to, labels }, texts, isLocked } = entry
  const beginning = texts?.text == null ? null : excerpt(texts.text, rowShown.task)
  const shown = beginning === null
    ? html`${askId === null ? 'Handoff' : 'Question about a handoff'} from ${passedBy}, ${withoutText(isLocked)}`
    : beginningView(JSON.parse(beginning.text) as string, rowShown.task, beginning.truncated)
  const note = texts === null ? null : JSON.parse(texts.note) as string | null
  const facts = [
    html`<strong class="status ${wordOf[state]}">${state}</strong> by ${nameOf(by, caller).replace('You', 'you')}`,
    dateTag(score),
    html`from ${passedBy}`,
    to === undefined ? '' : html`inbox ${to}`,
    labels === undefined ? '' : labelTags(labels)
  ]
  return html`<li><div class="row"><a href="/approvals/${handoffOfEntry(id)}"><span class="some" dir="auto">!${shown}</span></a>
!${note === null ? '' : html`<p class="note" dir="auto">!${beginningView(note, rowShown.note)}</p>`}
<span class="facts">!${facts.filter(fact => fact !== '').map(fact => html`<span>!${fact}</span> `)}</span></div></li>`
}

function form (filters: DecidedFilters): string {
  const { by, inbox, state, problem } = filters
  const field = (name: string, title: string, value: string) =>
    html`<div><label for="${name}">${title}</label><input id="${name}" name="${name}" value="${value}" placeholder="any" maxlength="200" autocomplete="off" autocapitalize="off" spellcheck="false"></div>`
  const options = decisionStates.map(one => html`<option!${one === state ? ' selected' : ''}>${one}</option>`)
  return html`!${problem === undefined ? '' : notice('bad', html`<p>${problem}</p>`)}<form class="filters" action="/approvals/decided" role="search" aria-label="Filter"><div class="fields">
!${field('by', 'Decided by', by)}!${field('inbox', 'Inbox', inbox)}<div><label for="state">Decision</label><select id="state" name="state"><option value="">any</option>!${options}</select></div>
!${timeFields(filters)}
<div class="buttons"><button>Filter</button></div></div>!${isNarrow(filters) ? html` <a href="/approvals/decided">Show all</a>` : ''}
</form>`
}
