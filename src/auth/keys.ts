import { Problem } from '../core/errors.ts'
import type { ApiKey, Caller, NeededScope } from '../core/model.ts'
import { digest } from '../store/api-keys.ts'
import type { KeyListener } from './key-cache.ts'
import { LimitTable } from './limit-table.ts'
import { requireScope } from './scopes.ts'
import { noCounts } from './stored-keys.ts'
import type { KeyCounts, StoredKeys } from './stored-keys.ts'

/**
 * All keys: those from the environment, which never change, and those from Redis. The former are found by the SHA-256
 * of their secrets, with one look-up however many keys there are. Because the digest is looked up, its duration tells
 * nothing about similar secrets. Valid secrets are also cached as sent, which saves a digest per request. That is safe
 * too: a guess is only compared with a secret if their hashes in the map agree, and V8 seeds these hashes for each
 * process.
 */
export class ApiKeys {
  /** Counts of the keys from Redis. */
  readonly counts: KeyCounts
  /** The limits that operators set, whatever keys their agents use. */
  readonly limits: LimitTable
  readonly #byDigest = new Map<string, Caller>()
  /** Callers by valid secret: at most as many as there are keys. */
  readonly #seen = new Map<string, Caller>()
  readonly #stored: StoredKeys | undefined

  /** @param stored the keys from Redis, if there may be any */
  constructor (keys: readonly ApiKey[], stored?: StoredKeys) {
    for (const { secret, caller } of keys) this.#byDigest.set(digest(secret), caller)
    this.#stored = stored
    this.counts = stored?.counts ?? noCounts()
    this.limits = stored?.limits ?? new LimitTable(undefined)
  }

  /** The number of keys from the environment. */
  get count (): number {
    return this.#byDigest.size
  }

  /** The key's caller, if known without asking Redis. */
  recall (secret: string): Caller | undefined {
    return this.#seen.get(secret) ?? this.#stored?.recall(secret) ?? this.#recognise(secret)
  }

  /** Whether the secret was valid and only needs a new look-up: then it is no guess. */
  isFamiliar (secret: string): boolean {
    return this.#stored?.isFamiliar(secret) === true
  }

  /**
   * The key's caller, or undefined for an unknown key; at once if cached.
   * @throws {Unavailable} Redis doesn't answer, or too many unknown keys are looked up
   */
  find (secret: string): Caller | undefined | Promise<Caller | undefined> {
    return this.recall(secret) ?? this.lookUp(secret)
  }

  /** Like `find`, for a key that `recall` has just not found: saves a second digest in a flood of them. */
  lookUp (secret: string): Caller | undefined | Promise<Caller | undefined> {
    return this.#stored?.find(secret)
  }

  /** A stand-in for a secret, which finds the key as long as the secret is valid. */
  markOf (secret: string): string {
    const digested = digest(secret)
    return this.#byDigest.has(digested) ? digested : this.#stored?.markOf(secret) ?? digested
  }

  /** The caller of the key with this mark, as long as it is valid. @throws {Unavailable} */
  findByMark (mark: string): Caller | undefined | Promise<Caller | undefined> {
    return this.#byDigest.get(mark) ?? this.#stored?.findByMark(mark)
  }

  /**
   * Calls `ended` when the secret with this mark is no longer valid (revoked, rotated or expired), and `changed` when
   * its key may do something else. Keys from the environment never do either. Check the key after calling this: from
   * then on nothing is missed, as long as Redis answers.
   * @returns a function that stops it
   */
  onEnd (mark: string, listener: KeyListener): () => void {
    return this.#stored?.onEnd(mark, listener) ?? (() => {})
  }

  /** Follows changes of keys in Redis, until `stop`. */
  start (): void {
    this.#stored?.start()
  }

  stop (): void {
    this.#stored?.stop()
  }

  /** A key from the environment that is used for the first time. */
  #recognise (secret: string): Caller | undefined {
    const caller = this.#byDigest.get(digest(secret))
    if (caller !== undefined) this.#seen.set(secret, caller)
    return caller
  }
}

/** How many wrong keys an address may send in a window, and the window in milliseconds, from the first wrong key on. */
export const guesses = { limit: 60, window: 60_000 } as const

/** The wrong keys from a request's address. The HTTP layer counts them. */
export interface Guesses {
  /** Seconds until the address may try again; 0 if it may now. */
  blockedFor (): Promise<number>
  /** Counts one more wrong key. */
  count (): Promise<unknown>
}

/**
 * Checks keys and limits guessing: an address that sent too many wrong keys has to wait. A key that is known to be
 * valid is still accepted from there, because behind a load balancer all clients may share one address (unless
 * TRUSTED_PROXIES is set).
 */
export class Credentials {
  readonly #keys: ApiKeys

  constructor (keys: ApiKeys) {
    this.#keys = keys
  }

  /** The key's caller, if known without asking Redis, which is enough for most requests. */
  recall (secret: string): Caller | undefined {
    return this.#keys.recall(secret)
  }

  /**
   * The key's caller.
   * @returns undefined for an unknown key
   * @throws {Problem} rate_limited
   * @throws {Unavailable}
   */
  async find (secret: string, from: Guesses): Promise<Caller | undefined> {
    return this.#keys.recall(secret) ?? await this.lookUp(secret, from)
  }

  /** Like `find`, for a key that `recall` has just not found. */
  async lookUp (secret: string, from: Guesses): Promise<Caller | undefined> {
    if (!this.#keys.isFamiliar(secret)) await this.#refuseGuessing(from)
    const found = await this.#keys.lookUp(secret)
    if (found === undefined) await from.count()
    return found
  }

  /** The grant of an accepted key. @param scope that it must have */
  grant (secret: string, scope: NeededScope | undefined): Grant {
    return new KeyGrant(this.#keys, this.#keys.markOf(secret), scope)
  }

  async #refuseGuessing (from: Guesses): Promise<void> {
    const seconds = await from.blockedFor()
    if (seconds === 0) return
    this.#keys.counts.throttled++
    throw new Problem('rate_limited', {
      detail: 'Too many wrong keys came from this address; wait for the seconds in Retry-After, and check the key.',
      headers: {
        'retry-after': String(seconds),
        ratelimit: `"failed-authentication";r=0;t=${seconds}`,
        'ratelimit-policy': `"failed-authentication";q=${guesses.limit};w=${guesses.window / 1000}`,
      },
    })
  }
}

/**
 * The key or session that authorises an open request (one that waits, a stream). It may end meanwhile, so each step of
 * the request is authorised again.
 */
export interface Grant {
  /**
   * Checks that it is still valid. Call it right before each step. Usually the cache answers at once.
   * @returns the caller, as its key is now: it may do less than when the request came
   * @throws {Error} the answer to send: it has ended, or Redis can't answer
   */
  authorise (): Caller | Promise<Caller>
  /** What happens before this has resolved shows in `authorise`. @returns a function that stops it */
  onEnd (listener: GrantListener): Promise<() => void>
}

export interface GrantListener {
  /** Called with the answer to send, once it is known to have ended: for a key within 2 s, as long as Redis answers. */
  ended (why: Error): void
  /** Called when the key may do something else, which `authorise` knows. */
  changed (): void
}

/** The challenge for an invalid key (RFC 6750, 3). */
export const invalidToken = 'Bearer error="invalid_token"'

/** The grant of a key. It was valid when the request arrived, so a later refusal doesn't count as a guess. */
class KeyGrant implements Grant {
  readonly #keys: ApiKeys
  readonly #mark: string
  readonly #scope: NeededScope | undefined

  constructor (keys: ApiKeys, mark: string, scope: NeededScope | undefined) {
    this.#keys = keys
    this.#mark = mark
    this.#scope = scope
  }

  authorise (): Caller | Promise<Caller> {
    const found = this.#keys.findByMark(this.#mark)
    return found instanceof Promise ? found.then(caller => this.#admit(caller)) : this.#admit(found)
  }

  async onEnd (listener: GrantListener): Promise<() => void> {
    const ended = () => listener.ended(refusedKey())
    return this.#keys.onEnd(this.#mark, { ended, changed: () => listener.changed() })
  }

  #admit (caller: Caller | undefined): Caller {
    if (caller === undefined) throw refusedKey()
    requireScope(caller, this.#scope)
    return caller
  }
}

function refusedKey (): Problem {
  return new Problem('unauthorized', { headers: { 'www-authenticate': invalidToken } })
}
