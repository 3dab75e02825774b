import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { cpuOf } from '../cpu.ts'
import { benchRedis } from '../redis.ts'

/** A contestant's store: a server of its own, in a scratch directory. */
export interface Store {
  url: string
  /** Its name and version: `Redis`, and `7.0.15`. */
  name: string
  version: string
  /** The CPU time of all its processes since it started, in microseconds. */
  cpu (): number
  /** Frees what earlier rounds left, so that each begins alike and disks don't fill up. */
  clean (): Promise<void>
  stop (): Promise<void>
}

/** A program that isn't installed: contestants that need it are left out. */
export class NotInstalled extends Error {}

/** A Redis with the embedded one's settings. @param keep keep its data when it is cleaned, and only rewrite its append-only file */
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
