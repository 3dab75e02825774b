import type { Test } from 'tap'
import { HandoffClient } from '../../src/client/index.ts'
import type { Handler, PassBody, Status, WorkOptions } from '../../src/client/index.ts'
import { proxy } from './client.ts'
import type { Fate, Seen, Tenant } from './client.ts'

/** The service, and a worker of it behind a proxy. */
export interface Worker extends Omit<Tenant, 'pass'> {
  alice: HandoffClient
  seen: Seen[]
  pass (...bodies: Array<Partial<PassBody>>): Promise<string[]>
  /** Bob works on the inbox `in`, through the proxy, until the test has ended. @returns what ends it before */
  work (handler: Handler, options?: WorkOptions): { stop: () => Promise<void>, ended: Promise<void> }
  ended (id: string): Promise<Status>
}

export async function worker (t: Test, service: Tenant, fate: (seen: Seen, index: number) => Fate = () => 'pass'): Promise<Worker> {
  const alice = service.client('alice')
  const { address, seen } = await proxy(t, service.address, fate)
  return {
    ...service,
    alice,
    seen,
    pass: (...bodies) => Promise.all(bodies.map(async body => (await alice.pass({ task: 'x', to: 'in', ...body })).handoff_id)),
    ended: id => alice.waitFor(id, 'done', { timeout: 20_000 }),
    work (handler, options) {
      const own = new AbortController()
      const ended = new HandoffClient({ baseUrl: address, key: service.secrets.bob }).work('in', handler, { signal: own.signal, ...options })
      const stop = async () => {
        own.abort()
        await ended
      }
      ended.catch(() => {})
      t.teardown(() => own.abort())
      return { stop, ended }
    },
  }
}

/** Those of the requests that asked for this. */
export function paths (seen: Seen[], what: string): Seen[] {
  return seen.filter(({ url }) => url.startsWith(`/api/${what}`))
}

/** Resolves with the signal's reason when it ends. */
export function aborted (signal: AbortSignal): Promise<unknown> {
  return new Promise(resolve => signal.addEventListener('abort', () => resolve(signal.reason)))
}
