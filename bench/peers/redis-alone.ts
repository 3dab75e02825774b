/**
 * Redis alone: what our scripts take of it when nothing is in front of it, beside scripts that only answer with the same bytes.
 * A client of the benchmark's own sends both, to handoffs of all partitions, and redis-benchmark what it can: it makes random
 * numbers, so it can pass and can call what looks at nothing, but it can't catch each of a number of handoffs once.
 */
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { Redis } from 'ioredis'
import { defaultCacheDir, findRedisServer } from '../../src/embedded/binary.ts'
import { run, which, withEnvironment } from '../../src/embedded/programs.ts'
import type { Candidate } from '../../src/embedded/programs.ts'
import { cutMembers } from '../../src/handoff/json.ts'
import { randomId, randomToken, tagOf } from '../../src/handoff/id.ts'
import { joinPayload } from '../../src/handoff/payload.ts'
import { KeyNames, memberOf } from '../../src/store/key-names.ts'
import { loadScripts } from '../../src/redis/scripts.ts'
import { doneBody, passBody } from '../load.ts'
import { caption, circumstances, markdownTable, median } from '../report.ts'
import type { BenchOptions, Report } from '../report.ts'
import { startRedisStore } from './stores.ts'
import { trivialScript } from './trivial.ts'

const callsPerPipeline = 64
const day = '86400000'
const keys = new KeyNames('handoff')
const scripts = loadScripts()
const payload = joinPayload(cutMembers(Buffer.from(passBody)))
const result = JSON.stringify((JSON.parse(doneBody) as { output: object }).output)
const names = ['pass', 'catch', 'done'] as const
type Name = typeof names[number]

/** Microseconds of Redis's CPU a call, and calls a second. */
interface Cost { cpu: number, perSecond: number }
type Turn = Record<string, Cost>

export async function redisAlone ({ rounds: count, handoffs, say }: BenchOptions): Promise<Report> {
  const server = await startRedisStore(say)
  const redis = new Redis(server.url)
  const tool = await findBenchmark(say)
  if (tool === undefined) say('redis: there is no redis-benchmark beside redis-server or on PATH; its rows are left out')
  const turns: Turn[] = []
  try {
    for (let round = 1; round <= count; round++) {
      await server.clean()
      const turn: Turn = {}
      const ids = Array.from({ length: handoffs }, randomId)
      for (const name of names) {
        turn[`${name}, ours`] = await timed(redis, handoffs, () => callAll(redis, scripts[name].source, ids, id => callOf(name, id)))
        turn[`${name}, trivial`] = await timed(redis, handoffs, () => callAll(redis, trivialScript(name), ids, id => callOf(name, id)))
      }
      if (tool !== undefined) {
        const before = await redis.dbsize()
        turn['pass, ours, by redis-benchmark'] = await timed(redis, handoffs, () => byBenchmark(tool, redis, scripts.pass.source, handoffs, 'pass'))
        // It doesn't look at what a script answers.
        if (await redis.dbsize() < before + handoffs * 0.99) throw new Error('redis: redis-benchmark has not passed what it should have')
        for (const name of names) {
          turn[`${name}, trivial, by redis-benchmark`] = await timed(redis, handoffs, () => byBenchmark(tool, redis, trivialScript(name), handoffs, name))
        }
      }
      turns.push(turn)
      say(`redis: round ${round} of ${count}: ${names.map(name => `${name} ${turn[`${name}, ours`]?.cpu.toFixed(1)}`).join(', ')} µs of Redis's CPU`)
    }
  } finally {
    redis.disconnect()
    await server.stop()
  }
  return report(turns, server.version, { rounds: count, handoffs })
}

function report (turns: readonly Turn[], version: string, { rounds, handoffs }: Pick<BenchOptions, 'rounds' | 'handoffs'>): Report {
  const where = circumstances(version)
  const rows = Object.keys(turns[0] ?? {})
  const of = (row: string, what: keyof Cost) => median(turns.map(turn => turn[row]?.[what] ?? NaN))
  const sum = (turn: Turn, whose: string) => names.reduce((total, name) => total + (turn[`${name}, ${whose}`]?.cpu ?? NaN), 0)
  const ratio = median(turns.map(turn => sum(turn, 'ours') / sum(turn, 'trivial')))
  return {
    table: markdownTable(['script', 'Redis’s CPU, µs/call', 'calls/s'], [
      ...rows.map(row => [row, of(row, 'cpu').toFixed(1), of(row, 'perSecond').toFixed(0)]),
      ['ours / trivial, all three', ratio.toFixed(2), ''],
    ]) + `\n${callsPerPipeline} calls a pipeline on one connection. Medians of ${rounds} rounds of ${handoffs} calls each.\n\n${caption(where)}\n`,
    figures: { ...where, rounds, handoffs, callsPerPipeline, ratio, each: turns },
  }
}

type CallArguments = [keys: string[], args: Array<string | Buffer>]

/** As the service calls it. */
function callOf (name: Name, id: string, tag = tagOf(id)): CallArguments {
  const member = memberOf('default', id)
  const live = [keys.handoff(tag, member), keys.due(tag)]
  const deadline = String(Date.now() + 600_000)
  if (name === 'pass') return [live, [deadline, '-', 'passer', day, day, member, '0', payload]]
  if (name === 'catch') return [live, [deadline, randomToken(), 'catcher', day, day, member]]
  return [live, [deadline, randomToken(), 'catcher', day, member, result]]
}

async function callAll (redis: Redis, script: string, ids: readonly string[], call: (id: string) => CallArguments): Promise<void> {
  const sha1 = String(await redis.script('LOAD', script))
  for (let at = 0; at < ids.length; at += callsPerPipeline) {
    const pipeline = redis.pipeline()
    for (const id of ids.slice(at, at + callsPerPipeline)) {
      const [keys, args] = call(id)
      pipeline.evalsha(sha1, keys.length, ...keys, ...args)
    }
    for (const [error, reply] of await pipeline.exec() ?? []) {
      const [outcome] = (reply ?? []) as unknown[]
      if (error !== null || !/^(passed|caught|done)$/.test(String(outcome))) throw error ?? new Error(`redis: a script answered ${String(outcome)}`)
    }
  }
}

/**
 * All to one partition, since one number is all that is random in a command; of a handoff's key and its member each has its own.
 * @returns calls a second, as it counts them
 */
async function byBenchmark (tool: Candidate, redis: Redis, script: string, calls: number, name: Name): Promise<number> {
  const sha1 = String(await redis.script('LOAD', script))
  const [keys, args] = callOf(name, 'AAA__rand_int__0123456789', 'AAA')
  const { stdout } = await run('env', withEnvironment(tool, ['-h', redis.options.host ?? '', '-p', String(redis.options.port), '-n', String(calls),
    '-c', '1', '-P', String(callsPerPipeline), '-r', '1000000000', '--csv', 'EVALSHA', sha1, String(keys.length), ...keys, ...args.map(String)]))
  // Behind the command, which holds quotes itself: the rate and six latencies.
  const [, rate] = /,"([\d.]+)"(?:,"[\d.]+"){6}\s*$/.exec(stdout) ?? []
  if (rate === undefined) throw new Error(`redis-benchmark told no rate: ${stdout}`)
  return Number(rate)
}

/** @param work may count its calls a second itself */
async function timed (redis: Redis, calls: number, work: () => Promise<number | void>): Promise<Cost> {
  const [cpu, began] = [await cpuUsed(redis), performance.now()]
  const counted = await work()
  const seconds = (performance.now() - began) / 1000
  return { cpu: (await cpuUsed(redis) - cpu) / calls, perSecond: counted ?? calls / seconds }
}

/** All threads', in microseconds; to the microsecond, where /proc has ticks of 10 ms. */
async function cpuUsed (redis: Redis): Promise<number> {
  const info = await redis.info('cpu')
  return [...info.matchAll(/^used_cpu_(?:user|sys):([\d.]+)/gm)].reduce((total, [, seconds]) => total + Number(seconds) * 1e6, 0)
}

async function findBenchmark (say: BenchOptions['say']): Promise<Candidate | undefined> {
  const server = await findRedisServer({ serverBin: process.env.REDIS_SERVER_BIN, cacheDir: defaultCacheDir, log: say })
  const beside = join(dirname(server.path), 'redis-benchmark')
  if (existsSync(beside)) return { ...server, path: beside }
  const path = await which('redis-benchmark')
  return path === undefined ? undefined : { path }
}
