import { Problem } from '../core/errors.ts'
import type { Caller, NeededScope } from '../core/model.ts'

/**
 * The right by which a request is served: a valid key or token, or a session that was opened with a key. It may end
 * while the request is open, so each step of an open request is authorised again.
 */
export interface Grant {
  /** The caller, as the key was when it was found. */
  readonly caller: Caller
  /** A text in place of the key, where the key itself must not be. */
  readonly mark: string
  /** When the key or token expires (ms since the epoch); Infinity for never. */
  readonly ends: number
  /** The same grant, for steps that need a scope. */
  for (scope: NeededScope | undefined): Grant
  /**
   * Checks that it is still valid. Call it right before each step. Usually the cache answers at once.
   * @returns the caller, as the key is now: it may do less than when the request came
   * @throws {Error} the answer to send: it has ended, or Redis can't answer
   */
  authorise (): Caller | Promise<Caller>
  /**
   * Events before this has resolved show in `authorise`.
   * @param refusal the answer to send at the end, if it isn't that of a key or token
   * @returns a function that stops it
   */
  onEnd (listener: GrantListener, refusal?: () => Error): Promise<() => void>
}

export interface GrantListener {
  /** Called with the answer to send, once it is known to have ended: for a key within 2 s, as long as Redis answers. */
  ended (why: Error): void
  /** Called when the key may do something else, which `authorise` knows. */
  changed (): void
}

/** The challenge for an invalid key (RFC 6750, 3). */
export const invalidToken = 'Bearer error="invalid_token"'

/** The answer to a key that isn't valid, or no longer. */
export function refusedKey (): Problem {
  return new Problem('unauthorized', { headers: { 'www-authenticate': invalidToken } })
}
