import { iso } from '../core/iso.ts'
import { askAt, expiryOf, statusAt } from '../core/model.ts'
import { willBeTriedAgain } from '../handoffs/lifecycle/answers.ts'
import type { Standing, TaskChange, TaskSeen, TaskState } from '../store/tasks.ts'
import { memberIn } from './fields.ts'

/** How a task stands in the protocol's words. */

/** Nothing follows these. */
const terminal: readonly TaskState[] = ['COMPLETED', 'FAILED', 'REJECTED', 'CANCELED']

export function isTerminal (state: TaskState): boolean {
  return terminal.includes(state)
}

export function stateName (state: TaskState): string {
  return `TASK_STATE_${state}`
}

/** The state by the clock, whether the sweep has been there or not. @param task its id */
export function taskStanding (task: string, seen: TaskSeen): Standing {
  const { record, now, stands } = seen
  const state = stateByRecord(task, seen)
  if (state === stands.state) return stands
  if (statusAt(record, now) === 'expired') return { state, since: expiryOf(record).at }
  return { state, since: state === 'WORKING' ? record.extra.ask?.expiresAt ?? now : now }
}

function stateByRecord (task: string, seen: TaskSeen): TaskState {
  const { record, now, id } = seen
  const { ask, cancelRequestedAt } = record.extra
  if (willBeTriedAgain(record, now)) return 'WORKING'
  switch (statusAt(record, now)) {
    case 'pending': return id === task ? 'SUBMITTED' : 'WORKING'
    case 'caught': return ask?.of === 'passer' && askAt(ask, record, now) === 'open' ? 'INPUT_REQUIRED' : 'WORKING'
    case 'done': return 'COMPLETED'
    case 'failed': return cancelRequestedAt === undefined ? 'FAILED' : 'CANCELED'
    case 'declined': return cancelRequestedAt === undefined ? 'REJECTED' : 'CANCELED'
    case 'cancelled': return 'CANCELED'
    case 'rejected': return 'REJECTED'
    case 'expired': return 'FAILED'
  }
}

/** A part of text, of JSON text. */
const textPart = (json: string) => `{"text":${json}}`
export const dataPart = (json: Buffer | string) => `{"data":${json},"mediaType":"application/json"}`

/** A message's JSON. @param parts JSON texts */
export function agentMessage (
  id: string, role: 'AGENT' | 'USER', { task, context }: { task: string, context: string }, parts: readonly string[]
): string {
  return `{"messageId":${JSON.stringify(id)},"contextId":"${context}","taskId":"${task}","role":"ROLE_${role}",` +
    `"parts":[${parts.join(',')}]}`
}

/** An error given to fail: its message, and the whole of it where it says more. @param fault JSON */
function faultParts (fault: string): string[] {
  const bytes = Buffer.from(fault)
  const text = String(memberIn(bytes, 'message') ?? '""')
  const hasMore = memberIn(bytes, 'data') !== undefined || memberIn(bytes, 'code') !== undefined
  return hasMore ? [textPart(text), dataPart(fault)] : [textPart(text)]
}

/** A progress: what it says, and how far it is. @param progress JSON */
function progressParts (progress: string): string[] {
  const bytes = Buffer.from(progress)
  const [message, percent] = [memberIn(bytes, 'message'), memberIn(bytes, 'percent')]
  return [
    ...message === undefined ? [] : [textPart(String(message))],
    ...percent === undefined ? [] : [dataPart(`{"percent":${percent}}`)]
  ]
}

const ownWords = (text: string) => [textPart(JSON.stringify(text))]

const expiryParts = (because: string) => ownWords(`Expired: ${because}`)

/** A question: its text, and its details and schema. */
export function questionParts ({ texts }: TaskSeen): string[] {
  const { question, details, schema } = texts!
  const more = [details && `"details":${details}`, schema && `"schema":${schema}`].filter(one => one !== null)
  return [textPart(String(question)), ...more.length === 0 ? [] : [dataPart(`{${more.join(',')}}`)]]
}

/** What goes with the state as it is now; none for nothing. */
function partsOfStatus (seen: TaskSeen, state: TaskState): string[] {
  const { record, now, fault, texts, progress, cancelReason, decision, ended } = seen
  const { ask } = record.extra
  const status = statusAt(record, now)
  if (status === 'pending') {
    if (record.approval === 'waiting') return ownWords('A person must approve this before it is worked on.')
    if (state !== 'WORKING') return []
    const parts = ended === null ? [] : changeParts(ended, seen)
    return parts.length === 0 ? ownWords('It is tried again.') : parts
  }
  if (status === 'caught') {
    if (texts !== null && ask !== undefined && askAt(ask, record, now) === 'open') return questionParts(seen)
    return progress === null ? [] : progressParts(progress.text)
  }
  if (status === 'failed' && fault !== null) return faultParts(fault)
  if (status === 'declined' && fault !== null) return [textPart(fault)]
  if (status === 'rejected' && decision !== null && decision.note !== 'null') return [textPart(decision.note)]
  if (status === 'cancelled' && cancelReason !== null) return [textPart(cancelReason)]
  if (status === 'expired') return expiryParts(expiryOf(record).because)
  return []
}

/** @param parts of its message */
function statusWith ({ state, since }: Standing, message: string): string {
  return `{"state":"${stateName(state)}"${message === '' ? '' : `,"message":${message}`},"timestamp":"${iso(since)}"}`
}

/** A TaskStatus. */
export function taskStatusText (task: string, context: string, seen: TaskSeen): string {
  const standing = taskStanding(task, seen)
  const parts = partsOfStatus(seen, standing.state)
  // Its id is the same for each caller, so that clients know it again.
  const { ask } = seen.record.extra
  const id = standing.state === 'INPUT_REQUIRED' && ask !== undefined ? ask.id : `${task}-${seen.number}`
  return statusWith(standing, parts.length === 0 ? '' : agentMessage(id, 'AGENT', { task, context }, parts))
}

/** The same as it was at a change. @param seen the task as it is now; null if it wasn't read */
export function changedStatus (task: string, context: string, change: TaskChange, seen: TaskSeen | null): string {
  const parts = changeParts(change, seen)
  const ask = seen?.record.extra.ask
  const isQuestion = change.what === 'asked' && ask !== undefined && ask.askedAt === change.at
  const id = isQuestion && change.state === 'INPUT_REQUIRED' ? ask.id : `${task}-${change.number}`
  return statusWith(change, parts.length === 0 ? '' : agentMessage(id, 'AGENT', { task, context }, parts))
}

function changeParts ({ what, said: words, handoff, at }: TaskChange, seen: TaskSeen | null): string[] {
  switch (what) {
    case 'progress': return words === null ? [] : progressParts(words)
    case 'asked': {
      const isNewest = seen !== null && seen.record.extra.ask?.askedAt === at && handoff === seen.id
      return isNewest && seen.texts !== null ? questionParts(seen) : words === null ? [] : [textPart(words)]
    }
    case 'failed': {
      // A long error isn't kept with the change.
      const fault = words ?? (handoff === seen?.id ? seen.fault : null)
      return fault === null ? ownWords('Failed.') : faultParts(fault)
    }
    case 'declined': case 'rejected': case 'cancel_requested':
      return words === null || words === 'null' ? [] : [textPart(words)]
    case 'expired': return words === null ? ownWords('Expired.') : expiryParts(JSON.parse(words) as string)
    default: return []
  }
}
