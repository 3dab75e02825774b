/** A string; a bracket, comma or colon; or a number or word, as it is written. */
const tokens = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\],:]|[^\s{}[\],:"]+/gs

/** JSON text whose values can be had as they were written: JSON.parse makes doubles of numbers. */
export class Written {
  /** @type {string[]} */
  #tokens

  /** @param {string} json valid */
  constructor (json) {
    this.#tokens = [...json.matchAll(tokens)].map(([token]) => token)
  }

  /**
   * The text of a value, without white space.
   * @param {ReadonlyArray<string>} path
   * @returns {string | undefined} undefined if there is none
   */
  at (path) {
    let at = 0
    for (const name of path) {
      const next = this.#member(at, name)
      if (next === undefined) return undefined
      at = next
    }
    return this.#tokens.slice(at, this.#end(at)).join('')
  }

  /** Where a member, or an item, of what begins at this token begins. @param {number} at @param {string} name */
  #member (at, name) {
    const all = this.#tokens
    const isObject = all[at] === '{'
    if (!isObject && all[at] !== '[') return undefined
    at++
    for (let index = 0; all[at] !== '}' && all[at] !== ']'; index++) {
      const own = isObject ? JSON.parse(/** @type {string} */ (all[at])) : String(index)
      if (isObject) at += 2
      if (own === name) return at
      at = this.#end(at)
      if (all[at] === ',') at++
    }
    return undefined
  }

  /** Where the value that begins at this token has ended. @param {number} at */
  #end (at) {
    let depth = 0
    do {
      const token = this.#tokens[at++]
      if (token === '{' || token === '[') depth++
      else if (token === '}' || token === ']') depth--
    } while (depth > 0)
    return at
  }
}
