import type { Redis } from 'ioredis'
import { readInfo } from '../../redis/server-info.ts'
import type { ServerInfo } from '../../redis/server-info.ts'

/** What a server says of itself; null what this user may not see. */
export interface ServerFacts {
  info: ServerInfo | null
  config: Readonly<Record<string, string>> | null
  /** Redis's words, where it didn't let us see. */
  refusals: { info?: string, config?: string }
  /** Milliseconds of each of some calls, one after another; empty where TIME is refused. */
  roundTrips: number[]
  /** Redis's clock less this machine's, in milliseconds. */
  skew: number | null
}

/** What CONFIG alone tells, or tells better. */
export const settings = ['appendfsync', 'save', 'min-replicas-to-write', 'hash-max-listpack-value', 'hash-max-listpack-entries',
  'cluster-require-full-coverage', 'cluster-node-timeout'] as const

const roundTrips = 21

export async function askServer (redis: Redis): Promise<ServerFacts> {
  const refusals: ServerFacts['refusals'] = {}
  const info = await redis.info().then(readInfo, (error: Error) => { refusals.info = error.message })
  const config = await redis.call('CONFIG', 'GET', ...settings)
    .then(reply => readPairs(reply as string[]), (error: Error) => { refusals.config = error.message })
  return { info: info ?? null, config: config ?? null, refusals, ...await askTime(redis) }
}

/** The call that was fastest tells best how the clocks stand to each other. */
async function askTime (redis: Redis): Promise<Pick<ServerFacts, 'roundTrips' | 'skew'>> {
  const took: number[] = []
  let skew: number | null = null
  try {
    for (let turn = 0; turn < roundTrips; turn++) {
      const [began, clock] = [performance.now(), Date.now()]
      const [seconds, microseconds] = await redis.time()
      const duration = performance.now() - began
      if (duration < Math.min(...took, Infinity)) skew = Number(seconds) * 1000 + Number(microseconds) / 1000 - (clock + duration / 2)
      took.push(duration)
    }
  } catch {}
  return { roundTrips: took, skew }
}

/** Names and values, turn about. */
export function readPairs (parts: readonly string[]): Record<string, string> {
  const pairs: Record<string, string> = {}
  for (let at = 0; at + 1 < parts.length; at += 2) pairs[parts[at]!] = parts[at + 1]!
  return pairs
}
