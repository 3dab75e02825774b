import { workEnds } from './deadlines.ts'
import type { Lifetimes, WorkEnd } from './deadlines.ts'
import type { Facts } from './facts.ts'
import { isUnknown } from './history.ts'
import type { Operation, Track } from './history.ts'
import { afterAnswer, effectOf } from './sequential.ts'
import type { Questions } from './questions.ts'
import { afterDeadline, afterOthers, askStateOf, bornOf, isAwaited, standingOf, termsOf } from './state.ts'
import type { State, Terms } from './state.ts'

/** The steps of the order that the search (linear.ts) looks for, and their times. */

/** Tolerances, in milliseconds. */
export interface Tolerance extends Lifetimes {
  /** Redis's clock against this machine's. */
  slack: number
  /** How long the service goes on with a request after its client has left. */
  budget: number
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
function whenOf (operation: Operation, facts: Facts, questions: Questions): number | null {
  const { kind, firm } = operation
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
    case 'ask': return questions.all.find(({ id }) => id === questions.idOf(operation))?.askedAt ?? null
    case 'answer': return questions.all.find(({ id }) => id === operation.about.askId)?.answeredAt ?? null
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
    if (!known && (operation.kind === 'status' || operation.kind === 'heartbeat' || operation.kind === 'asked')) continue
    const to = endOf(operation, tolerance)
    steps.push({
      operation,
      from: operation.sent,
      to,
      at: whenOf(operation, facts, terms.questions),
      known,
      next: known ? state => afterAnswer(state, operation, terms) : state => effectOf(state, operation, terms),
    })
    if (mayHaveHappenedBefore(operation)) steps.push({ operation, from: operation.sent, to, at: earlierOf(operation, facts, terms.questions), known: false, next: state => effectOf(state, operation, terms) })
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
  // It was answered, and then the next question asked.
  if (kind === 'answer') return code === 'content_changed'
  return (kind === 'catch' || kind === 'approve') && ended.has(code)
}

/** When it happened before. A cancel that only asked has its own time, which few answers tell. */
function earlierOf (operation: Operation, facts: Facts, questions: Questions): number | null {
  return operation.kind === 'cancel' ? null : whenOf(operation, facts, questions)
}

/** Steps without an operation. @param last when the last answer came: later steps are unobservable */
function eventsOf (track: Track, facts: Facts, tolerance: Tolerance, terms: Terms, last: number): Step[] {
  const { slack, maxWorkTtl } = tolerance
  const steps: Step[] = []
  const event = (from: number, to: number, next: Step['next'], known = true) => {
    if (from - slack <= last) steps.push({ operation: null, from: from - slack, to: to + slack, at: null, known, next })
  }
  for (const { sent, ended } of track.redrives ?? []) {
    event(sent, (ended ?? Infinity) + tolerance.budget, state => isRedriven(state, terms) ? { ...state, succeeded: true } : null, false)
  }
  const { descent } = track
  if (descent !== null) {
    event(facts.createdAt ?? -Infinity, facts.createdAt ?? Infinity, state => state.pass === null ? bornOf(descent.pass, terms) : null)
  }
  const { availableAt, expiresAt, createdAt, endedAt, endedBy } = facts
  if (terms.after) {
    event(createdAt ?? -Infinity, Infinity, state => afterOthers(state, false), false)
    if (endedBy === null) event(endedAt ?? createdAt ?? -Infinity, endedAt ?? Infinity, state => afterOthers(state, true), false)
  }
  if (availableAt !== null) event(availableAt, availableAt, state => state.pass === null ? null : { ...state, open: true })
  if (expiresAt !== null) event(expiresAt, expiresAt, state => state.pass === null ? null : afterDeadline(state, 'pending'))
  for (const { id, expiresAt } of terms.questions.all) {
    if (expiresAt !== null) event(expiresAt, expiresAt, state => state.asked !== null && terms.questions.isOf(id, state.asked) ? afterSilence(state) : state)
  }
  for (const ask of track.operations) {
    // If this one asked, nobody knows exactly until when.
    if (ask.kind !== 'ask' || !isUnknown(ask) || terms.questions.idOf(ask) !== null) continue
    event(ask.sent + ask.about.openFor!, Infinity, state => state.asked === ask ? afterSilence(state) : null, false)
  }
  const ends = workEnds(track, facts, terms.questions, tolerance)
  if (ends.length === 0) return steps
  const { caughtAt, expiredAt } = facts
  if (expiredAt !== null) event(expiredAt, expiredAt, state => state.caught === null ? null : afterDeadline(state, 'caught'))
  else {
    for (const end of ends) if (end.to < Infinity) event(end.from, end.to, state => state.caught === null ? null : isAt(state, end, terms) ? afterDeadline(state, 'caught') : state)
    const latest = caughtAt! + (maxWorkTtl ?? Infinity)
    if (terms.questions.all.length > 0 && latest < Infinity) event(latest, latest, state => askStateOf(state) === 'open' ? afterDeadline(state, 'caught') : state)
  }
  // The sweep makes the successor at some time.
  if (terms.attempt < terms.maxAttempts) event(expiredAt ?? ends[0]!.from, Infinity, state => isAwaited(state, terms) ? { ...state, succeeded: true } : null, false)
  return steps
}

/** Nobody answered its question in time. */
function afterSilence (state: State): State {
  return askStateOf(state) === 'open' ? { ...state, lapsed: true } : state
}

/** Whether just so many questions have ended, and none is open. */
function isAt (state: State, { asked }: WorkEnd, { questions }: Terms): boolean {
  if (state.asked === null) return asked === 0
  const id = questions.idOf(state.asked)
  return askStateOf(state) !== 'open' && asked > 0 && questions.all[asked - 1]!.id === id
}

/** Whether an operator may have it tried again: it failed for good. */
function isRedriven (state: State, terms: Terms): boolean {
  return !state.succeeded && ['failed', 'declined', 'lapsed'].includes(standingOf(state, terms))
}
