import { deadlineOf, isResting } from '../core/model.ts'
import { willBeTriedAgain } from '../handoffs/lifecycle/answers.ts'
import type { TaskSeen } from '../store/tasks.ts'
import { isTerminal, taskStanding } from './status.ts'

/** The sweep makes the next attempt within this time (ms). */
const sweepWithin = 3000

/** Milliseconds until a task may have its next attempt; null if its latest one hasn't run out of time. */
export function untilAttempted ({ record, now }: TaskSeen): number | null {
  return willBeTriedAgain(record, now) ? sweepWithin : null
}

/**
 * Milliseconds until a task changes by itself; null if there is nothing to wait for: it has ended, asks for input, or
 * is gone.
 */
export function untilChanged (task: string) {
  return (seen: TaskSeen | null): number | null => {
    if (seen === null) return null
    const { record, now } = seen
    const left = untilAttempted(seen)
    if (left !== null) return left
    const { state } = taskStanding(task, seen)
    if (isTerminal(state) || state === 'INPUT_REQUIRED') return null
    return Math.min(deadlineOf(record), isResting(record, now) ? record.extra.ask!.expiresAt : Infinity) - now
  }
}
