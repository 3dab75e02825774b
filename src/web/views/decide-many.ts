import { html } from 'ghtml'
import type { Caller } from '../../core/model.ts'
import type { PeopleItem } from '../../handoffs/people/people.ts'
import { beginningView, dateTag } from '../text.ts'
import { layout, notice } from './layout.ts'
import type { ListFilters } from './list-filters.ts'

/** Deciding on several handoffs of the list at once. */

/** The value of a box of the list: a handoff, and the shown content, by its time (ms) and its digest. */
export interface Chosen { id: string, createdAt: number, digest: string }

/** A decision that was refused as a whole: the boxes' values, the note, why, and whether the note is at fault. */
export interface ManyDraft { chosen: ReadonlySet<string>, note: string, problem: string, isOfNote: boolean }

/** The value of an entry's box. */
export function boxOf ({ id, since, digest }: Pick<PeopleItem, 'id' | 'since' | 'digest'>): string {
  return `${id} ${since} ${digest}`
}

/** Reads a box that a form sent; undefined if it isn't ours. */
export function readBox (value: string): Chosen | undefined {
  const [, id, at, digest] = /^([\w-]{1,64}) (\d{1,15}) ([\w+/=]{0,64})$/.exec(value) ?? []
  return id === undefined ? undefined : { id, createdAt: Number(at), digest: digest! }
}

/** A handoff with more bytes is decided on its own page alone: people can’t read that much within a list. */
export const mostTogether = 16 * 1024

/** A task or a question, or its beginning. @param text JSON text, null where it is locked */
export function wordsOf (text: string): string {
  return JSON.parse(text) as string | null ?? 'It can’t be decrypted here.'
}

/**
 * The box of an entry, in front of it. A question has none, nor has this person's own handoff, a large one, or one that
 * nobody can read here.
 */
export function pick (item: PeopleItem, caller: Caller, chosen: ReadonlySet<string> | undefined): string {
  const { kind, id, record, size, isLocked } = item
  if (kind === 'questions') return '<span class="pick" aria-hidden="true">?</span>'
  if (record.passedBy === caller.agent || isLocked) return '<span class="pick"></span>'
  if (size > mostTogether) {
    return html`<a class="pick" href="/approvals/${id}" title="Too long to be decided here" aria-label="Open it: it is too long to be decided here">Open</a>`
  }
  const value = boxOf(item)
  return html`<label class="pick"><input type="checkbox" id="c-${id}" form="decide" name="item" value="${value}" aria-labelledby="t-${id}" autocomplete="off"!${chosen?.has(value) === true ? ' checked' : ''}></label>`
}

/** Where in the list the form is, so that it leads back there. */
type PlaceInList = ListFilters & { cursor: string | undefined }

/**
 * The form that the list's boxes belong to. It is outside of the list, so that the list's next state leaves the note as
 * it is. Enter on a box presses the form's first button, in every browser: so that is one which decides nothing.
 */
export function decisionBar ({ inbox, labels, q, order, cursor }: PlaceInList, draft?: ManyDraft): string {
  const place = Object.entries({ inbox, labels, q, order: order ?? '', cursor: cursor ?? '' })
    .filter(([, value]) => value !== '')
  const problem = draft?.problem
  return html`<form id="decide" class="decision" method="post" action="/approvals/list" aria-label="Decision" autocomplete="off">
<button class="unseen" tabindex="-1" aria-hidden="true">Nothing</button><input type="hidden" name="tab" value="approvals">!${place.map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`)}
!${problem === undefined ? '' : notice('bad', html`<p id="problem">${problem}</p>`)}
<p id="chosen" class="quiet" role="status">Tick handoffs in the list to decide on them together.</p>
<label class="unseen" for="note">Note (for all; needed to reject)</label>
<textarea id="note" name="note" rows="1" placeholder="Note (for all)" dir="auto"!${draft?.isOfNote !== true ? '' : ' autofocus aria-invalid="true" aria-describedby="problem"'}>
${draft?.note ?? ''}</textarea>
<div class="buttons"><button class="good" formaction="/approvals/approve">Approve</button> <button class="bad" formaction="/approvals/reject">Reject</button></div>
</form>`
}

/** How it went with one handoff. `text`: the beginning of its task as JSON text, if the list still had it. */
export interface OneResult {
  id: string
  outcome: 'decided' | 'already_decided' | 'cancelled' | 'expired' | 'self_approval' | 'another' | 'gone' | 'large' |
    'locked' | 'unknown'
  text: string | undefined
  /** The decision that stands. */
  approval?: { state: string, decided_at: string, decided_by: string } | undefined
}

/** @param back the address of the list, as HTML */
export function resultPage (
  caller: Caller, verdict: 'approved' | 'rejected', results: readonly OneResult[], back: string
): string {
  const done = results.filter(({ outcome }) => outcome === 'decided').length
  const count = `${done === results.length ? (done === 1 ? 'One handoff' : `All ${done} handoffs`) : `${done} of ${results.length}`}`
  const known = results.some(({ outcome }) => outcome === 'unknown') ? ', as far as is known' : ''
  const words = `${done === 0 ? 'None of these was' : `${count} ${done === 1 ? 'was' : 'were'}`} ${verdict}${known}.`
  // Handoffs that need a look come first.
  const sorted = results.toSorted((one, other) =>
    Number(one.outcome === 'decided') - Number(other.outcome === 'decided'))
  return layout({
    title: 'Decided together',
    caller,
    main: html`<h1>${words}</h1>
!${done < results.length ? notice('bad', html`<p>${others(results.length - done)}</p>`) : ''}
<p><a class="onward" href="!${back}" autofocus>To the list</a></p>
<ol class="waiting">!${sorted.map(result => resultRow(verdict, result))}</ol>`,
  })
}

function others (count: number): string {
  return count === 1 ? 'One needs a look. It comes first here.' : `${count} need a look. They come first here.`
}

function resultRow (verdict: string, result: OneResult): string {
  const { id, outcome, text } = result
  return html`<li><a href="/approvals/${id}">
<span class="task" dir="auto">!${text === undefined ? 'A handoff that isn’t in the list any more' : beginningView(wordsOf(text), 120)}</span>
<span class="facts"><span><strong class="status ${outcome === 'decided' ? (verdict === 'approved' ? 'good' : '') : 'bad'}">${outcome === 'decided' ? verdict : 'not decided'}</strong></span>
!${outcome === 'decided' ? '' : html`<span>!${why(result)}</span>`}</span>
</a></li>`
}

function why ({ outcome, approval }: OneResult): string {
  if (outcome === 'already_decided' && approval !== undefined) {
    // By name, not “you”: two people may share a key.
    return html`${approval.decided_by} ${approval.state} this before, !${dateTag(Date.parse(approval.decided_at))}. Yours didn’t count.`
  }
  return reasons[outcome]
}

const reasons: Record<OneResult['outcome'], string> = {
  decided: '',
  already_decided: 'There was a decision on this before. Yours didn’t count.',
  cancelled: 'It was cancelled before. Yours didn’t count.',
  expired: 'It expired before. Yours didn’t count.',
  self_approval: 'You passed this yourself. Another person has to decide on it.',
  another: 'What you chose is gone, and another handoff has its id now. Open it to read it.',
  gone: 'It is gone.',
  large: 'It is too long to be decided together with others. Open it to read it.',
  locked: 'It can’t be decrypted here, so nothing was decided on it. Another replica may have the key: try again.',
  unknown: 'It isn’t known whether your decision was recorded. Open it to see.'
}
