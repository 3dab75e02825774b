import { operations, refusalOf as refusalInTable } from '../../src/model.ts'
import type { Standing } from '../../src/model.ts'
import type { Operation } from './history.ts'
import { isSeen } from './seen.ts'
import { approvalOf, isTriedAgain, standingOf, statusOf } from './state.ts'
import type { State, Terms } from './state.ts'

/** The service as it would be if one asked after the other: what the search for an order (linear.ts) goes by. Made for one handoff. */

/** Where the handoff is after this operation was carried out in this state; null when it changes nothing there. */
export function effectOf (state: State, operation: Operation, terms: Terms): State | null {
  const { kind, firm } = operation
  if (kind === 'status' || kind === 'heartbeat' || refusalOf(state, operation, terms) !== null) return null
  switch (kind) {
    case 'pass': return { ...state, pass: operation, open: !terms.delayed }
    case 'catch': return { ...state, caught: operation }
    case 'approve':
    case 'reject': return { ...state, decided: operation }
    case 'done': return { ...state, ended: operation }
    case 'fail':
    case 'decline': return { ...state, ended: operation, succeeded: !firm && isTriedAgain(state, terms) }
    case 'cancel': {
      if (statusOf(state) === 'cancelled') return null
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

/** Where the handoff is after this operation got the answer it got in this state; null when it can't have got it there. */
export function afterAnswer (state: State, operation: Operation, terms: Terms): State | null {
  const { kind, code, replayed, token, status } = operation
  if (code !== null) return isRefused(state, operation, terms) ? state : null
  if (kind === 'status') return isSeen(state, operation, terms) ? state : null
  const next = effectOf(state, operation, terms)
  if (!tellsRight(next ?? state, operation, terms)) return null
  switch (kind) {
    case 'heartbeat': return refusalOf(state, operation, terms) === null ? state : null
    // Asked for twice it is told the same; and what is asked to stop is not cancelled yet.
    case 'cancel': {
      const after = next ?? (refusalOf(state, operation, terms) === null ? state : null)
      return after !== null && statusOf(after) === (status === 202 ? 'caught' : 'cancelled') ? after : null
    }
    case 'reissue': return next ?? (replayed && refusalOf(state, operation, terms) === null ? state : null)
  }
  // The first answer may be marked as a repeat: the service itself asks Redis again when the connection breaks.
  if (next !== null) return replayed && token === null ? null : next
  return replayed && isRepeat(state, operation) ? state : null
}

/** Does it tell of a successor just where there is one, and of what else was asked of the catcher? */
function tellsRight (after: State, { kind, answer, firm }: Operation, { attempt, maxAttempts }: Terms): boolean {
  if (kind === 'heartbeat') return answer?.cancelRequested === undefined || answer.cancelRequested === after.requested
  if (kind !== 'fail' && kind !== 'decline') return true
  // One that was made by hand since then is no part of its answer, which is told again as it was.
  const isItsOwn = after.succeeded && !firm && !after.requested && attempt < maxAttempts
  return (typeof answer?.reissuedAs === 'string') === isItsOwn
}

/** Did the same operation bring about where the handoff stands? */
function isRepeat (state: State, operation: Operation): boolean {
  switch (operation.kind) {
    case 'pass': return isSame(state.pass, operation)
    case 'catch': return statusOf(state) === 'caught' && isSame(state.caught, operation)
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
  // Only answers to what is refused for where it stands tell of a successor.
  return answer === null || (status !== 409 && status !== 410) || (typeof answer.reissuedAs === 'string') === state.succeeded
}

/** What is told to whom it isn't done for; null to whom it is. As the table of states has it, and what depends on who asks. */
function refusalOf (state: State, { kind, agent }: Operation, terms: Terms): string | null {
  if (kind === 'pass') return state.pass === null ? null : 'idempotency_key_reused'
  const standing = standingOf(state, terms)
  if (standing === 'absent') return 'not_found'
  if (kind === 'status') return null
  const refused = refusalInTable(kind, standing, approvalOf(state, terms.human) ?? 'none')
  switch (operations[kind].by) {
    case 'catcher': return isHeld(standing) && state.caught?.agent !== agent ? 'not_the_catcher' : refused
    case 'passer': return state.pass?.agent !== agent ? 'not_the_passer' : kind === 'reissue' && state.succeeded ? null : refused
    case 'another': return refused ?? (state.pass?.agent === agent ? 'self_approval' : null)
    default: return refused
  }
}

/** Is it one agent's, or did that one end it? What took it from its catcher is told first. */
function isHeld (standing: Standing): boolean {
  return standing === 'caught' || standing === 'done' || standing === 'failed' || standing === 'declined'
}
