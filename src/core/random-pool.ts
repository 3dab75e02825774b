import { randomFillSync } from 'node:crypto'

/** Random bytes in pieces of one size. One system call for hundreds of pieces costs as much as one for a piece. */
export class RandomPool {
  readonly bytes: Buffer
  readonly #size: number
  #used: number

  /** @param size of a piece, in bytes @param count how many pieces one system call fills */
  constructor (size: number, count: number) {
    this.bytes = Buffer.alloc(size * count)
    this.#size = size
    this.#used = this.bytes.length
  }

  /** The offset in `bytes` of the next piece, which was never used. */
  take (): number {
    if (this.#used === this.bytes.length) {
      randomFillSync(this.bytes)
      this.#used = 0
    }
    this.#used += this.#size
    return this.#used - this.#size
  }
}
