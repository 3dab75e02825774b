// Steps over JSON text byte by byte and refuses what RFC 8259 doesn't allow. json.ts uses it, and so does the code for bodies within a
// body.

/** Why a body is refused, and where (a JSON Pointer, RFC 6901; '' is the whole body). It is an expected error, so it has no stack. */
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
 * Tables indexed by byte: 1 for the bytes in the set. In a string, control characters, the quote and the backslash end a run of plain
 * characters.
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
/** The closing bytes of the objects and arrays that are open. All calls share one array: nothing here awaits or calls back. */
const closers = new Uint8Array(maxDepth + 1)

/** An array for `skipValue` that is large enough for any nesting in so many bytes. */
export function roomFor (bytes: number): Uint8Array {
  return new Uint8Array(bytes + 2)
}

export function invalidAt (at: number): BodyError {
  return new BodyError('', `not valid JSON at byte ${at}`)
}

// Each of these functions takes the offset where something must begin and returns the offset where it ends. None checks that there is a
// next byte. The caller makes sure that the last byte is a closing brace, and only a string can step over that unnoticed. A read past the
// end would be harmless in itself, but V8 then recompiles that code for such reads, and every later body takes twice as long.

/**
 * Skips one value. It doesn't recurse, since the sender chooses how deep a value is nested.
 * @param name the member that the value belongs to, for the error
 * @param open an array for the closing bytes of what is open; its length limits the depth
 */
export function skipValue (json: Buffer, at: number, name: string, open: Uint8Array = closers): number {
  let depth = 1
  for (;;) {
    const byte = json[at]
    if (byte === openBrace || byte === openBracket) {
      if (depth === open.length - 1) throw new BodyError(pointerTo(name), `nested deeper than ${open.length - 1}`)
      open[++depth] = byte + 2 // in ASCII this is the closing byte, for both
      at = skipSpace(json, at + 1)
      if (json[at] !== open[depth]) {
        if (byte === openBrace) at = skipColon(json, skipString(json, at))
        continue
      }
    } else at = skipScalar(json, at)

    // A value has ended. Step over everything that closes here, up to the next value.
    for (;;) {
      if (depth === 1) return at
      at = skipSpace(json, at)
      if (json[at] === comma) break
      if (json[at] !== open[depth]) throw invalidAt(at)
      depth--
      if (++at === json.length) throw invalidAt(at)
    }
    at = skipSpace(json, at + 1)
    if (open[depth] === closeBrace) at = skipColon(json, skipString(json, at))
  }
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
export function skipColon (json: Buffer, at: number): number {
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
 * Calls `visit` for each member of the object at `at`, with the unescaped name and the offset of the value; `visit` returns the offset
 * where the value ends. Before that it calls `onRepeated` if the object already had that name.
 * @returns the offset where the object ends
 */
export function eachMember (json: Buffer, at: number, onRepeated: (name: string) => void, visit: (name: string, at: number) => number): number {
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
