import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Contestant } from '../contest.ts'
import { exchange } from '../exchange.ts'
import type { BenchOptions } from '../report.ts'
import { keySettings, serviceSettings, startServer, startService } from '../server-process.ts'
import type { ServerProcess } from '../server-process.ts'
import { startNats } from './nats-server.ts'
import { startPostgres } from './postgres-server.ts'
import { NotInstalled, startRedisStore } from './stores.ts'
import type { Store } from './stores.ts'
import { makeTrivial } from './trivial.ts'

export interface Contest {
  contestants: Contestant[]
  /** The service's Redis. */
  redis: string
  /** The names and versions of the peers and of what they run on. */
  peers: string
  /** Why a contestant doesn't take part, a line each. */
  leftOut: string[]
  stop (): Promise<void>
}

type Stop = () => Promise<void>
interface Entry {
  /** Its npm package, if it has one. */
  library?: string
  /** @param stops collects the functions that stop what was started */
  start (say: BenchOptions['say'], stops: Stop[]): Promise<Omit<Contestant, 'name'>>
}

/** The contestants in the order of their turns. The service and the floor are neighbours. */
const entries = {
  floor: { start: async (say, stops) => kept(stops, await startServer(script('../floor.ts'), keySettings)) },
  service: {
    async start (say, stops) {
      const store = kept(stops, await startRedisStore(say))
      return { ...kept(stops, await startService(store.url)), store }
    },
  },
  trivial: {
    async start (say, stops) {
      const store = kept(stops, await startRedisStore(say))
      const { main, remove } = await makeTrivial()
      stops.push(remove)
      return { ...kept(stops, await startServer([main], serviceSettings(store.url))), store }
    },
  },
  plain: { start: (say, stops) => startPeer('plain.ts', () => startRedisStore(say), stops) },
  // The queue's settings are in Redis and must not be removed.
  bullmq: { library: 'bullmq', start: (say, stops) => startPeer('bullmq.ts', () => startRedisStore(say, [], true), stops) },
  postgres: { library: 'pg-boss', start: (say, stops) => startPeer('postgres.ts', startPostgres, stops) },
  nats: { library: '@nats-io/jetstream', start: (say, stops) => startPeer('nats.ts', startNats, stops) },
} satisfies Record<string, Entry>
export type ContestantName = keyof typeof entries

export const names = Object.keys(entries) as ContestantName[]
/**
 * The contestants that do the service's work, or a queue's part of it. The others don't: `trivial` only pretends to, and `plain` promises nothing
 * for concurrent requests.
 */
export const honest = names.filter(name => name !== 'trivial' && name !== 'plain')

/** Starts the named contestants that are among `only`, and first passes one handoff through each. A peer whose program isn't installed is left out. */
export async function startContest (wanted: readonly ContestantName[], { only, say }: BenchOptions): Promise<Contest> {
  const stops: Stop[] = []
  const stop = async () => { for (const one of stops.toReversed()) await one() }
  const contestants: Contestant[] = []
  const peers: string[] = []
  const leftOut: string[] = []
  try {
    for (const name of wanted.filter(name => only?.includes(name) ?? true)) {
      const entry: Entry = entries[name]
      try {
        const contestant: Contestant = { name, ...await entry.start(say, stops) }
        await exchange(contestant.url, name !== 'trivial')
        contestants.push(contestant)
        const { store } = contestant
        if (entry.library !== undefined) peers.push(`${entry.library} ${versionOf(entry.library)} on ${store?.name} ${store?.version}`)
      } catch (error) {
        if (!(error instanceof NotInstalled)) throw error
        leftOut.push(`${name} is left out: ${error.message}`)
        say(leftOut.at(-1) as string)
      }
    }
  } catch (error) {
    await stop()
    throw error
  }
  return { contestants, redis: contestants.find(({ name }) => name === 'service')?.store?.version ?? '', peers: peers.join(', '), leftOut, stop }
}

async function startPeer (file: string, startStore: () => Promise<Store>, stops: Stop[]): Promise<Omit<Contestant, 'name'>> {
  const store = kept(stops, await startStore())
  return { ...kept(stops, await startServer(script(file), { ...keySettings, STORE_URL: store.url })), store }
}

function kept<Started extends ServerProcess | Store> (stops: Stop[], started: Started): Started {
  stops.push(() => started.stop())
  return started
}

export function script (file: string): string[] {
  return ['--import=tsx', fileURLToPath(new URL(file, import.meta.url))]
}

function versionOf (library: string): string {
  const { devDependencies } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { devDependencies: Record<string, string> }
  return devDependencies[library] ?? ''
}
