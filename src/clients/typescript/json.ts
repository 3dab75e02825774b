/**
 * JSON text that is sent unchanged, for what JavaScript values can't hold: numbers beyond 2^53, `1.0`, `1e400`,
 * repeated members.
 */
export class RawJson {
  readonly #text: string

  /** @throws SyntaxError unless it is exactly one JSON value: anything else could change the JSON around it */
  constructor (text: string) {
    JSON.parse(text)
    this.#text = text
  }

  /** JSON.stringify calls this. Within `encode` it writes a mark, which `encode` replaces with the text. */
  toJSON (): string {
    if (marked === undefined) {
      throw new TypeError('rawJson is for what is given to the client; JSON.stringify can’t write it')
    }
    marked.push(this.#text)
    return `${mark}${marked.length - 1}`
  }
}

export function rawJson (text: string): RawJson {
  return new RawJson(text)
}

/** Random, so that no other text can be mistaken for a mark. */
let mark = ''
/** The raw texts in the value that is being encoded. */
let marked: string[] | undefined

/** A value's JSON, with the own text of each RawJson in it. */
export function encode (value: unknown): string {
  mark ||= `raw-${crypto.randomUUID()}-`
  marked = []
  try {
    const text = JSON.stringify(value)
    const texts = marked
    return texts.length === 0 ? text : text.replace(new RegExp(`"${mark}(\\d+)"`, 'g'), (_, index) => texts[index]!)
  } finally {
    marked = undefined
  }
}

/**
 * An answer with the exact JSON that it was read from. The text isn't enumerable, so neither a loop over the members
 * nor JSON.stringify shows it.
 */
export type WithText<T> = T & { readonly text: string }

export function withText<T extends object> (value: T, text: string): WithText<T> {
  return Object.defineProperty(value, 'text', { value: text }) as WithText<T>
}

/**
 * The text of each element of an array that is a member of a JSON object. The member's name must have no escapes, and
 * the JSON must be valid.
 */
export function elementTexts (json: string, name: string): string[] {
  const array = memberText(json, name)
  return array === undefined ? [] : [...parts(array)].map(([from, to]) => array.slice(from, to).trim())
}

/** The text of a JSON object's member, or undefined. If a name is repeated, the last one counts, as with JSON.parse. */
export function memberText (json: string, name: string): string | undefined {
  let found: string | undefined
  for (const [written, text] of members(json)) if (written === name) found = text
  return found
}

/** The text of each member of a JSON object, by its name. */
export function * memberTexts (json: string): Generator<[name: string, text: string]> {
  for (const [written, text] of members(json)) yield [JSON.parse(`"${written}"`) as string, text]
}

/** Where each member of a JSON object stands, from its name's quote to its value's end, and its name. */
export function memberSpans (json: string): Array<{ name: string, from: number, to: number }> {
  return [...parts(json)].map(([from, to]) => {
    const start = json.indexOf('"', from)
    const name = JSON.parse(json.slice(start, stringEnd(json, start))) as string
    return { name, from: start, to: from + json.slice(from, to).trimEnd().length }
  })
}

/** The members of a JSON object: each name as it is written between its quotes, and the value's text. */
function * members (json: string): Generator<[name: string, text: string]> {
  for (const [from, to] of parts(json)) {
    const part = json.slice(from, to)
    const start = part.indexOf('"')
    const end = stringEnd(part, start)
    yield [part.slice(start + 1, end - 1), part.slice(part.indexOf(':', end) + 1).trim()]
  }
}

/** Where the members of a JSON object, or the elements of an array, begin and end. */
function * parts (json: string): Generator<[from: number, to: number]> {
  let depth = 0
  let from = 0
  for (let at = 0; at < json.length; at++) {
    const char = json[at]
    if (char === '"') {
      at = stringEnd(json, at) - 1
    } else if (char === '{' || char === '[') {
      if (++depth === 1) from = at + 1
    } else if (char === ',' && depth === 1) {
      yield [from, at]
      from = at + 1
    } else if ((char === '}' || char === ']') && --depth === 0 && json.slice(from, at).trim() !== '') {
      yield [from, at]
    }
  }
}

/** The offset just after the string that begins here. */
function stringEnd (json: string, start: number): number {
  for (let quote = json.indexOf('"', start + 1); ; quote = json.indexOf('"', quote + 1)) {
    let slashes = 0
    while (json[quote - 1 - slashes] === '\\') slashes++
    if (slashes % 2 === 0) return quote + 1
  }
}
