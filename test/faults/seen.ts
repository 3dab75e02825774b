import { markOf, nameOf } from './history.ts'
import type { Operation } from './history.ts'
import { approvalOf, isAwaited, statusOf } from './state.ts'
import type { State, Terms } from './state.ts'

/** Whether a status answer fits a handoff in this state. Members that it lacks are not compared, unless a status always has them. */
export function isSeen (state: State, { answer }: Operation, terms: Terms): boolean {
  const status = statusOf(state)
  if (answer === null || answer.status !== status) return false
  const { caught, ended } = state
  const { caughtBy, caughtAt, completedAt, approval, result, told, endedBy, expiredBecause, cancelRequestedAt } = answer
  return isGiven(caughtBy, caught && nameOf(caught.agent)) &&
    (caughtAt === undefined || (caughtAt === null) === (caught === null)) &&
    (completedAt === undefined || (completedAt === null) === (status !== 'done')) &&
    isGiven(approval, approvalOf(state, terms.human)) &&
    isGiven(result, status === 'done' ? ended && markOf(ended) : null) &&
    isGiven(told, status === 'failed' || status === 'declined' ? ended && markOf(ended) : null) &&
    isGiven(endedBy, status === 'expired' ? null : ended && nameOf(ended.agent)) &&
    (expiredBecause === undefined || (expiredBecause === 'not_caught') === (caught === null)) &&
    (cancelRequestedAt !== undefined) === state.requested &&
    reissuedAsSeen(answer.reissuedAs) === (state.succeeded ? 'told' : isAwaited(state, terms) ? 'awaited' : 'none')
}

function reissuedAsSeen (told: string | null | undefined): string {
  return told === undefined ? 'none' : told === null ? 'awaited' : 'told'
}

function isGiven (said: string | null | undefined, is: string | null): boolean {
  return said === undefined || said === is
}
