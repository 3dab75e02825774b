import { Problem } from '../errors.ts'
import type { Caller, Scope } from '../model.ts'
import type { ApiKeys } from './api-keys.ts'
import type { Grant } from './grant.ts'
import { keyGrant } from './key-grant.ts'

/** How many wrong keys an address may send in a window, and the window in milliseconds, from the first of them on. */
export const guesses = { limit: 60, window: 60_000 } as const

/** The wrong keys that came from where a request comes from. Whoever takes requests counts them, by address. */
export interface Guesses {
  /** Seconds until more may come from there; 0 where they may now. */
  blockedFor (): Promise<number>
  /** One more was wrong. */
  count (): Promise<unknown>
}

/**
 * Keys as they are sent, protected against guessing: an address that sent too many wrong ones has to wait. A key that is known to be
 * good is let in from there all the same, since behind a load balancer all may have one address (TRUSTED_PROXIES tells them apart).
 */
export class Credentials {
  readonly #keys: ApiKeys

  constructor (keys: ApiKeys) {
    this.#keys = keys
  }

  /** Whose key this is, where that is known without asking Redis: most requests get no further. */
  recall (secret: string): Caller | undefined {
    return this.#keys.recall(secret)
  }

  /**
   * Whose key this is.
   * @returns undefined where it is nobody's
   * @throws {Problem} rate_limited
   * @throws {Unavailable}
   */
  async find (secret: string, from: Guesses): Promise<Caller | undefined> {
    return this.#keys.recall(secret) ?? await this.lookUp(secret, from)
  }

  /** As `find`, for one that `recall` has just not known. */
  async lookUp (secret: string, from: Guesses): Promise<Caller | undefined> {
    if (!this.#keys.isFamiliar(secret)) await this.#refuseGuessing(from)
    const found = await this.#keys.lookUp(secret)
    if (found === undefined) await from.count()
    return found
  }

  /** What a key that was let in lets stay open. @param scope that it must have */
  grant (secret: string, scope: Scope | undefined): Grant {
    return keyGrant(this.#keys, secret, scope)
  }

  async #refuseGuessing (from: Guesses): Promise<void> {
    const seconds = await from.blockedFor()
    if (seconds === 0) return
    this.#keys.counts.throttled++
    throw new Problem('rate_limited', {
      detail: 'Too many wrong keys came from this address; wait as long as Retry-After says, and check the key.',
      headers: {
        'retry-after': String(seconds),
        ratelimit: `"failed-authentication";r=0;t=${seconds}`,
        'ratelimit-policy': `"failed-authentication";q=${guesses.limit};w=${guesses.window / 1000}`,
      },
    })
  }
}
