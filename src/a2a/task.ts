import { iso } from '../core/iso.ts'
import { membersOf } from '../core/nested.ts'
import { labelsMember } from '../core/labels.ts'
import { askAt } from '../core/model.ts'
import { approvalText, firstMembers, moreMembers, progressMember } from '../handoffs/lifecycle/answers.ts'
import type { TaskSeen } from '../store/tasks.ts'
import { artifactsOf } from './artifacts.ts'
import { memberIn } from './fields.ts'
import { partsOfPassed } from './passing.ts'
import { dataPart, agentMessage, questionParts, taskStatusText } from './status.ts'

/** The label that has a task's context. */
const contextStart = 'a2a.context:'

export function contextOfTask ({ record }: TaskSeen): string {
  return record.extra.labels!.find(label => label.startsWith(contextStart))!.slice(contextStart.length)
}

/** A task, and where the files of its result can be fetched for now, for its reader. */
export type TaskWithUrls = TaskSeen & { fileUrls?: ReadonlyArray<string | null> }

/** What of a task is shown. `history`: how many of its last messages; undefined for all. */
interface ShownOfTask { history?: number | undefined, artifacts?: boolean }

/** A Task's JSON. What agents said is as they said it. */
export function taskText (task: string, seen: TaskWithUrls, { history, artifacts = true }: ShownOfTask): Buffer {
  const context = contextOfTask(seen)
  const messages = history === 0 ? [] : historyOf(task, context, seen)
  const shown = history === undefined ? messages : messages.slice(-history)
  const made = artifacts ? artifactsOf(seen.result, seen.fileUrls) : []
  return Buffer.concat([
    Buffer.from(`{"id":"${task}","contextId":"${context}","status":${taskStatusText(task, context, seen)}`),
    ...memberList('artifacts', made),
    ...memberList('history', shown),
    Buffer.from(`,"metadata":{"handoff":${handoffText(seen)}}}`)
  ])
}

function memberList (name: string, items: readonly Buffer[]): Buffer[] {
  if (items.length === 0) return []
  const list = items.flatMap((item, at) => at === 0 ? [item] : [Buffer.from(','), item])
  return [Buffer.from(`,"${name}":[`), ...list, Buffer.from(']')]
}

/** The message that began the task, its question, and the answer, as far as they are kept. */
function historyOf (task: string, context: string, seen: TaskSeen): Buffer[] {
  const messages: Buffer[] = []
  if (seen.payload !== null) messages.push(firstMessage(task, context, seen.payload, seen.record.extra.messageParts))
  const { record, now, texts } = seen
  const { ask } = record.extra
  if (ask?.of !== 'passer' || texts === null) return messages
  const ids = { task, context }
  messages.push(Buffer.from(agentMessage(ask.id, 'AGENT', ids, questionParts(seen))))
  if (texts.answer !== null && askAt(ask, record, now) === 'answered') {
    messages.push(Buffer.from(agentMessage(`${ask.id}-answer`, 'USER', ids, [dataPart(texts.answer)])))
  }
  return messages
}

/** The message is made again of what was passed: its texts as one part. @param letters which parts it had */
function firstMessage (task: string, context: string, payload: Buffer, letters = 't'): Buffer {
  const members = membersOf(Buffer.concat([Buffer.from('{'), payload, Buffer.from('}')]))
  const sent = memberIn(members.raw('context'), 'a2a')
  const more = ['metadata', 'extensions', 'referenceTaskIds'].flatMap(name => {
    const raw = memberIn(sent, name)
    return raw === undefined ? [] : [Buffer.from(`,"${name}":`), raw]
  })
  return Buffer.concat([
    Buffer.from(`{"messageId":${memberIn(sent, 'messageId')},"contextId":"${context}","taskId":"${task}",` +
      '"role":"ROLE_USER","parts":['),
    partsOfPassed(members.raw('task')!, members.raw('output')!, letters, members.raw('files')),
    Buffer.from(']'), ...more, Buffer.from('}')
  ])
}

/** What the service says of a handoff, in the protocol's spelling: status's members without what agents said. */
function handoffText (seen: TaskSeen): string {
  const { record, now, id, decision, progress, cancelReason, isLocked } = seen
  const { to: inbox, ...more } = moreMembers(record, now) as { to: string }
  const known = camelCased({
    inbox,
    attempt: record.extra.attempt ?? 1,
    ...firstMembers(id, record, now),
    ...more,
    ...record.status === 'rejected' && decision !== null && { ended_at: iso(decision.at) },
  })
  return JSON.stringify(known).slice(0, -1) + labelsMember(record.extra.labels) +
    `,"approval":${approvalOf(seen)}` +
    progressMember(progress) +
    (cancelReason === null ? '' : `,"cancelReason":${cancelReason}`) + (isLocked ? ',"locked":true}' : '}')
}

/** A person's note is as it was given. In a text no quote is without a backslash. */
function approvalOf ({ record, decision }: TaskSeen): string {
  return approvalText(record.approval, decision).replace(/"decided(?:_[a-z]+)+":/g, camelCase)
}

function camelCase (name: string): string {
  return name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
}

function camelCased (members: object): object {
  return Object.fromEntries(Object.entries(members).map(([name, value]: [string, unknown]) => [
    camelCase(name),
    typeof value === 'object' && value !== null && !Array.isArray(value) ? camelCased(value) : value
  ]))
}
