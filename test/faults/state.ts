import { operations, standingOf as standingInTable } from '../../src/core/model.ts'
import type { Approval, AskState, OperationName, Standing, Status } from '../../src/core/model.ts'
import type { Facts } from './facts.ts'
import { attemptOf, passOf } from './history.ts'
import type { Operation, Track } from './history.ts'
import { Questions } from './questions.ts'

/** A handoff's state between two operations, for the search for an order (linear.ts). */

/** The operations that led to the state; null if they haven't happened. */
export interface State {
  /** The pass; for a successor that of the first attempt. */
  readonly pass: Operation | null
  /** An approve or a reject. */
  readonly decided: Operation | null
  readonly caught: Operation | null
  /** The operation with which the catcher or the passer ended it. */
  readonly ended: Operation | null
  readonly expired: boolean
  /** Whether something that it comes after is still open, as far as it has heard. */
  readonly blocked: boolean
  /** Whether its delay is over. */
  readonly open: boolean
  /** Whether its catcher was asked to stop. */
  readonly requested: boolean
  readonly succeeded: boolean
  /** The ask that made its latest question, and the answer to that. */
  readonly asked: Operation | null
  readonly answered: Operation | null
  /** Whether nobody answered it in time. */
  readonly lapsed: boolean
}

export const unborn: State = {
  pass: null, decided: null, caught: null, ended: null, expired: false, blocked: false, open: false, requested: false, succeeded: false, asked: null, answered: null, lapsed: false
}

/** What ends a handoff that comes after one that didn't end as it had to. */
export const byOthers: Operation = {
  n: -1, kind: 'cancel', handoff: '', agent: '', token: null, asked: null, firm: false, about: {}, sent: 0, answered: 0, ended: 0, status: 200, code: null, answer: null, same: null, replayed: false,
}

/** The options of pass that influence the states. */
export interface Terms {
  human: boolean
  /** For an inbox: then it can be reissued though nobody caught it. */
  addressed: boolean
  delayed: boolean
  /** Whether it comes after others. A successor may wait for what the attempt before still waited for. */
  after: boolean
  attempt: number
  maxAttempts: number
  /** Of a successor: did a person decide on the attempt before? */
  decidedBefore: boolean
  questions: Questions
}

export function termsOf (track: Track, facts: Facts): Terms {
  const { human = false, maxAttempts = 1, to, after } = passOf(track)?.asked ?? {}
  const isSeenWaiting = track.operations.some(({ answer, code }) => answer?.approval === 'waiting' || code === 'approval_required')
  return {
    human,
    addressed: to !== undefined,
    delayed: facts.availableAt !== null,
    after: after !== undefined,
    attempt: attemptOf(track),
    maxAttempts,
    decidedBefore: !isSeenWaiting && !(facts.decidedAt !== null && facts.createdAt !== null && facts.decidedAt > facts.createdAt),
    questions: new Questions(track),
  }
}

/** The status, as in answers. */
export function statusOf ({ pass, decided, caught, ended, expired }: State): Status | 'absent' {
  if (pass === null) return 'absent'
  if (expired) return 'expired'
  if (ended !== null) return operations[ended.kind as OperationName].to
  if (caught !== null) return 'caught'
  return decided?.kind === 'reject' ? 'rejected' : 'pending'
}

/** The state, as in the table of states. */
export function standingOf (state: State, { human, addressed }: Terms): Standing {
  const status = statusOf(state)
  return status === 'absent' ? status : standingInTable(status, approvalOf(state, human) ?? 'none', !state.open, state.caught !== null || addressed, state.blocked)
}

/** The first state of a successor: passed, still blocked if the attempt before was, and still approved if a person had approved it. */
export function bornOf (pass: Operation, { human, delayed, decidedBefore, after }: Terms): State {
  return { ...unborn, pass, decided: human && decidedBefore ? { ...pass, kind: 'approve' } : null, blocked: after, open: !delayed }
}

/** What it comes after has ended: it is released, or cancelled by that. */
export function afterOthers (state: State, isCancelled: boolean): State | null {
  if (!state.blocked || statusOf(state) !== 'pending') return null
  return isCancelled ? { ...state, ended: byOthers } : { ...state, blocked: false }
}

/** How its latest question stands; null if nothing was asked. */
export function askStateOf (state: State): AskState | null {
  if (state.asked === null) return null
  if (state.answered !== null) return 'answered'
  if (state.lapsed) return 'expired'
  return statusOf(state) === 'caught' ? 'open' : 'withdrawn'
}

/** Whether its pickup deadline or a deadline of the work has passed. */
export function afterDeadline (state: State, status: 'pending' | 'caught'): State {
  return statusOf(state) === status ? { ...state, expired: true } : state
}

/** Whether a successor is made automatically when this attempt ends. */
export function isTriedAgain ({ requested, succeeded }: State, { attempt, maxAttempts }: Terms): boolean {
  return !requested && !succeeded && attempt < maxAttempts
}

/** Whether the sweep is still to make its successor. */
export function isAwaited (state: State, terms: Terms): boolean {
  return state.caught !== null && standingOf(state, terms) === 'lapsed' && isTriedAgain(state, terms)
}

/** As in an answer. */
export function approvalOf ({ decided }: State, human: boolean): Exclude<Approval, 'none'> | null {
  if (!human) return null
  if (decided === null) return 'waiting'
  return decided.kind === 'approve' ? 'approved' : 'rejected'
}
