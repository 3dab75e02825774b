import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { HttpClient } from './http-client.ts'
import type { Goal } from './contest.ts'
import { cpuOf } from './cpu.ts'
import { get, inTurns, post } from './in-turns.ts'
import { benchRedis } from './redis.ts'
import { caption, circumstances, markdownTable, median, percentile } from './report.ts'
import type { BenchOptions, Report } from './report.ts'
import { catcherKey, passerKey, startService } from './server-process.ts'
import type { ServerProcess } from './server-process.ts'

/** Handoffs a turn, and connections. */
const turn = { handoffs: 3000, connections: 32 }
/** Transitions a second while events are timed. */
const rate = 1000
/** Events a turn, a handoff's three. */
const eventsOf = 3 * turn.handoffs
// Redis: an XADD an event, and its place in the append-only file, are 1.16 to 1.21 of the instructions without events; the event's text and the
// notice come on top (bench/README.md, "Goals that are missed, and why"). In CPU it is less, since the kernel's part of a call is the same with events.
const limits = { redis: 1.15, service: 1.05, bytes: 250, p50: 20, p99: 200 }
const body = JSON.stringify({ task: 'x'.repeat(970) })

const ways = ['off', 'on'] as const
type Way = typeof ways[number]

/** Microseconds of CPU a handoff, for its pass, catch and done. */
interface Cost { service: number, redis: number }
interface Round extends Record<Way, Cost> { bytes: number, p50: number, p99: number }

/** What events cost pass, catch and done, how much an event takes in the feed, and how soon it is read. */
export async function events ({ rounds: count, seconds, say }: BenchOptions): Promise<Report> {
  const server = await benchRedis(say)
  const redis = new Redis(server.url)
  const [off, on] = await Promise.all([startService(server.url), startService(server.url, false, { EVENTS_RETENTION: '3600', REDIS_KEY_PREFIX: 'told' })])
  const rounds: Round[] = []
  try {
    for (let round = 0; round <= count; round++) {
      await redis.flushall('SYNC')
      const figures = { ...await costsOf({ off, on }, server.pid, round % 2 === 0 ? ['off', 'on'] : ['on', 'off']), bytes: await bytesOf(redis), ...await delaysOf(on, seconds) }
      // The first round is a warm-up.
      if (round > 0) rounds.push(figures)
      say(`events: round ${round} of ${count}: service ${ratio(figures, 'service').toFixed(2)}, Redis ${ratio(figures, 'redis').toFixed(2)}, ${figures.bytes.toFixed(0)} bytes, read after p50 ${figures.p50.toFixed(1)}, p99 ${figures.p99.toFixed(1)} ms`)
    }
  } finally {
    await Promise.all([off.stop(), on.stop()])
    redis.disconnect()
    await server.stop()
  }
  return report(rounds, server.version)
}

const ratio = ({ off, on }: Round, what: keyof Cost) => on[what] / off[what]

/** @param order who has the first turn: what came before makes a difference, to Redis's memory for instance */
async function costsOf (services: Record<Way, ServerProcess>, redisPid: number, order: readonly Way[]): Promise<Record<Way, Cost>> {
  const costs: Partial<Record<Way, Cost>> = {}
  for (const way of order) costs[way] = await costOf(services[way], redisPid)
  return costs as Record<Way, Cost>
}

/** Counts until the events are in the feed, too. */
async function costOf (service: ServerProcess, redisPid: number): Promise<Cost> {
  const client = new HttpClient(10_000)
  const ask = (requests: string[], expected: number) => inTurns(client, service.url, requests, expected, turn.connections)
  const before = { service: cpuOf(service.pid), redis: cpuOf(redisPid) }
  try {
    const passed = await ask(new Array<string>(turn.handoffs).fill(post('/api/pass', passerKey, body)), 201)
    const ids = passed.map(text => (JSON.parse(text) as { handoff_id: string }).handoff_id)
    await ask(ids.map(id => get(`/api/catch/${id}`)), 200)
    await ask(ids.map(id => post(`/api/done/${id}`, catcherKey, '{"output":{}}')), 200)
    await sleep(500)
    return { service: (cpuOf(service.pid) - before.service) / turn.handoffs, redis: (cpuOf(redisPid) - before.redis) / turn.handoffs }
  } finally {
    client.close()
  }
}

/** What an event of the last turn takes in Redis. */
async function bytesOf (redis: Redis): Promise<number> {
  const feed = 'told:e:default'
  const length = await redis.xlen(feed)
  if (length !== eventsOf) throw new Error(`the feed has ${length} of ${eventsOf} events`)
  return (await redis.memory('USAGE', feed, 'SAMPLES', 0))! / length
}

/** The milliseconds from an acknowledged pass to its event, by a reader that waits, at a constant rate. */
async function delaysOf ({ url }: ServerProcess, seconds: number): Promise<Pick<Round, 'p50' | 'p99'>> {
  const client = new HttpClient(10_000)
  const acknowledged = new Map<string, number>()
  const delays: number[] = []
  const stop = new AbortController()
  const response = await fetch(`${url}/api/events`, { headers: { accept: 'text/event-stream', authorization: `Bearer ${catcherKey}` }, signal: stop.signal })
  const reading = readStream(response, (id, at) => {
    // A reader may hear of it before its passer does.
    delays.push(Math.max(0, at - (acknowledged.get(id) ?? at)))
  }).catch(() => {})
  try {
    const under: Array<Promise<void>> = []
    const begin = performance.now()
    const total = rate * seconds
    for (let number = 0; number < total; number++) {
      while (performance.now() < begin + number * 1000 / rate) await sleep(1)
      under.push(client.ask(url, post('/api/pass', passerKey, body)).then(reply => {
        if (reply?.status !== 201) throw new Error(`a pass was answered ${reply?.status}`)
        acknowledged.set((JSON.parse(reply.body.toString()) as { handoff_id: string }).handoff_id, performance.now())
      }))
    }
    await Promise.all(under)
    for (let tries = 0; delays.length < total; tries++) {
      if (tries === 1000) throw new Error(`${delays.length} of ${total} events were read`)
      await sleep(10)
    }
    return { p50: percentile(delays, 0.5), p99: percentile(delays, 0.99) }
  } finally {
    stop.abort()
    await reading
    client.close()
  }
}

async function readStream (response: Response, heard: (id: string, at: number) => void): Promise<void> {
  let rest = ''
  for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
    const at = performance.now()
    const frames = (rest + chunk).split('\n\n')
    rest = frames.pop()!
    for (const frame of frames) {
      const id = /"handoff_id":"([^"]+)"/.exec(frame)?.[1]
      if (id !== undefined) heard(id, at)
    }
  }
}

function report (rounds: Round[], redisVersion: string): Report {
  const where = circumstances(redisVersion)
  const of = (one: (round: Round) => number) => median(rounds.map(one))
  const goals: Goal[] = [
    { what: 'Redis’s CPU of pass, catch and done with events, of without', atMost: limits.redis, measured: of(round => ratio(round, 'redis')) },
    { what: 'the service’s CPU of pass, catch and done with events, of without', atMost: limits.service, measured: of(round => ratio(round, 'service')) },
    { what: 'bytes that an event takes in the feed', atMost: limits.bytes, measured: of(({ bytes }) => bytes) },
    { what: `milliseconds until an event is read at ${rate} transitions a second, p50`, atMost: limits.p50, measured: of(({ p50 }) => p50) },
    { what: `milliseconds until an event is read at ${rate} transitions a second, p99`, atMost: limits.p99, measured: of(({ p99 }) => p99) },
  ]
  const table = markdownTable(['µs of CPU a handoff', 'service', 'Redis'], ways.map(way =>
    [`events ${way}`, of(round => round[way].service).toFixed(1), of(round => round[way].redis).toFixed(1)]))
  return {
    table: `${table}\nAn event takes ${of(({ bytes }) => bytes).toFixed(0)} bytes in the feed, and is read ${of(({ p50 }) => p50).toFixed(1)} ms (p50) and ${of(({ p99 }) => p99).toFixed(1)} ms (p99) after its pass was acknowledged. ` +
      `Medians of ${rounds.length} turns of ${turn.handoffs.toLocaleString('en')} handoffs over ${turn.connections} connections.\n\n${caption(where)}\n`,
    figures: { ...where, goals, rounds },
  }
}
