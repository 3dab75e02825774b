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

/** How long what is known is taken for true, in milliseconds: then it is looked up anew, unless a look at the log was begun since. */
const trust = 1500
/** Look-ups a second of what nobody here knows, at most. */
const unknownPerSecond = 500

/**
 * Keys from Redis, as a replica remembers them. What is remembered is true as of when it was looked up, and of every look at
 * the log since that told nothing of it (auth/key-log.ts). It is believed for 1.5 s from the later of the two. So a key that
 * was revoked, exchanged or has ended stops within 2 s everywhere, whatever is lost on the way: a replica that can't look for
 * longer than that believes nothing, and with Redis away says that it is (503), not that a key is wrong.
 *
 * What an outsider can make us do is bounded: a secret whose checksum is wrong asks nothing, unknown ids are remembered as well
 * (apart, so that they push no key out), and those that aren't are looked up so often a second at the most.
 */
export class StoredKeys {
  readonly counts = noCounts()
  readonly #records: KeyRecords
  readonly #memory: KeyMemory
  readonly #keyLog: KeyLog
  readonly #ends = new KeyEnds()
  /** Look-ups of what nobody here knows since a second began. */
  #guesses = 0
  #secondBegan = -Infinity

  /** @param memory where it remembers: tests make it forget */
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

  /** Whose key this is, where that is known and true. */
  recall (secret: string): Caller | undefined {
    const entry = this.#memory.get(placeOfId(secret))
    if (entry === undefined) return undefined
    // By the secret's hash, as in ApiKeys.
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

  /** @returns undefined for what can be none of these keys' */
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
   * Looks up those keys that something stays open by and that memory no longer vouches for: something became of them, or their time is
   * over. What comes of it they are told where any look-up is (#lookUp). A look that took long is no doubt: it told of no change.
   */
  #lookAtOpen (): void {
    const time = this.#keyLog.timeAt(performance.now())
    const isGood = (id: string, digested: string) => {
      const entry = this.#memory.get(id)
      return entry !== undefined && !entry.isStale && (entry.endOf(digested) ?? 0) > time
    }
    // Where Redis can't say now, the next look at the log asks again.
    for (const id of this.#ends.doubtful(isGood)) this.#lookUp(id, true).catch(() => {})
  }

  /** @param secret to be remembered where it is right */
  #find (id: string, digested: string, secret?: string): Caller | undefined | Promise<Caller | undefined> {
    const now = performance.now()
    const entry = this.#memory.get(id)
    if (entry !== undefined && this.#isTrue(entry, now)) {
      const end = entry.endOf(digested)
      // Ended by the clock of the look-up itself, it has for good. By the one reckoned here, which is ahead, Redis says so itself.
      if (end !== undefined && (entry.lookup.now >= end || this.#keyLog.timeAt(now) < end)) return this.#judge(entry, digested, secret)
      if (entry.lookup.record.revokedAt !== null) return this.#refuse()
    }
    const wrongSince = this.#memory.wrongSince(id, digested)
    if (wrongSince !== undefined && this.#isRecent(wrongSince, now)) return this.#refuse()
    const isRight = entry?.endOf(digested) !== undefined
    // One that is under way may have been read before the key got this secret: what it says is wrong is looked up once more.
    const looking = this.#memory.underWay.get(id)?.then(found => found?.opens(digested) ? found : this.#lookUp(id, isRight)) ?? this.#lookUp(id, isRight)
    return looking.then(found => this.#judge(found, digested, secret))
  }

  /** Lets in or refuses by a look-up that is true now. */
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

  /** @param isRight it was, when it was looked up last: no guess, and so not counted with them */
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
