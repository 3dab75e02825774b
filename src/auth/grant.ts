/**
 * What somebody was let in by, for as long as what they opened lasts: a key, or a person's session. It may end meanwhile. Whatever
 * stays open (a request that waits, a stream) has one, and takes no step by it that wasn't authorised anew.
 */
export interface Grant {
  /**
   * Is it good still? Ask straight before each step. Where memory says so it is nothing to wait for.
   * @throws {Error} what is to be answered: it has ended, or nobody can say now
   */
  authorise (): void | Promise<void>
  /**
   * Calls `ended` once it is known to have ended, with what is to be answered: for a key that is within 2 s, for as long as Redis
   * can say. What ended before this has resolved `authorise` tells.
   * @returns what stops it
   */
  onEnd (ended: (why: Error) => void): Promise<() => void>
}
