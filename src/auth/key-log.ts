import type { KeyRecords } from '../store/key-records.ts'
import type { KeyMemory } from './key-memory.ts'
import { Unavailable } from '../redis/lanes.ts'
import type { Subscriptions } from '../redis/subscriptions.ts'

/** How often the log is read, in milliseconds, whether or not there was a message. */
const interval = 500

/** The log output that it needs, a part of pino's. */
export interface Log {
  info (details: object, message: string): void
  error (details: object, message: string): void
}

/**
 * Follows the log of keys in Redis. It is read when a message announces an entry, and also twice a second: a message may be lost, and
 * a subscriber doesn't notice a dead connection at once. So messages only make changes known faster. `begunAt` says up to when all
 * changes are known; a cached key's validity depends on it: see StoredKeys.
 */
export class KeyLog {
  readonly #records: KeyRecords
  readonly #subscriptions: Subscriptions
  readonly #memory: KeyMemory
  readonly #log: Log
  /** When the last successful read began, by this process's monotonic clock: all earlier changes are known. */
  begunAt = -Infinity
  /** Redis's clock minus this process's monotonic clock, too high by at most the duration of a read: so no key ends late. */
  #offset = 0
  #onCaughtUp: (() => void) | undefined
  /** The last entry read. */
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

  /** @param onCaughtUp called whenever the log was read to its end: what is still cached then is true */
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

  /** @param now Redis's clock in a reply to a read that began at `begun` */
  learnClock (now: number, begun: number): void {
    this.#offset = now - begun
  }

  /** Converts a moment of this process's clock to Redis's clock. */
  timeAt (moment: number): number {
    return moment + this.#offset
  }

  #wake (): void {
    // A read under way may have begun before the announced change.
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
      // Others report that Redis is away. Other errors are logged once, not twice a second.
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
    // If the log was empty at the last read, the first entry now may not be the first since then.
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
