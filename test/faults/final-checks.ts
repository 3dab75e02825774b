import type { CheckOptions, Fault } from './checker.ts'
import { toldDeadline } from './deadlines.ts'
import type { Facts } from './facts.ts'
import { nameOf } from './history.ts'
import type { Answer, Operation, Track } from './history.ts'

/** I1: what was acknowledged is there at the end, and no final state is behind it. */
export function finalFaults (track: Track, facts: Facts, options: CheckOptions): Fault[] {
  const faults: Fault[] = []
  const { operations, final, descent } = track
  const passed = descent?.pass ?? operations.find(({ kind, status }) => kind === 'pass' && status === 201)
  if (passed === undefined) return faults
  const fault = (sentence: string, ...shown: Operation[]) => faults.push({ invariant: 'I1', sentence, operations: shown })

  for (const operation of operations) {
    if (operation.status === 404 && (descent !== null || operation.sent > passed.answered!)) fault('it was passed, but is not there', passed, operation)
  }
  if (final === null) return faults
  if (final.answered === null || final.status >= 500) fault('nothing is known of it in the end', passed, final)
  if (final.status !== 200 || final.answer === null) return faults
  // It may come due while the status is on its way.
  const isOver = final.answered! + options.slack >= (toldDeadline(track, facts, options.workTtl) ?? Infinity)
  for (const operation of operations) {
    const lost = lostOf(operation, final.answer, isOver)
    if (lost !== null) fault(`${lost} was acknowledged, but in the end it is ${final.answer.status}`, operation, final)
  }
  return faults
}

/** The states that can follow a catch. */
const held = new Set<string | undefined>(['caught', 'done', 'failed', 'declined', 'cancelled'])

/** What the operation was told it had done, if the final state lacks it; else null. @param isOver the work's deadline has passed */
function lostOf ({ kind, status, agent, answer }: Operation, end: Answer, isOver: boolean): string | null {
  if (status >= 300 || status < 200) return null
  const by = nameOf(agent)
  switch (kind) {
    case 'catch': {
      const stands = held.has(end.status) || (end.status === 'expired' && isOver)
      return stands && (end.caughtBy === undefined || end.caughtBy === by) ? null : `a catch by ${agent}`
    }
    case 'done': return end.status === 'done' ? null : 'its completion'
    case 'fail': return end.status === 'failed' ? null : 'its failure'
    case 'decline': return end.status === 'declined' ? null : 'its being declined'
    case 'cancel': {
      if (status === 202) return end.cancelRequestedAt !== undefined ? null : 'that it should stop'
      return end.status === 'cancelled' ? null : 'its cancellation'
    }
    case 'reissue': return end.reissuedAs === answer?.reissuedAs ? null : 'its successor'
    case 'approve': return end.approval === 'approved' ? null : 'its approval'
    case 'reject': return end.status === 'rejected' && (end.approval === undefined || end.approval === 'rejected') ? null : 'its rejection'
    default: return null
  }
}
