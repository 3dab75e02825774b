import { randomBytes } from 'node:crypto'
import { digest } from './api-keys.ts'
import { randomToken, tagIn } from '../core/ids.ts'
import { tagByDigest } from './partitions.ts'
import type { KeyNames } from './key-names.ts'
import type { Leases } from './leases.ts'
import type { Lanes } from '../redis/lanes.ts'
import type { Subscriptions } from '../redis/subscriptions.ts'
import { tagged } from './replies.ts'
import type { Scripts } from '../redis/scripts.ts'

const secretShape = /^[A-Za-z0-9_-]{43}$/

/**
 * The sessions of people. Redis keeps only a digest of a session's secret, so a reader of Redis gets no session. Beside
 * it is the mark of the key or the person that opened the session (auth/grant.ts): a session is worth no more than
 * that is now.
 */
export class Sessions {
  readonly #lanes: Lanes
  readonly #scripts: Scripts
  readonly #keyNames: KeyNames
  readonly #tags: readonly string[]
  readonly #subscriptions: Subscriptions
  readonly #leases: Leases

  constructor (
    lanes: Lanes, scripts: Scripts, keyNames: KeyNames, tags: readonly string[], subscriptions: Subscriptions,
    leases: Leases
  ) {
    this.#lanes = lanes
    this.#scripts = scripts
    this.#keyNames = keyNames
    this.#tags = tags
    this.#subscriptions = subscriptions
    this.#leases = leases
  }

  /**
   * @param mark of the key or the person
   * @param length for how long the person stays signed in, in seconds
   * @returns the session's secret: 256 bits, for its cookie
   * @throws {Unavailable}
   */
  async open (mark: string, length: number): Promise<string> {
    const secret = randomBytes(32).toString('base64url')
    await this.#run('set', secret, [mark, String(length * 1000)])
    return secret
  }

  /** @returns the mark of what opened the session; null if there is no such session @throws {Unavailable} */
  async find (secret: string): Promise<string | null> {
    if (!secretShape.test(secret)) return null
    const [, mark] = await this.#run('get', secret)
    return mark === undefined ? null : String(mark)
  }

  /** A text that may be used once in this time (ms). @returns whether this is its first use @throws {Unavailable} */
  async useOnce (text: string, within: number): Promise<boolean> {
    // With a word in front, it is no session's secret.
    return await this.#leases.take(this.#keyOf(`once ${text}`), within, randomToken())
  }

  /** Ends the session of this secret. @throws {Unavailable} */
  async end (secret: string): Promise<void> {
    if (!secretShape.test(secret)) return
    await this.#run('delete', secret, ['', 'ended'])
  }

  /**
   * Calls `ended` when the session is signed out, on whichever replica. Check the session after this has resolved: only
   * later ends are reported.
   * @returns the function that stops it
   */
  async onEnd (secret: string, ended: () => void): Promise<() => void> {
    return await this.#subscriptions.listen(this.#keyOf(secret), () => {
      // This is also called after a new subscription, so check first. If Redis can't answer now, the session is checked
      // again at the next message.
      this.find(secret).then(mark => { if (mark === null) ended() }, () => {})
    })
  }

  #run (name: 'set' | 'get' | 'delete', secret: string, texts: string[] = []) {
    const key = this.#keyOf(secret)
    return this.#lanes.call({ script: this.#scripts[name], tag: tagIn(key), keys: [key], texts, decode: tagged })
  }

  #keyOf (secret: string): string {
    const its = digest(secret)
    return this.#keyNames.session(tagByDigest(its, this.#tags), its)
  }
}
