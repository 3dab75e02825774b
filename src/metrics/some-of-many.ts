/**
 * Keeps the largest of many, and adds up the rest: its memory is bounded by the number of those that it keeps. Owners
 * take turns: first the largest of each owner, then the second of each, until there are enough. So an owner of many
 * large ones leaves the others their share, and what they don't use is shared too.
 */
export class Largest<T> {
  readonly #max: number
  readonly #of: Traits<T>
  readonly #addUp: (sum: T | undefined, more: T) => T
  #owner: string | undefined
  #own: T[] = []
  #kept: Array<Ranked<T>> = []
  #rest: T | undefined

  /** @param addUp adds one to the sum of the rest; undefined: it is the first */
  constructor (max: number, traits: Traits<T>, addUp: (sum: T | undefined, more: T) => T) {
    this.#max = max
    this.#of = traits
    this.#addUp = addUp
  }

  /** Those of one owner come one after the other. Of several as large as each other, the first ones are kept. */
  add (one: T): void {
    const owner = this.#of.owner(one)
    if (owner !== this.#owner) this.#endOwner()
    this.#owner = owner
    this.#own.push(one)
    if (this.#own.length >= this.#most) this.#cutOwn()
  }

  /** Those that are kept, and behind them the sum of the rest, if there is any. */
  all (): T[] {
    this.#endOwner()
    this.#cutKept()
    const kept = this.#kept.map(({ one }) => one)
    return this.#rest === undefined ? kept : [...kept, this.#rest]
  }

  /** How many it holds before it cuts them. */
  get #most (): number {
    return 2 * this.#max + 64
  }

  /** An owner's place for one is how many of its own are larger. More of them than `max` are never kept. */
  #endOwner (): void {
    this.#cutOwn()
    for (const [rank, one] of this.#own.entries()) this.#kept.push({ one, rank, size: this.#of.size(one) })
    this.#own = []
    if (this.#kept.length >= this.#most) this.#cutKept()
  }

  #cutOwn (): void {
    const { size } = this.#of
    this.#own.sort((one, other) => size(other) - size(one))
    for (const one of this.#own.splice(this.#max)) this.#rest = this.#addUp(this.#rest, one)
  }

  #cutKept (): void {
    this.#kept.sort(inTurn)
    for (const { one } of this.#kept.splice(this.#max)) this.#rest = this.#addUp(this.#rest, one)
  }
}

/** `size`: below 0 for one that has nothing: those come after all others, of any tenant. */
interface Traits<T> { size: (one: T) => number, owner: (one: T) => string }

interface Ranked<T> { one: T, rank: number, size: number }

function inTurn (one: Ranked<unknown>, other: Ranked<unknown>): number {
  return Number(one.size < 0) - Number(other.size < 0) || one.rank - other.rank || other.size - one.size
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
