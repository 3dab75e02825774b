import { randomBytes } from 'node:crypto'
import { digest } from './api-keys.ts'
import { tagIn } from '../core/ids.ts'
import { tagByDigest } from './key-names.ts'
import type { KeyNames } from './key-names.ts'
import type { Lanes } from '../redis/lanes.ts'
import type { Subscriptions } from '../redis/subscriptions.ts'
import { tagged } from './replies.ts'
import type { Scripts } from '../redis/scripts.ts'

/** How long a person stays signed in, in seconds. */
export const sessionLength = 8 * 3600

const secretShape = /^[A-Za-z0-9_-]{43}$/

/**
 * The sessions of people. Redis keeps only a digest of a session's secret, so a reader of Redis gets no session. Beside
 * it is the mark of the key that opened the session (auth/grant.ts): a session is worth no more than that key is now.
 */
export class Sessions {
  readonly #lanes: Lanes
  readonly #scripts: Scripts
  readonly #keyNames: KeyNames
  readonly #tags: readonly string[]
  readonly #subscriptions: Subscriptions

  constructor (
    lanes: Lanes, scripts: Scripts, keyNames: KeyNames, tags: readonly string[], subscriptions: Subscriptions
  ) {
    this.#lanes = lanes
    this.#scripts = scripts
    this.#keyNames = keyNames
    this.#tags = tags
    this.#subscriptions = subscriptions
  }

  /**
   * @param mark of the key that was used to sign in
   * @returns the session's secret: 256 bits, for its cookie
   * @throws {Unavailable}
   */
  async open (mark: string): Promise<string> {
    const secret = randomBytes(32).toString('base64url')
    await this.#run('set', secret, [mark, String(sessionLength * 1000)])
    return secret
  }

  /** @returns the mark of the key that opened the session; null if there is no such session @throws {Unavailable} */
  async find (secret: string): Promise<string | null> {
    if (!secretShape.test(secret)) return null
    const [, mark] = await this.#run('get', secret)
    return mark === undefined ? null : String(mark)
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
