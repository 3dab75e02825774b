import { spawn, spawnSync } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, constants, openSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { EmbeddedError, withEnvironment } from './binary.ts'
import type { Candidate } from './binary.ts'
import { closeToOthers, openDataDir } from './data-dir.ts'
import type { DataDir } from './data-dir.ts'

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

interface EmbeddedRedis {
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

/**
 * The options of the embedded Redis. Paths are relative to the data directory, where it is started, so none is too
 * long.
 */
export const redisOptions: readonly string[] = [
  '--port', '0',
  '--unixsocket', 'redis.sock',
  '--unixsocketperm', '700',
  '--logfile', 'redis.log',
  '--appendonly', 'yes',
  '--appendfsync', 'everysec',
  '--save', '',
  '--hash-max-listpack-value', '2048',
  '--maxmemory-policy', 'noeviction'
]

interface RedisProcess {
  pid: number
  /** Settles when it has ended, with its exit code or the signal's name. */
  ended: Promise<number | string>
  /** SIGTERM, and SIGKILL after 10 s; resolves when it has ended. */
  stop: () => Promise<void>
}

/**
 * Starts redis-server in `dir` with `lock` as an inherited descriptor, so that the lock is held exactly as long as it
 * lives, whatever happens to this process. Closes our own descriptor.
 */
function spawnRedis (binary: Candidate, dir: string, lock: number, extra: readonly string[]): RedisProcess {
  // Output before Redis has read its options (like a wrong option) goes to its log too.
  const log = openLog(join(dir, 'redis.log'))
  // The shell only sets the mask of Redis's files, which have what was passed in them, and then becomes redis-server.
  const child = spawn('/bin/sh', [
    '-c', 'umask 077; exec env "$@"', 'sh', ...withEnvironment(binary, [...redisOptions, ...extra])
  ], {
    cwd: dir,
    detached: true, // a session of its own: the terminal's Ctrl-C must reach only the service, which drains first
    stdio: ['ignore', log ?? 'ignore', log ?? 'ignore', lock]
  })
  if (log !== undefined) closeSync(log)
  closeSync(lock)
  const ended = new Promise<number | string>((resolve) => {
    child.once('exit', (code, signal) => resolve(code ?? signal ?? 'unknown'))
    child.on('error', (error) => resolve(error.message)) // it could not be started
  })
  const watchdog = child.pid === undefined ? undefined : watchOver(child.pid)
  ended.then(() => dismiss(watchdog))
  const stop = async () => {
    // Before Redis's end, so that it can't signal another process with the same pid.
    await dismiss(watchdog)
    child.kill('SIGTERM')
    child.kill('SIGCONT')
    const killer = setTimeout(() => child.kill('SIGKILL'), 10_000)
    await ended
    clearTimeout(killer)
  }
  return { pid: child.pid ?? 0, ended, stop }
}

/** @returns undefined if it can't be opened, as on a full disk: Redis is started all the same */
function openLog (path: string): number | undefined {
  try {
    return openSync(path, 'a', 0o600)
  } catch {
    return undefined
  }
}

/**
 * Ends Redis when this process dies in any way: then the watchdog's pipe closes.
 * SIGCONT, here and in stop: a stopped Redis handles SIGTERM only after it is resumed.
 */
function watchOver (pid: number): ChildProcess {
  const watchdog = spawn(
    '/bin/sh', ['-c', 'read _; kill -TERM "$0"; kill -CONT "$0"', String(pid)],
    { detached: true, stdio: ['pipe', 'ignore', 'ignore'] }
  )
  watchdog.on('error', () => {}) // no process can be started: then the next start ends an orphaned Redis
  return watchdog
}

async function dismiss (watchdog: ChildProcess | undefined): Promise<void> {
  if (watchdog?.pid === undefined || watchdog.exitCode !== null || watchdog.signalCode !== null) return
  watchdog.kill('SIGKILL')
  await once(watchdog, 'exit')
}

/** O_EXLOCK: open(2) also takes flock's exclusive lock. macOS has it, but Node's constants lack it. */
const O_EXLOCK = 0x20

/**
 * Takes an exclusive lock on `file` (made if missing, never removed). Returns the descriptor that holds it, or
 * undefined if another process does.
 *
 * It is flock(2)'s, so it belongs to the open file and not to a path or a process id: the kernel releases it when the
 * last descriptor closes, kill -9 included, and there are no stale locks to detect, to remove, or to race for. A child
 * that inherits the descriptor holds the lock as long as it lives.
 */
function tryLock (file: string): number | undefined {
  return process.platform === 'darwin' ? openLocked(file) : openThenLock(file)
}

function openLocked (file: string): number | undefined {
  try {
    return openSync(file, constants.O_RDWR | constants.O_CREAT | constants.O_NONBLOCK | O_EXLOCK, 0o600)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EAGAIN') return undefined
    throw error
  }
}

/**
 * Node has no flock, but Linux has a program: it locks the open file that it inherits, and the lock stays ours when it
 * ends.
 */
function openThenLock (file: string): number | undefined {
  const fd = openSync(file, 'a', 0o600)
  const { status, error, stderr } = spawnSync('flock', ['-n', '3'], { stdio: ['ignore', 'ignore', 'pipe', fd] })
  if (status === 0) return fd
  closeSync(fd)
  if (status === 1 && stderr.length === 0) return undefined
  throw new EmbeddedError(`cannot lock ${file}: flock ${error === undefined
    ? stderr.toString().trim()
    : 'is missing (it is in util-linux)'}`)
}

const timeoutMs = 5000

/**
 * Takes the lock that a redis-server of this directory holds for its life. A redis-server that a killed run left behind
 * is asked to end, unless a service is connected to it. Two redis-servers never run on one append-only file, because
 * each starts with this lock, which is free only when the previous process is gone. Throws an EmbeddedError after 5 s.
 */
async function redisLock (dir: DataDir): Promise<number> {
  const deadline = Date.now() + timeoutMs
  while (true) {
    const lock = tryLock(join(dir.path, 'redis.lock'))
    // A redis-server started by hand has no lock, so the socket is probed in any case.
    const who = await whoAnswers(dir.socket)
    if (lock !== undefined && who === 'none') return lock
    if (lock !== undefined) closeSync(lock)
    // A service killed a moment ago may still be in Redis's list of clients, so `used` is checked again too.
    if (Date.now() > deadline) throw new EmbeddedError(who === 'used' ? inUse(dir.path) : lingering(dir.path))
    if (who === 'idle') await shutDown(dir.socket)
    await sleep(50)
  }
}

function inUse (path: string): string {
  return `DATA_DIR ${path} is in use by another handoff service: stop that one, or give this one a DATA_DIR and a ` +
    'PORT of its own'
}

function lingering (path: string): string {
  return `DATA_DIR ${path} is held by a redis-server of an earlier run that doesn't end: see redis.log there, end ` +
    'it (kill), and start again'
}

/** The running Redis of a service on `dataDir`. Creates nothing there. @throws {EmbeddedError} there is none */
export async function findRunning (dataDir: string): Promise<DataDir> {
  const none = new EmbeddedError(`REDIS_URL is unset, and no Redis runs on DATA_DIR ${dataDir}: set REDIS_URL, or ` +
    'start the service (npm start)')
  if (await stat(dataDir).catch(() => undefined) === undefined) throw none
  const dir = await openDataDir(dataDir)
  if (await whoAnswers(dir.socket) !== 'none') return dir
  await dir.close()
  throw none
}

/**
 * A connection to the Redis at `socket` for `talk` only. It has no service's name, so that it isn't mistaken for one.
 */
async function withConnection<T> (socket: string, talk: (redis: Redis) => Promise<T>): Promise<T> {
  const redis = new Redis({
    path: socket,
    connectionName: 'embedded',
    lazyConnect: true,
    enableReadyCheck: false, // it must also work while Redis is loading its data
    retryStrategy: () => null,
    maxRetriesPerRequest: 0,
    connectTimeout: 1000,
    commandTimeout: 1000
  })
  redis.on('error', () => {}) // the failed call reports it
  try {
    await redis.connect()
    return await talk(redis)
  } finally {
    redis.disconnect()
  }
}

/** The Redis at `socket`: `none` if no Redis answers, `used` if a service is connected to it, else `idle`. */
async function whoAnswers (socket: string): Promise<'none' | 'idle' | 'used'> {
  try {
    const clients = await withConnection(socket, async (redis) => String(await redis.client('LIST')))
    return /(^| )name=handoff/m.test(clients) ? 'used' : 'idle'
  } catch {
    return 'none'
  }
}

/** Asks it to end. The caller checks elsewhere that it has (the connection just closes). */
async function shutDown (socket: string): Promise<void> {
  await withConnection(socket, (redis) => redis.shutdown()).catch(() => {})
}

/**
 * Resolves when the Redis at `socket`, which may still be starting, answers PING and has loaded its data.
 * Throws when it hasn't within `timeoutMs`, or as soon as it has `ended`.
 */
async function untilReady (socket: string, timeoutMs: number, ended: Promise<number | string>): Promise<void> {
  const redis = new Redis({
    path: socket,
    connectionName: 'embedded',
    retryStrategy: () => 10,
    maxLoadingRetryTime: 100,
    maxRetriesPerRequest: null
  })
  redis.on('error', () => {}) // not there yet: ioredis retries
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`redis-server was not ready within ${timeoutMs / 1000} s`)), timeoutMs)
  })
  const over = ended.then((how) => { throw new Error(`redis-server ended as it started (${how})`) })
  try {
    // Sent once ioredis considers the connection ready, which is when the data is loaded.
    await Promise.race([redis.ping(), over, late])
  } finally {
    clearTimeout(timer)
    redis.disconnect()
  }
}
