import { rawJson } from '../../index.ts'
import type { Handoff, Progress } from '../../index.ts'
import type { RawJson } from '../../json.ts'
import { memberText } from '../../json.ts'
import { AgentError } from './exchange.ts'
import { listIn, objectIn, objectText } from './agent.ts'

/** What a handoff is as a message, and what becomes of a task. Data is cut from the texts, so it stays as it is. */

/** A task as it was seen. */
export interface SeenTask {
  id: string
  contextId: string | undefined
  /** Without its prefix: WORKING */
  state: string
  /** Its status' JSON. */
  status: string
  /** Its artifacts' JSON. */
  artifacts: string[]
}

/** What an agent answers: a task, or its message at once. */
export type SeenAnswer = SeenTask | { message: string }

/** The constraints stand behind such a line. */
const apart = '\n\n---\n\n'
/** In characters: the service's own limits. */
const [maxQuestion, maxProgress] = [4000, 1000]

/** A message's JSON. @param more its other members' JSON */
function userMessage (id: string, parts: readonly string[], more: Record<string, string> = {}): string {
  return objectText({ messageId: JSON.stringify(id), ...more, role: '"ROLE_USER"', parts: `[${parts.join()}]` })
}

/** What is passed, as a message: it is cut from the answer of catch. */
export function messageOf (
  { handoff_id: id, text, constraints, output, context, files = [], file_urls: urls }: Handoff
): string {
  const task = memberText(text, 'task')!
  const words = constraints === null
    ? task
    : task.slice(0, -1) + JSON.stringify(apart).slice(1, -1) + memberText(text, 'constraints')!.slice(1)
  const data = Object.entries({ output, context }).filter(([, value]) => Object.keys(value).length > 0)
  return userMessage(id, [
    `{"text":${words}}`,
    ...data.map(([name]) => dataText(memberText(text, name)!, { handoff: name })),
    ...files.map((file, at) => fileText(file, urls?.[at]?.url ?? file.uri)),
  ])
}

function fileText ({ name, media_type: type }: { name: string, media_type?: string }, url: string): string {
  return JSON.stringify({ url, filename: name, ...type !== undefined && { mediaType: type } })
}

/** @param metadata says which of them it is */
function dataText (json: string, metadata?: Record<string, string>): string {
  return objectText({
    data: json, mediaType: '"application/json"', ...metadata && { metadata: JSON.stringify(metadata) }
  })
}

/** The answer to a task's question. @param answer its JSON */
export function answerMessage (id: string, task: SeenTask, answer: string): string {
  const members = Object.keys(objectIn(answer) ?? {})
  const words = members.length === 1 ? memberText(answer, 'text') : undefined
  return userMessage(id, [words?.startsWith('"') === true ? `{"text":${words}}` : dataText(answer)], {
    taskId: JSON.stringify(task.id),
    ...task.contextId !== undefined && { contextId: JSON.stringify(task.contextId) }
  })
}

/** The answer to a message. @throws {AgentError} it is none */
export function seenIn (json: string): SeenAnswer {
  const message = memberText(json, 'message')
  if (message !== undefined && listIn(message, 'parts').length > 0) return { message }
  return taskIn(memberText(json, 'task') ?? '{}')
}

/** @param json a Task's @throws {AgentError} it is none */
export function taskIn (json: string): SeenTask {
  const { id, contextId } = objectIn(json) ?? {}
  const status = memberText(json, 'status')
  if (typeof id !== 'string' || id === '' || status === undefined) throw noTask()
  return { ...idsOf(id, contextId), ...statusIn(status), artifacts: listIn(json, 'artifacts') }
}

/** Of a task of which only an artifact was seen. */
const unsaid = '{"state":"TASK_STATE_UNSPECIFIED"}'

/** A change of a task. @param json a StreamResponse's @returns undefined where its state isn't in it, and was seen */
export function changeIn (json: string, before: SeenTask | undefined): SeenAnswer | undefined {
  const artifact = memberText(json, 'artifactUpdate')
  if (artifact !== undefined && before !== undefined) return undefined
  const update = artifact ?? memberText(json, 'statusUpdate')
  if (update === undefined) return seenIn(json)
  const { taskId, contextId } = objectIn(update) ?? {}
  const status = artifact === undefined ? memberText(update, 'status') : unsaid
  const id = typeof taskId === 'string' && taskId !== '' ? taskId : before?.id
  if (id === undefined || status === undefined) throw noTask()
  return { ...idsOf(id, contextId ?? before?.contextId), ...statusIn(status), artifacts: [] }
}

function idsOf (id: string, contextId: unknown) {
  return { id, contextId: typeof contextId === 'string' && contextId !== '' ? contextId : undefined }
}

function statusIn (status: string): Pick<SeenTask, 'state' | 'status'> {
  const { state } = objectIn(status) ?? {}
  if (typeof state !== 'string') throw noTask()
  return { state: state.replace(/^TASK_STATE_/, ''), status }
}

function noTask (): AgentError {
  return new AgentError('foreign', 'what answers there isn’t A2A 1.0: its answer is neither a task nor a message')
}

/** The parts of the message that goes with a task's state. */
function statusParts ({ status }: SeenTask): string[] {
  return listIn(memberText(status, 'message') ?? '{}', 'parts')
}

/** What distinguishes one question from the next. */
export function questionKey ({ status }: SeenTask): string {
  return memberText(memberText(status, 'message') ?? '{}', 'messageId') ?? status
}

/** What parts say in words, in so many characters; empty where there are none. */
function sayingOf (parts: readonly string[], length: number): string {
  const texts = parts.map(part => objectIn(part)?.text).filter(text => typeof text === 'string')
  const all = texts.join('\n').trim()
  return [...all.slice(0, 2 * length)].slice(0, length).join('')
}

/** What an agent says of a state. */
export function reasonIn (task: SeenTask): string {
  return sayingOf(statusParts(task), maxQuestion)
}

/** A progress; undefined where none is said. */
export function progressIn (task: SeenTask): Progress | undefined {
  const parts = statusParts(task)
  const message = sayingOf(parts, maxProgress)
  const percent = parts.map(part => (objectIn(part)?.data as { percent?: unknown } | undefined)?.percent)
    .find(value => typeof value === 'number' && value >= 0 && value <= 100) as number | undefined
  if (message === '' && percent === undefined) return undefined
  return { ...message !== '' && { message }, ...percent !== undefined && { percent } }
}

/** The data that goes with a question: an object that is alone, as it is. */
export function detailsIn (task: SeenTask): RawJson | undefined {
  const data = statusParts(task).filter(part => memberText(part, 'text') === undefined)
  if (data.length === 0) return undefined
  const only = data.length === 1 ? memberText(data[0]!, 'data') : undefined
  return rawJson(only !== undefined && objectIn(only) !== undefined ? only : `{"parts":[${data.join()}]}`)
}

/** The result of what is completed: its artifacts, or else what it says. */
export function outputIn (seen: SeenAnswer): RawJson {
  if ('message' in seen) return artifactsResult([artifactText(listIn(seen.message, 'parts'))])
  const said = statusParts(seen)
  return artifactsResult(seen.artifacts.length === 0 && said.length > 0 ? [artifactText(said)] : seen.artifacts)
}

function artifactText (parts: readonly string[]): string {
  return `{"artifactId":"message","parts":[${parts.join()}]}`
}

/** One part of text alone is just that text. */
function artifactsResult (artifacts: readonly string[]): RawJson {
  const parts = artifacts.flatMap(artifact => listIn(artifact, 'parts'))
  const words = parts.length === 1 && artifacts.length === 1 ? memberText(parts[0]!, 'text') : undefined
  return rawJson(words?.startsWith('"') === true ? `{"text":${words}}` : `{"artifacts":[${artifacts.join()}]}`)
}
