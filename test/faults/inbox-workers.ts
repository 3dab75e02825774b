import { setTimeout as sleep } from 'node:timers/promises'
import { HttpClient } from './http-client.ts'
import { agentKeys, within } from './load-keys.ts'
import { requestOf } from './steady-load.ts'

/** Workers that wait for an inbox, and what is passed to it at a constant rate, whatever happens to the service. */

export interface WorkersTally {
  passed: number
  done: number
  /** Catches that waited and got nothing. */
  empty: number
  /** Answers other than the right one, by name: `catch 503`; `catch 0` for none. */
  wrong: Record<string, number>
}

/** Seconds that a worker waits. */
const wait = 5
/** Milliseconds without an answer, after which it counts as broken. */
const patience = 15_000
/** Milliseconds until what was passed last must be done. */
const rest = 10_000

const [passer, catcher] = within(agentKeys, 'north').map(({ secret }) => secret)

/** Passes until `over`, and serves the inbox until all of that is done. */
export async function serveInbox (url: string, { workers, perSecond, over }: { workers: number, perSecond: number, over: AbortSignal }): Promise<WorkersTally> {
  const client = new HttpClient(patience)
  const tally: WorkersTally = { passed: 0, done: 0, empty: 0, wrong: {} }
  const served = new AbortController()

  async function ask (what: string, expected: number, request: string): Promise<string | null> {
    const reply = await client.ask(url, request)
    if (reply?.status === expected) return reply.body
    const name = `${what} ${reply?.status ?? 0}`
    tally.wrong[name] = (tally.wrong[name] ?? 0) + 1
    return null
  }

  async function work (): Promise<void> {
    while (!served.signal.aborted) {
      const body = await ask('catch', 200, requestOf(`POST /api/catch?wait=${wait}`, catcher, '{"inbox":"work"}'))
      const id = body === null ? undefined : /"handoff_id":"([^"]+)"/.exec(body)?.[1]
      if (id === undefined) tally.empty++
      else if (await ask('done', 200, requestOf(`POST /api/done/${id}`, catcher, '{}')) !== null) tally.done++
    }
  }

  async function pass (): Promise<void> {
    const began = performance.now()
    for (let number = 1; !over.aborted; number++) {
      if (await ask('pass', 201, requestOf('POST /api/pass', passer, '{"task":"to do","to":"work"}')) !== null) tally.passed++
      await sleep(Math.max(0, began + number * 1000 / perSecond - performance.now()))
    }
    for (const end = performance.now() + rest; tally.done < tally.passed && performance.now() < end;) await sleep(50)
    served.abort()
  }

  try {
    await Promise.all([pass(), ...Array.from({ length: workers }, work)])
  } finally {
    client.close()
  }
  return tally
}
