import { TooLarge } from '../core/errors.ts'
import type { Caller } from '../core/model.ts'
import type { HandoffPlace } from '../store/handoffs.ts'
import { stillThere } from './waiter.ts'
import type { Asker, WaitingAsker } from './waiter.ts'

/**
 * Runs a read when it is its turn: all that read much share Redis, which answers all that arrives together before it
 * serves anybody else. Not for a client that has gone. `now` is the caller as the key is then, if that took a while.
 */
export type ReadInTurn = <T>(place: Place, read: (now?: Caller) => Promise<T>, asker?: Asker) => Promise<T>

/** Whose it is, and the hash tag of its partition. */
type Place = Pick<HandoffPlace, 'tenant' | 'tag'>

/**
 * How many bytes a request reads without a turn. To find out that it is more costs less than half of reading as much.
 */
const small = 64 * 1024

/** Reads what is small at once, and what is large in turn. */
export class LargeReads {
  readonly #inTurn: ReadInTurn
  /** The reads that wait for their turn and that others may join, by what they read. */
  readonly #waiting = new Map<string, Promise<unknown>>()

  constructor (inTurn: ReadInTurn) {
    this.#inTurn = inTurn
  }

  /**
   * @param look throws TooLarge for what is larger than may be
   * @param read reads it, or catches it, in its turn
   */
  async one<T> (
    place: Place, caller: Caller, asker: Asker | WaitingAsker, look: (maxBytes: number) => Promise<T>,
    read: (now: Caller) => Promise<T>
  ): Promise<T> {
    try {
      return await look(small)
    } catch (error) {
      if (!(error instanceof TooLarge)) throw error
      // A cancelled call of MCP is gone, if somebody listens to it; its wait doesn't any more.
      const leave = 'onGone' in asker ? asker.onGone(() => {}) : undefined
      try {
        return await this.#inTurn(place, (now = caller) => read(now), asker)
      } finally {
        leave?.()
      }
    }
  }

  /**
   * The same for what many ask for: hundreds may wait for a result, and wake together. Who asks before the read's turn
   * comes shares it, and nobody may change what it gives.
   * @param name of what is read
   */
  async shared<T> (
    name: string, place: Place, asker: Asker, look: (maxBytes: number) => Promise<T>, read: () => Promise<T>
  ): Promise<T> {
    try {
      return await look(small)
    } catch (error) {
      if (!(error instanceof TooLarge)) throw error
      const found = await (this.#waiting.get(name) as Promise<T> | undefined ?? this.#join(name, place, read))
      await stillThere(asker)
      return found
    }
  }

  #join<T> (name: string, place: Place, read: () => Promise<T>): Promise<T> {
    const leave = () => { if (this.#waiting.get(name) === reading) this.#waiting.delete(name) }
    const reading = this.#inTurn(place, () => {
      leave()
      return read()
    }).finally(leave)
    this.#waiting.set(name, reading)
    return reading
  }
}
