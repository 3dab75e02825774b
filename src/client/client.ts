import { Operations } from './operations.ts'
import type { Status } from './types.ts'
import { waitFor } from './wait-for.ts'
import type { WaitForOptions } from './wait-for.ts'
import { work } from './work.ts'
import type { Handler, WorkOptions } from './work.ts'

/** A client of the Agent Handoff Service: its operations, and what takes more than one of them. */
export class HandoffClient extends Operations {
  /** Waits until it is caught, or has ended in whatever way, for as long as it takes; by default over all its attempts. */
  async waitFor (id: string, state: 'caught' | 'done', options: WaitForOptions = {}): Promise<Status> {
    return await waitFor(this, id, state, options)
  }

  /** Serves an inbox, its own where it is undefined, until `signal` ends it: see the package's README. */
  async work (inbox: string | undefined, handler: Handler, options: WorkOptions = {}): Promise<void> {
    await work(this, inbox, handler, options)
  }
}
