import type { Caller } from '../model.ts'
import { noCounts } from './key-counts.ts'
import { KeyEnds } from './key-ends.ts'
import { KeyMemory } from './key-memory.ts'
import type { KeyRecords } from '../store/key-records.ts'
import { digest, idOfSecret, markOf, placeOfId, readMark } from '../store/key-secret.ts'
import { KeyLog } from './key-log.ts'
import type { Log } from './key-log.ts'
import { KnownKey } from './known-key.ts'
import { Unavailable } from '../redis/lanes.ts'
import type { Subscriptions } from '../redis/subscriptions.ts'

/** How long a cached key is trusted, in milliseconds: then it is looked up again, unless a later read of the log has begun. */
const trust = 1500
/** Look-ups of unknown keys per second, at most. */
const unknownPerSecond = 500

/**
 * Keys from Redis, as a replica caches them. A cached key is true as of its look-up, and as of every later read of the log without an
 * entry about it (auth/key-log.ts). It is trusted for 1.5 s from the later of the two. So a key that was revoked, rotated or has expired
 * stops working everywhere within 2 s, whatever messages are lost: a replica that can't read the log for longer than that trusts
 * nothing, and while Redis is away it answers 503, not that a key is wrong.
 *
 * The work that outsiders can cause is bounded: a secret with a wrong checksum causes no look-up, unknown ids are cached too (separately,
 * so that they can't evict keys), and look-ups of uncached ones are limited per second.
 */
export class StoredKeys {
  readonly counts = noCounts()
  readonly #records: KeyRecords
  readonly #memory: KeyMemory
  readonly #keyLog: KeyLog
  readonly #ends = new KeyEnds()
  /** Look-ups of unknown keys in the current second. */
  #guesses = 0
  #secondBegan = -Infinity

  /** @param memory the cache, which tests can empty */
  constructor (records: KeyRecords, subscriptions: Subscriptions, log: Log, memory = new KeyMemory()) {
    this.#records = records
    this.#memory = memory
    this.#keyLog = new KeyLog(records, subscriptions, this.#memory, log)
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
  onEnd (mark: string, ended: () => void): (() => void) | undefined {
    const read = readMark(mark)
    return read === null ? undefined : this.#ends.listen(read.id, read.digested, ended)
  }

  /**
   * Looks up keys with open requests that the cache no longer confirms: they have changed, or their time is over. #lookUp tells these
   * requests of an end. A slow read of the log alone is no reason: it had no change.
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
      // Ended by the look-up's own clock, it has ended for good. By the estimated clock, which may be ahead, Redis has to confirm it.
      if (end !== undefined && (entry.lookup.now >= end || this.#keyLog.timeAt(now) < end)) return this.#judge(entry, digested, secret)
      if (entry.lookup.record.revokedAt !== null) return this.#refuse()
    }
    const wrongSince = this.#memory.wrongSince(id, digested)
    if (wrongSince !== undefined && this.#isRecent(wrongSince, now)) return this.#refuse()
    const isRight = entry?.endOf(digested) !== undefined
    // A look-up under way may have begun before the key got this secret: if it finds the secret invalid, look up once more.
    const looking = this.#memory.underWay.get(id)?.then(found => found?.opens(digested) ? found : this.#lookUp(id, isRight)) ?? this.#lookUp(id, isRight)
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
      const entry = lookup === null ? null : new KnownKey(lookup, begun, this.#memory.peek(id))
      if (this.#memory.underWay.get(id) === lookingUp) {
        this.#memory.remember(id, entry, begun)
        this.#ends.learn(id, entry)
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
