import { BodyError, eachMember, openBrace, openBracket, pointerTo, quote, skipValue } from '../core/json.ts'
import { elementsIn } from '../core/nested.ts'
import { invalidParams } from './errors.ts'

/**
 * The members of one of the protocol's objects, cut out of a request's bytes: JSON.parse rounds numbers, and what the
 * client sends is to come back as it was. A member may have the name of the JSON or of the proto; null counts as
 * absent, and members that aren't asked for don't matter.
 */
export class Fields {
  readonly #json: Buffer
  readonly #pointer: string
  readonly #names = new Set<string>()
  readonly #ranges = new Map<string, [start: number, end: number]>()
  /** Where the object ends. */
  readonly end: number

  /** @param json from `at` on an object @param pointer to it, for errors @throws {BodyError} */
  constructor (json: Buffer, pointer = '', at = 0) {
    this.#json = json
    this.#pointer = pointer
    const refuse = (name: string) => { throw new BodyError(pointer + pointerTo(name), 'repeated') }
    this.end = eachMember(json, at, refuse, (name, at) => {
      const end = skipValue(json, at, name)
      this.#names.add(name)
      if (json.toString('latin1', at, end) !== 'null') this.#ranges.set(name, [at, end])
      return end
    })
  }

  /** Its JSON text, as it came. */
  raw (name: string): Buffer | undefined {
    const inProto = name.replace(/[A-Z]/g, letter => `_${letter.toLowerCase()}`)
    const range = this.#ranges.get(name) ?? this.#ranges.get(inProto)
    return range && this.#json.subarray(...range)
  }

  /** Is there a member of this name, null or not? */
  has (name: string): boolean {
    return this.#names.has(name)
  }

  /** The text of all members but these, a comma before each. */
  without (names: readonly string[]): Buffer[] {
    return [...this.#ranges].filter(([name]) => !names.includes(name)).flatMap(([name, range]) =>
      [Buffer.from(`,${JSON.stringify(name)}:`), this.#json.subarray(...range)])
  }

  at (name: string): string {
    return this.#pointer + pointerTo(name)
  }

  string (name: string): string | undefined {
    const raw = this.raw(name)
    if (raw === undefined) return undefined
    if (raw[0] !== quote) throw invalidParams(this.at(name), 'must be a string')
    return JSON.parse(raw.toString()) as string
  }

  /** A proto's number, which may come as a string. */
  integer (name: string, least: number, most = 2 ** 31 - 1): number | undefined {
    const raw = this.raw(name)
    if (raw === undefined) return undefined
    const text = raw[0] === quote ? this.string(name)! : raw.toString()
    // What else Number takes is none in JSON: nothing, white space, hexadecimal digits.
    const value = /^[-+.\deE]+$/.test(text) ? Number(text) : NaN
    if (!Number.isInteger(value) || value < least || value > most) {
      throw invalidParams(this.at(name), `must be a whole number, ${least} to ${most}`)
    }
    return value
  }

  boolean (name: string): boolean {
    // A query's are strings.
    const text = this.raw(name)?.toString().replaceAll('"', '') ?? 'false'
    if (text !== 'true' && text !== 'false') throw invalidParams(this.at(name), 'must be true or false')
    return text === 'true'
  }

  object (name: string): Fields | undefined {
    const raw = this.rawObject(name)
    return raw && new Fields(raw, this.at(name))
  }

  /** The same as its text alone. */
  rawObject (name: string): Buffer | undefined {
    const raw = this.raw(name)
    if (raw !== undefined && raw[0] !== openBrace) throw invalidParams(this.at(name), 'must be an object')
    return raw
  }

  /** Its elements' JSON texts; none if it is absent. */
  list (name: string): Buffer[] {
    const raw = this.raw(name)
    if (raw === undefined) return []
    if (raw[0] !== openBracket) throw invalidParams(this.at(name), 'must be a list')
    return elementsIn(raw)
  }

  strings (name: string): string[] {
    return this.list(name).map((raw, at) => {
      if (raw[0] !== quote) throw invalidParams(`${this.at(name)}/${at}`, 'must be a string')
      return JSON.parse(raw.toString()) as string
    })
  }
}

/** One member of an object that the protocol doesn't know, such as metadata. @param object valid JSON */
export function memberIn (object: Buffer | undefined, wanted: string): Buffer | undefined {
  let found: Buffer | undefined
  if (object === undefined) return undefined
  eachMember(object, 0, () => {}, (name, at) => {
    const end = skipValue(object, at, name)
    if (name === wanted) found = object.subarray(at, end)
    return end
  })
  return found
}

/** JSON without the white space that has no meaning. @param json valid */
export function compact (json: Buffer): Buffer {
  const made = Buffer.allocUnsafe(json.length)
  let end = 0
  let isText = false
  for (let at = 0; at < json.length; at++) {
    const byte = json[at]!
    if (!isText && (byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09)) continue
    made[end++] = byte
    if (isText && byte === 0x5c) made[end++] = json[++at]!
    else if (byte === quote) isText = !isText
  }
  return made.subarray(0, end)
}
