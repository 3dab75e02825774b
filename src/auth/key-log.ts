import type { KeyRecords } from '../store/key-records.ts'
import type { KeyMemory } from './key-memory.ts'
import { Unavailable } from '../redis/lanes.ts'
import type { Subscriptions } from '../redis/subscriptions.ts'

/** How often it is asked what became of keys, in milliseconds, whether or not there was a message. */
const interval = 500

/** What it needs to say: pino's shape. */
export interface Log {
  info (details: object, message: string): void
  error (details: object, message: string): void
}

/**
 * Follows the log of what becomes of keys. It is read when a message says that there is something, and twice a second besides:
 * a message may be lost, and who listens to a connection that has gone silent doesn't know. So nothing depends on messages but
 * that it goes faster. `begunAt` says up to when all is known, and is what a remembered key is worth: see StoredKeys.
 */
export class KeyLog {
  readonly #records: KeyRecords
  readonly #subscriptions: Subscriptions
  readonly #memory: KeyMemory
  readonly #log: Log
  /** When the last look that succeeded was begun, by this process's monotonic clock: what changed before that is known. */
  begunAt = -Infinity
  /** Redis's clock less this process's monotonic clock, and at most as much too high as a look takes: none ends late. */
  #offset = 0
  #onCaughtUp: (() => void) | undefined
  /** The last entry seen. */
  #last = ''
  #looking = false
  #lookAgain = false
  #failing = false
  #timer: NodeJS.Timeout | undefined
  #leave: Promise<() => void> | undefined

  constructor (records: KeyRecords, subscriptions: Subscriptions, memory: KeyMemory, log: Log) {
    this.#records = records
    this.#subscriptions = subscriptions
    this.#memory = memory
    this.#log = log
  }

  /** @param onCaughtUp called whenever the log was read to its end: what memory hasn't forgotten by then is true */
  start (onCaughtUp: () => void): void {
    this.#onCaughtUp = onCaughtUp
    this.#timer = setInterval(() => this.#wake(), interval)
    this.#timer.unref()
    this.#leave = this.#subscriptions.listen(this.#records.channel, () => this.#wake())
    this.#wake()
  }

  stop (): void {
    clearInterval(this.#timer)
    this.#onCaughtUp = undefined
    this.#leave?.then(leave => leave())
  }

  /** @param now Redis's clock, by an answer that was asked for at `begun` */
  learnClock (now: number, begun: number): void {
    this.#offset = now - begun
  }

  /** Redis's clock at a moment of this process's. */
  timeAt (moment: number): number {
    return moment + this.#offset
  }

  #wake (): void {
    // What is under way may have been read before that of which we are told now.
    if (this.#looking) this.#lookAgain = true
    else this.#follow()
  }

  async #follow (): Promise<void> {
    this.#looking = true
    try {
      do {
        this.#lookAgain = false
        await this.#look()
      } while (this.#lookAgain)
      this.#failing = false
      this.#onCaughtUp?.()
    } catch (error) {
      // That Redis is away others say; the rest is said once, not twice a second.
      if (!(error instanceof Unavailable) && !this.#failing) this.#log.error({ err: error }, 'the log of API keys could not be read')
      this.#failing = true
    } finally {
      this.#looking = false
    }
  }

  async #look (): Promise<void> {
    const begun = performance.now()
    const { now, lost, last, entries, more } = await this.#records.changes(this.#last)
    if (this.#onCaughtUp === undefined) return
    this.learnClock(now, begun)
    // Behind an empty log nobody can tell whether the first that is read now is the first there was.
    if (lost || (this.#last === '0-0' && entries.length > 0)) this.#memory.forgetAll()
    for (const { id, tenant, agent, action, by } of entries) {
      this.#memory.forget(id)
      this.#log.info({ key_id: id, tenant, agent, by }, `key ${action}`)
    }
    this.#last = last
    if (more) this.#lookAgain = true
    else this.begunAt = begun
  }
}
