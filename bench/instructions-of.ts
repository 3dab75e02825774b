import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'
import { tags } from '../src/core/ids.ts'
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
/** What the service of this commit starts with. */
export const main = join(project, 'dist/main.js')

export const operations = ['pass', 'catch', 'done'] as const
export type Operation = typeof operations[number]
/** Instructions per request, by operation. */
export type Counts = Record<Operation, Instructions>

type Say = (line: string) => void
interface Kept { stop: () => Promise<void> }

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
    return await kept(async keep => {
      const [found] = await counts(callgrind, [keep(await startCounted(callgrind, [join(dir, 'bench/floor.js')], keySettings))])
      return found!
    })
  } finally {
    await rm(dir, { recursive: true })
  }
}

/** The instructions of the services of these builds, each with a Redis that isn't counted. @param mains their main.js */
export async function ofServices (callgrind: Callgrind, mains: readonly string[], say: Say): Promise<Counts[]> {
  return await kept(async keep => {
    const found: Counted[] = []
    for (const main of mains) {
      const redis = keep(await benchRedis(say))
      found.push(keep(await startCounted(callgrind, [main], serviceSettings(redis.url))))
    }
    return await counts(callgrind, found)
  })
}

/** What Redis executes for a service, for what is passed by id and through an inbox. */
export interface OfRedis { byId: Counts, inbox: Counts }

/**
 * Redis's instructions with the service, with trivial scripts, and with plain commands; these clients aren't counted.
 * @param older the main.js of another build, whose service then has a Redis of its own
 */
export async function ofRedis (callgrind: Callgrind, say: Say, alsoPlain: boolean, older?: string):
Promise<{ ours: OfRedis, older?: OfRedis | undefined, trivial: Counts, plain?: Counts | undefined, version: string }> {
  return await kept(async keep => {
    const redis = keep(await benchRedis(say, calmRedis, callgrind.under))
    const held: ServerProcess[] = []
    const start = async (main: string, { url, pid }: BenchRedis): Promise<Counted> => {
      const service = keep(await startServer([heldIntervals, main], serviceSettings(url), true))
      held.push(service)
      return { url: service.url, pid, held }
    }
    const ours = await start(main, redis)
    const theirs = older === undefined ? [] : [await start(older, keep(await benchRedis(say, calmRedis, callgrind.under)))]
    for (const { url } of [ours, ...theirs]) await asUnderLoad(url)
    const answering = await makeTrivial()
    keep({ stop: answering.remove })
    const trivial = await start(answering.main, redis)
    const plain = alsoPlain ? [{ ...keep(await startServer(script('plain.ts'), { ...keySettings, STORE_URL: redis.url })), pid: redis.pid, held }] : []
    const both = [ours, ...theirs].flatMap(one => [one, { ...one, isInbox: true }])
    const all = await counts(callgrind, [trivial, ...both, ...plain])
    const [ofTrivial, byId, inbox] = all as [Counts, Counts, Counts]
    return {
      ours: { byId, inbox },
      older: older === undefined ? undefined : { byId: all[3]!, inbox: all[4]! },
      trivial: ofTrivial,
      plain: alsoPlain ? all.at(-1) : undefined,
      version: redis.version,
    }
  })
}

/**
 * Passes so much that nearly every partition has some of it, as under any load that is worth counting: the first one of a partition costs a
 * quarter more (lua/lib/due.lua).
 */
async function asUnderLoad (url: string): Promise<void> {
  const requests = [passRequest('{"task":"t"}', () => {})]
  const count = 4 * tags.length
  await untilFaultless(() => faultless(url, count, runLoad({ url, connections: 64, amount: count, sampleInt: 50, timeout: patience, requests })))
}

/** Runs work and then stops, in reverse order, what it keeps. */
async function kept<Found> (work: (keep: <Started extends Kept>(started: Started) => Started) => Promise<Found>): Promise<Found> {
  const all: Kept[] = []
  try {
    return await work(started => {
      all.unshift(started)
      return started
    })
  } finally {
    for (const { stop } of all) await stop()
  }
}

/** A server under callgrind. */
async function startCounted (callgrind: Callgrind, args: readonly string[], env: Record<string, string>): Promise<ServerProcess> {
  return await startServer([...v8, noIntervals, ...args], env, false, callgrind.under)
}

/** Where requests are sent, and the process whose instructions are counted. */
interface Counted {
  url: string
  pid: number
  /** The services with held-intervals.mjs. */
  held?: readonly ServerProcess[]
  /** Whether the handoffs go through an inbox. */
  isInbox?: boolean
}

/** Each round counts one after the other, so that whatever changes on the machine changes for all. */
async function counts (callgrind: Callgrind, all: readonly Counted[]): Promise<Counts[]> {
  const found = all.map((): Array<Record<Operation, Instructions>> => [])
  for (const { url, isInbox } of all) await untilFaultless(() => throughAll(url, warmUp, work => work(), isInbox))
  for (let left = rounds; left > 0; left--) {
    for (const [at, { url, pid, held = [], isInbox }] of all.entries()) {
      const round = () => throughAll(url, counted, work => callgrind.count(pid, work), isInbox)
      found[at]!.push(await untilFaultless(() => whileHeld(held, round)))
    }
  }
  return found.map(lowest)
}

function lowest (rounds: ReadonlyArray<Record<Operation, Instructions>>): Counts {
  const each = (name: Operation) => {
    const of = (what: keyof Instructions) => Math.min(...rounds.map(round => round[name][what])) / counted
    return { javascript: of('javascript'), native: of('native') }
  }
  return { pass: each('pass'), catch: each('catch'), done: each('done') }
}

/** Runs something while these services' intervals don't fire. */
async function whileHeld<T> (services: readonly ServerProcess[], work: () => Promise<T>): Promise<T> {
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
  url: string, count: number, around: (work: () => Promise<void>) => Promise<Found>, isInbox = false
): Promise<Record<Operation, Found>> {
  const ids: string[] = []
  const one = (operation: 'catch' | 'done') => faultless(url, count, putOperation(url, connections, operation, ids, patience))
  return {
    pass: await around(() => faultless(url, count, passRequest(isInbox ? addressedBody : passBody, id => ids.push(id)))),
    catch: await around(() => isInbox ? faultless(url, count, nextRequest) : one('catch')),
    done: await around(() => one('done')),
  }
}

/** So many requests, of which none may fail. @param load what is sent, or what is under way */
async function faultless (url: string, count: number, load: Request | Promise<LoadResult>): Promise<void> {
  const sent = load instanceof Promise ? load : runLoad({ url, connections, amount: count, sampleInt: 50, timeout: patience, requests: [load] })
  const { requests, faults } = await sent
  if (faults > 0 || requests !== count) throw new WentWrong(`${url}: ${faults} of ${requests} requests went wrong, of ${count}`)
}
