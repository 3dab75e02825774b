import { operations, standingOf as standingInTable } from '../../src/model.ts'
import type { Approval, OperationName, Standing, Status } from '../../src/model.ts'
import type { Facts } from './facts.ts'
import { attemptOf, passOf } from './history.ts'
import type { Operation, Track } from './history.ts'

/** Where a handoff is between two operations, for the search for an order (linear.ts). */

/** Who moved it where; null for what hasn't happened. */
export interface State {
  /** Of a successor, the first attempt's. */
  readonly pass: Operation | null
  /** An approve or a reject. */
  readonly decided: Operation | null
  readonly caught: Operation | null
  /** What a catcher or the passer ended it with. */
  readonly ended: Operation | null
  readonly expired: boolean
  /** Its delay is over. */
  readonly open: boolean
  /** Its catcher was asked to stop. */
  readonly requested: boolean
  readonly succeeded: boolean
}

export const unborn: State = { pass: null, decided: null, caught: null, ended: null, expired: false, open: false, requested: false, succeeded: false }

/** What a handoff was passed with, as far as it decides what becomes of it. */
export interface Terms { human: boolean, delayed: boolean, attempt: number, maxAttempts: number }

export function termsOf (track: Track, facts: Facts): Terms {
  const { human = false, maxAttempts = 1 } = passOf(track)?.asked ?? {}
  return { human, delayed: facts.availableAt !== null, attempt: attemptOf(track), maxAttempts }
}

/** As answers have it. */
export function statusOf ({ pass, decided, caught, ended, expired }: State): Status | 'absent' {
  if (pass === null) return 'absent'
  if (expired) return 'expired'
  if (ended !== null) return operations[ended.kind as OperationName].to
  if (caught !== null) return 'caught'
  return decided?.kind === 'reject' ? 'rejected' : 'pending'
}

/** As the table of states has it. */
export function standingOf (state: State, { human }: Terms): Standing {
  const status = statusOf(state)
  return status === 'absent' ? status : standingInTable(status, approvalOf(state, human) ?? 'none', !state.open, state.caught !== null)
}

/** A successor begins where the one before was passed, and what a person approved once stays approved. */
export function bornOf (pass: Operation, { human, delayed }: Terms): State {
  return { ...unborn, pass, decided: human ? { ...pass, kind: 'approve' } : null, open: !delayed }
}

/** Its time is over: of its pickup, or of the work. */
export function afterDeadline (state: State, status: 'pending' | 'caught'): State {
  return statusOf(state) === status ? { ...state, expired: true } : state
}

/** Will an attempt that ends by itself be tried again? */
export function isTriedAgain ({ requested, succeeded }: State, { attempt, maxAttempts }: Terms): boolean {
  return !requested && !succeeded && attempt < maxAttempts
}

/** Is its successor still to come, when the sweep gets there? */
export function isAwaited (state: State, terms: Terms): boolean {
  return standingOf(state, terms) === 'lapsed' && isTriedAgain(state, terms)
}

/** As an answer has it. */
export function approvalOf ({ decided }: State, human: boolean): Exclude<Approval, 'none'> | null {
  if (!human) return null
  if (decided === null) return 'waiting'
  return decided.kind === 'approve' ? 'approved' : 'rejected'
}
