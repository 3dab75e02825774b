import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { cpuOf } from '../cpu.ts'
import { benchRedis } from '../redis.ts'

/** What a contestant keeps its handoffs in: a server of its own, in a scratch directory. */
export interface Store {
  url: string
  /** What it is: `Redis`, and `7.0.15`. */
  name: string
  version: string
  /** The CPU time of all its processes since it started, in microseconds. */
  cpu (): number
  /** Frees what earlier rounds have left, so that each begins alike and disks don't fill. */
  clean (): Promise<void>
  stop (): Promise<void>
}

/** A program of which there is none here: whoever needs it is left out. */
export class NotInstalled extends Error {}

/**
 * A Redis with the embedded one's settings.
 * @param keep what is in it when it is cleaned; only its append-only file is written anew
 */
export async function startRedisStore (say: (line: string) => void, extra: readonly string[] = [], keep = false): Promise<Store & { pid: number }> {
  const server = await benchRedis(say, extra)
  const redis = new Redis(server.url)
  return {
    url: server.url,
    pid: server.pid,
    name: 'Redis',
    version: server.version,
    cpu: () => cpuOf(server.pid),
    async clean () {
      if (!keep) await redis.flushall('SYNC')
      await redis.bgrewriteaof()
      while (/aof_rewrite_(in_progress|scheduled):1/.test(await redis.info('persistence'))) await sleep(10)
    },
    async stop () {
      redis.disconnect()
      await server.stop()
    },
  }
}
