import { elementTexts, memberText } from '../../json.ts'
import { AgentError, openAnswer, readToEnd, readEventData } from './exchange.ts'
import type { AgentRequest, AgentWay } from './exchange.ts'

/** An agent of A2A 1.0, called by the binding that its card names. Data stays the text that it came as. */

type Sending = 'SendMessage' | 'SendStreamingMessage'
type OfTask = 'GetTask' | 'CancelTask' | 'SubscribeToTask'

/** What is asked of an agent: a message to send, or a task's id. `message` is JSON. */
export type AgentCall =
  { method: Sending, message: string } | { method: OfTask, id: string }

/** Where an agent is, as its card says. */
export interface AgentPlace { url: string, binding: 'JSONRPC' | 'HTTP+JSON', tenant: string | undefined }

/** How long an agent may be silent where it has nothing to wait for, and in a stream, in milliseconds. */
const [lookTime, streamTime] = [30_000, 60_000]

/** JSON-RPC's numbers for A2A's errors. */
const rpcReasons: Readonly<Record<number, string>> = {
  [-32601]: 'METHOD_NOT_FOUND',
  [-32602]: 'INVALID_PARAMS',
  [-32603]: 'INTERNAL',
  [-32001]: 'TASK_NOT_FOUND',
  [-32002]: 'TASK_NOT_CANCELABLE',
  [-32004]: 'UNSUPPORTED_OPERATION',
  [-32009]: 'VERSION_NOT_SUPPORTED',
}

/** HTTP+JSON's, where an error says no more. */
const byStatus: Readonly<Record<string, string>> = { NOT_FOUND: 'TASK_NOT_FOUND', INVALID_ARGUMENT: 'INVALID_PARAMS' }

interface AgentFault { code?: unknown, message?: unknown, status?: unknown, data?: unknown, details?: unknown }

export class RemoteAgent {
  /** Whether it has streams. */
  streams: boolean
  readonly #way: AgentWay
  readonly #place: AgentPlace

  constructor (way: AgentWay, place: AgentPlace, streams: boolean) {
    this.#way = way
    this.#place = place
    this.streams = streams
  }

  /** @returns the result's JSON @throws {AgentError} */
  async call (call: AgentCall, signal: AbortSignal): Promise<string> {
    // Some agents send no answer before the work is done.
    const time = call.method === 'SendMessage' ? {} : { silence: lookTime }
    const answer = await openAnswer(this.#way, { ...this.#requestOf(call, 'application/json'), ...time }, signal)
    return this.#resultIn(await readToEnd(answer), answer.status)
  }

  /** @returns each StreamResponse's JSON @throws {AgentError} */
  async * follow (call: AgentCall, signal: AbortSignal): AsyncGenerator<string> {
    // Where it begins its work, its first word may take as long as the work.
    const silence = call.method === 'SubscribeToTask' ? streamTime : undefined
    const request = { ...this.#requestOf(call, 'text/event-stream'), silence }
    const answer = await openAnswer(this.#way, request, signal)
    const { status, headers } = answer
    if (!/^text\/event-stream\b/i.test(headers.get('content-type') ?? '')) {
      // An error, or what isn't A2A.
      this.#resultIn(await readToEnd(answer), status)
      throw new AgentError('foreign', 'it answers with what is no stream')
    }
    for await (const data of readEventData(answer)) {
      answer.limit(streamTime)
      yield this.#resultIn(data, status)
    }
  }

  #requestOf (call: AgentCall, accept: string): AgentRequest {
    const { url, binding, tenant } = this.#place
    const members = membersFor(call)
    const method = 'POST'
    if (binding === 'JSONRPC') {
      const params = objectText({ ...tenant !== undefined && { tenant: JSON.stringify(tenant) }, ...members })
      return { method, url, accept, body: `{"jsonrpc":"2.0","id":1,"method":"${call.method}","params":${params}}` }
    }
    const root = tenant === undefined ? url : `${url}/${encodeURIComponent(tenant)}`
    if (!('id' in call)) {
      const end = call.method === 'SendMessage' ? 'send' : 'stream'
      return { method, url: `${root}/message:${end}`, accept, body: objectText(members) }
    }
    const task = `${root}/tasks/${encodeURIComponent(call.id)}`
    if (call.method === 'GetTask') return { method: 'GET', url: `${task}?historyLength=0`, accept }
    return { method, url: `${task}:${call.method === 'CancelTask' ? 'cancel' : 'subscribe'}`, accept, body: '{}' }
  }

  /** @param text an answer's, or that of an event in a stream */
  #resultIn (text: string, status: number): string {
    const value = objectIn(text)
    const fault = value?.error as AgentFault | undefined
    if (typeof fault === 'object' && fault !== null) throw protocolError(fault, status)
    const isRpc = this.#place.binding === 'JSONRPC'
    const result = isRpc ? memberText(value === undefined ? '{}' : text, 'result') : text
    if (status >= 500) throw new AgentError('faulty', `it answers ${status}`)
    if (status < 200 || status >= 300 || result === undefined || objectIn(result) === undefined) {
      throw foreignAnswer(status, text)
    }
    return result
  }
}

function membersFor (call: AgentCall): Record<string, string> {
  if ('id' in call) {
    return { id: JSON.stringify(call.id), ...call.method === 'GetTask' && { historyLength: '0' } }
  }
  // Where there is no stream the task is asked after: a wait would hold up what is to be kept of it.
  const { method, message } = call
  return { message, ...method === 'SendMessage' && { configuration: '{"returnImmediately":true}' } }
}

/** An object's JSON. @param members their JSON, by name */
export function objectText (members: Record<string, string>): string {
  return `{${Object.entries(members).map(([name, text]) => `${JSON.stringify(name)}:${text}`).join()}}`
}

/** An error of the protocol. */
function protocolError (fault: AgentFault, status: number): AgentError {
  const { code, message, data, details = data } = fault
  const infos = (Array.isArray(details) ? details : []) as Array<{ reason?: unknown } | null>
  const said = infos.map(info => info?.reason).find(reason => typeof reason === 'string') as string | undefined
  const reason = rpcReasons[code as number] ?? said ?? byStatus[String(fault.status)] ?? String(code)
  const words = `it answers ${typeof message === 'string' ? JSON.stringify(message.slice(0, 1000)) : reason}`
  if (reason === 'INTERNAL' || status >= 500) return new AgentError('faulty', words)
  return new AgentError(reason === 'VERSION_NOT_SUPPORTED' ? 'foreign' : 'refused', words, { reason })
}

/** @param text what was said */
export function foreignAnswer (status: number, text: string): AgentError {
  const start = text.trim().slice(0, 60)
  return new AgentError('foreign', `what answers there isn’t A2A 1.0: status ${status}, ${start === ''
    ? 'empty'
    : `beginning ${JSON.stringify(start)}`}`)
}

/** @returns undefined for what isn't an object's JSON */
export function objectIn (text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>
  } catch {}
  return undefined
}

/** The texts of a list's elements; none where it isn't a list. */
export function listIn (object: string, name: string): string[] {
  return memberText(object, name)?.startsWith('[') === true ? elementTexts(object, name) : []
}
