import { setTimeout as sleep } from 'node:timers/promises'
import { HttpClient } from './http-client.ts'
import type { Goal } from './contest.ts'
import { cpuOf } from './cpu.ts'
import { Maker, payloadOf } from './handoffs.ts'
import { startPair } from './growth-pair.ts'
import type { Pair } from './growth-pair.ts'
import { get, inTurns, post } from './in-turns.ts'
import { lasting, openLoad } from './plain-load.ts'
import { caption, circumstances, markdownTable, median, percentile } from './report.ts'
import type { BenchOptions, Report } from './report.ts'
import { catcherKey, passerKey } from './server-process.ts'

/** Operations of each kind per turn, and connections. */
const turn = { requests: 4000, connections: 32 }
/** The most handoffs that stall within one second, and the other requests per second beside them. */
const stalling = { count: 100_000, perSecond: 500 }
const weighed = 20_000
const payload = payloadOf(1024)
const limits = { bytes: 200, cpu: 1.5, heartbeat: 1.1, seconds: 6.5, p99Ratio: 2 }

const task = 'x'.repeat(970)
const schema = JSON.stringify({ type: 'object', properties: Object.fromEntries(Array.from({ length: 22 }, (_, at) => [`member_${at}`, { type: 'string', maxLength: 99 }])) })
const withOptions = { heartbeat_within: 60, max_attempts: 3, result_schema: JSON.parse(schema) as object }

type Costs = Record<'pass' | 'catch' | 'done' | 'passWith' | 'catchWith' | 'heartbeat', number>

/** The cost of windows, attempts and a result schema beyond a plain handoff, and how soon stalled handoffs get successors. */
export async function attempts ({ rounds, seconds, due, say }: BenchOptions): Promise<Report> {
  const pair = await startPair(say)
  try {
    const costs: Costs[] = []
    for (let round = 0; round <= rounds; round++) {
      const found = await costsOf(pair)
      // The first round is a warm-up.
      if (round > 0) costs.push(found)
    }
    const bytes = await bytesOf(pair)
    say(`attempts: ${bytes.toFixed(0)} bytes`)
    const stalled = await stallsOf(pair, Math.min(stalling.count, due), seconds, say)
    return report(costs, bytes, stalled, pair.server.version)
  } finally {
    await pair.stop()
  }
}

/** CPU of the service and Redis, microseconds a request. */
async function costsOf (pair: Pair): Promise<Costs> {
  const client = new HttpClient(10_000)
  const cpu = () => cpuOf(pair.service.pid) + cpuOf(pair.server.pid)
  const measured = async (expected: number, requests: string[]): Promise<{ cost: number, bodies: string[] }> => {
    const before = cpu()
    const bodies = await inTurns(client, pair.service.url, requests, expected, turn.connections)
    return { cost: (cpu() - before) / requests.length, bodies }
  }
  const times = <T>(make: (index: number) => T) => Array.from({ length: turn.requests }, (_, index) => make(index))
  const idsOf = (bodies: string[]) => bodies.map(body => (JSON.parse(body) as { handoff_id: string }).handoff_id)
  try {
    const plain = await measured(201, times(() => post('/api/pass', passerKey, JSON.stringify({ task }))))
    const other = await measured(201, times(() => post('/api/pass', passerKey, JSON.stringify({ task, ...withOptions }))))
    const [plainIds, otherIds] = [idsOf(plain.bodies), idsOf(other.bodies)]
    const caught = await measured(200, plainIds.map(id => get(`/api/catch/${id}`)))
    const caughtWith = await measured(200, otherIds.map(id => get(`/api/catch/${id}`)))
    const heartbeat = await measured(200, otherIds.map(id => post(`/api/heartbeat/${id}`, catcherKey, '{}')))
    const done = await measured(200, plainIds.map(id => post(`/api/done/${id}`, catcherKey, '{"output":{}}')))
    return { pass: plain.cost, catch: caught.cost, done: done.cost, passWith: other.cost, catchWith: caughtWith.cost, heartbeat: heartbeat.cost }
  } finally {
    client.close()
  }
}

/** Sizes of payloads: Redis's allocator rounds up, to a quarter of the next power of two, so one size alone gives any answer between -400 and 500. */
const weighedSizes = Array.from({ length: 16 }, (_, at) => 512 + 64 * at)

/** Redis's memory for the options, without payload and schema: the mean over payloads of many sizes. */
async function bytesOf ({ redis, server }: Pair): Promise<number> {
  const used = async () => Number(/used_memory:(\d+)/.exec(await redis.info('memory'))?.[1])
  const weigh = async (options: string, more: Buffer) => {
    const maker = new Maker(server.url)
    await redis.flushall('SYNC')
    const empty = await used()
    for (const size of weighedSizes) await maker.pass(weighed / weighedSizes.length, Buffer.concat([payloadOf(size), more]), undefined, undefined, options)
    await maker.close()
    await sleep(3000)
    return (await used() - empty) / weighed
  }
  const text = Buffer.from(schema)
  const plain = await weigh('', Buffer.alloc(0))
  const other = await weigh(` b60000 m3 s${'x'.repeat(22)} z${text.length}`, text)
  await redis.flushall('SYNC')
  return other - plain - text.length
}

interface Stalled { count: number, seconds: number, p99: [before: number, during: number] }

/** This many caught handoffs miss their heartbeat within one second: how long it takes until all have successors, and the effect on other requests. */
async function stallsOf ({ redis, server, service }: Pair, count: number, before: number, say: (line: string) => void): Promise<Stalled> {
  await redis.flushall('SYNC')
  const maker = new Maker(server.url)
  const began = performance.now()
  const trial = Math.ceil(count / 20)
  await maker.passAndCatch(trial, payload, () => 3600_000)
  const making = (performance.now() - began) / trial * count
  await redis.flushall('SYNC')
  const first = Date.now() + 2 * making + (before + 3) * 1000
  await maker.passAndCatch(count, payload, () => Math.round(first + 1000 * Math.random() - Date.now()))
  await maker.close()
  if (Date.now() > first - before * 1000) throw new Error('attempts: making the handoffs took too long')
  await sleep(first - Date.now() - before * 1000)
  const reissued = async () => Number(/handoff_reissued_total\{because="stalled"\} (\d+)/.exec(await (await fetch(`${service.url}/metrics`)).text())?.[1])
  let over = Infinity
  const load = openLoad(service.url, stalling.perSecond, () => over < Infinity)
  load.catch(() => {})
  const due = first - Date.now() + performance.now()
  try {
    const give = lasting(120)
    while (await reissued() < count && !give()) await sleep(100)
  } finally {
    over = performance.now()
  }
  const { times } = await load
  const p99 = (from: number, to: number) => percentile(times.filter(({ due }) => due >= from && due < to).map(({ milliseconds }) => milliseconds), 0.99)
  const found: Stalled = { count, seconds: (over - due) / 1000, p99: [p99(-Infinity, due), p99(due, over)] }
  say(`attempts: ${count} stalled, reissued ${found.seconds.toFixed(1)} s after the first, p99 of the rest ${found.p99[1].toFixed(1)} ms, before ${found.p99[0].toFixed(1)}`)
  return found
}

function report (costs: Costs[], bytes: number, { count, seconds, p99 }: Stalled, redisVersion: string): Report {
  const where = circumstances(redisVersion)
  const of = (name: keyof Costs) => median(costs.map(cost => cost[name]))
  const ratio = (one: (cost: Costs) => number) => median(costs.map(one))
  const [passAndCatch, heartbeat] = [ratio(cost => (cost.passWith + cost.catchWith) / (cost.pass + cost.catch)), ratio(cost => cost.heartbeat / cost.done)]
  const table = markdownTable(['µs of CPU a request, service and Redis', 'plain', 'with windows, attempts and a schema of 1 KB'], [
    ['pass', of('pass').toFixed(1), of('passWith').toFixed(1)],
    ['catch', of('catch').toFixed(1), of('catchWith').toFixed(1)],
    ['done', of('done').toFixed(1), ''],
    ['heartbeat', '', of('heartbeat').toFixed(1)],
  ])
  const goals: Goal[] = [
    { what: 'pass and catch with options, CPU, of plain ones', atMost: limits.cpu, measured: passAndCatch },
    { what: 'a heartbeat’s CPU, of a done’s', atMost: limits.heartbeat, measured: heartbeat },
    { what: 'bytes that windows, attempts and a schema take beyond the schema, the mean over payloads of 512 to 1,472 bytes', atMost: limits.bytes, measured: bytes },
    { what: `${count.toLocaleString('en')} that stall in one second have successors after, s`, atMost: limits.seconds, measured: seconds },
    { what: 'p99 of the rest meanwhile, of what it was', atMost: limits.p99Ratio, measured: p99[1] / p99[0] },
  ]
  return {
    table: `${table}\nPass and catch with options take ${passAndCatch.toFixed(2)} of plain ones’ CPU, a heartbeat ${heartbeat.toFixed(2)} of a done’s; medians of ${costs.length} turns. ` +
      `The options take ${bytes.toFixed(0)} bytes of Redis beyond the schema, the mean over payloads of ${weighedSizes.length} sizes. ${count.toLocaleString('en')} that stalled within one second had successors ${seconds.toFixed(1)} s after the first, ` +
      `p99 of the rest ${p99[1].toFixed(1)} ms, before ${p99[0].toFixed(1)}.\n\n${caption(where)}\n`,
    figures: { ...where, goals, costs, bytes, count, seconds, p99 },
  }
}
