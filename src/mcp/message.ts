import {
  BodyError, eachMember, enclosed, invalidAt, openBrace, pointerTo, roomFor, skipSpace, skipValue
} from '../core/json.ts'
import type { Scope } from '../core/model.ts'
import { readTraceparent } from '../http/observe.ts'

/** The server's name for people. */
export const title = 'Agent Handoff'

/** The versions of the protocol that are spoken, the newest first. */
export const protocolVersions = ['2026-07-28', '2025-11-25', '2025-06-18'] as const

/** What tools a role needs: those that a key with one of these scopes has; null for all. */
export const roles = { worker: ['catch'], passer: ['pass', 'status'], all: null } as const satisfies
  Record<string, readonly Scope[] | null>
export type Role = keyof typeof roles

/** A message's id, chosen by its client. */
export type RequestId = string | number

/** A tool call. Its arguments are kept as bytes, so that a payload in them stays as it is. */
export interface ToolCall {
  id: RequestId | undefined
  name: string
  args: Buffer
  progressToken: RequestId | undefined
  traceparent: string | undefined
}

/**
 * A JSON-RPC message, parsed but with the tool's arguments left empty; the tool call in it, if any; and the id of the
 * call that it cancels, if any.
 */
export interface Message { parsed: object, call: ToolCall | null, cancels: RequestId | undefined }

interface Parsed { id?: unknown, method?: unknown, params?: Params | null }
interface Params {
  requestId?: unknown
  name?: unknown
  _meta?: { progressToken?: unknown, traceparent?: unknown } | null
}

const empty = Buffer.from('{}')

/**
 * Cuts the arguments out of a JSON-RPC message before it is parsed, since JSON.parse rounds numbers and drops repeated
 * members. No object around them may have a member twice: otherwise the SDK might read the message differently from
 * this code.
 * @throws {BodyError}
 */
export function readMessage (bytes: Buffer): Message {
  const json = enclosed(bytes)
  // The arguments may be nested to any depth here: their own depth is checked later.
  const open = roomFor(json.length)
  let [start, end] = [0, 0]
  const whole = eachMember(json, skipSpace(json, 0), refuse(''), (name, at) => {
    if (name !== 'params' || json[at] !== openBrace) return skipValue(json, at, name)
    return eachMember(json, at, refuse('/params'), (inner, valueAt) => {
      if (inner !== 'arguments' || json[valueAt] !== openBrace) return skipValue(json, valueAt, inner)
      start = valueAt
      end = skipValue(json, valueAt, inner, open)
      return end
    })
  })
  if (whole !== json.length) throw invalidAt(whole)
  const isCut = end > 0
  const rest = isCut ? Buffer.concat([json.subarray(0, start), empty, json.subarray(end)]) : json
  const parsed = JSON.parse(rest.toString()) as Parsed
  const cancels = parsed.method === 'notifications/cancelled' ? idOf(parsed.params?.requestId) : undefined
  return { parsed, call: callOf(parsed, isCut ? json.subarray(start, end) : empty), cancels }
}

function refuse (pointer: string): (name: string) => never {
  return name => { throw new BodyError(pointer + pointerTo(name), 'repeated') }
}

function callOf ({ id, method, params }: Parsed, args: Buffer): ToolCall | null {
  if (method !== 'tools/call' || typeof params?.name !== 'string') return null
  const { progressToken, traceparent } = params._meta ?? {}
  return {
    id: idOf(id),
    name: params.name,
    args,
    progressToken: idOf(progressToken),
    traceparent: typeof traceparent === 'string' ? readTraceparent(traceparent) : undefined,
  }
}

/** The value if it may be an id or a progress token. */
function idOf (value: unknown): RequestId | undefined {
  return typeof value === 'string' || typeof value === 'number' ? value : undefined
}
