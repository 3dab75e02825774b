import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import type { Goal } from './contest.ts'
import { cpuOf } from './cpu.ts'
import { HttpClient } from './http-client.ts'
import { get, inTurns, post } from './in-turns.ts'
import { benchRedis } from './redis.ts'
import { caption, circumstances, markdownTable, median } from './report.ts'
import type { BenchOptions, Report } from './report.ts'
import { catcherKey, passerKey, startService } from './server-process.ts'

/** Handoffs a turn, and connections. */
const turn = { handoffs: 3000, connections: 32 }
/** How long the last of them may take to be delivered, in milliseconds. */
const patience = 60_000
const limits = { service: 4, redis: 3.5 }
const task = 'x'.repeat(970)
/** `plain`: without a callback. The others have one, of which `told` is delivered its end, and `silent` nothing, since nothing that it tells happens. */
const ways = ['plain', 'silent', 'told'] as const
type Way = typeof ways[number]

/** Microseconds of CPU a handoff, for its pass, catch and done, and the delivery. */
interface Cost { service: number, redis: number }
type Round = Record<Way, Cost>

/** What a callback costs pass, catch and done. */
export async function callbacks ({ rounds: count, say }: BenchOptions): Promise<Report> {
  const server = await benchRedis(say)
  const redis = new Redis(server.url)
  const service = await startService(server.url, false, { WEBHOOK_SECRET: 'the-secret-of-all-webhooks', WEBHOOK_ALLOW: '127.0.0.0/8' })
  let got = 0
  const receiver = createServer((request, response) => {
    request.resume().on('end', () => {
      got++
      response.writeHead(204).end()
    })
  }).listen(0, '127.0.0.1')
  await once(receiver, 'listening')
  const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`
  const bodies: Record<Way, object> = { plain: {}, silent: { callback: { url, types: ['handoff.rejected'] } }, told: { callback: { url, result: true } } }
  const rounds: Round[] = []

  /** Counts until all is delivered, too. */
  async function costOf (way: Way): Promise<Cost> {
    const client = new HttpClient(10_000)
    const ask = (requests: string[], expected: number) => inTurns(client, service.url, requests, expected, turn.connections)
    const [before, gotBefore] = [{ service: cpuOf(service.pid), redis: cpuOf(server.pid) }, got]
    try {
      const passed = await ask(new Array<string>(turn.handoffs).fill(post('/api/pass', passerKey, JSON.stringify({ task, ...bodies[way] }))), 201)
      const ids = passed.map(text => (JSON.parse(text) as { handoff_id: string }).handoff_id)
      await ask(ids.map(id => get(`/api/catch/${id}`)), 200)
      await ask(ids.map(id => post(`/api/done/${id}`, catcherKey, '{"output":{}}')), 200)
      const owed = way === 'told' ? gotBefore + turn.handoffs : gotBefore
      await untilGot(() => owed - got)
      await sleep(500)
      return { service: (cpuOf(service.pid) - before.service) / turn.handoffs, redis: (cpuOf(server.pid) - before.redis) / turn.handoffs }
    } finally {
      client.close()
    }
  }
  try {
    for (let round = 0; round <= count; round++) {
      await redis.flushall('SYNC')
      const costs: Partial<Round> = {}
      // What came before makes a difference, to Redis's memory for instance.
      for (const way of round % 2 === 0 ? ways : [...ways].reverse()) costs[way] = await costOf(way)
      const figures = costs as Round
      // The first round is a warm-up.
      if (round > 0) rounds.push(figures)
      say(`callbacks: round ${round} of ${count}: ${ways.map(way => `${way} service ${figures[way].service.toFixed(0)}, Redis ${figures[way].redis.toFixed(0)}`).join('; ')} µs`)
    }
  } finally {
    receiver.closeAllConnections()
    receiver.close()
    await service.stop()
    redis.disconnect()
    await server.stop()
  }
  return report(rounds, server.version)
}

/** @param missing how many are to come */
async function untilGot (missing: () => number): Promise<void> {
  for (const end = performance.now() + patience; missing() > 0;) {
    if (performance.now() > end) throw new Error(`${missing()} callbacks are missing`)
    await sleep(5)
  }
}

function report (rounds: Round[], redisVersion: string): Report {
  const where = circumstances(redisVersion)
  const of = (one: (round: Round) => number) => median(rounds.map(one))
  const ratio = (way: Way, what: keyof Cost) => of(round => round[way][what] / round.plain[what])
  const goals: Goal[] = [
    { what: 'the service’s CPU of pass, catch and done with a callback that is delivered, of without', atMost: limits.service, measured: ratio('told', 'service') },
    { what: 'Redis’s CPU of pass, catch and done with a callback that is delivered, of without', atMost: limits.redis, measured: ratio('told', 'redis') },
  ]
  const names: Record<Way, string> = { plain: 'without a callback', silent: 'with one that has nothing to tell', told: 'with one that is told the end' }
  const table = markdownTable(['µs of CPU a handoff', 'service', 'of without', 'Redis', 'of without'], ways.map(way =>
    [names[way], of(round => round[way].service).toFixed(1), ratio(way, 'service').toFixed(2), of(round => round[way].redis).toFixed(1), ratio(way, 'redis').toFixed(2)]))
  return {
    table: `${table}\nMedians of ${rounds.length} turns of ${turn.handoffs.toLocaleString('en')} handoffs over ${turn.connections} connections: pass, catch, done and the delivery to a receiver on this machine.\n\n${caption(where)}\n`,
    figures: { ...where, goals, rounds },
  }
}
