import type { Redis } from 'ioredis'
import { readInfo } from '../../redis/server-info.ts'
import type { ServerInfo } from '../../redis/server-info.ts'

/** What a server reports about itself; null where this user may not see it. */
export interface ServerFacts {
  info: ServerInfo | null
  config: Readonly<Record<string, string>> | null
  /** Redis's error, where it refused. */
  refusals: { info?: string, config?: string }
  /** Durations of some calls, one after the other, in milliseconds; empty if Redis refuses TIME. */
  roundTrips: number[]
  /** Redis's clock minus this machine's, in milliseconds. */
  skew: number | null
}

/** Settings that only CONFIG has, or has in a better form. */
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

/** Measures the skew on the fastest call, which bounds it most tightly. */
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

/** A flat list of names and values as an object. */
export function readPairs (parts: readonly string[]): Record<string, string> {
  const pairs: Record<string, string> = {}
  for (let at = 0; at + 1 < parts.length; at += 2) pairs[parts[at]!] = parts[at + 1]!
  return pairs
}
