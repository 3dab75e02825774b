import { Problem, TooLarge } from '../core/errors.ts'
import type { Caller } from '../core/model.ts'
import type { HandoffPlace, Handoffs, StatusReply } from '../store/handoffs.ts'
import { longAgo, stillThere } from './waiter.ts'
import type { Asker, Room, Turn, WaitingAsker } from './waiter.ts'

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
export const small = 64 * 1024
/** How long after it came a read may begin, in milliseconds. What is caught for a client that gave up is lost to it. */
const latest = 8000

/** Reads what is small at once, and what is large in turn, when there is room for the answer. */
export class LargeReads {
  readonly inTurn: ReadInTurn
  readonly #maxBytes: number
  /** The reads that wait for their turn and that others may join, by what they read. */
  readonly #waiting = new Map<string, Promise<unknown>>()

  /** @param maxBytes how many bytes one handoff may have */
  constructor (inTurn: ReadInTurn, maxBytes = 1024 * 1024) {
    this.inTurn = inTurn
    this.#maxBytes = maxBytes
  }

  /**
   * @param look throws TooLarge for what is larger than may be
   * @param read reads it, or catches it, in its turn
   * @param several how many bytes it may have where it is several
   */
  async one<T> (
    place: Place, caller: Caller, asker: Asker | WaitingAsker, look: (maxBytes: number) => Promise<T>,
    read: (now: Caller) => Promise<T>, several = 0
  ): Promise<T> {
    try {
      return await look(small)
    } catch (error) {
      if (!(error instanceof TooLarge)) throw error
      // A cancelled call of MCP is gone, if somebody listens to it; its wait doesn't any more.
      const leave = 'onGone' in asker ? asker.onGone(() => {}) : undefined
      try {
        return await this.#inRoom(place, caller, asker, read, Math.max(several, this.#maxBytes))
      } finally {
        leave?.()
      }
    }
  }

  /**
   * The same for what many ask for: hundreds may wait for a result, and wake together. Who asks before the read's turn
   * comes shares it, and nobody may change what it gives. Each has room of its own for its answer.
   * @param name of what is read
   * @param isAnswer whether what is read becomes the answer
   */
  async shared<T> (
    name: string, place: Place, asker: Asker, look: (maxBytes: number) => Promise<T>, read: () => Promise<T>,
    isAnswer = true
  ): Promise<T> {
    try {
      return await look(small)
    } catch (error) {
      if (!(error instanceof TooLarge)) throw error
      const room = isAnswer ? asker.room?.() : undefined
      const others = this.#waiting.get(name) as Promise<T> | undefined
      const found = await (others ?? this.#join(name, place, read, room))
      if (others !== undefined && room !== undefined) {
        const bytes = bytesIn(found)
        await room.read(bytes, atOnce, async () => [true, bytes])
      }
      await stillThere(asker)
      return found
    }
  }

  /** A handoff with what agents said about its end, and without its result. */
  withoutResult (handoffs: Pick<Handoffs, 'status'>, place: HandoffPlace, asker: Asker): Promise<StatusReply> {
    const look = async (maxBytes: number) => {
      const seen = await handoffs.status(place, 0, maxBytes)
      if (seen.outcome === 'found' && seen.isFaultLonger) throw new TooLarge()
      return seen
    }
    const name = `end ${place.tenant}:${place.id}`
    return this.shared(name, place, asker, look, () => handoffs.status(place, 0))
  }

  #inRoom<T> (
    place: Place, caller: Caller, asker: Asker, read: (now: Caller) => Promise<T>, maxBytes: number
  ): Promise<T> {
    const room = asker.room?.()
    if (room === undefined) return this.inTurn(place, (now = caller) => read(now), asker)
    const came = performance.now()
    return room.read(maxBytes, attempt => this.inTurn(place, attempt, asker), async () => {
      const waited = performance.now() - came
      if (waited > latest) throw new Problem('unavailable', { headers: { 'retry-after': '1' } })
      // The key may have ended while it waited, for a turn or for room.
      const found = await read(waited > longAgo ? await stillThere(asker) : caller)
      return [found, bytesIn(found)]
    })
  }

  #join<T> (name: string, place: Place, read: () => Promise<T>, room: Room | undefined): Promise<T> {
    let noted: Promise<T> | undefined
    let hasBegun = false
    const leave = () => {
      hasBegun = true
      if (this.#waiting.get(name) === noted) this.#waiting.delete(name)
    }
    const readFor = () => {
      leave()
      return read()
    }
    const inTurn = <R>(attempt: () => Promise<R>) => this.inTurn(place, attempt)
    const reading = (room?.read(this.#maxBytes, inTurn, async () => {
      const found = await readFor()
      return [found, bytesIn(found)]
    }) ?? inTurn(readFor)).finally(leave)
    if (!hasBegun) this.#waiting.set(name, noted = reading)
    return reading
  }
}

/** Runs what it is given. */
export const atOnce: Turn = attempt => attempt()

/** How many bytes a reply has: those of its Buffers, at whatever depth. */
function bytesIn (reply: unknown): number {
  if (Buffer.isBuffer(reply)) return reply.length
  if (typeof reply !== 'object' || reply === null) return 0
  return Object.values(reply).reduce((sum: number, part) => sum + bytesIn(part), 0)
}
