/** JSON text that is sent as it is, for what JavaScript's values can't hold: numbers beyond 2^53, `1.0`, `1e400`, repeated members. */
export class RawJson {
  readonly #text: string

  /** @throws SyntaxError unless it is one JSON value: anything else could change what surrounds it */
  constructor (text: string) {
    JSON.parse(text)
    this.#text = text
  }

  /** Called by JSON.stringify. Within `encode` a mark stands for the text, which then takes its place. */
  toJSON (): string {
    if (marked === undefined) throw new TypeError('rawJson is for what is given to the client; JSON.stringify can’t write it')
    marked.push(this.#text)
    return `${mark}${marked.length - 1}`
  }
}

export function rawJson (text: string): RawJson {
  return new RawJson(text)
}

/** Nobody can guess it, so nobody's own text is taken for it. */
let mark = ''
/** The raw texts of the value that is being encoded. */
let marked: string[] | undefined

/** A value's JSON, with each RawJson in it as its own text. */
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
