import { Problem } from '../../core/errors.ts'

/** Counts what each key has open at this replica, and refuses more than a limit. */
export class KeyLimit {
  readonly #most: number
  readonly #detail: string
  readonly #open = new Map<unknown, number>()

  /** @param detail of the refusal */
  constructor (most: number, detail: string) {
    this.#most = most
    this.#detail = detail
  }

  /**
   * Call what this returns once it is over.
   * @throws {Problem} rate_limited: the key has as many as it may
   */
  enter (key: unknown): () => void {
    const open = this.#open.get(key) ?? 0
    if (open >= this.#most) {
      throw new Problem('rate_limited', { detail: this.#detail, headers: { 'retry-after': '2' } })
    }
    this.#open.set(key, open + 1)
    return () => {
      const left = this.#open.get(key)! - 1
      if (left > 0) this.#open.set(key, left)
      else this.#open.delete(key)
    }
  }

  /** Runs what counts until it has ended. @throws {Problem} as `enter` does, and then nothing has run */
  async run<T> (key: unknown, run: () => Promise<T>): Promise<T> {
    const leave = this.enter(key)
    try {
      return await run()
    } finally {
      leave()
    }
  }
}
