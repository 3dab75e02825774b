import { html } from 'ghtml'
import type { ToRead } from '../../handoff/approvals.ts'
import { endOf } from '../../handoff/answers.ts'
import { willBeTriedAgain } from '../../handoff/status-answer.ts'
import { expiryOf, statusAt } from '../../model.ts'
import type { Caller, Decision } from '../../model.ts'
import { visible } from '../text.ts'
import { moment } from '../words.ts'

/** Why this person can't decide on the handoff, checked in the service's order; null if they can. */
export function standing (caller: Caller, one: ToRead): string | null {
  const { record, decision, now } = one
  const status = statusAt(record, now)
  if (decision !== null) return verdictLine(caller, record.approval, decision) + endLine(caller, one)
  if (status === 'cancelled') return `${endLine(caller, one)}<p>There is nothing to decide any more.</p>`
  if (status === 'expired') {
    return html`<p>This expired !${moment(record.expiresAt)}. Nobody decided in time, and now nobody can. If it is still needed, an agent has to pass it again.</p>`
  }
  return record.passedBy === caller.agent ? '<p>You passed this yourself. Somebody else has to decide on it.</p>' : null
}

/** Who decided what and when, and their note. */
function verdictLine (caller: Caller, approval: string, { by, at, note }: Decision): string {
  const said = JSON.parse(note) as string | null
  const what = approval === 'rejected' ? 'rejected' : 'approved'
  return html`<p><strong>${nameOf(by, caller)} ${what} this</strong> !${moment(at)}. A decision is final.</p>
!${said === null ? '' : quote('Note', said)}`
}

/** How the handoff ended without being done: by whom, when and why. Empty otherwise, and if it expired without a catch. */
function endLine (caller: Caller, one: ToRead): string {
  const { record, now, told } = one
  const status = statusAt(record, now)
  const end = endOf(record, now)
  if (end === null) return ''
  const sentence = (what: string) => html`<p><strong>${end.by === null ? 'This' : nameOf(end.by, caller)} ${what}</strong> !${moment(end.at)}.`
  if (status === 'failed') return `${sentence('could not do this')}</p>${told?.fault == null ? '' : fault(told.fault)}`
  if (status === 'declined') return `${sentence('declined this')}</p>${reason(told?.fault)}`
  if (status === 'cancelled') return `${sentence('cancelled this')}${takenFrom(one)}</p>${reason(told?.cancelReason)}`
  if (status !== 'expired' || record.caught === null) return ''
  const missed = expiryOf(record).because === 'stalled' ? 'sent no heartbeat in time' : 'was not done in time'
  return `${sentence('expired')} ${html`${record.caught.by} had caught it and ${missed}.`}${willBeTriedAgain(record, now) ? ' The next attempt starts soon.' : ''}</p>`
}

/** A passer who reissues a caught handoff takes it from its catcher: that attempt is cancelled. */
function takenFrom ({ record: { caught, extra } }: ToRead): string {
  if (caught === null) return ''
  return html` ${caught.by} had caught it${extra.reissuedAs === undefined ? '' : ', and there is a new attempt'}.`
}

function nameOf (agent: string, caller: Caller): string {
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
function quote (what: string, said: string): string {
  return html`<p>${what}:</p><blockquote class="text" dir="auto">!${visible(said)}</blockquote>`
}
