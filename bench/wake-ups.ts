import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

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
  const child = fork(fileURLToPath(new URL('waiters.ts', import.meta.url)), { execArgv: ['--import=tsx'] })
  const exited = once(child, 'exit')
  async function ask<T> (order: Order): Promise<T> {
    child.send(order)
    const [answer] = await Promise.race([once(child, 'message'), exited.then(() => { throw new Error('the clients ended, see above') })])
    return answer as T
  }
  return {
    async open (url, ids) { await ask({ do: 'open', url, ids }) },
    wake: (url, ids, perSecond) => ask({ do: 'wake', url, ids, perSecond }),
    async stop () {
      child.kill('SIGKILL')
      await exited
    },
  }
}
