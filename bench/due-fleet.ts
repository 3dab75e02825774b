import type { Redis } from 'ioredis'
import { tags } from '../src/core/ids.ts'
import { startCluster } from '../test/faults/fleet/cluster.ts'
import { cpuOf } from './cpu.ts'
import { countLive } from './handoffs.ts'
import { startPair } from './growth-pair.ts'
import { startService } from './server-process.ts'
import type { ServerProcess } from './server-process.ts'

/** A service with one Redis, or with a Cluster of its own. */
export interface Fleet {
  /** As REDIS_URL. */
  url: string
  version: string
  service: ServerProcess
  /** The CPU time of all masters, in microseconds. */
  cpu (): number
  /** How many live handoffs these partitions have with a deadline up to this time (milliseconds). */
  countLive (until: number, of?: readonly string[]): Promise<number>
  /** Removes all keys. */
  empty (): Promise<void>
  stop (): Promise<void>
}

interface Servers { url: string, version: string, redis: readonly Redis[], pids: readonly number[], service: ServerProcess, stop (): Promise<void> }

export async function startFleet (masters: number, say: (line: string) => void): Promise<Fleet> {
  const { redis, pids, ...rest } = masters === 1 ? await single(say) : await clustered(masters, say)
  // The Cluster's masters have an even share of the partitions each, in their order (core/ids.ts).
  const share = tags.length / redis.length
  return {
    ...rest,
    cpu: () => pids.reduce((sum, pid) => sum + cpuOf(pid), 0),
    async countLive (until, of = tags) {
      const counts = redis.map((one, at) => {
        const its = of.filter(tag => Math.floor(tags.indexOf(tag) / share) === at)
        return its.length === 0 ? 0 : countLive(one, until, its)
      })
      return (await Promise.all(counts)).reduce((sum, count) => sum + count, 0)
    },
    async empty () { await Promise.all(redis.map(one => one.flushall('SYNC'))) },
  }
}

async function single (say: (line: string) => void): Promise<Servers> {
  const { server, redis, service, stop } = await startPair(say)
  return { url: server.url, version: server.version, redis: [redis], pids: [server.pid], service, stop }
}

async function clustered (masters: number, say: (line: string) => void): Promise<Servers> {
  const ends: Array<() => unknown> = []
  const stop = async () => { for (const end of ends) await end() }
  try {
    const stage = { teardown: (end: () => unknown) => { ends.unshift(end) }, comment: say }
    const { url, servers } = await startCluster(stage, { masters, replicas: 0, options: ['--auto-aof-rewrite-percentage', '0', '--hash-max-listpack-value', '2048'] })
    const service = await startService(url)
    ends.unshift(service.stop)
    const redis = servers.map(({ admin }) => admin)
    const version = /^redis_version:(\S+)/m.exec(await redis[0]!.info('server'))![1]!
    return { url, version, redis, pids: servers.map(({ pid }) => pid), service, stop }
  } catch (error) {
    await stop()
    throw error
  }
}
