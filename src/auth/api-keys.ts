import type { ApiKey, Caller } from '../model.ts'
import { noCounts } from './key-counts.ts'
import type { KeyCounts } from './key-counts.ts'
import { digest } from '../store/key-secret.ts'
import type { StoredKeys } from './stored-keys.ts'

/**
 * All keys: those from the environment, which are here and stay, and those from Redis. The former are found by the SHA-256 of
 * their secrets. One look-up however many keys there are; and since it is the digest that is looked up, how long that takes
 * tells nothing of a secret that is near. Secrets that were right are remembered as they came, which spares a digest a request.
 * That tells nothing either: a guess is compared with one only where their hashes agree, and V8 seeds those anew for each process.
 */
export class ApiKeys {
  /** Of those from Redis. */
  readonly counts: KeyCounts
  readonly #byDigest = new Map<string, Caller>()
  /** Callers by secrets that were right: no more of them than there are keys. */
  readonly #seen = new Map<string, Caller>()
  readonly #stored: StoredKeys | undefined

  /** @param stored those from Redis, where there may be any */
  constructor (keys: readonly ApiKey[], stored?: StoredKeys) {
    for (const { secret, caller } of keys) this.#byDigest.set(digest(secret), caller)
    this.#stored = stored
    this.counts = stored?.counts ?? noCounts()
  }

  /** How many are from the environment. */
  get count (): number {
    return this.#byDigest.size
  }

  /** Whose key this is, where that is known without asking. */
  recall (secret: string): Caller | undefined {
    return this.#seen.get(secret) ?? this.#stored?.recall(secret) ?? this.#recognise(secret)
  }

  /** Was this right, and is to be looked up anew? Then nobody is guessing. */
  isFamiliar (secret: string): boolean {
    return this.#stored?.isFamiliar(secret) === true
  }

  /**
   * Whose key this is: at once where it is known, also that it is nobody's.
   * @throws {Unavailable} Redis doesn't tell; or too many that nobody knows are asked for
   */
  find (secret: string): Caller | undefined | Promise<Caller | undefined> {
    return this.recall(secret) ?? this.lookUp(secret)
  }

  /** As `find`, for one that `recall` has just not known: a flood of those pays for no digest twice. */
  lookUp (secret: string): Caller | undefined | Promise<Caller | undefined> {
    return this.#stored?.find(secret)
  }

  /** What stands for a key where its secret has no place, and leads to it as long as that secret opens it. */
  markOf (secret: string): string {
    const digested = digest(secret)
    return this.#byDigest.has(digested) ? digested : this.#stored?.markOf(secret) ?? digested
  }

  /** Whose key it was that has this mark, while it is one still. @throws {Unavailable} */
  findByMark (mark: string): Caller | undefined | Promise<Caller | undefined> {
    return this.#byDigest.get(mark) ?? this.#stored?.findByMark(mark)
  }

  /**
   * Calls `ended` when what has this mark opens its key no more: when that is revoked, rotated away or over. One from the
   * environment never ends. Look after it was called: from then on no end goes untold, for as long as Redis can say.
   * @returns what stops it
   */
  onEnd (mark: string, ended: () => void): () => void {
    return this.#stored?.onEnd(mark, ended) ?? (() => {})
  }

  /** Follows what becomes of keys in Redis, until `stop`. */
  start (): void {
    this.#stored?.start()
  }

  stop (): void {
    this.#stored?.stop()
  }

  /** One from the environment that comes for the first time. */
  #recognise (secret: string): Caller | undefined {
    const caller = this.#byDigest.get(digest(secret))
    if (caller !== undefined) this.#seen.set(secret, caller)
    return caller
  }
}
