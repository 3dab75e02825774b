/** Keeps the largest of many, and adds up the rest: its memory is bounded by the number of those that it keeps. */
export class Largest<T> {
  readonly #max: number
  readonly #sizeOf: (one: T) => number
  readonly #addUp: (sum: T | undefined, more: T) => T
  #kept: T[] = []
  #rest: T | undefined

  /** @param addUp adds one to the sum of the rest; undefined: it is the first */
  constructor (max: number, sizeOf: (one: T) => number, addUp: (sum: T | undefined, more: T) => T) {
    this.#max = max
    this.#sizeOf = sizeOf
    this.#addUp = addUp
  }

  /** Of several as large as each other, the first ones are kept. */
  add (one: T): void {
    this.#kept.push(one)
    if (this.#kept.length >= 2 * this.#max + 64) this.#cut()
  }

  /** The largest, and behind them the sum of the rest, if there is any. */
  all (): T[] {
    this.#cut()
    return this.#rest === undefined ? this.#kept : [...this.#kept, this.#rest]
  }

  #cut (): void {
    this.#kept.sort((one, other) => this.#sizeOf(other) - this.#sizeOf(one))
    for (const one of this.#kept.splice(this.#max)) this.#rest = this.#addUp(this.#rest, one)
  }
}

/** Some of many, each with the same chance. */
export class Sample<T> {
  readonly items: T[] = []
  readonly #max: number
  #seen = 0

  constructor (max: number) {
    this.#max = max
  }

  add (one: T): void {
    this.#seen++
    const place = this.items.length < this.#max ? this.items.length : Math.floor(Math.random() * this.#seen)
    if (place < this.#max) this.items[place] = one
  }
}
