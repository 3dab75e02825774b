import type { ApiKey, Caller } from '../handoff/handoff.ts'
import { digest } from './key-secret.ts'

/**
 * The keys by the SHA-256 of their secrets. One look-up however many keys there are; and since it is the digest that is looked
 * up, how long that takes tells nothing of a secret that is near. Secrets that were right are remembered as they came, which
 * spares a digest a request. That tells nothing either: a guess is compared with one only where their hashes agree, and V8
 * seeds those anew for each process.
 */
export class ApiKeys {
  readonly #byDigest = new Map<string, Caller>()
  /** The digests of secrets that were right: no more of them than there are keys. */
  readonly #seen = new Map<string, string>()

  constructor (keys: readonly ApiKey[]) {
    for (const { secret, caller } of keys) this.#byDigest.set(digest(secret), caller)
  }

  get count (): number {
    return this.#byDigest.size
  }

  find (secret: string): Caller | undefined {
    const seen = this.#seen.get(secret)
    if (seen !== undefined) return this.findByDigest(seen)
    const digested = digest(secret)
    const caller = this.findByDigest(digested)
    if (caller !== undefined) this.#seen.set(secret, digested)
    return caller
  }

  /** Whose key it was that had this digest, while it is one still. */
  findByDigest (digest: string): Caller | undefined {
    return this.#byDigest.get(digest)
  }
}
