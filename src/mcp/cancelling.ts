import type { WaitOptions } from '../handoff/waiter.ts'
import type { Caller } from '../model.ts'
import type { RequestId } from './message.ts'

/**
 * Waiting calls that their clients may take back. Those of older protocols say so by another message and leave the connection open, so without this
 * something would be caught for nobody. It is told only at the replica that the call waits at; elsewhere the call waits to its end. Clients of one agent may
 * have the same ids: then another's wait ends early, with what is true, and it asks again.
 */
export class Cancelling {
  readonly #waiting = new Map<string, Set<() => void>>()

  /** How a call waits: as it would, until it is cancelled. */
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
