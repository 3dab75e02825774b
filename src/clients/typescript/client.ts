import { Operations } from './operations.ts'
import type { Settled, Status } from './types.ts'
import { waitFor, waitForAll } from './wait.ts'
import type { WaitForAllOptions, WaitForOptions } from './wait.ts'
import { work } from './work.ts'
import type { Handler, Served, WorkOptions } from './work.ts'

/** A client of the Agent Handoff Service: its operations, and helpers that combine them. */
export class HandoffClient extends Operations {
  /**
   * Waits for as long as it takes until the handoff is caught, or has ended in any way; by default across all its
   * attempts.
   */
  async waitFor (id: string, state: 'caught' | 'done', options: WaitForOptions = {}): Promise<Status> {
    return await waitFor(this, id, state, options)
  }

  /**
   * Waits for as long as it takes until all of them, however many, have ended for good in any way, across all their
   * attempts. An id that isn't there is `unknown`, and counts as ended.
   * @returns what became of each, in the order of the ids
   */
  async waitForAll (ids: readonly string[], options: WaitForAllOptions = {}): Promise<Settled[]> {
    return await waitForAll(this, ids, options)
  }

  /**
   * Serves an inbox (the agent's own if undefined), or several, the first one first, until `signal` is aborted; the
   * package's README has the details.
   */
  async work (inboxes: Served, handler: Handler, options: WorkOptions = {}): Promise<void> {
    await work(this, inboxes, handler, options)
  }
}
