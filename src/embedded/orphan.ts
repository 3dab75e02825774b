import { closeSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { shutDown, whoAnswers } from './probe.ts'
import type { DataDir } from './data-dir.ts'
import { tryLock } from './lock.ts'
import { EmbeddedError } from './programs.ts'

const timeoutMs = 5000

/**
 * Takes the lock that a redis-server of this directory holds for its life. A redis-server that a killed run left behind is asked to end,
 * unless a service is connected to it. Two redis-servers never run on one append-only file, because each starts with this lock, which
 * is free only when the previous process is gone.
 * Throws an EmbeddedError after 5 s.
 */
export async function redisLock (dir: DataDir): Promise<number> {
  const deadline = Date.now() + timeoutMs
  while (true) {
    const lock = tryLock(join(dir.path, 'redis.lock'))
    // A redis-server started by hand has no lock, so the socket is probed in any case.
    const who = await whoAnswers(dir.socket)
    if (lock !== undefined && who === 'nobody') return lock
    if (lock !== undefined) closeSync(lock)
    // A service killed a moment ago may still be in Redis's list of clients, so `used` is checked again too.
    if (Date.now() > deadline) throw new EmbeddedError(who === 'used' ? inUse(dir.path) : lingering(dir.path))
    if (who === 'idle') await shutDown(dir.socket)
    await sleep(50)
  }
}

export function inUse (path: string): string {
  return `DATA_DIR ${path} is in use by another handoff service: stop that one, or give this one a DATA_DIR and a PORT of its own`
}

function lingering (path: string): string {
  return `DATA_DIR ${path} is held by a redis-server of an earlier run that doesn't end: see redis.log there, end it (kill), and start again`
}
