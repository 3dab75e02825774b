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

/** How long a replica may take to catch up, in milliseconds. */
const syncTime = 30_000

/** A master with one replica, which has caught up. @param stops collects the functions that stop them */
export async function startReplicated (say: (line: string) => void, stops: Array<() => Promise<void>>): Promise<{ master: Store, replica: Store }> {
  const master = await startRedisStore(say)
  stops.push(master.stop)
  const { hostname, port } = new URL(master.url)
  const replica = await startRedisStore(say, ['--replicaof', `${hostname} ${port}`])
  stops.push(replica.stop)
  await inSync(master.url)
  return { master, replica }
}

/** Waits until the replica has acknowledged a new write. */
async function inSync (master: string): Promise<void> {
  const redis = new Redis(master)
  await redis.set('in-sync', '1')
  const confirmed = await redis.wait(1, syncTime)
  redis.disconnect()
  if (confirmed !== 1) throw new Error(`the replica has not confirmed within ${syncTime} ms`)
}
