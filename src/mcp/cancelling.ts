import type { WaitOptions } from '../handoff/waiter.ts'
import type { Caller } from '../model.ts'
import type { RequestId } from './message.ts'

/**
 * Waiting calls that their clients may cancel. Clients of older protocol versions cancel by another message and keep the connection open, so
 * without this a handoff could be caught for nobody. A cancel works only at the replica where the call waits; elsewhere the call waits to its end.
 * Two clients of one agent may use the same id. Then the other one's wait ends early, with a true answer, and it calls again.
 */
export class Cancelling {
  readonly #waiting = new Map<string, Set<() => void>>()

  /** How a call waits: as before, but also only until it is cancelled. */
  until (waiting: WaitOptions, caller: Caller, id: RequestId): WaitOptions {
    const name = nameOf(caller, id)
    let isCancelled = false
    return {
      ...waiting,
      isGone: () => isCancelled || waiting.isGone(),
      onGone: stop => {
        const cancel = () => {
          isCancelled = true
          stop()
        }
        const forget = waiting.onGone(stop)
        const all = this.#waiting.get(name) ?? new Set()
        this.#waiting.set(name, all.add(cancel))
        return () => {
          forget()
          all.delete(cancel)
          if (all.size === 0) this.#waiting.delete(name)
        }
      },
    }
  }

  cancel (caller: Caller, id: RequestId): void {
    for (const cancel of this.#waiting.get(nameOf(caller, id)) ?? []) cancel()
  }
}

function nameOf ({ tenant, agent }: Caller, id: RequestId): string {
  return `${tenant} ${agent} ${JSON.stringify(id)}`
}
