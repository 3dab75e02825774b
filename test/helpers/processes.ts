import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'

/** A directory that is removed after the test. */
export async function scratchDir (t: Pick<Test, 'teardown'>): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'handoff-test-'))
  // Retries, because a process that is ending may still write there.
  t.teardown(() => rm(dir, { recursive: true, force: true, maxRetries: 20 }))
  return dir
}

export function isAlive (pid: number): boolean {
  try {
    process.kill(pid, 0)
  } catch {
    return false
  }
  return !state(pid).startsWith('Z') // a zombie has ended; its parent just hasn't waited for it
}

/** Polls, because the system announces the end of a process to its parent only. */
export async function untilGone (pid: number, withinMs = 30_000): Promise<boolean> {
  for (const deadline = Date.now() + withinMs; Date.now() < deadline; await sleep(20)) {
    if (!isAlive(pid)) return true
  }
  return false
}

/** The running processes that `pid` started in sessions of their own. */
export function detachedChildrenOf (pid: number): number[] {
  return execFileSync('ps', ['-eo', 'pid=,ppid=,sess='], { encoding: 'utf8' }).split('\n')
    .map((line) => line.trim().split(/\s+/).map(Number))
    .filter(([child, parent, session]) => parent === pid && session === child)
    .map(([child = 0]) => child)
}

/** Node's arguments to run a TypeScript file, from any working directory. */
export function typed (file: URL): string[] {
  return ['--import', import.meta.resolve('tsx'), fileURLToPath(file)]
}

export interface Owner { process: ChildProcess, next: () => Promise<{ socket?: string, pid?: number, error?: string, answered?: string }> }

/** Runs embedded-owner.ts, in a process group of its own as a terminal's foreground job is; `next` reads its next line. */
export function startOwner (t: Test, dataDir: string): Owner {
  const child = spawn(process.execPath, [...typed(new URL('embedded-owner.ts', import.meta.url)), dataDir], { detached: true, stdio: ['ignore', 'pipe', 'inherit'] })
  const exited = once(child, 'exit')
  t.teardown(async () => {
    child.kill('SIGKILL')
    await exited
  })
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]()
  return { process: child, next: async () => JSON.parse((await lines.next()).value ?? '{}') }
}

/** Kills a process that this one started, and waits until it has ended. */
export async function killed (child: ChildProcess): Promise<void> {
  const exited = once(child, 'exit')
  child.kill('SIGKILL')
  await exited
}

function state (pid: number): string {
  try {
    // Where there is /proc, for which no process need be started: tests poll this.
    if (existsSync('/proc/self/stat')) return /^.*\) (.)/s.exec(readFileSync(`/proc/${pid}/stat`, 'utf8'))![1]!
    return execFileSync('ps', ['-o', 'stat=', '-p', String(pid)], { encoding: 'utf8' }).trim()
  } catch {
    return 'Z' // it ended between the two reads
  }
}

/** The environment without tap's own variables: they must not reach tests that a test starts. */
export function withoutTap (): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^_?TAP/.test(name)))
}
