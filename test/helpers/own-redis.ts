import { Redis } from 'ioredis'
import type { Test } from 'tap'
import { defaultCacheDir, findRedisServer } from '../../src/embedded/binary.ts'
import { startRedis } from '../../src/embedded/server.ts'
import { scratchDir } from './processes.ts'
import { quiet } from './redis.ts'

/** A redis-server for one test, which may fill, pause or kill it. */
export interface OwnRedis {
  url: string
  /** The current process's id, which changes after a kill. */
  pid (): number
  admin: Redis
}

/** @param extra options for redis-server: `['--maxmemory', '10mb']` */
export async function ownRedis (t: Test, extra: string[] = []): Promise<OwnRedis> {
  const binary = await findRedisServer({ serverBin: process.env.REDIS_SERVER_BIN, cacheDir: defaultCacheDir, log () {} })
  const redis = await startRedis({ binary, dataDir: await scratchDir(t), log: quiet, extra })
  const admin = new Redis(redis.socket, { connectionName: 'test', maxRetriesPerRequest: null })
  admin.on('error', () => {})
  t.teardown(async () => {
    // A paused server can't react to a request to stop.
    try { process.kill(redis.pid, 'SIGCONT') } catch {}
    admin.disconnect()
    await redis.stop()
  })
  return { url: redis.socket, pid: () => redis.pid, admin }
}
