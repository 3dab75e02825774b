import type { Grant } from './grant.ts'
import type { Guesses, KeyRing } from './key-ring.ts'
import { isPerson } from './sign-in-issuers.ts'
import type { SignInIssuers } from './sign-in-issuers.ts'
import { BadToken, looksLikeToken } from './token-check.ts'
import type { TokenPlace } from './token-check.ts'
import { RefusedToken } from './token-ring.ts'
import type { TokenRing } from './token-ring.ts'

/** One way in for keys and tokens. What is no key from the environment and looks like a token is one. */
export class Credentials {
  readonly #keys: KeyRing
  readonly #tokens: TokenRing | null
  readonly #signIns: SignInIssuers | null

  /** @param tokens null where the service takes none @param signIns null where no issuer signs people in */
  constructor (keys: KeyRing, tokens: TokenRing | null, signIns: SignInIssuers | null) {
    this.#keys = keys
    this.#tokens = tokens
    this.#signIns = signIns
  }

  /** The grant of a key or token, if it is known without asking anybody, which is enough for most requests. */
  recall (secret: string, place: TokenPlace): Grant | undefined {
    return this.#tokens?.recall(secret, place) ?? this.#keys.recall(secret)
  }

  /** The grant of what opened a session, a key or a person, as long as it is valid. @throws {Unavailable} */
  async findByMark (mark: string): Promise<Grant | undefined> {
    return isPerson(mark) ? await this.#signIns?.find(mark) : await this.#keys.findByMark(mark)
  }

  /**
   * The grant of one that `recall` has just not found.
   * @returns undefined for an unknown key
   * @throws {Problem} unauthorized for a token, and why; rate_limited
   * @throws {Unavailable} Redis or an issuer doesn't answer, or too many are looked up
   */
  async find (secret: string, from: Guesses, place: TokenPlace): Promise<Grant | undefined> {
    if (this.#tokens === null || !looksLikeToken(secret)) return await this.#keys.find(secret, from)
    const isKnown = this.#tokens.isKnown(secret)
    if (!isKnown) await this.#keys.refuseGuessing(from)
    try {
      return await this.#tokens.find(secret, place)
    } catch (error) {
      if (!(error instanceof BadToken)) throw error
      // Its issuer did sign a known one, with a key that has gone since.
      if (!isKnown) await from.count()
      throw new RefusedToken(error.why)
    }
  }
}
