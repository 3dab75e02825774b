import { BodyError, enclosed } from '../handoff/json.ts'
import { eachMember, invalidAt, openBrace, pointerTo, roomFor, skipSpace, skipValue } from '../handoff/json-scan.ts'
import { readTraceparent } from '../http/traceparent.ts'

/** A message's id, as its client made it. */
export type RequestId = string | number

/** A call of a tool. Its arguments are the bytes that came, so that a payload among them stays as it is. */
export interface ToolCall { id: RequestId | undefined, name: string, args: Buffer, progressToken: RequestId | undefined, traceparent: string | undefined }

/** A JSON-RPC message: as JSON.parse reads it, but a tool's arguments empty; and which tool it calls, or which call it takes back. */
export interface Message { parsed: object, call: ToolCall | null, cancels: RequestId | undefined }

interface Parsed { id?: unknown, method?: unknown, params?: Params | null }
interface Params { requestId?: unknown, name?: unknown, _meta?: { progressToken?: unknown, traceparent?: unknown } | null }

const empty = Buffer.from('{}')

/**
 * Cuts the arguments out of a JSON-RPC message before it is parsed: JSON.parse rounds numbers and drops repeated members. No object outside
 * them may have a member twice, or the protocol's part would read another message than this one.
 * @throws {BodyError}
 */
export function readMessage (bytes: Buffer): Message {
  const json = enclosed(bytes)
  // As deep as they like: a body is held to its own depth when its turn comes.
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

/** What may be an id, or a token. */
function idOf (value: unknown): RequestId | undefined {
  return typeof value === 'string' || typeof value === 'number' ? value : undefined
}
