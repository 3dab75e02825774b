import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { withEnvironment, type Candidate } from './programs.ts'

/** How the embedded Redis runs. Paths are relative to the data directory, where it is started: no path is too long for it. */
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
  /** SIGTERM, SIGKILL after 10 s; resolves when it has ended, at once if it has already. */
  stop: () => Promise<void>
}

/**
 * Starts redis-server in `dir` and hands it `lock`, so that the lock is held exactly as long as it lives, whatever
 * becomes of this process. Closes our own descriptor of it.
 */
export function spawnRedis (binary: Candidate, dir: string, lock: number, extra: readonly string[]): RedisProcess {
  // What Redis says before it has read its options (a wrong one, say) goes to its log too.
  const log = openSync(join(dir, 'redis.log'), 'a', 0o600)
  const child = spawn('env', withEnvironment(binary, [...redisOptions, ...extra]), {
    cwd: dir,
    detached: true, // a session of its own: the terminal's Ctrl-C is for the service, which drains first
    stdio: ['ignore', log, log, lock]
  })
  closeSync(log)
  closeSync(lock)
  const ended = new Promise<number | string>((resolve) => {
    child.once('exit', (code, signal) => resolve(code ?? signal ?? 'unknown'))
    child.on('error', (error) => resolve(error.message)) // it never started
  })
  const watchdog = child.pid === undefined ? undefined : watchOver(child.pid)
  ended.then(() => dismiss(watchdog))
  const stop = async () => {
    // Before Redis ends, so that it can't signal whatever gets that pid next.
    await dismiss(watchdog)
    child.kill('SIGTERM')
    child.kill('SIGCONT')
    const killer = setTimeout(() => child.kill('SIGKILL'), 10_000)
    await ended
    clearTimeout(killer)
  }
  return { pid: child.pid ?? 0, ended, stop }
}

/**
 * Ends Redis when this process dies in whatever way: then the pipe that it reads from closes.
 * SIGCONT, here and in stop: a Redis that somebody has stopped sees SIGTERM only when it goes on.
 */
function watchOver (pid: number): ChildProcess {
  const watchdog = spawn('/bin/sh', ['-c', 'read _; kill -TERM "$0"; kill -CONT "$0"', String(pid)], { detached: true, stdio: ['pipe', 'ignore', 'ignore'] })
  watchdog.on('error', () => {}) // no process to be had: then the next start ends a Redis that was left
  return watchdog
}

async function dismiss (watchdog: ChildProcess | undefined): Promise<void> {
  if (watchdog?.pid === undefined || watchdog.exitCode !== null || watchdog.signalCode !== null) return
  watchdog.kill('SIGKILL')
  await once(watchdog, 'exit')
}
