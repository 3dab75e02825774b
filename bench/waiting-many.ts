import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { commandsSent } from './commands.ts'
import { exchange } from './exchange.ts'
import { Maker } from './handoffs.ts'
import { HttpClient } from './http-client.ts'
import type { Reply } from './http-client.ts'
import { post } from './in-turns.ts'
import { benchRedis } from './redis.ts'
import type { BenchRedis } from './redis.ts'
import { caption, circumstances, markdownTable, median, percentile } from './report.ts'
import type { BenchOptions, Report } from './report.ts'
import { catcherKey, keySettings, startService } from './server-process.ts'
import { standing } from './waiting.ts'

const mostRequests = 1000
const idsEach = 100
/** What a key may have waiting at a replica. */
const waitsPerKey = 20
/** How many requests are opened at once: each reads its ids before it waits, and reads that come all at once are refused. */
const opening = 10
const wakesPerSecond = 25
/** How long it takes until the memory for opening requests is freed, in milliseconds. */
const settlingTime = 3000

interface Round {
  /** Bytes of RSS, and of that on the heap after a garbage collection, per request and per id that it waits for. */
  rss: number
  heap: number
  /** Milliseconds from the first request until all wait. */
  opened: number
  /** Calls to Redis per second beside those that replicas send in any case. */
  others: Record<string, number>
  /** Milliseconds from sending a done to the whole answer of the request that it wakes. */
  p50: number
  p99: number
}

/** Requests that each wait for a hundred handoffs at one replica: their memory, their calls to Redis, and how soon an end reaches them. */
export async function waitingMany (options: BenchOptions): Promise<Report> {
  const { rounds: count, seconds, waiters, say } = options
  const requests = Math.min(waiters, mostRequests)
  const redis = await benchRedis(say)
  const rounds: Round[] = []
  try {
    for (let round = 1; round <= count; round++) {
      const figures = await runRound(redis, requests, seconds)
      rounds.push(figures)
      say(`waiting-many: round ${round} of ${count}: ${figures.rss.toFixed(0)} bytes a request, p50 ${figures.p50.toFixed(1)}, p99 ${figures.p99.toFixed(1)} ms`)
    }
  } finally {
    await redis.stop()
  }
  return report(rounds, requests, redis.version)
}

async function runRound (server: BenchRedis, requests: number, seconds: number): Promise<Round> {
  const redis = new Redis(server.url)
  await redis.flushall('SYNC')
  const maker = new Maker(server.url)
  const ids = await maker.caught(requests * idsEach)
  await maker.close()
  const keys = Array.from({ length: Math.ceil(requests / waitsPerKey) }, (_, n) => `the-key-of-planner-${n}`)
  const planners = keys.map((key, n) => `planner-${n}:${key}`).join()
  // It starts first, so it does the sweeping while it lives.
  const here = await startService(server.url, true, { API_KEYS: `${keySettings.API_KEYS},${planners}` })
  const there = await startService(server.url)
  const client = new HttpClient(70_000)
  try {
    await exchange(there.url)
    await exchange(here.url)
    const before = await here.weigh()
    const [began, own] = [performance.now(), await channelsOf(redis)]
    const waits: Array<Promise<Reply | null>> = []
    for (let at = 0; at < requests; at++) {
      const body = JSON.stringify({ ids: ids.slice(at * idsEach, (at + 1) * idsEach), until: 'any' })
      waits.push(client.ask(here.url, post('/api/wait?wait=60', keys[Math.floor(at / waitsPerKey)]!, body)))
      if (waits.length % opening === 0 || waits.length === requests) await allSubscribed(redis, own + waits.length * idsEach)
    }
    const opened = performance.now() - began
    await sleep(settlingTime)
    const commands = await commandsSent(redis, seconds)
    const after = await here.weigh()
    const times = await wake(client, there.url, waits, ids, wakesPerSecond * seconds)
    return {
      rss: (after.asIs.rss - before.asIs.rss) / requests,
      heap: (after.collected.heapUsed - before.collected.heapUsed) / requests,
      opened,
      others: Object.fromEntries(Object.entries(commands).filter(([name]) => !standing.includes(name))),
      p50: percentile(times, 0.5),
      p99: percentile(times, 0.99),
    }
  } finally {
    await Promise.all([here.stop(), there.stop()])
    client.close()
    redis.disconnect()
  }
}

/** Ends one handoff of a request at a time, of those that were opened last. @returns how long each took to answer, in milliseconds */
async function wake (client: HttpClient, url: string, waits: ReadonlyArray<Promise<Reply | null>>, ids: readonly string[], most: number): Promise<number[]> {
  const begin = performance.now()
  const first = Math.max(0, waits.length - most)
  const times: Array<Promise<number>> = []
  for (let at = first; at < waits.length; at++) {
    const due = begin + (at - first) * 1000 / wakesPerSecond
    while (performance.now() < due) await sleep(1)
    const sent = performance.now()
    const done = client.ask(url, post(`/api/done/${ids[at * idsEach + idsEach / 2]!}`, catcherKey, '{}'))
    times.push(Promise.all([waits[at]!, done]).then(([answer, done]) => {
      const took = performance.now() - sent
      if (done?.status !== 200) throw new Error(`a done was answered ${done?.status}`)
      if (answer?.status !== 200 || !answer.body.endsWith('"complete":true}')) throw new Error(`a wait was answered ${answer?.status}: ${answer?.body.slice(-100)}`)
      return took
    }))
  }
  return await Promise.all(times)
}

/** How many shard channels have a subscriber. Their names would be read a hundred times, and in the end they are a hundred thousand. */
async function channelsOf (redis: Redis): Promise<number> {
  return Number(/^pubsubshard_channels:(\d+)/m.exec(await redis.info('stats'))?.[1])
}

async function allSubscribed (redis: Redis, count: number): Promise<void> {
  for (let tries = 0; tries < 3000; tries++) {
    if (await channelsOf(redis) === count) return
    await sleep(10)
  }
  throw new Error(`the replica has not subscribed to all handoffs within 30 s: ${await channelsOf(redis)} of ${count} channels`)
}

function report (rounds: Round[], requests: number, redisVersion: string): Report {
  const where = circumstances(redisVersion)
  const of = (figure: Exclude<keyof Round, 'others'>) => median(rounds.map(round => round[figure]))
  const others = [...new Set(rounds.flatMap(round => Object.keys(round.others)))]
  const perSecond = median(rounds.map(round => Object.values(round.others).reduce((sum, one) => sum + one, 0)))
  const table = markdownTable(['', 'measured'], [
    ['memory a request, KB of RSS', (of('rss') / 1000).toFixed(1)],
    ['of that on the heap with all garbage collected', (of('heap') / 1000).toFixed(1)],
    ['memory a handoff that one waits for, bytes of RSS', (of('rss') / idsEach).toFixed(0)],
    ['until all wait, s', (of('opened') / 1000).toFixed(1)],
    [`commands a second beside the replicas’ own while they wait${others.length > 0 ? ` (${others.join(', ')})` : ''}`, perSecond.toFixed(1)],
    ['p50 from sending the done to the woken request’s answer of a hundred items, ms', of('p50').toFixed(2)],
    ['p99', of('p99').toFixed(2)],
  ])
  return {
    table: `${table}\n${requests} requests wait at one replica, each for ${idsEach} handoffs of its own; ${wakesPerSecond} of them a second are woken, each by a done at another replica. Medians of ${rounds.length} rounds.\n\n${caption(where)}\n`,
    figures: { ...where, rounds: rounds.length, requests, idsEach, wakesPerSecond, each: rounds },
  }
}
