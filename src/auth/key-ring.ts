import { LRUCache } from 'lru-cache'
import { Problem, Unavailable } from '../core/errors.ts'
import type { ApiKey, Caller, NeededScope } from '../core/model.ts'
import type { Subscriptions } from '../redis/subscriptions.ts'
import { digest, idOfSecret, isKeyId, placeOfId } from '../store/api-keys.ts'
import type { KeyRecords } from '../store/api-keys.ts'
import { refusedKey } from './grant.ts'
import type { Grant, GrantListener } from './grant.ts'
import { BlockTable } from './block-table.ts'
import { KeyLog } from './key-log.ts'
import type { LogOutput } from './key-log.ts'
import { KnownKey } from './known-key.ts'
import { LimitTable } from './limit-table.ts'
import { requireScope } from './scopes.ts'

/** Look-ups of unknown keys per second, at most. */
const unknownPerSecond = 500
/** The cache's size: at most so many keys, and as many unknown ids. */
const maxKeys = 10_000
/** How many wrong keys an address may send in a window, and the window in milliseconds, from the first wrong key on. */
export const guesses = { limit: 60, window: 60_000 } as const

/** The wrong keys from a request's address. The HTTP layer counts them. */
export interface Guesses {
  /** Seconds until the address may try again; 0 if it may now. */
  blockedFor (): Promise<number>
  /** Counts one more wrong key. */
  count (): Promise<unknown>
}

/** Results of key checks, as plain numbers for the metrics. */
interface KeyCounts {
  /** Accepted from the cache. */
  hits: number
  /** Looked up in Redis. */
  misses: number
  /** Refused: unknown, mistyped, expired or revoked. */
  refused: number
  /** Not looked up (503): too many unknown keys at once. */
  shed: number
  /** Not looked up (429): too many failures from the address. */
  throttled: number
}

/** Where the keys are, and where their changes are announced. */
export interface KeyStore { keyRecords: KeyRecords, subscriptions: Subscriptions }

/**
 * All keys, from the environment (which never change) and from Redis. Other files see only its grants.
 *
 * Keys from the environment are found by the SHA-256 of their secrets, with one look-up however many keys there are.
 * Because the digest is looked up, the duration says nothing about similar secrets. Grants are also cached by secret as
 * sent, which saves a digest per request. This is safe too: a guess is only compared with a secret if their hashes in
 * the map agree, and V8 seeds these hashes for each process.
 *
 * A cached key from Redis is true as of its look-up, and as of every later read of the log without an entry about it
 * (auth/key-log.ts). It is trusted for 1.5 s from the later of the two. So a key that was revoked, rotated or has
 * expired stops working everywhere within 2 s, whatever messages are lost: a replica that can't read the log for longer
 * trusts no cached key, and while Redis is away it answers 503, not that a key is wrong.
 *
 * The work that outsiders can cause is bounded: a secret with a wrong checksum causes no look-up, unknown ids are
 * cached too, look-ups of uncached ones are limited per second, and an address with too many wrong keys has to wait.
 */
export class KeyRing {
  readonly counts: KeyCounts = { hits: 0, misses: 0, refused: 0, shed: 0, throttled: 0 }
  /** The limits that operators set for agents, whichever keys those use. They come from the same log. */
  readonly limits: LimitTable
  /** Whose tokens operators blocked. They too come from the same log. */
  readonly blocks: BlockTable
  readonly #records: KeyRecords
  readonly log: KeyLog
  /** Of keys from the environment, by digest. */
  readonly #fixed = new Map<string, KeyGrant>()
  /** Of keys from the environment, by secret as sent: at most as many as there are keys. */
  readonly #seen = new Map<string, KeyGrant>()
  readonly #known = new LRUCache<string, KnownKey>({ max: maxKeys })
  /** Unknown ids and invalid digests, with the time of their look-up. Separate, so that they can't evict keys. */
  readonly #wrong = new LRUCache<string, number>({ max: maxKeys })
  /** Look-ups under way, by id, so that simultaneous requests cause one look-up. */
  readonly #underWay = new Map<string, Promise<KnownKey | null>>()
  /** Open requests that must learn of the end of their key, or of a change, by key id. */
  readonly #open = new Map<string, Set<OpenRequest>>()
  /** Look-ups of unknown keys in the current second. */
  #guesses = 0
  #secondBegan = -Infinity

  /** @param keys from the environment */
  constructor (keys: readonly ApiKey[], { keyRecords, subscriptions }: KeyStore, output: LogOutput) {
    for (const { secret, caller } of keys) {
      const digested = digest(secret)
      this.#fixed.set(digested, new KeyGrant(this, { id: null, digested, caller, ends: Infinity }))
    }
    this.#records = keyRecords
    this.limits = new LimitTable(keyRecords.limits)
    this.blocks = new BlockTable(keyRecords.blocks)
    this.log = new KeyLog(keyRecords, subscriptions, [this.limits, this.blocks], output)
    this.log.follow(this)
  }

  /** The number of keys from the environment. */
  get count (): number {
    return this.#fixed.size
  }

  /** Who has a key of this tenant from the environment; and Redis's clock, as far as known (ms). */
  fixedOf (tenant: string): { callers: Caller[], now: number } {
    const callers = [...this.#fixed.values()].map(({ caller }) => caller)
    return { callers: callers.filter(one => one.tenant === tenant), now: this.log.timeAt(performance.now()) }
  }

  /** Follows changes of keys in Redis, until `stop`. */
  start (): void {
    this.log.start()
  }

  stop (): void {
    this.log.stop()
  }

  /** The grant of a key, if known without asking Redis, which is enough for most requests. */
  recall (secret: string): Grant | undefined {
    return this.#seen.get(secret) ?? this.#recallStored(secret) ?? this.#recognise(secret)
  }

  #recallStored (secret: string): Grant | undefined {
    const key = this.#known.get(placeOfId(secret))
    const grant = key?.grants.get(secret)
    if (key === undefined || grant === undefined) return undefined
    const now = performance.now()
    if (!this.#isTrue(key, now) || this.log.timeAt(now) >= grant.ends) return undefined
    this.counts.hits++
    return grant
  }

  /** A key from the environment that is used for the first time. */
  #recognise (secret: string): Grant | undefined {
    const grant = this.#fixed.get(digest(secret))
    if (grant !== undefined) this.#seen.set(secret, grant)
    return grant
  }

  /**
   * The grant of a key that `recall` has just not found. A key that was valid and only needs a new look-up is still
   * accepted from an address with too many wrong keys, because behind a load balancer all clients may share one
   * address (unless TRUSTED_PROXIES is set).
   * @returns undefined for an unknown key
   * @throws {Problem} rate_limited
   * @throws {Unavailable} Redis doesn't answer, or too many unknown keys are looked up
   */
  async find (secret: string, from: Guesses): Promise<Grant | undefined> {
    if (this.#known.peek(placeOfId(secret))?.grants.has(secret) !== true) await this.refuseGuessing(from)
    const id = idOfSecret(secret)
    const digested = id === null ? '' : digest(secret)
    const key = await this.#look(id, digested)
    if (key === undefined) {
      await from.count()
      return undefined
    }
    const grant = key.grants.get(secret) ?? this.#grantOf(key, digested)
    key.grants.set(secret, grant)
    return grant
  }

  /** @throws {Problem} rate_limited: too many wrong keys came from there */
  async refuseGuessing (from: Guesses): Promise<void> {
    const seconds = await from.blockedFor()
    if (seconds === 0) return
    this.counts.throttled++
    throw new Problem('rate_limited', {
      detail: 'Too many wrong keys came from this address; wait for the seconds in Retry-After, and check the key.',
      headers: {
        'retry-after': String(seconds),
        ratelimit: `"failed-authentication";r=0;t=${seconds}`,
        'ratelimit-policy': `"failed-authentication";q=${guesses.limit};w=${guesses.window / 1000}`,
      },
    })
  }

  /** A text in place of a secret, where the secret itself must not be, such as in Redis. */
  mark (secret: string): string {
    const digested = digest(secret)
    return sessionMark(this.#fixed.has(digested) ? null : idOfSecret(secret), digested)
  }

  /** The grant of the secret with this mark, as long as it is valid. @throws {Unavailable} */
  async findByMark (mark: string): Promise<Grant | undefined> {
    const fixed = this.#fixed.get(mark)
    if (fixed !== undefined) return fixed
    const [id = '', digested = ''] = mark.split('.')
    const key = await this.#look(isKeyId(id) ? id : null, digested)
    return key && this.#grantOf(key, digested)
  }

  /** The key of a grant, as it is now; undefined if it has ended. @throws {Unavailable} */
  check (granted: Granted): { caller: Caller } | undefined | Promise<{ caller: Caller } | undefined> {
    return granted.id === null ? granted : this.#look(granted.id, granted.digested)
  }

  /**
   * Notifies a listener when the secret of a grant is no longer valid (revoked, rotated or expired), and when its key
   * may do something else. Keys from the environment never change. Listeners are notified in the tick in which this
   * replica learns of the change, so no request acts on a key that is known here to have ended. Check the key after
   * this call: from then on no change is missed, as long as Redis answers.
   * @param refusal the answer to send at the end
   * @returns a function that stops it
   */
  onEnd ({ id, digested }: Granted, listener: GrantListener, refusal: () => Error): () => void {
    if (id === null) return () => {}
    const open = this.#open.get(id) ?? new Set()
    const request = { digested, listener, refusal }
    this.#open.set(id, open.add(request))
    return () => {
      open.delete(request)
      if (open.size === 0 && this.#open.get(id) === open) this.#open.delete(id)
    }
  }

  /** The log says that this key has changed; without an id, that any key may have. */
  forget (id?: string): void {
    if (id === undefined) {
      for (const key of this.#known.values()) key.isStale = true
      this.#wrong.clear()
      this.#underWay.clear()
      return
    }
    const key = this.#known.peek(id)
    if (key !== undefined) key.isStale = true
    this.#wrong.delete(id)
    // A look-up under way may have read the old state: it answers its current callers, and isn't cached.
    this.#underWay.delete(id)
  }

  /**
   * The log was read to its end. Looks up the keys of open requests that the cache no longer confirms: they have
   * changed, or their time is over. A slow read of the log alone is no reason: it had no change.
   */
  caughtUp (): void {
    const time = this.log.timeAt(performance.now())
    for (const [id, open] of this.#open) {
      const key = this.#known.get(id)
      for (const { digested } of open) {
        if (key?.isStale === false && (key.endOf(digested) ?? 0) > time) continue
        // If Redis can't answer now, the next read of the log repeats this.
        this.#lookUp(id, true).catch(() => {})
        break
      }
    }
  }

  #grantOf (key: KnownKey, digested: string): KeyGrant {
    const { caller, lookup: { record: { id } } } = key
    return new KeyGrant(this, { id, digested, caller, ends: key.endOf(digested) as number })
  }

  /** @param id null for a secret that can't be one of the keys from Redis */
  #look (id: string | null, digested: string): KnownKey | undefined | Promise<KnownKey | undefined> {
    if (id === null) return this.#refuse()
    const now = performance.now()
    const key = this.#known.get(id)
    if (key !== undefined && this.#isTrue(key, now)) {
      const end = key.endOf(digested)
      // Ended by the look-up's own clock, it has ended for good. By the estimated clock, which may be ahead, Redis has
      // to confirm it.
      if (end !== undefined && (key.lookup.now >= end || this.log.timeAt(now) < end)) return this.#judge(key, digested)
      if (key.lookup.record.revokedAt !== null) return this.#refuse()
    }
    const wrongSince = this.#wrongSince(id, digested, key)
    if (wrongSince !== undefined && this.log.isRecent(wrongSince, now)) return this.#refuse()
    const isRight = key?.endOf(digested) !== undefined
    // A look-up under way may have begun before the key got this secret: if it finds the secret invalid, look up once
    // more.
    const looking = this.#underWay.get(id)?.then(found =>
      found?.opens(digested) ? found : this.#lookUp(id, isRight)) ?? this.#lookUp(id, isRight)
    return looking.then(found => this.#judge(found, digested))
  }

  /**
   * When the look-up began that found this secret invalid; undefined if there is none. A rotation may just have made
   * the secret valid, so an invalid digest counts only as long as its key hasn't changed.
   */
  #wrongSince (id: string, digested: string, key: KnownKey | undefined): number | undefined {
    const unknownSince = this.#wrong.get(id)
    if (unknownSince !== undefined) return unknownSince
    const since = this.#wrong.get(digested)
    return since !== undefined && key?.isStale === false && since >= key.unchangedSince ? since : undefined
  }

  /** Accepts or refuses by a look-up that is true now. */
  #judge (key: KnownKey | null, digested: string): KnownKey | undefined {
    if (key?.opens(digested) === true) return key
    if (key !== null) this.#wrong.set(digested, key.begun)
    return this.#refuse()
  }

  #refuse (): undefined {
    this.counts.refused++
  }

  /** @param isRight it was valid at the last look-up, so it doesn't count as a guess */
  #lookUp (id: string, isRight: boolean): Promise<KnownKey | null> {
    const underWay = this.#underWay.get(id)
    if (underWay !== undefined) return underWay
    const begun = performance.now()
    if (!isRight && !this.#mayGuess(begun)) {
      this.counts.shed++
      return Promise.reject(new Unavailable('too many unknown keys are asked for'))
    }
    this.counts.misses++
    const lookingUp = this.#records.lookUp(id).then(lookup => {
      if (lookup !== null) this.log.learnClock(lookup.now, begun)
      const before = this.#known.peek(id)
      const key = lookup === null ? null : new KnownKey(lookup, begun, before)
      if (this.#underWay.get(id) !== lookingUp) return key
      if (key === null) this.#wrong.set(id, begun)
      else this.#known.set(id, key)
      const open = this.#open.get(id)
      for (const request of open ?? []) {
        if (key?.opens(request.digested) !== true) {
          open!.delete(request)
          request.listener.ended(request.refusal())
        } else if (key.caller !== before?.caller) request.listener.changed()
      }
      if (open?.size === 0) this.#open.delete(id)
      return key
    }).finally(() => {
      if (this.#underWay.get(id) === lookingUp) this.#underWay.delete(id)
    })
    this.#underWay.set(id, lookingUp)
    return lookingUp
  }

  #mayGuess (now: number): boolean {
    if (now - this.#secondBegan >= 1000) {
      this.#secondBegan = now
      this.#guesses = 0
    }
    return this.#guesses++ < unknownPerSecond
  }

  #isTrue (key: KnownKey, now: number): boolean {
    return !key.isStale && this.log.isRecent(key.begun, now)
  }
}

/** Of which secret a grant is. @property id null for a key from the environment @property ends by Redis's clock */
interface Granted { id: string | null, digested: string, caller: Caller, ends: number }
/** An open request, with the digest of its secret, which may end before its key. */
interface OpenRequest { digested: string, listener: GrantListener, refusal: () => Error }

function sessionMark (id: string | null, digested: string): string {
  return id === null ? digested : `${id}.${digested}`
}

/** The grant of a key. The key was valid when the request arrived, so a later refusal doesn't count as a guess. */
class KeyGrant implements Grant {
  readonly #ring: KeyRing
  readonly #granted: Granted
  readonly #scope: NeededScope | undefined

  constructor (ring: KeyRing, granted: Granted, scope?: NeededScope) {
    this.#ring = ring
    this.#granted = granted
    this.#scope = scope
  }

  get caller (): Caller {
    return this.#granted.caller
  }

  get ends (): number {
    return this.#granted.ends
  }

  get mark (): string {
    return sessionMark(this.#granted.id, this.#granted.digested)
  }

  for (scope: NeededScope | undefined): Grant {
    return new KeyGrant(this.#ring, this.#granted, scope)
  }

  authorise (): Caller | Promise<Caller> {
    const found = this.#ring.check(this.#granted)
    return found instanceof Promise ? found.then(key => this.#admit(key)) : this.#admit(found)
  }

  async onEnd (listener: GrantListener, refusal = refusedKey): Promise<() => void> {
    return this.#ring.onEnd(this.#granted, listener, refusal)
  }

  #admit (key: { caller: Caller } | undefined): Caller {
    if (key === undefined) throw refusedKey()
    requireScope(key.caller, this.#scope)
    return key.caller
  }
}
