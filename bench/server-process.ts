import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

/** A process that serves HTTP. */
export interface ServerProcess {
  url: string
  pid: number
  /** Gives an order to what is preloaded into it. */
  ask <T> (order: string): Promise<T>
  /** Holds its intervals, and lets them fire again; only with held-intervals.mjs. */
  hold (): Promise<unknown>
  release (): Promise<unknown>
  /** Its memory; this and the next two only if it was started with a gauge. */
  weigh (): Promise<Weight>
  count (): Promise<unknown>
  /** What was allocated and collected since then. */
  counted (): Promise<Allocated>
  stop (): Promise<void>
}

/** A process's memory in bytes: now, and after all garbage is collected. */
export interface Weight { asIs: NodeJS.MemoryUsage, collected: NodeJS.MemoryUsage }

/** Bytes on JavaScript's heap; how often its young objects were collected, and how many milliseconds the longest collection took. */
export interface Allocated { allocated: number, collections: number, longest: number }

/** The agents and the person that send the benchmarks' requests. */
export const passerKey = 'the-key-of-who-passes'
export const catcherKey = 'the-key-of-who-catches'
export const approverKey = 'the-key-of-who-approves'
export const keySettings = { PORT: '0', API_KEYS: `passer:${passerKey},catcher:${catcherKey}`, APPROVER_KEYS: `approver:${approverKey}` }

const main = fileURLToPath(new URL('../dist/main.js', import.meta.url))
const gauge = ['--expose-gc', `--import=${new URL('gauge.mjs', import.meta.url).href}`]

/** The settings of a replica of the service on this Redis. */
export function serviceSettings (redisUrl: string): Record<string, string> {
  return { ...keySettings, REDIS_URL: redisUrl, DRAIN_DELAY: '0' }
}

/** A replica of the built service on this Redis. @param weighed with a gauge @param extra more settings */
export function startService (redisUrl: string, weighed = false, extra: Record<string, string> = {}): Promise<ServerProcess> {
  return startServer(weighed ? [...gauge, main] : [main], { ...serviceSettings(redisUrl), ...extra }, weighed)
}

/**
 * Runs node with these arguments and waits until it prints where it listens.
 * @param env its whole environment, except what is needed to find programs
 * @param isAsked whether what is preloaded into it answers orders: gauge.mjs or held-intervals.mjs
 * @param under a program to run node under, with its arguments
 */
export async function startServer (args: readonly string[], env: Record<string, string>, isAsked = false, under: readonly string[] = []): Promise<ServerProcess> {
  const [program, ...its] = [...under, process.execPath, ...args] as [string, ...string[]]
  const child = spawn(program, its, { env: { PATH: process.env.PATH, ...env }, stdio: ['ignore', 'pipe', 'inherit', ...isAsked ? ['ipc' as const] : []] })
  const exited = once(child, 'exit')
  endWithUs(child)
  const stop = async () => {
    child.kill('SIGTERM')
    await exited
  }
  const ask = async <T>(order: string) => {
    child.send(order)
    return (await once(child, 'message'))[0] as T
  }
  const url = await new Promise<string>((resolve, reject) => {
    let said = ''
    // Reading continues: a full pipe would stop the process.
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      said = (said + text).slice(-10_000)
      const address = /http:\/\/127\.0\.0\.1:\d+/.exec(said)
      if (address !== null) resolve(address[0])
    })
    exited.then(() => reject(new Error(`${args.join(' ')} ended before it listened: ${said}`)))
  })
  return {
    url,
    pid: child.pid as number,
    ask,
    hold: () => ask('hold'),
    release: () => ask('release'),
    weigh: () => ask<Weight>('weigh'),
    count: () => ask('count'),
    counted: () => ask<Allocated>('counted'),
    stop,
  }
}

/** Ends a child when this process ends for any reason: the pipe to a shell closes then, and the shell ends the child. */
export function endWithUs (child: ChildProcess): void {
  if (child.pid === undefined) return
  const guard = spawn('/bin/sh', ['-c', 'read _; kill -TERM "$0"', String(child.pid)], { stdio: ['pipe', 'ignore', 'ignore'] })
  // At once: another process may soon have its pid.
  child.once('exit', () => guard.kill('SIGKILL'))
}
