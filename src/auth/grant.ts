/**
 * The key or session that authorises an open request (one that waits, a stream). It may end meanwhile, so each step of the request is
 * authorised again.
 */
export interface Grant {
  /**
   * Checks that it is still valid. Call it right before each step. Usually the cache answers at once.
   * @throws {Error} the answer to send: it has ended, or Redis can't tell
   */
  authorise (): void | Promise<void>
  /**
   * Calls `ended` with the answer to send, once it is known to have ended: for a key within 2 s, as long as Redis answers. An end before
   * this has resolved shows in `authorise`.
   * @returns a function that stops it
   */
  onEnd (ended: (why: Error) => void): Promise<() => void>
}
