import { closeSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { untilReady } from './probe.ts'
import { openDataDir, type DataDir } from './data-dir.ts'
import { tryLock } from './lock.ts'
import { inUse, redisLock } from './orphan.ts'
import { closeToOthers } from './private-data.ts'
import { EmbeddedError, type Candidate } from './programs.ts'
import { spawnRedis, type RedisProcess } from './redis-process.ts'

type Say = (line: string) => void

export interface StartOptions {
  binary: Candidate
  /** Made (mode 0700) if missing. */
  dataDir: string
  log: { info: Say, warn: Say, error: Say }
  /** More options for redis-server, after ours: `['--appendfsync', 'always']`. */
  extra?: readonly string[]
  /** Called each time redis-server ends unexpectedly, with its exit code or signal; it is restarted automatically. */
  onExit?: (how: number | string) => void
}

export interface EmbeddedRedis {
  /** The unix socket's path. */
  socket: string
  /** The current redis-server's process id. */
  readonly pid: number
  /** Ends redis-server after it has written its data; resolves when no process of it is left. */
  stop: () => Promise<void>
}

const startMs = 60_000 // a large append-only file takes a while to load
const restart = { firstMs: 200, lastMs: 5000, stableMs: 10_000 }

/**
 * Starts a redis-server on `dataDir` and keeps it running until `stop`. It ends with this process, however that ends.
 * Throws an EmbeddedError if another service uses this `dataDir`, or redis-server doesn't start.
 */
export async function startRedis (options: StartOptions): Promise<EmbeddedRedis> {
  const dir = await openDataDir(options.dataDir)
  await closeToOthers(dir.path, line => options.log.warn(line))
  const ours = tryLock(join(dir.path, 'service.lock'))
  const release = async () => {
    if (ours !== undefined) closeSync(ours)
    await dir.close()
  }
  try {
    if (ours === undefined) throw new EmbeddedError(inUse(dir.path))
    return await supervise(dir, options, release)
  } catch (error) {
    await release()
    throw error
  }
}

async function supervise (dir: DataDir, options: StartOptions, release: () => Promise<void>): Promise<EmbeddedRedis> {
  const { binary, log, extra = [], onExit } = options
  const stopping = new AbortController()
  let redis = spawnRedis(binary, dir.path, await redisLock(dir), extra)
  await firstReady(redis, dir)
  const kept = keepRunning()
  let stopped: Promise<void> | undefined

  async function keepRunning (): Promise<void> {
    let delay = restart.firstMs
    let since = Date.now()
    while (true) {
      const how = await redis.ended
      if (stopping.signal.aborted) return
      log.error(`redis-server (pid ${redis.pid}) ended unexpectedly (${how}); starting it again`)
      onExit?.(how)
      if (Date.now() - since > restart.stableMs) delay = restart.firstMs
      await sleep(delay, undefined, { signal: stopping.signal }).catch(() => {})
      delay = Math.min(delay * 2, restart.lastMs)
      const lock = await redisLock(dir).catch((error: Error) => { log.error(error.message) })
      // There is no await from here to the spawn, so either stop() is seen here, or it sees the new process.
      if (lock !== undefined && !stopping.signal.aborted) redis = spawnRedis(binary, dir.path, lock, extra)
      else if (lock !== undefined) closeSync(lock)
      since = Date.now()
    }
  }

  async function stop (): Promise<void> {
    stopping.abort()
    await redis.stop()
    await kept
    await release()
  }

  return {
    socket: dir.socket,
    get pid () { return redis.pid },
    stop: () => (stopped ??= stop())
  }
}

async function firstReady (redis: RedisProcess, dir: DataDir): Promise<void> {
  try {
    await untilReady(dir.socket, startMs, redis.ended)
  } catch (error) {
    await redis.stop()
    throw new EmbeddedError(`${(error as Error).message}: ${join(dir.path, 'redis.log')} tells why`)
  }
}
