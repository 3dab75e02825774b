import { Problem } from '../errors.ts'
import type { Caller, Scope } from '../model.ts'
import type { ApiKeys } from './api-keys.ts'
import type { Grant } from './grant.ts'
import { keyGrant } from './key-grant.ts'

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
 * Checks keys and limits guessing: an address that sent too many wrong keys has to wait. A key that is known to be valid is still
 * accepted from there, because behind a load balancer all clients may share one address (unless TRUSTED_PROXIES is set).
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
  grant (secret: string, scope: Scope | undefined): Grant {
    return keyGrant(this.#keys, secret, scope)
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
