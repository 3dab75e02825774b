import { invalid } from '../core/errors.ts'
import type { Fault } from '../core/errors.ts'
import {
  BodyError, closeBracket, comma, cutObject, eachMember, enclosed, invalidAt, openBrace, openBracket, pointerTo, quote,
  roomFor, skipSpace, skipValue, textOf
} from '../core/json.ts'
import type { Members, Text } from '../core/json.ts'
import { keyPattern } from '../core/schemas/handoffs.ts'
import { unknownOf } from '../core/similar.ts'
import type { Operation } from '../operations/operation.ts'

/** An operation of a batch, not yet checked. Its body's bytes are a view of the batch's body. */
export interface BatchEntry {
  op: string
  id: string
  body: Buffer | undefined
  /** The body's; left out if it is no body that any operation takes. */
  members: Members | undefined
  key: string | undefined
}

const maxOperations = 100
/**
 * How many faults are reported at most. The batch isn't read any further then: each of a million members may be wrong.
 */
const maxFaults = 100

/** Collects the faults of a batch's envelope. */
class Faults {
  readonly #found: Fault[] = []

  /** @throws {Problem} at the fault number `maxFaults` */
  add (pointer: string, message: string): void {
    if (this.#found.push({ pointer, message }) === maxFaults) this.refuse()
  }

  repeated (pointer: string, name: string): void {
    this.add(pointer + pointerTo(name), 'repeated')
  }

  /** @throws {Problem} if there were any */
  refuse (): void {
    if (this.#found.length > 0) throw invalid(...this.#found)
  }
}

const keyShape = new RegExp(keyPattern)

/**
 * Cuts a batch's body into its operations, in one pass over its bytes. The envelope is checked here, and all its faults
 * are reported together. Each `body` is cut into its members on the way, which its operation checks.
 * @param known the operations that a batch may have
 * @throws {Problem} invalid_request
 * @throws {BodyError}
 */
export function cutBatch (bytes: Buffer, known: ReadonlyMap<string, Operation>): BatchEntry[] {
  const json = enclosed(bytes)
  const batch = { text: textOf(json), open: roomFor(json.length) }
  const { open } = batch
  const faults = new Faults()
  let entries: BatchEntry[] | undefined
  const end = eachMember(json, skipSpace(json, 0), name => faults.repeated('', name), (name, at) => {
    if (name === 'operations' && json[at] === openBracket) {
      entries = []
      return cutArray(batch, at, faults, entries, known)
    }
    faults.add(pointerTo(name), name === 'operations' ? 'must be an array' : unknownOf(name, ['operations']))
    return skipValue(json, at, name, open)
  })
  if (end !== json.length) throw invalidAt(end)
  faults.refuse()
  if (entries === undefined) throw invalid({ pointer: '/operations', message: 'required' })
  if (entries.length === 0) throw wrongNumber()
  return entries
}

function wrongNumber (): Error {
  return invalid({ pointer: '/operations', message: `must have 1 to ${maxOperations} operations` })
}

/** A batch's body, and an array for the closing bytes of what is open in it. */
interface BatchText { text: Text, open: Uint8Array }

/**
 * Cuts an operation's body, so that it isn't scanned again.
 * @returns undefined for what isn't an object, or is a wrong one: it is skipped, and its operation refuses it
 */
function tryCut (text: Text, at: number): ReturnType<typeof cutObject> | undefined {
  if (text.json[at] !== openBrace) return undefined
  try {
    const cut = cutObject(text, at)
    // The batch can't end with it.
    return cut.end === text.json.length ? undefined : cut
  } catch (error) {
    if (error instanceof BodyError) return undefined
    throw error
  }
}

function cutArray (
  batch: BatchText, start: number, faults: Faults, entries: BatchEntry[], known: ReadonlyMap<string, Operation>
): number {
  const { text: { json }, open } = batch
  let at = skipSpace(json, start + 1)
  if (json[at] === closeBracket) return at + 1
  for (;;) {
    // Stop here: a million more may follow.
    if (entries.length === maxOperations) throw wrongNumber()
    const pointer = `/operations/${entries.length}`
    const values = new Map<string, Buffer>()
    let members: Members | undefined
    if (json[at] === openBrace) {
      at = eachMember(json, at, name => faults.repeated(pointer, name), (name, valueAt) => {
        const cut = name === 'body' ? tryCut(batch.text, valueAt) : undefined
        const end = cut?.end ?? skipValue(json, valueAt, name, open)
        if (name === 'body') members = cut
        if (parts.has(name)) values.set(name, json.subarray(valueAt, end))
        else faults.add(pointer + pointerTo(name), unknownOf(name, [...parts]))
        return end
      })
    } else {
      at = skipValue(json, at, 'operations', open)
      faults.add(pointer, 'must be an object')
    }
    entries.push({ ...entryOf(values, pointer, faults, known), members })
    at = skipSpace(json, at)
    if (json[at] === closeBracket) return at + 1
    if (json[at] !== comma) throw invalidAt(at)
    at = skipSpace(json, at + 1)
  }
}

const parts = new Set(['op', 'id', 'body', 'idempotency_key'])

function entryOf (
  values: ReadonlyMap<string, Buffer>, pointer: string, faults: Faults, known: ReadonlyMap<string, Operation>
): Omit<BatchEntry, 'members'> {
  const fault = (name: string, message: string) => faults.add(pointer + pointerTo(name), message)
  const [op, id, key] = ['op', 'id', 'idempotency_key'].map(name => valueOf(values.get(name)))
  const raw = values.get('body')
  // As everywhere, an optional member that is null counts as absent.
  const body = raw !== undefined && isNull(raw) ? undefined : raw
  const operation = typeof op === 'string' ? known.get(op) : undefined
  if (operation === undefined) fault('op', `must be one of ${[...known.keys()].join(', ')}`)
  else if (operation.params === undefined) {
    if (id != null) fault('id', `${op} takes none`)
  } else if (typeof id !== 'string') fault('id', id == null ? 'required' : 'must be string')
  else if (operation.body === null && body !== undefined) fault('body', `${op} takes none`)
  if (key != null && (typeof key !== 'string' || !keyShape.test(key))) {
    fault('idempotency_key', 'must be 1 to 128 visible ASCII characters')
  }
  const text = (value: unknown) => typeof value === 'string' ? value : undefined
  return { op: operation?.name ?? '', id: text(id) ?? '', body, key: text(key) }
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
