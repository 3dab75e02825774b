import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { withEnvironment, type Candidate } from './programs.ts'

/** The options of the embedded Redis. Paths are relative to the data directory, where it is started, so none is too long. */
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

export interface RedisProcess {
  pid: number
  /** Settles when it has ended, with its exit code or the signal's name. */
  ended: Promise<number | string>
  /** SIGTERM, and SIGKILL after 10 s; resolves when it has ended. */
  stop: () => Promise<void>
}

/**
 * Starts redis-server in `dir` with `lock` as an inherited descriptor, so that the lock is held exactly as long as it lives, whatever
 * happens to this process. Closes our own descriptor.
 */
export function spawnRedis (binary: Candidate, dir: string, lock: number, extra: readonly string[]): RedisProcess {
  // Output before Redis has read its options (like a wrong option) goes to its log too.
  const log = openLog(join(dir, 'redis.log'))
  // The shell only sets the mask of Redis's files, which have what was passed in them, and then becomes redis-server.
  const child = spawn('/bin/sh', ['-c', 'umask 077; exec env "$@"', 'sh', ...withEnvironment(binary, [...redisOptions, ...extra])], {
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
  const watchdog = spawn('/bin/sh', ['-c', 'read _; kill -TERM "$0"; kill -CONT "$0"', String(pid)], { detached: true, stdio: ['pipe', 'ignore', 'ignore'] })
  watchdog.on('error', () => {}) // no process can be started: then the next start ends an orphaned Redis
  return watchdog
}

async function dismiss (watchdog: ChildProcess | undefined): Promise<void> {
  if (watchdog?.pid === undefined || watchdog.exitCode !== null || watchdog.signalCode !== null) return
  watchdog.kill('SIGKILL')
  await once(watchdog, 'exit')
}
