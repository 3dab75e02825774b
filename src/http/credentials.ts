import rateLimit from '@fastify/rate-limit'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { Problem } from '../errors.ts'
import type { Grant } from '../handoff/grant.ts'
import type { Caller, Scope } from '../handoff/handoff.ts'
import type { ApiKeys } from '../store/api-keys.ts'
import { keyGrant } from './key-grant.ts'

/** Wrong keys that an address may send in a window; and the window in milliseconds, from the first of them on. */
const failures = 60
const window = 60_000
/** Addresses that are remembered for it, those that failed last. */
const addresses = 10_000

/** @returns where an address's failures stand: counts one where `increment` isn't false */
type Attempts = ReturnType<FastifyInstance['createRateLimit']>

/**
 * Keys as they are sent, against guessing: an address that sent too many wrong ones is asked to wait. A key that is known to be
 * good is let in from there all the same, since behind a balancer all may have one address (TRUSTED_PROXIES tells them apart).
 */
export class Credentials {
  readonly #keys: ApiKeys
  readonly #attempts: Attempts

  constructor (keys: ApiKeys, attempts: Attempts) {
    this.#keys = keys
    this.#attempts = attempts
  }

  /** Whose key this is, where that is known without asking: most requests get no further. */
  recall (secret: string): Caller | undefined {
    return this.#keys.recall(secret)
  }

  /**
   * Whose key this is.
   * @returns undefined where it is nobody's
   * @throws {Problem} rate_limited
   * @throws {Unavailable}
   */
  async find (secret: string, request: FastifyRequest): Promise<Caller | undefined> {
    return this.#keys.recall(secret) ?? await this.lookUp(secret, request)
  }

  /** As `find`, for one that `recall` has just not known. */
  async lookUp (secret: string, request: FastifyRequest): Promise<Caller | undefined> {
    if (!this.#keys.isFamiliar(secret)) await this.#refuseGuessing(request)
    const found = await this.#keys.lookUp(secret)
    if (found === undefined) await this.#attempts(request)
    return found
  }

  /** What a key that was let in lets stay open. @param scope that it must have */
  grant (secret: string, scope: Scope | undefined): Grant {
    return keyGrant(this.#keys, secret, scope)
  }

  async #refuseGuessing (request: FastifyRequest): Promise<void> {
    const standing = await this.#attempts(request, { increment: false })
    if (standing.isAllowed || standing.remaining > 0) return
    this.#keys.counts.throttled++
    throw new Problem('rate_limited', {
      detail: 'Too many wrong keys from this address; wait as long as Retry-After says, and check the key.',
      headers: {
        'retry-after': String(standing.ttlInSeconds),
        ratelimit: `"failed-authentication";r=0;t=${standing.ttlInSeconds}`,
        'ratelimit-policy': `"failed-authentication";q=${failures};w=${window / 1000}`,
      },
    })
  }
}

/** @param app in whose requests keys are sent */
export async function useCredentials (app: FastifyInstance, keys: ApiKeys): Promise<Credentials> {
  let attempts: Attempts
  // In a scope that has no routes: in any that has, the plugin would put something of its own on every request.
  await app.register(async apart => {
    await apart.register(rateLimit, { global: false, max: failures, timeWindow: window, cache: addresses })
    attempts = apart.createRateLimit()
  })
  return new Credentials(keys, attempts!)
}
