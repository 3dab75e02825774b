import type { ApiKey, Caller } from '../model.ts'
import { noCounts } from './key-counts.ts'
import type { KeyCounts } from './key-counts.ts'
import { digest } from '../store/key-secret.ts'
import type { StoredKeys } from './stored-keys.ts'

/**
 * All keys: those from the environment, which never change, and those from Redis. The former are found by the SHA-256 of their
 * secrets, with one look-up however many keys there are. Because the digest is looked up, its duration tells nothing about similar
 * secrets. Valid secrets are also cached as sent, which saves a digest per request. That is safe too: a guess is only compared with a
 * secret if their hashes in the map agree, and V8 seeds these hashes for each process.
 */
export class ApiKeys {
  /** Counts of the keys from Redis. */
  readonly counts: KeyCounts
  readonly #byDigest = new Map<string, Caller>()
  /** Callers by valid secret: at most as many as there are keys. */
  readonly #seen = new Map<string, Caller>()
  readonly #stored: StoredKeys | undefined

  /** @param stored the keys from Redis, if there may be any */
  constructor (keys: readonly ApiKey[], stored?: StoredKeys) {
    for (const { secret, caller } of keys) this.#byDigest.set(digest(secret), caller)
    this.#stored = stored
    this.counts = stored?.counts ?? noCounts()
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
   * Calls `ended` when the secret with this mark is no longer valid: revoked, rotated or expired. Keys from the environment never end.
   * Check the key after calling this: from then on no end is missed, as long as Redis answers.
   * @returns a function that stops it
   */
  onEnd (mark: string, ended: () => void): () => void {
    return this.#stored?.onEnd(mark, ended) ?? (() => {})
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
