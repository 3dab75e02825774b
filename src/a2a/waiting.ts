import { deadlineOf, isResting } from '../core/model.ts'
import { willBeTriedAgain } from '../handoffs/lifecycle/answers.ts'
import type { TaskSeen } from '../store/tasks.ts'
import { isTerminal, taskStanding } from './status.ts'

/** The sweep makes the next attempt within this time (ms). */
const sweepWithin = 3000

/**
 * Milliseconds until a task changes by itself; null if there is nothing to wait for: it has ended, asks for input, or
 * is gone.
 */
export function untilChanged (task: string) {
  return (seen: TaskSeen | null): number | null => {
    if (seen === null) return null
    const { record, now } = seen
    if (willBeTriedAgain(record, now)) return sweepWithin
    const { state } = taskStanding(task, seen)
    if (isTerminal(state) || state === 'INPUT_REQUIRED') return null
    return Math.min(deadlineOf(record), isResting(record, now) ? record.extra.ask!.expiresAt : Infinity) - now
  }
}
