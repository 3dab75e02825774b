import { operations, refusalOf as refusalInTable } from '../../src/core/model.ts'
import type { Standing } from '../../src/core/model.ts'
import { markOf, nameOf } from './history.ts'
import type { Answer, Operation } from './history.ts'
import { approvalOf, askStateOf, byOthers, isAwaited, isTriedAgain, standingOf, statusOf } from './state.ts'
import type { State, Terms } from './state.ts'

/**
 * The sequential specification of one handoff, which the search for an order (linear.ts) uses. It is none of
 * test/helpers/model.ts: that answers requests whose time is known, and keeps times and payloads, while the search
 * copies states by the million, and tries answers on them. Both read the same table of states (src/core/model.ts).
 */

/** The state after this operation was carried out in this state; null if it changes nothing there. */
export function effectOf (state: State, operation: Operation, terms: Terms): State | null {
  const { kind, firm, about } = operation
  // Of what may be carried out again by then, in this state.
  if (kind === 'ask' && isRepeat(state, operation)) return null
  if (kind === 'status' || kind === 'heartbeat' || kind === 'asked' || refusalOf(state, operation, terms) !== null) return null
  switch (kind) {
    case 'pass': return { ...state, pass: operation, blocked: terms.after, open: !terms.delayed }
    case 'catch': return { ...state, caught: operation }
    case 'approve':
    case 'reject': return { ...state, decided: operation }
    case 'ask': return { ...state, asked: operation, answered: null, lapsed: false }
    case 'answer': return { ...state, answered: operation }
    case 'done': return { ...state, ended: operation }
    case 'fail':
    case 'decline': return { ...state, ended: operation, succeeded: !firm && isTriedAgain(state, terms) }
    case 'cancel': {
      if (statusOf(state) === 'cancelled' || (about.isPurge === true && state.caught !== null)) return null
      const requested = state.caught !== null
      if (firm || !requested) return { ...state, ended: operation, requested }
      return state.requested ? null : { ...state, requested }
    }
    case 'reissue': {
      if (state.succeeded) return null
      return { ...state, ended: statusOf(state) === 'caught' ? operation : state.ended, succeeded: true }
    }
  }
}

/** The state after this operation got its actual answer in this state; null if that answer is impossible there. */
export function afterAnswer (state: State, operation: Operation, terms: Terms): State | null {
  const { kind, code, replayed, token, status } = operation
  // It named what wasn't there: after-checks.ts.
  if (code === 'too_many_live' && kind === 'pass') return isRepeat(state, operation) ? null : state
  if (code === 'unknown_handoff' && kind === 'pass' && terms.after) return isRepeat(state, operation) ? null : state
  if (code !== null) return isRefused(state, operation, terms) ? state : null
  if (kind === 'status') return isSeen(state, operation, terms) ? state : null
  if (kind === 'asked') return refusalOf(state, operation, terms) === null && isAskSeen(state, operation.answer, terms) ? state : null
  const next = effectOf(state, operation, terms)
  if (!tellsRight(next ?? state, operation, terms)) return null
  switch (kind) {
    case 'heartbeat': return refusalOf(state, operation, terms) === null ? state : null
    // A repeated request gets the same answer; and a handoff whose catcher is asked to stop is not cancelled yet.
    case 'cancel': {
      const after = next ?? (refusalOf(state, operation, terms) === null ? state : null)
      return after !== null && statusOf(after) === (status === 202 ? 'caught' : 'cancelled') ? after : null
    }
    case 'reissue': return next ?? (replayed && refusalOf(state, operation, terms) === null ? state : null)
  }
  // Even the first answer may be marked as replayed: the service retries its Redis call when the connection breaks.
  if (next !== null) return replayed && token === null ? null : next
  return replayed && isRepeat(state, operation) ? state : null
}

/** Whether the answer names a successor exactly if there is one, and the cancel request. */
function tellsRight (after: State, { kind, answer, firm }: Operation, terms: Terms): boolean {
  const { attempt, maxAttempts } = terms
  if (kind === 'heartbeat') return isAskSeen(after, answer, terms) && (answer?.cancelRequested === undefined || answer.cancelRequested === after.requested)
  if (kind !== 'fail' && kind !== 'decline') return true
  // A replayed answer stays as it was: it doesn't name a successor that a reissue has made since.
  const isItsOwn = after.succeeded && !firm && !after.requested && attempt < maxAttempts
  return (typeof answer?.reissuedAs === 'string') === isItsOwn
}

/** Whether the same operation led to the handoff's current state. */
function isRepeat (state: State, operation: Operation): boolean {
  switch (operation.kind) {
    case 'pass': return isSame(state.pass, operation)
    case 'catch': return statusOf(state) === 'caught' && isSame(state.caught, operation)
    case 'ask': return isSame(state.asked, operation)
    case 'answer': return isSame(state.answered, operation)
    case 'done':
    case 'fail':
    case 'decline': return !state.expired && state.ended?.kind === operation.kind && isSame(state.ended, operation)
    default: return false
  }
}

function isSame (one: Operation | null, other: Operation): boolean {
  return one !== null && other.token !== null && one.token === other.token && one.agent === other.agent
}

function isRefused (state: State, operation: Operation, terms: Terms): boolean {
  const { code, answer, status } = operation
  if (isRepeat(state, operation) || code !== refusalOf(state, operation, terms)) return false
  if (code === 'already_decided' && answer?.approval != null && answer.approval !== approvalOf(state, terms.human)) return false
  // Only refusals because of the state name the successor.
  return answer === null || (status !== 409 && status !== 410) || (typeof answer.reissuedAs === 'string') === state.succeeded
}

/** The refusal; null if the operation is carried out. From the table of states, and from who asks. */
function refusalOf (state: State, operation: Operation, terms: Terms): string | null {
  const { kind, agent, about } = operation
  if (kind === 'pass') return state.pass === null ? null : 'idempotency_key_reused'
  const standing = standingOf(state, terms)
  if (standing === 'absent') return 'not_found'
  if (kind === 'status') return null
  if (kind === 'asked') return state.asked === null ? 'not_asked' : null
  if (kind === 'answer') return answerRefusal(state, operation, terms)
  if (kind === 'ask') return refusalOf(state, { ...operation, kind: 'heartbeat' }, terms) ?? (askStateOf(state) === 'open' ? 'already_asked' : null)
  const refused = refusalInTable(kind, standing, approvalOf(state, terms.human) ?? 'none')
  switch (operations[kind].by) {
    case 'catcher': return isHeld(standing) && state.caught?.agent !== agent ? 'not_the_catcher' : refused
    case 'passer': return state.pass?.agent !== agent && about.isPurge !== true ? 'not_the_passer' : kind === 'reissue' && state.succeeded ? null : refused
    case 'another': return refused ?? (state.pass?.agent === agent ? 'self_approval' : null)
    default: return refused
  }
}

/** Who answers has the scope for whom the question asks. */
function answerRefusal (state: State, { about: { askId }, agent }: Operation, { questions }: Terms): string | null {
  if (state.asked === null) return 'not_asked'
  if (!questions.isOf(askId!, state.asked)) return 'content_changed'
  switch (askStateOf(state)) {
    case 'answered': return 'already_answered'
    case 'expired': return 'expired'
    case 'withdrawn': return 'withdrawn'
  }
  if (state.asked.about.of === 'passer') return state.pass?.agent === agent ? null : 'not_the_passer'
  return state.caught?.agent === agent ? 'self_approval' : null
}

/** Whether a status, a heartbeat or a read of the question shows it as it is in this state. */
function isAskSeen (state: State, answer: Answer | null, { questions }: Terms): boolean {
  const ask = answer?.ask
  if (state.asked === null || ask === undefined) return state.asked === null && ask === undefined
  return questions.isOf(ask.id, state.asked) && isGiven(ask.state, askStateOf(state)) &&
    isGiven(ask.answeredBy, state.answered && nameOf(state.answered.agent)) && isGiven(ask.by, state.answered && markOf(state.answered))
}

/** Whether not_the_catcher applies: it is caught, or its catcher ended it. If it was taken from its catcher, that is told first. */
function isHeld (standing: Standing): boolean {
  return standing === 'caught' || standing === 'done' || standing === 'failed' || standing === 'declined'
}

/** Whether a status answer fits a handoff in this state. Members that it lacks are not compared, unless a status always has them. */
function isSeen (state: State, { answer }: Operation, terms: Terms): boolean {
  const status = statusOf(state)
  if (answer === null || answer.status !== status) return false
  const { caught, ended } = state
  const { caughtBy, caughtAt, completedAt, approval, result, told, endedBy, expiredBecause, cancelRequestedAt, blockedBy } = answer
  return isGiven(caughtBy, caught && nameOf(caught.agent)) &&
    (caughtAt === undefined || (caughtAt === null) === (caught === null)) &&
    (completedAt === undefined || (completedAt === null) === (status !== 'done')) &&
    isGiven(approval, approvalOf(state, terms.human)) &&
    isGiven(result, status === 'done' ? ended && markOf(ended) : null) &&
    isGiven(told, status === 'failed' || status === 'declined' ? ended && markOf(ended) : null) &&
    isGiven(endedBy, status === 'expired' || ended === byOthers ? null : ended && nameOf(ended.agent)) &&
    (blockedBy !== undefined) === (status === 'pending' && state.blocked) &&
    (expiredBecause === undefined || (expiredBecause === 'not_caught' || expiredBecause === 'not_decided') === (caught === null)) &&
    (cancelRequestedAt !== undefined) === state.requested &&
    isAskSeen(state, answer, terms) &&
    reissuedAsSeen(answer.reissuedAs) === (state.succeeded ? 'told' : isAwaited(state, terms) ? 'awaited' : 'none')
}

function reissuedAsSeen (told: string | null | undefined): string {
  return told === undefined ? 'none' : told === null ? 'awaited' : 'told'
}

function isGiven (said: string | null | undefined, is: string | null): boolean {
  return said === undefined || said === is
}
