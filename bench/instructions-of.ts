import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { Redis } from 'ioredis'
import ts from 'typescript'
import { tags } from '../src/core/ids.ts'
import { KeyNames } from '../src/store/key-names.ts'
import type { Callgrind, Instructions } from './callgrind.ts'
import type { Request } from 'autocannon'
import { addressedBody, nextRequest, passBody, passRequest, putOperation, runLoad } from './load.ts'
import type { LoadResult } from './load.ts'
import { script } from './peers/contestants.ts'
import { makeTrivial } from './peers/trivial.ts'
import { benchRedis } from './redis.ts'
import type { BenchRedis } from './redis.ts'
import { keySettings, serviceSettings, startServer } from './server-process.ts'
import type { ServerProcess } from './server-process.ts'

/** Few enough connections that a service that is 50 times slower than usual meets its own time limits, even on a busy machine. */
const connections = 4
/** Requests of each operation before they are counted. */
const warmUp = 200
/** Counted rounds, and requests of each operation per round. The lowest counts: a garbage collection or a lazy compilation only ever adds. */
const rounds = 3
const counted = 80
/**
 * How often a round with a failed request is repeated. The service gives up a call to Redis after 2 s, which valgrind on a busy machine
 * may exceed. Only rounds without failures are counted.
 */
const tries = 20
/** Seconds that the load waits for an answer; by default 10. */
const patience = 120
/**
 * V8 without its optimising compiler, whose timing and results differ between runs, and which goes on for 10,000 requests. So JavaScript costs
 * several times what it does in production, and has a figure of its own. All on one thread. Garbage collection is delayed as long as possible,
 * since the number of collections per round would be random.
 */
const v8 = ['--no-opt', '--single-threaded', '--no-incremental-marking', '--no-memory-reducer',
  '--min-semi-space-size=64', '--max-semi-space-size=64']

/** What depends on time doesn't count: neither in a server, nor what a server asks of Redis where that is counted. */
const [noIntervals, heldIntervals] = ['no', 'held'].map(how => `--import=${new URL(`${how}-intervals.mjs`, import.meta.url).href}`) as [string, string]

/** Redis's timer runs once a second instead of ten times. */
const calmRedis = ['--hz', '1', '--dynamic-hz', 'no']

const project = fileURLToPath(new URL('..', import.meta.url))
const main = join(project, 'dist/main.js')

export const operations = ['pass', 'catch', 'done'] as const
/** Instructions per request, by operation. */
export type Counts = Record<typeof operations[number], Instructions>

/** The floor's instructions. It runs as built JavaScript like the service, because tsx alone would take half a minute under valgrind. */
export async function ofFloor (callgrind: Callgrind): Promise<Counts> {
  const dir = await mkdtemp(join(tmpdir(), 'handoff-bench-floor-'))
  try {
    for (const file of ['floor', 'peers/app']) {
      const source = await readFile(join(project, 'bench', `${file}.ts`), 'utf8')
      const { outputText } = ts.transpileModule(source, { compilerOptions: { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext, rewriteRelativeImportExtensions: true } })
      await mkdir(dirname(join(dir, 'bench', file)), { recursive: true })
      await writeFile(join(dir, 'bench', `${file}.js`), outputText)
    }
    for (const [link, target] of [['src', 'dist'], ['node_modules', 'node_modules'], ['package.json', 'package.json']] as const) await symlink(join(project, target), join(dir, link))
    return await ofServer(callgrind, [join(dir, 'bench/floor.js')], keySettings)
  } finally {
    await rm(dir, { recursive: true })
  }
}

/** The service's instructions, with a Redis that isn't counted. */
export async function ofService (callgrind: Callgrind, say: (line: string) => void): Promise<Counts> {
  const redis = await benchRedis(say)
  try {
    return await ofServer(callgrind, [main], serviceSettings(redis.url))
  } finally {
    await redis.stop()
  }
}

/** Redis's instructions with the service, with trivial scripts, and with plain commands; these clients aren't counted. */
export async function ofRedis (callgrind: Callgrind, say: (line: string) => void, alsoPlain: boolean):
Promise<Record<'ours' | 'inbox' | 'trivial', Counts> & { plain?: Counts, version: string }> {
  const stops: Array<() => Promise<void>> = []
  const kept = <Started extends ServerProcess | BenchRedis>(started: Started) => {
    stops.unshift(started.stop)
    return started
  }
  try {
    const redis = kept(await benchRedis(say, calmRedis, callgrind.under))
    const service = kept(await startServer([heldIntervals, main], serviceSettings(redis.url), true))
    await asUnderLoad(redis.url)
    const ours = await counts(callgrind, service.url, redis.pid, [service])
    const inbox = await counts(callgrind, service.url, redis.pid, [service], true)
    const { main: trivialMain, remove } = await makeTrivial()
    stops.unshift(remove)
    const trivial = kept(await startServer([heldIntervals, trivialMain], serviceSettings(redis.url), true))
    const beside = [service, trivial]
    const found = { ours, inbox, trivial: await counts(callgrind, trivial.url, redis.pid, beside), version: redis.version }
    if (!alsoPlain) return found
    const plain = kept(await startServer(script('plain.ts'), { ...keySettings, STORE_URL: redis.url }))
    return { ...found, plain: await counts(callgrind, plain.url, redis.pid, beside) }
  } finally {
    for (const stop of stops) await stop()
  }
}

/**
 * Every partition has had a pass within the last ten minutes, as under any load that is worth counting: the first one costs a quarter more
 * (lua/lib/due.lua).
 */
async function asUnderLoad (url: string): Promise<void> {
  const redis = new Redis(url)
  const keys = new KeyNames('handoff')
  const all = redis.pipeline()
  for (const tag of tags) all.zadd(keys.due(tag, 'default'), 'inf', '-').zadd(keys.tenants(tag), Date.now() + 600_000, 'default')
  await all.exec()
  await redis.quit()
}

async function ofServer (callgrind: Callgrind, args: readonly string[], env: Record<string, string>): Promise<Counts> {
  const { url, pid, stop } = await startServer([...v8, noIntervals, ...args], env, false, callgrind.under)
  try {
    return await counts(callgrind, url, pid)
  } finally {
    await stop()
  }
}

/**
 * @param beside the services with held-intervals.mjs
 * @param isInbox whether the handoffs go through an inbox
 */
async function counts (callgrind: Callgrind, url: string, pid: number, beside: readonly ServerProcess[] = [], isInbox = false): Promise<Counts> {
  await untilFaultless(() => throughAll(url, warmUp, work => work(), isInbox))
  const found: Array<Record<typeof operations[number], Instructions>> = []
  const round = () => throughAll(url, counted, work => callgrind.count(pid, work), isInbox)
  for (let left = rounds; left > 0; left--) found.push(await untilFaultless(() => held(beside, round)))
  const each = (name: typeof operations[number]) => {
    const of = (what: keyof Instructions) => Math.min(...found.map(round => round[name][what])) / counted
    return { javascript: of('javascript'), native: of('native') }
  }
  return { pass: each('pass'), catch: each('catch'), done: each('done') }
}

/** Runs something while these services' intervals don't fire. */
async function held<T> (services: readonly ServerProcess[], work: () => Promise<T>): Promise<T> {
  await Promise.all(services.map(({ hold }) => hold()))
  try {
    return await work()
  } finally {
    await Promise.all(services.map(({ release }) => release()))
  }
}

/** A request of the round failed. */
export class WentWrong extends Error {}

/** Repeats a round with other handoffs if a request failed. */
export async function untilFaultless<T> (work: () => Promise<T>): Promise<T> {
  for (let left = tries; ; left--) {
    try {
      return await work()
    } catch (error) {
      if (!(error instanceof WentWrong) || left === 1) throw error
      // A service that has just lost its Redis looks again by the clock.
      await sleep(1000)
    }
  }
}

/** Passes this many handoffs, then catches them, then reports them done. @param around wraps the work of each operation */
async function throughAll<Found> (
  url: string, count: number, around: (work: () => Promise<void>) => Promise<Found>, isInbox: boolean
): Promise<Record<typeof operations[number], Found>> {
  const ids: string[] = []
  const faultless = async (load: Promise<LoadResult>) => {
    const { requests, faults } = await load
    if (faults > 0 || requests !== count) throw new WentWrong(`${url}: ${faults} of ${requests} requests went wrong, of ${count}`)
  }
  const all = (request: Request) => faultless(runLoad({ url, connections, amount: count, sampleInt: 50, timeout: patience, requests: [request] }))
  return {
    pass: await around(() => all(passRequest(isInbox ? addressedBody : passBody, id => ids.push(id)))),
    catch: await around(() => isInbox ? all(nextRequest) : faultless(putOperation(url, connections, 'catch', ids, patience))),
    done: await around(() => faultless(putOperation(url, connections, 'done', ids, patience))),
  }
}
