import { Redis } from 'ioredis'
import { measure } from './contest.ts'
import { cpuOf } from './cpu.ts'
import type { LoadResult } from './load.ts'
import { benchRedis } from './redis.ts'
import type { BenchRedis } from './redis.ts'
import { median } from './report.ts'
import { startService } from './server-process.ts'
import type { ServerProcess } from './server-process.ts'

/** A service with its own Redis, so that two pairs with one difference can be measured in turns. */
export interface Pair {
  server: BenchRedis
  redis: Redis
  service: ServerProcess
  stop (): Promise<void>
}

/** The figures of one turn. CPU in microseconds per request. */
export interface Cost {
  service: number
  redis: number
  together: number
  perSecond: number
  /** Milliseconds. */
  p99: number
}

export async function startPair (say: (line: string) => void): Promise<Pair> {
  const server = await benchRedis(say)
  const redis = new Redis(server.url)
  const stopRedis = async () => {
    redis.disconnect()
    await server.stop()
  }
  try {
    const service = await startService(server.url)
    return {
      server,
      redis,
      service,
      async stop () {
        await service.stop()
        await stopRedis()
      },
    }
  } catch (error) {
    await stopRedis()
    throw error
  }
}

/** The pair's figures under a load. @throws if the load reports a failed request */
export async function costOf ({ server, service }: Pair, load: (url: string) => Promise<LoadResult>): Promise<Cost> {
  const counted = { name: 'the service', pid: service.pid, store: { cpu: () => cpuOf(server.pid) } }
  const { cpu, storeCpu, perSecond, p99 } = await measure(counted, () => load(service.url))
  return { service: cpu, redis: storeCpu, together: cpu + storeCpu, perSecond, p99 }
}

/** Each figure's median. */
export function medianCost (costs: readonly Cost[]): Cost {
  const of = (figure: keyof Cost) => median(costs.map(cost => cost[figure]))
  return { service: of('service'), redis: of('redis'), together: of('together'), perSecond: of('perSecond'), p99: of('p99') }
}

/** The median of the ratios of neighbouring turns, during which the machine was the same. */
export function medianRatio (costs: readonly Cost[], neighbours: readonly Cost[], figure: keyof Cost = 'together'): number {
  return median(costs.map((cost, turn) => cost[figure] / (neighbours[turn]?.[figure] ?? NaN)))
}
