import { Operations } from './operations.ts'
import type { Status } from './types.ts'
import { waitFor } from './wait-for.ts'
import type { WaitForOptions } from './wait-for.ts'
import { work } from './work.ts'
import type { Handler, WorkOptions } from './work.ts'

/** A client of the Agent Handoff Service: its operations, and helpers that combine them. */
export class HandoffClient extends Operations {
  /** Waits for as long as it takes until the handoff is caught, or has ended in any way; by default across all its attempts. */
  async waitFor (id: string, state: 'caught' | 'done', options: WaitForOptions = {}): Promise<Status> {
    return await waitFor(this, id, state, options)
  }

  /** Serves an inbox (the agent's own if undefined) until `signal` is aborted; the package's README has the details. */
  async work (inbox: string | undefined, handler: Handler, options: WorkOptions = {}): Promise<void> {
    await work(this, inbox, handler, options)
  }
}
