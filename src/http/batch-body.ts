import { invalid } from '../errors.ts'
import type { Fault } from '../errors.ts'
import { enclosed } from '../handoff/json.ts'
import { keyPattern } from '../schemas/handoff.ts'
import { closeBracket, comma, eachMember, invalidAt, openBrace, openBracket, pointerTo, quote, roomFor, skipSpace, skipValue } from '../handoff/json-scan.ts'

/** Operations that a batch takes. None of them waits, and none makes more than one handoff. */
export const batchOperations = ['pass', 'catch', 'done', 'status', 'heartbeat', 'fail', 'decline', 'cancel'] as const
export type BatchOperation = typeof batchOperations[number]

/** One of a batch as it came: its body's bytes are a view of the batch's, and not looked into yet. */
export interface Entry { op: BatchOperation, id: string, body: Buffer | undefined, key: string | undefined }

const most = 100
/** How many faults are told. The batch is read no further then: it may be wrong in each of a million members. */
const faultsTold = 100

/** What is wrong with an envelope. */
class Faults {
  readonly #found: Fault[] = []

  /** @throws {Problem} when that is enough */
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
 * Cuts a batch's body into its operations, in one pass over its bytes. Its envelope is held to the rules at once, and all that is wrong with
 * it is told together; within each `body` only JSON's syntax is checked here, for that is its operation's own.
 * @throws {Problem} invalid_request @throws {BodyError}
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
  return invalid({ pointer: '/operations', message: `must have 1 to ${most} operations` })
}

function cutArray (json: Buffer, start: number, open: Uint8Array, faults: Faults, entries: Entry[]): number {
  let at = skipSpace(json, start + 1)
  if (json[at] === closeBracket) return at + 1
  for (;;) {
    // Read no further: what is behind may be a million.
    if (entries.length === most) throw wrongNumber()
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
  // An optional member that is null is absent, as everywhere.
  const body = raw !== undefined && isNull(raw) ? undefined : raw
  if (typeof op !== 'string' || !(batchOperations as readonly string[]).includes(op)) fault('op', `must be one of ${batchOperations.join(', ')}`)
  else if (op === 'pass' && id != null) fault('id', 'pass takes none')
  else if (op !== 'pass' && typeof id !== 'string') fault('id', id == null ? 'required' : 'must be string')
  else if (bodiless.has(op) && body !== undefined) fault('body', `${op} takes none`)
  if (key != null && (typeof key !== 'string' || !keyShape.test(key))) fault('idempotency_key', 'must be 1 to 128 visible ASCII characters')
  return { op: op as BatchOperation, id: typeof id === 'string' ? id : '', body, key: typeof key === 'string' ? key : undefined }
}

/** A string, or null; of anything else only that it is neither: it is not read. */
function valueOf (raw: Buffer | undefined): unknown {
  if (raw === undefined) return undefined
  if (isNull(raw)) return null
  return raw[0] === quote ? JSON.parse(raw.toString()) : {}
}

/** Of a value that is known to be JSON the first byte says so. */
function isNull (raw: Buffer): boolean {
  return raw[0] === 0x6e
}
