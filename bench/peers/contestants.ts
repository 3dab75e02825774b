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
  /** What the peers are and what is beneath them. */
  peers: string
  stop (): Promise<void>
}

type Stop = () => Promise<void>
interface Entry {
  /** Its package, where it is one. */
  library?: string
  /** @param stops takes how each thing that was started is stopped */
  start (say: BenchOptions['say'], stops: Stop[]): Promise<Omit<Contestant, 'name'>>
}

/** In the order of their turns. The service and the floor are neighbours. */
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
  // Its queue's settings are in Redis: they are not to be cleaned away.
  bullmq: { library: 'bullmq', start: (say, stops) => startPeer('bullmq.ts', () => startRedisStore(say, [], true), stops) },
  postgres: { library: 'pg-boss', start: (say, stops) => startPeer('postgres.ts', startPostgres, stops) },
  nats: { library: '@nats-io/jetstream', start: (say, stops) => startPeer('nats.ts', startNats, stops) },
} satisfies Record<string, Entry>
export type ContestantName = keyof typeof entries

export const names = Object.keys(entries) as ContestantName[]
/** Those that do what the service does, or a queue's part of it: `trivial` only says that it has, and `plain` promises nothing where two ask at once. */
export const honest = names.filter(name => name !== 'trivial' && name !== 'plain')

/** Starts those named that are among `only`, each asked for a handoff first. A peer whose program isn't installed is left out. */
export async function startContest (wanted: readonly ContestantName[], { only, say }: BenchOptions): Promise<Contest> {
  const stops: Stop[] = []
  const stop = async () => { for (const one of stops.toReversed()) await one() }
  const contestants: Contestant[] = []
  const peers: string[] = []
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
        say(`${name} is left out: ${error.message}`)
      }
    }
  } catch (error) {
    await stop()
    throw error
  }
  return { contestants, redis: contestants.find(({ name }) => name === 'service')?.store?.version ?? '', peers: peers.join(', '), stop }
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
  const { devDependencies } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as { devDependencies: Record<string, string> }
  return devDependencies[library] ?? ''
}
