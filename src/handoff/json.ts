import { isAscii, isUtf8 } from 'node:buffer'
import {
  backslash, BodyError, closeBrace, comma, invalidAt, isSpace, openBrace, openBracket, pointerTo, quote,
  skipColon, skipSpace, skipString, skipValue
} from './json-scan.ts'

export { BodyError, pointerTo }

/** A request body, cut into the members of its object. */
export interface Members {
  /**
   * The values for the JSON schema, by name, without a prototype. Strings, numbers, booleans and null are as JSON.parse gives them. Every
   * object is `{}` and every array is `[]`, since the schemas ask only for their type.
   */
  readonly values: Record<string, unknown>
  /** The JSON text of a member's value, exactly as it was sent: a view of the body, not a copy. */
  raw (name: string): Buffer | undefined
}

/** Far more than any operation has. It limits the cost of an error that names every unknown member. */
const maxMembers = 64

/**
 * Cuts a request body into its members, in one pass over its bytes. It accepts only what RFC 8259 allows. In addition, the body must be an
 * object in UTF-8 without a byte order mark, nested at most 100 deep (itself included), with at most 64 members, and no member twice (names
 * are compared unescaped).
 * @throws BodyError
 */
export function cutMembers (body: Buffer): Members {
  const json = enclosed(body)
  const text = textOf(json)
  const values: Record<string, unknown> = Object.create(null)
  const names: string[] = []
  const ranges: number[] = []
  let at = skipSpace(json, skipSpace(json, 0) + 1)
  while (names.length > 0 || json[at] !== closeBrace) {
    const nameEnd = skipString(json, at)
    const name = unquote(text, at, nameEnd)
    if (names.includes(name)) throw new BodyError(pointerTo(name), 'repeated')
    if (names.length === maxMembers) throw new BodyError('', `more than ${maxMembers} members`)

    const start = skipColon(json, nameEnd)
    const end = json[start] === quote ? skipLongString(text, start) : skipValue(json, start, name)
    values[name] = outline(text, start, end)
    names.push(name)
    ranges.push(start, end)

    at = skipSpace(json, end)
    if (json[at] === closeBrace) break
    if (json[at] !== comma) throw invalidAt(at)
    at = skipSpace(json, at + 1)
  }
  if (at + 1 !== json.length) throw invalidAt(at + 1)
  return {
    values,
    raw (name) {
      const index = names.indexOf(name)
      return index === -1 ? undefined : json.subarray(ranges[2 * index], ranges[2 * index + 1])
    }
  }
}

/** The members of a member that is an object; undefined if it is not an object. @throws BodyError if a member is there twice */
export function cutNested (members: Members, name: string): Members | undefined {
  const raw = members.raw(name)
  if (raw === undefined || raw[0] !== openBrace) return undefined
  try {
    return cutMembers(raw)
  } catch (error) {
    throw error instanceof BodyError ? new BodyError(pointerTo(name) + error.pointer, error.message) : error
  }
}

/**
 * The body without trailing white space. Checks first that it is UTF-8 and starts and ends as an object does; json-scan.ts relies on that
 * end.
 */
export function enclosed (body: Buffer): Buffer {
  if (!isUtf8(body)) throw new BodyError('', 'not valid UTF-8')
  if (body.length > 2 && body[0] === 0xef && body[1] === 0xbb && body[2] === 0xbf) throw new BodyError('', 'a byte order mark is not allowed')
  let end = body.length
  while (end > 0 && isSpace(body[end - 1])) end--
  if (end === 0 || body[skipSpace(body, 0)] !== openBrace) throw new BodyError('', 'the body must be a JSON object')
  if (body[end - 1] !== closeBrace) throw new BodyError('', 'not valid JSON: it must end with }')
  return end === body.length ? body : body.subarray(0, end)
}

/** The same text as bytes and as a string with one character per byte, which is cheap to make, to search and to slice. */
interface Text { json: Buffer, latin1: string, ascii: boolean }

function textOf (json: Buffer): Text {
  return { json, latin1: json.toString('latin1'), ascii: isAscii(json) }
}

function slice ({ json, latin1, ascii }: Text, start: number, end: number): string {
  return ascii ? latin1.slice(start, end) : json.toString('utf8', start, end)
}

/**
 * The offset where the string at `at` ends: at the first quote with an even number of backslashes in front of it. What is between isn't
 * checked here, since JSON.parse checks it when it decodes. For a long task this costs half of what our own loop costs.
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
