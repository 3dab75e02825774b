import { invalid } from '../errors.ts'
import type { Fault } from '../errors.ts'
import { enclosed } from '../handoff/json.ts'
import { keyPattern } from '../schemas/handoff.ts'
import { closeBracket, comma, eachMember, invalidAt, openBrace, openBracket, pointerTo, quote, roomFor, skipSpace, skipValue } from '../handoff/json-scan.ts'

/** The operations that a batch may have: all on one handoff. None of them waits, and none makes more than one handoff. */
export const batchOperations = ['pass', 'catch', 'done', 'status', 'heartbeat', 'fail', 'decline', 'cancel', 'reissue'] as const
export type BatchOperation = typeof batchOperations[number]

/** One operation of a batch. Its body's bytes are a view of the batch's body, and haven't been looked into yet. */
export interface Entry { op: BatchOperation, id: string, body: Buffer | undefined, key: string | undefined }

const mostOperations = 100
/** How many faults are reported at most. The batch isn't read any further then: each of a million members may be wrong. */
const faultsTold = 100

/** Collects what is wrong with a batch's envelope. */
class Faults {
  readonly #found: Fault[] = []

  /** @throws {Problem} when there are `faultsTold` of them */
  add (pointer: string, message: string): void {
    if (this.#found.push({ pointer, message }) === faultsTold) this.refuse()
  }

  repeated (pointer: string, name: string): void {
    this.add(pointer + pointerTo(name), 'repeated')
  }

  /** @throws {Problem} if there were any */
  refuse (): void {
    if (this.#found.length > 0) throw invalid(...this.#found)
  }
}
const bodiless = new Set<string>(['catch', 'status'])
const keyShape = new RegExp(keyPattern)

/**
 * Cuts a batch's body into its operations, in one pass over its bytes. The envelope is checked here, and all its faults are reported together. Of
 * each `body` only the JSON syntax is checked here; the rest is for its operation.
 * @throws {Problem} invalid_request
 * @throws {BodyError}
 */
export function cutBatch (bytes: Buffer): Entry[] {
  const json = enclosed(bytes)
  const open = roomFor(json.length)
  const faults = new Faults()
  let entries: Entry[] | undefined
  const end = eachMember(json, skipSpace(json, 0), name => faults.repeated('', name), (name, at) => {
    if (name === 'operations' && json[at] === openBracket) {
      entries = []
      return cutArray(json, at, open, faults, entries)
    }
    faults.add(pointerTo(name), name === 'operations' ? 'must be an array' : 'unknown')
    return skipValue(json, at, name, open)
  })
  if (end !== json.length) throw invalidAt(end)
  faults.refuse()
  if (entries === undefined) throw invalid({ pointer: '/operations', message: 'required' })
  if (entries.length === 0) throw wrongNumber()
  return entries
}

function wrongNumber (): Error {
  return invalid({ pointer: '/operations', message: `must have 1 to ${mostOperations} operations` })
}

function cutArray (json: Buffer, start: number, open: Uint8Array, faults: Faults, entries: Entry[]): number {
  let at = skipSpace(json, start + 1)
  if (json[at] === closeBracket) return at + 1
  for (;;) {
    // Stop here: a million more may follow.
    if (entries.length === mostOperations) throw wrongNumber()
    const pointer = `/operations/${entries.length}`
    const values = new Map<string, Buffer>()
    if (json[at] === openBrace) {
      at = eachMember(json, at, name => faults.repeated(pointer, name), (name, valueAt) => {
        const end = skipValue(json, valueAt, name, open)
        if (members.has(name)) values.set(name, json.subarray(valueAt, end))
        else faults.add(pointer + pointerTo(name), 'unknown')
        return end
      })
    } else {
      at = skipValue(json, at, 'operations', open)
      faults.add(pointer, 'must be an object')
    }
    entries.push(entryOf(values, pointer, faults))
    at = skipSpace(json, at)
    if (json[at] === closeBracket) return at + 1
    if (json[at] !== comma) throw invalidAt(at)
    at = skipSpace(json, at + 1)
  }
}

const members = new Set(['op', 'id', 'body', 'idempotency_key'])

function entryOf (values: ReadonlyMap<string, Buffer>, pointer: string, faults: Faults): Entry {
  const fault = (name: string, message: string) => faults.add(pointer + pointerTo(name), message)
  const [op, id, key] = ['op', 'id', 'idempotency_key'].map(name => valueOf(values.get(name)))
  const raw = values.get('body')
  // As everywhere, an optional member that is null counts as absent.
  const body = raw !== undefined && isNull(raw) ? undefined : raw
  if (typeof op !== 'string' || !(batchOperations as readonly string[]).includes(op)) fault('op', `must be one of ${batchOperations.join(', ')}`)
  else if (op === 'pass' && id != null) fault('id', 'pass takes none')
  else if (op !== 'pass' && typeof id !== 'string') fault('id', id == null ? 'required' : 'must be string')
  else if (bodiless.has(op) && body !== undefined) fault('body', `${op} takes none`)
  if (key != null && (typeof key !== 'string' || !keyShape.test(key))) fault('idempotency_key', 'must be 1 to 128 visible ASCII characters')
  return { op: op as BatchOperation, id: typeof id === 'string' ? id : '', body, key: typeof key === 'string' ? key : undefined }
}

/** Parses a string or null. Any other value is only marked as neither, without being parsed. */
function valueOf (raw: Buffer | undefined): unknown {
  if (raw === undefined) return undefined
  if (isNull(raw)) return null
  return raw[0] === quote ? JSON.parse(raw.toString()) : {}
}

/** The value is known to be valid JSON, so its first byte is enough. */
function isNull (raw: Buffer): boolean {
  return raw[0] === 0x6e
}
