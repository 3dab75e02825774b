import { html } from 'ghtml'
import { expiryOf, statusAt } from '../../core/model.ts'
import type { Caller, Decision } from '../../core/model.ts'
import { endOf, willBeTriedAgain } from '../../handoffs/lifecycle/answers.ts'
import type { ToRead } from '../../handoffs/people/approvals.ts'
import { dateTag, expiresIn, labelTags, visible, waitingFor } from '../text.ts'
import { contents, firstLine, isBeyondPage } from './content.ts'
import type { ShownAs } from './content.ts'
import { layout, notice } from './layout.ts'
import { watchPart } from './standing.ts'

// Next to the notice, because browsers scroll to the focused element.
export const onward = '<p><a class="onward" href="/approvals" autofocus>To the list</a></p>'

const skipToDecision = '<a class="skip" href="#note">Skip to the decision</a>\n'
const another = '<p>The handoff that you read is gone, and this is another one. Nothing was decided: read this one, ' +
  'and decide on it.</p>'
/** The line above a handoff that another person, or time, was faster with. */
export const yoursDidNotCount = '<p><strong>Yours didn’t count.</strong> This had ended before.</p>'

/**
 * @param draft the note that was refused, and why
 * @param isLate whether this person has just pressed, and too late
 */
export function handoffPage (
  caller: Caller, one: ToRead, { draft, as = 'text', isLate = false }: HowPage = {}
): string {
  const { record, now } = one
  // Two people may share a key: the later one reads a name, not “you”.
  const why = standing(isLate ? stranger(caller) : caller, one)
  const waits = why === null
  const { to, labels } = record.extra
  const facts = [
    waits ? waitingFor(record.createdAt, now) : html`passed !${dateTag(record.createdAt)}`,
    waits ? expiresIn(record.expiresAt, now) : '',
    to === undefined ? '' : html`inbox ${to}`,
    labels === undefined ? '' : labelTags(labels)
  ]
  return layout({
    title: firstLine(one.payload) ?? `From ${record.passedBy}`,
    caller,
    main: html`!${waits
      ? skipToDecision + (draft?.isAnother === true ? notice('bad', another) : '')
      : notice('bad', (isLate && one.record.passedBy !== caller.agent ? yoursDidNotCount : '') + why) + onward}!${headingOf(firstLine(one.payload), html`Handoff from ${record.passedBy}`)}
!${factsLine(facts)}
!${contents(one, as)}
!${waits ? decisionForm(one, draft) : ''}`,
  })
}

/** How a page is shown: with what was typed, and refused; its texts; and whether a press came too late. */
interface HowPage { draft?: Draft | undefined, as?: ShownAs | undefined, isLate?: boolean }

export function factsLine (facts: readonly string[]): string {
  return html`<p class="facts">!${facts.filter(fact => fact !== '').map(fact => html`<span>!${fact}</span> `)}</p>`
}

/** What a page is about, and whom it is from. @param title null where that is gone @param from HTML */
export function headingOf (title: string | null, from: string): string {
  return title === null || title === ''
    ? html`<h1 class="from">!${from}</h1>`
    : html`<h1 class="about"><small>!${from}</small> <span class="task" dir="auto">!${visible(title)}</span></h1>`
}

/** A caller whom no name is. */
function stranger (caller: Caller): Caller {
  return { ...caller, agent: '' }
}

/** What was typed and refused: it has a fault, or it is about another handoff, which had this id before. */
interface Draft {
  note: string
  problem?: string
  isAnother?: boolean
  /** The fault isn't the note's: the whole wasn't read, as far as the form says. */
  isUnread?: boolean
  /** Whether it said so. */
  hasRead?: boolean
}

/**
 * One form, two buttons. Neither has the focus at first: a key pressed twice must not decide on an unread handoff. The
 * form names the shown content: when it was passed, and its digest.
 */
function decisionForm (one: ToRead, draft: Draft = { note: '' }): string {
  const { problem, note, isUnread = false, hasRead = false } = draft
  const address = `/approvals/${one.id}`
  const isOfNote = problem !== undefined && !isUnread
  const marks = ' autofocus aria-invalid="true" aria-describedby="problem"'
  const read = html`<p class="read"><label><input type="checkbox" name="read" value="all" form="decision"!${hasRead ? ' checked' : ''}!${isUnread
    ? marks
    : ''}> I have read all of it</label></p>`
  return html`!${isBeyondPage(one) ? read : ''}<form id="decision" class="decision" method="post" action="${address}/approve" aria-label="Decision" autocomplete="off">
<input type="hidden" name="created_at" value="${new Date(
  one.record.createdAt
).toISOString()}"><input type="hidden" name="digest" value="${one.digest}">
!${watchPart(one.id, { createdAt: one.record.createdAt })}
!${problem === undefined ? '' : notice('bad', html`<p id="problem">${problem}</p>`)}
<label class="unseen" for="note">Note (needed to reject)</label>
<textarea id="note" name="note" rows="1" placeholder="Note (to reject)" dir="auto"!${isOfNote ? marks : ''}>
${note}</textarea>
<div class="buttons"><button class="good">Approve</button> <button class="bad" formaction="${address}/reject">Reject</button></div>
</form>`
}

/** Why this person can't decide on the handoff, checked in the service's order; null if they can. */
function standing (caller: Caller, one: ToRead): string | null {
  const { record, decision, now } = one
  const status = statusAt(record, now)
  if (decision !== null) return verdictLine(caller, record.approval, decision) + endLine(caller, one)
  if (status === 'cancelled') return `${endLine(caller, one)}<p>There is nothing to decide any more.</p>`
  if (status === 'expired') {
    return html`<p>This expired !${dateTag(
      record.expiresAt
    )}. There was no decision in time, and now there can be none. If it is still needed, an agent has to pass it again.</p>`
  }
  return record.passedBy === caller.agent ? '<p>You passed this yourself. Another person has to decide.</p>' : null
}

/** The decision: by whom, when, and with which note. */
export function verdictLine (caller: Caller, approval: string, { by, at, note, signature }: Decision): string {
  const text = JSON.parse(note) as string | null
  const what = approval === 'rejected' ? 'rejected' : 'approved'
  const end = signature === undefined ? 'A decision is final.' : 'A decision is final, and this one is signed.'
  return html`<p><strong>${nameOf(by, caller)} ${what} this</strong> !${dateTag(at)}. ${end}</p>
!${text === null ? '' : quote('Note', text)}`
}

/**
 * How the handoff ended without being done: by whom, when and why. Empty otherwise, and if it expired without a catch.
 */
function endLine (caller: Caller, one: ToRead): string {
  const { record, now, texts } = one
  const status = statusAt(record, now)
  const end = endOf(record, now)
  if (end === null) return ''
  const sentence = (
    what: string
  ) => html`<p><strong>${end.by === null ? 'This' : nameOf(end.by, caller)} ${what}</strong> !${dateTag(end.at)}.`
  if (status === 'failed') return `${sentence('could not do this')}</p>${texts?.fault == null ? '' : fault(texts.fault)}`
  if (status === 'declined') return `${sentence('declined this')}</p>${reason(texts?.fault)}`
  if (status === 'cancelled') {
    // The end of a handoff that it comes after cancels it too.
    const what = end.by === null ? 'was cancelled' : 'cancelled this'
    return `${sentence(what)}${takenFrom(one)}</p>${reason(texts?.cancelReason)}`
  }
  if (status !== 'expired' || record.caught === null) return ''
  const missed = expiryOf(record).because === 'stalled' ? 'sent no heartbeat in time' : 'was not done in time'
  return `${sentence('expired')} ${html`${record.caught.by} had caught it and ${missed}.`}${willBeTriedAgain(
    record, now
  )
? ' The next attempt starts soon.'
: ''}</p>`
}

/** A passer who reissues a caught handoff takes it from its catcher: that attempt is cancelled. */
function takenFrom ({ record: { caught, extra } }: ToRead): string {
  if (caught === null) return ''
  return html` ${caught.by} had caught it${extra.reissuedAs === undefined ? '' : ', and there is a new attempt'}.`
}

export function nameOf (agent: string, caller: Caller): string {
  return agent === caller.agent ? 'You' : agent
}

/** @param text JSON text, if there is one */
function reason (text: string | null | undefined): string {
  return text == null ? '' : quote('Reason', JSON.parse(text) as string)
}

/** @param text JSON text */
function fault (text: string): string {
  const { message, code } = JSON.parse(text) as { message: string, code?: string | null }
  return quote(code == null ? 'Error' : `Error ${code}`, message)
}

/** Text that a person or an agent wrote. */
export function quote (what: string, text: string): string {
  return html`<p>${what}:</p><blockquote class="text" dir="auto">!${visible(text)}</blockquote>`
}
