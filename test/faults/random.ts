/** A seeded generator of pseudo-random numbers: mulberry32 by Tommy Ettinger, in the public domain. */
export class Random {
  #state: number

  constructor (seed: number) {
    this.#state = seed | 0
  }

  /** 0 ≤ x < 1. */
  next (): number {
    this.#state = (this.#state + 0x6D2B79F5) | 0
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }

  /** A whole number between the two, both included. */
  between (low: number, high: number): number {
    return low + Math.floor(this.next() * (high - low + 1))
  }

  chance (share: number): boolean {
    return this.next() < share
  }

  pick<T> (from: readonly T[]): T {
    return from[this.between(0, from.length - 1)] as T
  }
}
