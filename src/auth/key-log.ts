import { Unavailable } from '../core/errors.ts'
import type { Subscriptions } from '../redis/subscriptions.ts'
import type { KeyChange, KeyRecords } from '../store/api-keys.ts'
import { limitedIn } from '../store/limits.ts'
import type { LogTable } from './log-table.ts'

/**
 * How long what is known is trusted, in milliseconds: then it is looked up again, unless a later read of the log has
 * begun.
 */
const trust = 1500
/** How often the log is read, in milliseconds, whether or not there was a message. */
const readInterval = 500

/** The log output that it needs, a part of pino's. */
export interface LogOutput {
  info (details: object, message: string): void
  error (details: object, message: string): void
}

/** What follows the log. */
interface LogFollower {
  /** This key has changed; without an id, any key may have. */
  forget (id?: string): void
  /** The log was read to its end: keys that are still cached then are valid. */
  caughtUp (): void
}

/**
 * Follows the log of keys and limits in Redis. It is read when a message announces an entry, and also twice a second: a
 * message may be lost, and a subscriber doesn't notice a dead connection at once. So messages only make changes known
 * faster. `begunAt` says up to when all changes are known; a cached key's validity depends on it: see KeyRing.
 */
export class KeyLog {
  readonly #records: KeyRecords
  readonly #subscriptions: Subscriptions
  readonly #tables: ReadonlyArray<LogTable<unknown>>
  readonly #output: LogOutput
  /** When the last successful read began, by this process's monotonic clock: all earlier changes are known. */
  begunAt = -Infinity
  /**
   * Redis's clock minus this process's monotonic clock, too high by at most the duration of a read: so no key ends
   * late.
   */
  #offset = 0
  readonly #followers: LogFollower[] = []
  #isStopped = false
  /** The last entry read. */
  #last = ''
  #isReading = false
  #readAgain = false
  #isFailing = false
  #timer: NodeJS.Timeout | undefined
  #leave: Promise<() => void> | undefined

  /** @param tables what operators set besides keys */
  constructor (
    records: KeyRecords, subscriptions: Subscriptions, tables: ReadonlyArray<LogTable<unknown>>, output: LogOutput
  ) {
    this.#records = records
    this.#subscriptions = subscriptions
    this.#tables = tables
    this.#output = output
  }

  follow (follower: LogFollower): void {
    this.#followers.push(follower)
  }

  start (): void {
    this.#timer = setInterval(() => this.#read(), readInterval)
    this.#timer.unref()
    this.#leave = this.#subscriptions.listen(this.#records.channel, () => this.#read())
    this.#read()
  }

  stop (): void {
    clearInterval(this.#timer)
    this.#isStopped = true
    this.#leave?.then(leave => leave())
  }

  /** @param now Redis's clock in a reply to a read that began at `begun` */
  learnClock (now: number, begun: number): void {
    this.#offset = now - begun
  }

  /** Does a look-up still count that began then? Changes since are in the log. */
  isRecent (begun: number, now: number): boolean {
    return now - Math.max(begun, this.begunAt) < trust
  }

  /** Converts a moment of this process's clock to Redis's clock. */
  timeAt (moment: number): number {
    return moment + this.#offset
  }

  async #read (): Promise<void> {
    // A read under way may have begun before the announced change.
    this.#readAgain = true
    if (this.#isReading) return
    this.#isReading = true
    try {
      while (this.#readAgain) {
        this.#readAgain = false
        const begun = performance.now()
        const { now, lost, last, entries, more } = await this.#records.changes(this.#last)
        if (this.#isStopped) return
        this.learnClock(now, begun)
        // If the log was empty at the last read, the first entry now may not be the first since then.
        const isLost = lost || (this.#last === '0-0' && entries.length > 0)
        for (const follower of this.#followers) {
          if (isLost) follower.forget()
          for (const { id } of entries) if (id !== undefined) follower.forget(id)
        }
        // Before the entries count as read: if Redis can't give a table now, they come again.
        for (const table of this.#tables) await (isLost ? table.read() : table.change(entries))
        for (const entry of entries) this.#write(entry)
        this.#last = last
        if (more) this.#readAgain = true
        else this.begunAt = begun
      }
      this.#isFailing = false
      for (const follower of this.#followers) follower.caughtUp()
    } catch (error) {
      // Others report that Redis is away. Other errors are logged once until a read succeeds, not twice a second.
      if (error instanceof Unavailable || this.#isFailing) return
      this.#isFailing = true
      this.#output.error({ err: error }, 'the log of API keys could not be read')
    } finally {
      this.#isReading = false
    }
  }

  #write ({ id, tenant, agent, action, limit, of, max_live: live, subject, until, by }: KeyChange): void {
    if (subject !== undefined) {
      const [issuer, name] = subject.split(' ').map(decodeURIComponent)
      return this.#output.info({ issuer, subject: name, ...until !== '' && { until }, by }, action)
    }
    if (id !== undefined) return this.#output.info({ key_id: id, tenant, agent, by }, `key ${action}`)
    if (of !== undefined) {
      const { tenant, agent } = limitedIn(of)
      return this.#output.info(
        { tenant, ...agent !== null && { agent }, ...live !== '' && { max_live: Number(live) }, by }, action
      )
    }
    this.#output.info({ tenant, ...agent !== '' && { agent }, ...limit !== '' && { limit: Number(limit) }, by }, action)
  }
}
