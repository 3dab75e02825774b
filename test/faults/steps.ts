import type { Facts } from './facts.ts'
import { isUnknown, passOf } from './history.ts'
import type { Operation, Track } from './history.ts'
import { afterAnswer, effectOf } from './sequential.ts'
import { afterDeadline, bornOf, isAwaited, termsOf } from './state.ts'
import type { State, Terms } from './state.ts'

/** The steps of the order that the search (linear.ts) looks for, and their times. */

/** Tolerances, in milliseconds. */
export interface Tolerance {
  /** Redis's clock against this machine's. */
  slack: number
  /** How long the service goes on with a request after its client has left. */
  budget: number
  /** The default time for the work; null if it is longer than the run. */
  workTtl: number | null
}

/** A step of the order: an operation, or (null) a deadline that passes. */
export interface Step {
  operation: Operation | null
  from: number
  to: number
  /** When it happened, if it moved the handoff; null if no answer tells. */
  at: number | null
  /** Whether it must be in the order; another one may never have happened. */
  known: boolean
  next (state: State): State | null
}

/** Until when an operation may have happened: not after the service's own 503. */
function endOf (operation: Operation, { slack, budget }: Tolerance): number {
  const { sent, ended, answered, code } = operation
  if (ended === null) return Infinity
  if (!isUnknown(operation)) return ended
  return (answered !== null && code === 'unavailable' ? answered : Math.max(ended, sent + budget)) + slack
}

/** When an operation was carried out, if it moved the handoff; null if no answer tells. */
function whenOf ({ kind, firm }: Operation, facts: Facts): number | null {
  switch (kind) {
    case 'pass': return facts.createdAt
    case 'catch': return facts.caughtAt
    case 'done': return facts.completedAt
    case 'approve':
    case 'reject': return facts.decidedAt
    case 'fail':
    case 'decline': return facts.endedAt
    // A caught handoff isn't cancelled; its catcher is only asked to stop.
    case 'cancel': return firm || facts.caughtAt === null ? facts.endedAt : facts.cancelRequestedAt
    case 'reissue': return facts.reissuedAt
    default: return null
  }
}

export function stepsOf (track: Track, facts: Facts, tolerance: Tolerance): Step[] {
  const terms = termsOf(track, facts)
  const steps: Step[] = []
  let last = -Infinity
  for (const operation of track.operations) {
    const known = !isUnknown(operation)
    // A read that was never answered has no effect.
    if (!known && (operation.kind === 'status' || operation.kind === 'heartbeat')) continue
    const to = endOf(operation, tolerance)
    steps.push({
      operation,
      from: operation.sent,
      to,
      at: whenOf(operation, facts),
      known,
      next: known ? state => afterAnswer(state, operation, terms) : state => effectOf(state, operation, terms),
    })
    if (mayHaveHappenedBefore(operation)) steps.push({ operation, from: operation.sent, to, at: earlierOf(operation, facts), known: false, next: state => effectOf(state, operation, terms) })
    if (known) last = Math.max(last, operation.ended as number)
  }
  return [...steps, ...eventsOf(track, facts, tolerance, terms, last)].sort((a, b) => a.from - b.from)
}

/** Refusals of a handoff that has ended since it could be caught. */
const ended = new Set<string | null>(['expired', 'cancelled', 'already_done', 'already_failed', 'already_declined'])

/**
 * A request may have had another effect before: the Redis connection broke, the service retried, and in between the handoff ended. A cancel may
 * have asked the catcher to stop (it is answered as replayed if its agent then had the handoff reissued), a catch may have caught, an approve may
 * have approved.
 */
function mayHaveHappenedBefore ({ kind, firm, code, replayed }: Operation): boolean {
  if (kind === 'cancel') return !firm && (replayed || code !== null) && code !== 'not_found' && code !== 'not_the_passer'
  return (kind === 'catch' || kind === 'approve') && ended.has(code)
}

/** When it happened before. A cancel that only asked has its own time, which few answers tell. */
function earlierOf (operation: Operation, facts: Facts): number | null {
  return operation.kind === 'cancel' ? null : whenOf(operation, facts)
}

/** Steps without an operation. @param last when the last answer came: later steps are unobservable */
function eventsOf (track: Track, facts: Facts, { slack, workTtl }: Tolerance, terms: Terms, last: number): Step[] {
  const steps: Step[] = []
  const event = (from: number, to: number, next: Step['next'], known = true) => {
    if (from - slack <= last) steps.push({ operation: null, from: from - slack, to: to + slack, at: null, known, next })
  }
  const { descent } = track
  if (descent !== null) {
    event(facts.createdAt ?? -Infinity, facts.createdAt ?? Infinity, state => state.pass === null ? bornOf(descent.pass, terms) : null)
  }
  const { availableAt, expiresAt } = facts
  if (availableAt !== null) event(availableAt, availableAt, state => state.pass === null ? null : { ...state, open: true })
  if (expiresAt !== null) event(expiresAt, expiresAt, state => state.pass === null ? null : afterDeadline(state, 'pending'))
  const work = workEnd(track, facts, workTtl)
  if (work === null) return steps
  if (work.to < Infinity) event(work.from, work.to, state => state.caught === null ? null : afterDeadline(state, 'caught'))
  // The sweep makes the successor at some time.
  if (terms.attempt < terms.maxAttempts) event(work.from, Infinity, state => isAwaited(state, terms) ? { ...state, succeeded: true } : null, false)
  return steps
}

// The deadlines of the work and of heartbeats, by pass and by later answers. Milliseconds since the epoch.

/** The work can't expire before `from`, and has ended by `to`. Infinity if unknown. */
interface WorkEnd { from: number, to: number }

/** @param workTtl the default time for the work; null if it is longer than the run @returns null if nobody caught it */
function workEnd (track: Track, facts: Facts, workTtl: number | null): WorkEnd | null {
  const from = toldDeadline(track, facts, workTtl)
  if (from === null) return null
  if (facts.expiredAt !== null) return { from: facts.expiredAt, to: facts.expiredAt }
  return { from, to: track.operations.some(isLostHeartbeat) ? Infinity : from }
}

/** The latest deadline that an answer named; null if nobody caught it. */
function toldDeadline (track: Track, facts: Facts, workTtl: number | null): number | null {
  const first = firstDeadline(track, facts, workTtl)
  return first === null ? null : Math.max(first, ...track.operations.map(toldBy))
}

function firstDeadline (track: Track, { caughtAt }: Facts, workTtl: number | null): number | null {
  if (caughtAt === null) return null
  const { workWithin, heartbeatWithin } = passOf(track)?.asked ?? {}
  return caughtAt + Math.min(workWithin ?? workTtl ?? Infinity, heartbeatWithin ?? Infinity)
}

/** The deadline that an answer named; it only ever grows. */
function toldBy ({ answer }: Operation): number {
  return answer?.heartbeatExpiresAt ?? answer?.workExpiresAt ?? -Infinity
}

/** An operation that may have moved a deadline, unknown whether and where to. */
function isLostHeartbeat (operation: Operation): boolean {
  return operation.kind === 'heartbeat' && isUnknown(operation)
}
