import { Unavailable } from '../core/errors.ts'
import type { Caller } from '../core/model.ts'
import type { Subscriptions } from '../redis/subscriptions.ts'
import { digest, idOfSecret, markOf, placeOfId, readMark } from '../store/api-keys.ts'
import type { KeyChange, KeyRecords } from '../store/api-keys.ts'
import { KeyEnds, KeyMemory, KnownKey } from './key-cache.ts'
import type { KeyListener } from './key-cache.ts'
import { LimitTable } from './limit-table.ts'

/**
 * How long a cached key is trusted, in milliseconds: then it is looked up again, unless a later read of the log has
 * begun.
 */
const trust = 1500
/** Look-ups of unknown keys per second, at most. */
const unknownPerSecond = 500

/**
 * Keys from Redis, as a replica caches them. A cached key is true as of its look-up, and as of every later read of the
 * log without an entry about it (auth/stored-keys.ts). It is trusted for 1.5 s from the later of the two. So a key that
 * was revoked, rotated or has expired stops working everywhere within 2 s, whatever messages are lost: a replica that
 * can't read the log for longer than that trusts nothing, and while Redis is away it answers 503, not that a key is
 * wrong.
 *
 * The work that outsiders can cause is bounded: a secret with a wrong checksum causes no look-up, unknown ids are
 * cached too (separately, so that they can't evict keys), and look-ups of uncached ones are limited per second.
 */
export class StoredKeys {
  readonly counts = noCounts()
  /** The limits that operators set. They come from the same log. */
  readonly limits: LimitTable
  readonly #records: KeyRecords
  readonly #memory: KeyMemory
  readonly #keyLog: KeyLog
  readonly #ends = new KeyEnds()
  /** Look-ups of unknown keys in the current second. */
  #guesses = 0
  #secondBegan = -Infinity

  /** @param memory the cache, which tests can empty */
  constructor (records: KeyRecords, subscriptions: Subscriptions, log: KeyCacheLog, memory = new KeyMemory()) {
    this.#records = records
    this.#memory = memory
    this.limits = new LimitTable(records.limits)
    this.#keyLog = new KeyLog(records, subscriptions, this.#memory, this.limits, log)
  }

  start (): void {
    this.#keyLog.start(() => this.#lookAtOpen())
  }

  stop (): void {
    this.#keyLog.stop()
  }

  /** The key's caller, if cached and trusted. */
  recall (secret: string): Caller | undefined {
    const entry = this.#memory.get(placeOfId(secret))
    if (entry === undefined) return undefined
    // Compared by the secret's hash, as in ApiKeys.
    const end = entry.secrets.get(secret)
    if (end === undefined) return undefined
    const now = performance.now()
    if (!this.#isTrue(entry, now) || this.#keyLog.timeAt(now) >= end) return undefined
    this.counts.hits++
    return entry.caller
  }

  isFamiliar (secret: string): boolean {
    return this.#memory.peek(placeOfId(secret))?.secrets.has(secret) === true
  }

  /** @see ApiKeys.find */
  find (secret: string): Caller | undefined | Promise<Caller | undefined> {
    const id = idOfSecret(secret)
    return id === null ? this.#refuse() : this.#find(id, digest(secret), secret)
  }

  /** @returns undefined for a secret that can't be one of these keys' */
  markOf (secret: string): string | undefined {
    const id = idOfSecret(secret)
    return id === null ? undefined : markOf(id, digest(secret))
  }

  findByMark (mark: string): Caller | undefined | Promise<Caller | undefined> {
    const read = readMark(mark)
    return read === null ? this.#refuse() : this.#find(read.id, read.digested)
  }

  /** @see ApiKeys.onEnd */
  onEnd (mark: string, listener: KeyListener): (() => void) | undefined {
    const read = readMark(mark)
    return read === null ? undefined : this.#ends.listen(read.id, read.digested, listener)
  }

  /**
   * Looks up keys with open requests that the cache no longer confirms: they have changed, or their time is over.
   * #lookUp notifies these requests of an end. A slow read of the log alone is no reason: it had no change.
   */
  #lookAtOpen (): void {
    const time = this.#keyLog.timeAt(performance.now())
    const isGood = (id: string, digested: string) => {
      const entry = this.#memory.get(id)
      return entry !== undefined && !entry.isStale && (entry.endOf(digested) ?? 0) > time
    }
    // If Redis can't answer now, the next read of the log repeats this.
    for (const id of this.#ends.doubtful(isGood)) this.#lookUp(id, true).catch(() => {})
  }

  /** @param secret to cache if it is valid */
  #find (id: string, digested: string, secret?: string): Caller | undefined | Promise<Caller | undefined> {
    const now = performance.now()
    const entry = this.#memory.get(id)
    if (entry !== undefined && this.#isTrue(entry, now)) {
      const end = entry.endOf(digested)
      // Ended by the look-up's own clock, it has ended for good. By the estimated clock, which may be ahead, Redis has
      // to confirm it.
      if (end !== undefined && (entry.lookup.now >= end || this.#keyLog.timeAt(now) < end)) {
        return this.#judge(entry, digested, secret)
      }
      if (entry.lookup.record.revokedAt !== null) return this.#refuse()
    }
    const wrongSince = this.#memory.wrongSince(id, digested)
    if (wrongSince !== undefined && this.#isRecent(wrongSince, now)) return this.#refuse()
    const isRight = entry?.endOf(digested) !== undefined
    // A look-up under way may have begun before the key got this secret: if it finds the secret invalid, look up once
    // more.
    const looking = this.#memory.underWay.get(id)?.then(found =>
      found?.opens(digested) ? found : this.#lookUp(id, isRight)) ?? this.#lookUp(id, isRight)
    return looking.then(found => this.#judge(found, digested, secret))
  }

  /** Accepts or refuses by a look-up that is true now. */
  #judge (entry: KnownKey | null, digested: string, secret: string | undefined): Caller | undefined {
    if (entry === null) return this.#refuse()
    if (!entry.opens(digested)) {
      this.#memory.rememberWrong(digested, entry)
      return this.#refuse()
    }
    if (secret !== undefined) entry.secrets.set(secret, entry.endOf(digested) as number)
    return entry.caller
  }

  #refuse (): undefined {
    this.counts.refused++
  }

  /** @param isRight it was valid at the last look-up, so it doesn't count as a guess */
  #lookUp (id: string, isRight: boolean): Promise<KnownKey | null> {
    const underWay = this.#memory.underWay.get(id)
    if (underWay !== undefined) return underWay
    const begun = performance.now()
    if (!isRight && !this.#mayGuess(begun)) {
      this.counts.shed++
      return Promise.reject(new Unavailable('too many unknown keys are asked for'))
    }
    this.counts.misses++
    const lookingUp = this.#records.lookUp(id).then(lookup => {
      if (lookup !== null) this.#keyLog.learnClock(lookup.now, begun)
      const before = this.#memory.peek(id)
      const entry = lookup === null ? null : new KnownKey(lookup, begun, before)
      if (this.#memory.underWay.get(id) === lookingUp) {
        this.#memory.remember(id, entry, begun)
        this.#ends.learn(id, entry, before)
      }
      return entry
    }).finally(() => {
      if (this.#memory.underWay.get(id) === lookingUp) this.#memory.underWay.delete(id)
    })
    this.#memory.underWay.set(id, lookingUp)
    return lookingUp
  }

  #mayGuess (now: number): boolean {
    if (now - this.#secondBegan >= 1000) {
      this.#secondBegan = now
      this.#guesses = 0
    }
    return this.#guesses++ < unknownPerSecond
  }

  #isTrue (entry: KnownKey, now: number): boolean {
    return !entry.isStale && this.#isRecent(entry.begun, now)
  }

  #isRecent (begun: number, now: number): boolean {
    return now - Math.max(begun, this.#keyLog.begunAt) < trust
  }
}

/** Results of key checks, as plain numbers for the metrics. */
export interface KeyCounts {
  /** Accepted from the cache. */
  hits: number
  /** Looked up in Redis. */
  misses: number
  /** Refused: unknown, mistyped, expired or revoked. */
  refused: number
  /** Not looked up (503): too many unknown keys at once. */
  shed: number
  /** Not looked up (429): too many failures from the address (auth/keys.ts). */
  throttled: number
}

export function noCounts (): KeyCounts {
  return { hits: 0, misses: 0, refused: 0, shed: 0, throttled: 0 }
}

/** How often the log is read, in milliseconds, whether or not there was a message. */
const interval = 500

/** The log output that it needs, a part of pino's. */
interface KeyCacheLog {
  info (details: object, message: string): void
  error (details: object, message: string): void
}

/**
 * Follows the log of keys and limits in Redis. It is read when a message announces an entry, and also twice a second: a
 * message may be lost, and a subscriber doesn't notice a dead connection at once. So messages only make changes known
 * faster. `begunAt` says up to when all changes are known; a cached key's validity depends on it: see StoredKeys.
 */
class KeyLog {
  readonly #records: KeyRecords
  readonly #subscriptions: Subscriptions
  readonly #memory: KeyMemory
  readonly #limits: LimitTable
  readonly #log: KeyCacheLog
  /** When the last successful read began, by this process's monotonic clock: all earlier changes are known. */
  begunAt = -Infinity
  /**
   * Redis's clock minus this process's monotonic clock, too high by at most the duration of a read: so no key ends
   * late.
   */
  #offset = 0
  #onCaughtUp: (() => void) | undefined
  /** The last entry read. */
  #last = ''
  #looking = false
  #lookAgain = false
  #failing = false
  #timer: NodeJS.Timeout | undefined
  #leave: Promise<() => void> | undefined

  constructor (
    records: KeyRecords, subscriptions: Subscriptions, memory: KeyMemory, limits: LimitTable, log: KeyCacheLog
  ) {
    this.#records = records
    this.#subscriptions = subscriptions
    this.#memory = memory
    this.#limits = limits
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
      if (!(error instanceof Unavailable) && !this.#failing) {
        this.#log.error({ err: error }, 'the log of API keys could not be read')
      }
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
    const isLost = lost || (this.#last === '0-0' && entries.length > 0)
    if (isLost) this.#memory.forgetAll()
    for (const { id } of entries) if (id !== undefined) this.#memory.forget(id)
    // Before the entries count as read: if Redis can't give the limits now, they come again.
    if (isLost) await this.#limits.read()
    else await this.#limits.change(entries.filter(({ id }) => id === undefined))
    for (const entry of entries) this.#logChange(entry)
    this.#last = last
    if (more) this.#lookAgain = true
    else this.begunAt = begun
  }

  #logChange ({ id, tenant, agent, action, limit, by }: KeyChange): void {
    if (id !== undefined) return this.#log.info({ key_id: id, tenant, agent, by }, `key ${action}`)
    this.#log.info({ tenant, ...agent !== '' && { agent }, ...limit !== '' && { limit: Number(limit) }, by }, action)
  }
}
