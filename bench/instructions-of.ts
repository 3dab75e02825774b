import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Redis } from 'ioredis'
import ts from 'typescript'
import { tags } from '../src/handoff/id.ts'
import { KeyNames } from '../src/store/key-names.ts'
import type { Callgrind, Instructions } from './callgrind.ts'
import { passBody, passRequest, putOperation, runLoad } from './load.ts'
import type { LoadResult } from './load.ts'
import { script } from './peers/contestants.ts'
import { makeTrivial } from './peers/trivial.ts'
import { benchRedis } from './redis.ts'
import type { BenchRedis } from './redis.ts'
import { median } from './report.ts'
import { keySettings, serviceSettings, startServer, startService } from './server-process.ts'
import type { ServerProcess } from './server-process.ts'

/** So few that a service which is 50 times slower than usual keeps its own time limits, on a busy machine too. */
const connections = 4
/** Requests of each operation before they are counted. */
const warmUp = 200
/** So many rounds of so many requests of each operation are counted, and the median counts: one round may hold a collection of garbage. */
const rounds = 3
const counted = 80
/**
 * So often a round is made anew in which a request went wrong. The service gives up a call to Redis after 2 s, and under valgrind on a
 * machine that is busy with other work these may pass: what is counted is instructions of rounds in which none did.
 */
const tries = 20
/** Seconds that the load waits for an answer; by default 10. */
const patience = 120
/**
 * V8 without its optimising compiler. When that takes a function up, and what it makes of it, differs from run to run, and it
 * goes on for 10,000 requests. So JavaScript weighs several times what it does in use, and is a figure of its own. All on one
 * thread. Garbage is left alone for as long as can be: how many collections a round has would be chance.
 */
const v8 = ['--no-opt', '--single-threaded', '--no-incremental-marking', '--no-memory-reducer',
  '--min-semi-space-size=64', '--max-semi-space-size=64']

/** What Redis does by the clock it does once a second, not ten times. */
const calmRedis = ['--hz', '1', '--dynamic-hz', 'no']

const project = fileURLToPath(new URL('..', import.meta.url))

export const operations = ['pass', 'catch', 'done'] as const
/** Of each operation, instructions a request. */
export type Counts = Record<typeof operations[number], Instructions>

/** The floor's. It runs as built JavaScript, as the service does: tsx alone would take valgrind half a minute. */
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

/** The service's, on a Redis that isn't counted. */
export async function ofService (callgrind: Callgrind, say: (line: string) => void): Promise<Counts> {
  const redis = await benchRedis(say)
  try {
    await holdSweeps(redis.url)
    return await ofServer(callgrind, [join(project, 'dist/main.js')], serviceSettings(redis.url))
  } finally {
    await redis.stop()
  }
}

/** Redis's, behind the service, behind one whose scripts only answer, and behind plain commands; those aren't counted. */
export async function ofRedis (callgrind: Callgrind, say: (line: string) => void): Promise<Record<'ours' | 'trivial' | 'plain', Counts> & { version: string }> {
  const stops: Array<() => Promise<void>> = []
  const kept = <Started extends ServerProcess | BenchRedis>(started: Started) => {
    stops.unshift(started.stop)
    return started
  }
  try {
    const redis = kept(await benchRedis(say, calmRedis, callgrind.under))
    await holdSweeps(redis.url)
    const service = kept(await startService(redis.url))
    const ours = await counts(callgrind, service.url, redis.pid)
    const { main, remove } = await makeTrivial()
    stops.unshift(remove)
    const trivial = kept(await startServer([main], serviceSettings(redis.url)))
    const plain = kept(await startServer(script('plain.ts'), { ...keySettings, STORE_URL: redis.url }))
    return { ours, trivial: await counts(callgrind, trivial.url, redis.pid), plain: await counts(callgrind, plain.url, redis.pid), version: redis.version }
  } finally {
    for (const stop of stops) await stop()
  }
}

/**
 * Sweeps go by the clock, not by requests: of a service that is 50 times slower they would be a good part of what is counted. So another
 * replica holds their lease, as with all replicas but one; here one that doesn't exist and keeps it. What else goes by the clock is
 * little: a timer runs once in an iteration of the event loop at most, of which there is one for up to four requests.
 */
async function holdSweeps (url: string): Promise<void> {
  const redis = new Redis(url)
  await redis.set(new KeyNames('handoff').sweeper(tags[0] as string), 'nobody')
  redis.disconnect()
}

async function ofServer (callgrind: Callgrind, args: readonly string[], env: Record<string, string>): Promise<Counts> {
  const { url, pid, stop } = await startServer([...v8, ...args], env, false, callgrind.under)
  try {
    return await counts(callgrind, url, pid)
  } finally {
    await stop()
  }
}

async function counts (callgrind: Callgrind, url: string, pid: number): Promise<Counts> {
  await untilFaultless(() => throughAll(url, warmUp, work => work()))
  const found: Array<Record<typeof operations[number], Instructions>> = []
  for (let round = 1; round <= rounds; round++) found.push(await untilFaultless(() => throughAll(url, counted, work => callgrind.count(pid, work))))
  const each = (name: typeof operations[number]) => {
    const of = (what: keyof Instructions) => median(found.map(round => round[name][what])) / counted
    return { javascript: of('javascript'), native: of('native') }
  }
  return { pass: each('pass'), catch: each('catch'), done: each('done') }
}

/** A request of it did. */
export class WentWrong extends Error {}

/** Does it again, with other handoffs, where a request of it went wrong. */
export async function untilFaultless<T> (work: () => Promise<T>): Promise<T> {
  for (let left = tries; ; left--) {
    try {
      return await work()
    } catch (error) {
      if (!(error instanceof WentWrong) || left === 1) throw error
    }
  }
}

/** Passes so many handoffs, then catches them, then reports them done. @param around is given the work of each operation */
async function throughAll<Found> (url: string, count: number, around: (work: () => Promise<void>) => Promise<Found>): Promise<Record<typeof operations[number], Found>> {
  const ids: string[] = []
  const faultless = async (load: Promise<LoadResult>) => {
    const { requests, faults } = await load
    if (faults > 0 || requests !== count) throw new WentWrong(`${url}: ${faults} of ${requests} requests went wrong, of ${count}`)
  }
  const requests = [passRequest(passBody, id => ids.push(id))]
  return {
    pass: await around(() => faultless(runLoad({ url, connections, amount: count, sampleInt: 50, timeout: patience, requests }))),
    catch: await around(() => faultless(putOperation(url, connections, 'catch', ids, patience))),
    done: await around(() => faultless(putOperation(url, connections, 'done', ids, patience))),
  }
}
