import { startChild } from './child.ts'

/** The commands to the clients' process. */
export type Order = { do: 'open', url: string, ids: string[] } | { do: 'wake', url: string, ids: string[], perSecond: number }

/** Milliseconds from just before a done was sent: to its own answer, and to its waiter's answer. */
export interface Woken { answered: number, woken: number }

export interface Clients {
  /** Opens a waiting request for each handoff. */
  open (url: string, ids: string[]): Promise<void>
  /** Reports each handoff done there, at a fixed rate. */
  wake (url: string, ids: string[], perSecond: number): Promise<Woken[]>
  stop (): Promise<void>
}

/** Starts waiters.ts as a process. */
export function startClients (): Clients {
  const { ask, stop } = startChild<Order>('waiters.ts')
  return {
    async open (url, ids) { await ask({ do: 'open', url, ids }) },
    wake: (url, ids, perSecond) => ask<Woken[]>({ do: 'wake', url, ids, perSecond }),
    stop,
  }
}
