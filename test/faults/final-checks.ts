import type { CheckOptions, Fault } from './checker.ts'
import type { Operation, Track } from './history.ts'
import { nameOf } from './sequential.ts'

/** I1: what was acknowledged is there afterwards, and where a handoff stands in the end is not behind it. */
export function finalFaults (track: Track, options: CheckOptions): Fault[] {
  const faults: Fault[] = []
  const { operations, final } = track
  const passed = operations.find(({ kind, status }) => kind === 'pass' && status === 201)
  if (passed === undefined) return faults
  const fault = (sentence: string, ...shown: Operation[]) => faults.push({ invariant: 'I1', sentence, operations: shown })

  for (const operation of operations) {
    if (operation.status === 404 && operation.sent > passed.answered!) fault('it was passed, but is not there', passed, operation)
  }
  if (final === null) return faults
  if (final.answered === null || final.status >= 500) fault('nothing is known of it in the end', passed, final)
  if (final.status !== 200 || final.answer === null) return faults
  for (const operation of operations) {
    const lost = lostOf(operation, final.answer, final.sent, options)
    if (lost !== null) fault(`${lost} was acknowledged, but in the end it is ${final.answer.status}`, operation, final)
  }
  return faults
}

/** What this operation was told it had done, and of which nothing is left to see; null for nothing. */
function lostOf ({ kind, status, agent }: Operation, end: NonNullable<Operation['answer']>, at: number, { workTtl, slack }: CheckOptions): string | null {
  if (status !== 200) return null
  switch (kind) {
    case 'catch': {
      const workIsOver = workTtl !== null && typeof end.caughtAt === 'number' && at + slack >= end.caughtAt + workTtl
      const stands = end.status === 'caught' || end.status === 'done' || (end.status === 'expired' && workIsOver)
      return stands && (end.caughtBy === undefined || end.caughtBy === nameOf(agent)) ? null : `a catch by ${agent}`
    }
    case 'done': return end.status === 'done' ? null : 'its completion'
    case 'approve': return end.approval === 'approved' ? null : 'its approval'
    case 'reject': return end.status === 'rejected' && (end.approval === undefined || end.approval === 'rejected') ? null : 'its rejection'
    default: return null
  }
}
