import { taskLetters } from '../store/tasks.ts'
import type { TaskState } from '../store/tasks.ts'
import { invalidParams } from './errors.ts'
import type { Fields } from './fields.ts'
import { isContext } from './message.ts'
import { stateName } from './status.ts'

/** What ListTasks is asked for, and its pages' tokens. */

const states = Object.values(taskLetters)

export function statesIn (params: Fields): readonly TaskState[] {
  const name = params.string('status')
  if (name === undefined || name === '' || name === 'TASK_STATE_UNSPECIFIED') return states
  const known = states.filter(state => stateName(state) === name)
  // A state that no task here ever has.
  if (known.length === 0 && name !== 'TASK_STATE_AUTH_REQUIRED') throw invalidParams('/status', 'must be a TaskState')
  return known
}

export function contextIn (params: Fields): string | undefined {
  const context = params.string('contextId') || undefined
  if (context !== undefined && !isContext(context)) throw invalidParams('/contextId', 'can’t be a context’s id')
  return context
}

export function sinceIn (params: Fields): number | undefined {
  const text = params.string('statusTimestampAfter') || undefined
  if (text === undefined) return undefined
  const since = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$/.test(text) ? Date.parse(text) : NaN
  if (Number.isNaN(since)) throw invalidParams('/statusTimestampAfter', 'must be a time like 2026-11-20T09:00:00.000Z')
  return since
}

export function writeToken (place: string): string {
  return Buffer.from(place).toString('base64url')
}

export function readPageToken (token: string): string {
  const place = Buffer.from(token, 'base64url').toString()
  if (/^\d{1,15} [a-z] [\w-]{25}$/.test(place)) return place
  throw invalidParams('/pageToken', 'must be a nextPageToken of this list')
}
