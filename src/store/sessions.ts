import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import { digest } from './api-keys.ts'
import type { Keys } from './keys.ts'
import { callBudget, Unavailable } from './lane.ts'

/** How long a person stays signed in, in seconds. */
export const sessionLength = 8 * 3600

/** How long Redis is left alone before it is asked again, in milliseconds. */
const pause = 50

const secretShape = /^[A-Za-z0-9_-]{43}$/

/**
 * Who is signed in. Redis keeps a secret's digest alone, so who reads Redis has no session; and what it leads to is the digest
 * of the key that opened it, so a session is worth no more than that key is now.
 */
export class Sessions {
  readonly #redis: Redis
  readonly #keys: Keys
  readonly #tags: readonly string[]

  constructor (redis: Redis, keys: Keys, tags: readonly string[]) {
    this.#redis = redis
    this.#keys = keys
    this.#tags = tags
  }

  /** @param keyDigest of the key that was given @returns the session's secret: 256 bits, for its cookie @throws {Unavailable} */
  async open (keyDigest: string): Promise<string> {
    const secret = randomBytes(32).toString('base64url')
    await this.#ask(() => this.#redis.set(this.#keyOf(secret), keyDigest, 'EX', sessionLength))
    return secret
  }

  /** @returns the digest of the key that opened it; null where there is no such session @throws {Unavailable} */
  async find (secret: string): Promise<string | null> {
    if (!secretShape.test(secret)) return null
    return this.#ask(() => this.#redis.get(this.#keyOf(secret)))
  }

  /** From now on the secret is worth nothing. @throws {Unavailable} */
  async end (secret: string): Promise<void> {
    if (secretShape.test(secret)) await this.#ask(() => this.#redis.del(this.#keyOf(secret)))
  }

  #keyOf (secret: string): string {
    const its = digest(secret)
    const partition = Buffer.from(its, 'base64url').readUInt16LE(0) % this.#tags.length
    return this.#keys.session(this.#tags[partition] as string, its)
  }

  /**
   * For as long as a script call would be (store/lane.ts): while it connects, or is away for a moment, nobody need notice. Asking
   * twice is safe: each command leaves what it left the first time. Not by the lane itself, which is for scripts.
   */
  async #ask<T> (command: () => Promise<T>): Promise<T> {
    for (const end = performance.now() + callBudget; ; await sleep(pause)) {
      try {
        return await command()
      } catch (error) {
        if (performance.now() >= end) throw new Unavailable((error as Error).message)
      }
    }
  }
}
