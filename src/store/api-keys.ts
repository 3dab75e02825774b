import { hash } from 'node:crypto'
import type { ApiKey, Caller } from '../handoff/handoff.ts'

/**
 * The keys by the SHA-256 of their secrets. One look-up however many keys there are; and since it is the digest that is looked
 * up, how long that takes tells nothing of a secret that is near.
 */
export class ApiKeys {
  readonly #byDigest = new Map<string, Caller>()

  constructor (keys: readonly ApiKey[]) {
    for (const { secret, caller } of keys) this.#byDigest.set(digest(secret), caller)
  }

  get count (): number {
    return this.#byDigest.size
  }

  find (secret: string): Caller | undefined {
    return this.findByDigest(digest(secret))
  }

  /** Whose key it was that had this digest, while it is one still. */
  findByDigest (digest: string): Caller | undefined {
    return this.#byDigest.get(digest)
  }
}

/** What stands for a secret where the secret itself has no place. */
export function digest (secret: string): string {
  return hash('sha256', secret, 'base64url')
}
