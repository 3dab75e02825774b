/** JSON text that is sent unchanged, for what JavaScript values can't hold: numbers beyond 2^53, `1.0`, `1e400`, repeated members. */
export class RawJson {
  readonly #text: string

  /** @throws SyntaxError unless it is exactly one JSON value: anything else could change the JSON around it */
  constructor (text: string) {
    JSON.parse(text)
    this.#text = text
  }

  /** JSON.stringify calls this. Within `encode` it writes a mark, which `encode` replaces with the text. */
  toJSON (): string {
    if (marked === undefined) throw new TypeError('rawJson is for what is given to the client; JSON.stringify can’t write it')
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
