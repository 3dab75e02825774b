import {
  closeBracket, comma, eachMember, invalidAt, isSpace, openBrace, openBracket, quote, skipSpace, skipValue
} from './json.ts'

/**
 * A value in JSON text that is known to be valid, with the text as it was written: JSON.parse makes doubles of numbers,
 * and 9007199254740993, 1e400 and 1.0 would be other ones when they are written again.
 */
export class Written {
  readonly #json: Buffer
  readonly #start: number
  readonly #end: number
  #members: ReadonlyMap<string, Written> | undefined
  #items: readonly Written[] | undefined

  private constructor (json: Buffer, start: number, end: number) {
    this.#json = json
    this.#start = start
    this.#end = end
  }

  /** @param json an object or array, with or without white space around it */
  static of (json: Buffer): Written {
    let end = json.length
    while (isSpace(json[end - 1])) end--
    return new Written(json, skipSpace(json, 0), end)
  }

  get text (): string {
    return this.#json.toString('utf8', this.#start, this.#end)
  }

  get isObject (): boolean {
    return this.#json[this.#start] === openBrace
  }

  get isArray (): boolean {
    return this.#json[this.#start] === openBracket
  }

  get isString (): boolean {
    return this.#json[this.#start] === quote
  }

  get isNumber (): boolean {
    return /^[-\d]$/.test(String.fromCharCode(this.#json[this.#start]!))
  }

  /** The text of a string; undefined for anything else. */
  get string (): string | undefined {
    return this.isString ? JSON.parse(this.text) as string : undefined
  }

  /** The members of an object; none of anything else. */
  get members (): ReadonlyMap<string, Written> {
    if (this.#members !== undefined) return this.#members
    const members = new Map<string, Written>()
    if (this.isObject) {
      eachMember(this.#json, this.#start, () => {}, (name, at) => {
        const end = skipValue(this.#json, at, name)
        members.set(name, new Written(this.#json, at, end))
        return end
      })
    }
    this.#members = members
    return members
  }

  /** The items of an array; none of anything else. */
  get items (): readonly Written[] {
    this.#items ??= this.isArray ? [...this.#eachItem()] : []
    return this.#items
  }

  * #eachItem (): Generator<Written> {
    const json = this.#json
    let at = skipSpace(json, this.#start + 1)
    while (json[at] !== closeBracket) {
      const end = skipValue(json, at, '')
      yield new Written(json, at, end)
      at = skipSpace(json, end)
      if (json[at] === comma) at = skipSpace(json, at + 1)
      else if (json[at] !== closeBracket) throw invalidAt(at)
    }
  }

  /** The same value in lines, with each string, number and word as it was written. @param indent of its first line */
  inLines (indent = ''): string {
    const inner = `${indent}  `
    const lines = this.isObject
      ? [...this.members].map(([name, value]) => `${inner}${JSON.stringify(name)}: ${value.inLines(inner)}`)
      : this.items.map(item => inner + item.inLines(inner))
    if (lines.length === 0) return this.isObject ? '{}' : this.isArray ? '[]' : this.text
    const [opening, closing] = this.isObject ? ['{', '}'] : ['[', ']']
    return `${opening}\n${lines.join(',\n')}\n${indent}${closing}`
  }
}
