import { isAscii, isUtf8 } from 'node:buffer'

// Steps over JSON text byte by byte and refuses what RFC 8259 doesn't allow. json.ts uses it, and so does the code for
// bodies within a body.

/**
 * Why a body is refused, and where (a JSON Pointer, RFC 6901; '' is the whole body). It is an expected error, so it has
 * no stack.
 */
export class BodyError extends Error {
  readonly pointer: string

  constructor (pointer: string, message: string) {
    const limit = Error.stackTraceLimit
    Error.stackTraceLimit = 0
    super(message)
    Error.stackTraceLimit = limit
    this.pointer = pointer
  }
}

const maxEchoedName = 64

/** The JSON Pointer of a member of the body. A long name is cut, so that an error doesn't send a body back. */
export function pointerTo (name: string): string {
  const echoed = name.length > maxEchoedName ? name.slice(0, maxEchoedName - 1) + '…' : name
  return '/' + echoed.replaceAll('~', '~0').replaceAll('/', '~1')
}

export const quote = 0x22
export const comma = 0x2c
const colon = 0x3a
const minus = 0x2d
const zero = 0x30
export const backslash = 0x5c
export const openBracket = 0x5b
export const closeBracket = 0x5d
export const openBrace = 0x7b
export const closeBrace = 0x7d

/**
 * Tables indexed by byte: 1 for the bytes in the set. In a string, control characters, the quote and the backslash end
 * a run of plain characters.
 */
const endsPlain = new Uint8Array(256).fill(1, 0, 0x20)
endsPlain[quote] = endsPlain[backslash] = 1
const escapes = tableOf('"\\/bfnrt')
const hexDigits = tableOf('0123456789abcdefABCDEF')

function tableOf (characters: string): Uint8Array {
  const table = new Uint8Array(256)
  for (const byte of Buffer.from(characters)) table[byte] = 1
  return table
}

const maxDepth = 100
/**
 * The closing bytes of the objects and arrays that are open. All calls share one array: nothing here awaits or calls
 * back.
 */
const closers = new Uint8Array(maxDepth + 1)

/** An array for `skipValue` that is large enough for any nesting in so many bytes. */
export function roomFor (bytes: number): Uint8Array {
  return new Uint8Array(bytes + 2)
}

export function invalidAt (at: number): BodyError {
  return new BodyError('', `not valid JSON at byte ${at}`)
}

// Each of these functions takes the offset where something must begin and returns the offset where it ends. None checks
// that there is a next byte. The caller makes sure that the last byte is a closing brace, and only a string can step
// over that unnoticed. A read past the end would be harmless in itself, but V8 then recompiles that code for such
// reads, and every later body takes twice as long.

/**
 * Skips one value. It doesn't recurse, since the sender chooses how deep a value is nested.
 * @param name the member that the value belongs to, for the error
 * @param open an array for the closing bytes of open values; its length limits the depth
 * @param latin1 the same text, one character a byte: with it patterns skip what isn't nested, for a third
 */
export function skipValue (
  json: Buffer, at: number, name: string, open: Uint8Array = closers, latin1?: string
): number {
  let depth = 1
  for (;;) {
    // The value itself begins here, or a member or an element of what is open.
    const runEnd = depth === 1 || latin1 === undefined ? at : skipRun(json, latin1, at, open[depth] as number)
    if (runEnd !== at) at = runEnd
    else {
      if (depth > 1 && open[depth] === closeBrace) at = skipColon(json, skipString(json, at))
      const byte = json[at]
      if (byte === openBrace || byte === openBracket) {
        if (depth === open.length - 1) throw new BodyError(pointerTo(name), `nested deeper than ${open.length - 1}`)
        open[++depth] = byte + 2 // in ASCII this is the closing byte, for both
        at = skipSpace(json, at + 1)
        if (json[at] !== open[depth]) continue
      } else at = skipScalar(json, at)
    }

    // A value has ended. Step over everything that closes here.
    for (;;) {
      if (depth === 1) return at
      at = skipSpace(json, at)
      if (json[at] === comma) break
      if (json[at] !== open[depth]) throw invalidAt(at)
      depth--
      if (++at === json.length) throw invalidAt(at)
    }
    at = skipSpace(json, at + 1)
  }
}

const plainCharacters = '[^"\\\\\\x00-\\x1f]*'
const aString = `"${plainCharacters}(?:\\\\(?:["\\\\/bfnrt]|u[\\dA-Fa-f]{4})${plainCharacters}){0,63}"`
const aScalar = `(?:${aString}|-?(?:0|[1-9]\\d*)(?:\\.\\d+)?(?:[eE][-+]?\\d+)?|true|false|null)`
const whiteSpace = '[ \\n\\r\\t]*'
// A pattern keeps the way back of all that repeats but single characters, so it matches so many items, and escapes.
const runOf = (item: string) => new RegExp(`${item}${whiteSpace}(?:,${whiteSpace}${item}${whiteSpace}){0,63}`, 'y')
const [flatElements, flatMembers] = [runOf(aScalar), runOf(`${aString}${whiteSpace}:${whiteSpace}${aScalar}`)]

/**
 * Skips members or elements up to one that is nested, not valid or odd: that one is skipped, or refused, byte by byte.
 * @returns the offset of the comma or the closing byte after them; `at` if there are none
 */
function skipRun (json: Buffer, latin1: string, at: number, closing: number): number {
  if (json[at] === openBrace || json[at] === openBracket) return at
  const run = closing === closeBrace ? flatMembers : flatElements
  run.lastIndex = at
  if (!run.test(latin1)) return at
  const end = run.lastIndex
  return json[end] === comma || json[end] === closing ? end : at
}

function skipScalar (json: Buffer, at: number): number {
  switch (json[at]) {
    case quote: return skipString(json, at)
    case 0x74: return skipWord(json, at, 'true')
    case 0x66: return skipWord(json, at, 'false')
    case 0x6e: return skipWord(json, at, 'null')
    default: return skipNumber(json, at)
  }
}

function skipWord (json: Buffer, at: number, word: string): number {
  for (let i = 0; i < word.length; i++, at++) {
    if (json[at] !== word.charCodeAt(i)) throw invalidAt(at)
  }
  return at
}

function skipNumber (json: Buffer, at: number): number {
  if (json[at] === minus) at++
  at = json[at] === zero ? at + 1 : skipDigits(json, at)
  if (json[at] === 0x2e) at = skipDigits(json, at + 1)
  if (json[at] === 0x65 || json[at] === 0x45) {
    const signed = json[at + 1] === minus || json[at + 1] === 0x2b
    at = skipDigits(json, at + (signed ? 2 : 1))
  }
  return at
}

/** At least one digit. */
function skipDigits (json: Buffer, at: number): number {
  const start = at
  while (json[at] as number >= zero && json[at] as number <= 0x39) at++
  if (at === start) throw invalidAt(at)
  return at
}

export function skipString (json: Buffer, at: number): number {
  if (json[at] !== quote) throw invalidAt(at)
  at++
  for (;;) {
    // Only a string without an end can step over the body's last brace.
    while (at < json.length && endsPlain[json[at] as number] === 0) at++
    if (at === json.length) throw invalidAt(at)
    if (json[at] === quote) return at + 1
    if (json[at] !== backslash) throw invalidAt(at)
    at++
    if (escapes[json[at] as number] === 1) at++
    else if (json[at] === 0x75) at = skipHexDigits(json, at + 1)
    else throw invalidAt(at)
  }
}

function skipHexDigits (json: Buffer, at: number): number {
  for (const end = at + 4; at < end; at++) {
    if (hexDigits[json[at] as number] !== 1) throw invalidAt(at)
  }
  return at
}

/** Skips the colon and the white space around it. */
function skipColon (json: Buffer, at: number): number {
  at = skipSpace(json, at)
  if (json[at] !== colon) throw invalidAt(at)
  return skipSpace(json, at + 1)
}

export function skipSpace (json: Buffer, at: number): number {
  while (isSpace(json[at])) at++
  return at
}

export function isSpace (byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09
}

/**
 * Calls `visit` for each member of the object at `at`, with the unescaped name and the offset of the value; `visit`
 * returns the offset where the value ends. Before that it calls `onRepeated` if the object already had that name.
 * @returns the offset where the object ends
 */
export function eachMember (
  json: Buffer, at: number, onRepeated: (name: string) => void, visit: (name: string, at: number) => number
): number {
  const seen = new Set<string>()
  at = skipSpace(json, at + 1)
  if (json[at] === closeBrace) return at + 1
  for (;;) {
    const nameEnd = skipString(json, at)
    const name = JSON.parse(json.toString('utf8', at, nameEnd)) as string
    if (seen.has(name)) onRepeated(name)
    seen.add(name)
    at = skipSpace(json, visit(name, skipColon(json, nameEnd)))
    if (json[at] === closeBrace) return at + 1
    if (json[at] !== comma) throw invalidAt(at)
    at = skipSpace(json, at + 1)
  }
}

/** A request body, cut into the members of its object. */
export interface Members {
  /**
   * The values for the JSON schema, by name, without a prototype. Strings, numbers, booleans and null are as JSON.parse
   * gives them. Every object is `{}` and every array is `[]`, since the schemas ask only for their type.
   */
  readonly values: Record<string, unknown>
  /** The JSON text of a member's value, exactly as it was sent: a view of the body, not a copy. */
  raw (name: string): Buffer | undefined
}

/** An object that was cut. `end`: the offset where it ends. */
interface CutObject extends Members { end: number }

/** Far more than any operation has. It limits the cost of an error that names every unknown member. */
const maxMembers = 64

/**
 * Cuts a request body into its members, in one pass over its bytes. It accepts only what RFC 8259 allows. In addition,
 * the body must be an object in UTF-8 without a byte order mark, nested at most 100 deep (itself included), with at
 * most 64 members, and no member twice (names are compared unescaped).
 * @throws BodyError
 */
export function cutMembers (body: Buffer): Members {
  const json = enclosed(body)
  const members = cutObject(textOf(json), skipSpace(json, 0))
  if (members.end !== json.length) throw invalidAt(members.end)
  return members
}

/**
 * The same for an object within a larger body, which is then read once. @param text of that body, which is `enclosed`
 * @throws BodyError
 */
export function cutObject (text: Text, at: number): CutObject {
  const { json } = text
  const values: Record<string, unknown> = Object.create(null)
  const names: string[] = []
  const ranges: number[] = []
  at = skipSpace(json, at + 1)
  while (names.length > 0 || json[at] !== closeBrace) {
    const nameEnd = skipString(json, at)
    const name = unquote(text, at, nameEnd)
    if (names.includes(name)) throw new BodyError(pointerTo(name), 'repeated')
    if (names.length === maxMembers) throw new BodyError('', `more than ${maxMembers} members`)

    const start = skipColon(json, nameEnd)
    const end = json[start] === quote ? skipLongString(text, start) : skipValue(json, start, name, closers, text.latin1)
    values[name] = outline(text, start, end)
    names.push(name)
    ranges.push(start, end)

    at = skipSpace(json, end)
    if (json[at] === closeBrace) break
    if (json[at] !== comma) throw invalidAt(at)
    at = skipSpace(json, at + 1)
  }
  return {
    values,
    end: at + 1,
    raw (name) {
      const index = names.indexOf(name)
      return index === -1 ? undefined : json.subarray(ranges[2 * index], ranges[2 * index + 1])
    }
  }
}

/**
 * The body without trailing white space. Checks first that it is UTF-8 and starts and ends as an object does; the scan
 * above relies on that end.
 */
export function enclosed (body: Buffer): Buffer {
  if (!isUtf8(body)) throw new BodyError('', 'not valid UTF-8')
  if (body.length > 2 && body[0] === 0xef && body[1] === 0xbb && body[2] === 0xbf) {
    throw new BodyError('', 'a byte order mark is not allowed')
  }
  let end = body.length
  while (end > 0 && isSpace(body[end - 1])) end--
  if (end === 0 || body[skipSpace(body, 0)] !== openBrace) throw new BodyError('', 'the body must be a JSON object')
  if (body[end - 1] !== closeBrace) throw new BodyError('', 'not valid JSON: it must end with }')
  return end === body.length ? body : body.subarray(0, end)
}

/**
 * The same text as bytes and as a string with one character per byte, which is cheap to make, to search and to slice.
 */
export interface Text { json: Buffer, latin1: string, ascii: boolean }

export function textOf (json: Buffer): Text {
  return { json, latin1: json.toString('latin1'), ascii: isAscii(json) }
}

function slice ({ json, latin1, ascii }: Text, start: number, end: number): string {
  return ascii ? latin1.slice(start, end) : json.toString('utf8', start, end)
}

/**
 * The offset where the string at `at` ends: at the first quote with an even number of backslashes in front of it. What
 * is between isn't checked here, since JSON.parse checks it when it decodes. For a long task this costs half as much as
 * our own loop.
 */
function skipLongString ({ json, latin1 }: Text, at: number): number {
  for (let end = latin1.indexOf('"', at + 1); end !== -1; end = latin1.indexOf('"', end + 1)) {
    let before = end
    while (latin1.charCodeAt(before - 1) === backslash) before--
    if ((end - before) % 2 === 0) return end + 1
  }
  return skipString(json, at)
}

/** The entry of a value in `values`. Everything but a string has been checked from start to end. */
function outline (text: Text, start: number, end: number): unknown {
  switch (text.json[start]) {
    case openBrace: return {}
    case openBracket: return []
  }
  try {
    return JSON.parse(slice(text, start, end))
  } catch {
    // Our own loop finds the invalid byte.
    throw invalidAt(skipString(text.json, start))
  }
}

/** Decodes a string that is known to be valid. */
function unquote (text: Text, start: number, end: number): string {
  const inner = slice(text, start + 1, end - 1)
  return inner.includes('\\') ? JSON.parse(`"${inner}"`) : inner
}

export const noMembers = cutMembers(Buffer.from('{}'))
