import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { HttpClient } from './http-client.ts'
import type { Goal } from './contest.ts'
import { post } from './in-turns.ts'
import { benchRedis } from './redis.ts'
import { caption, circumstances, markdownTable, median, percentiles } from './report.ts'
import type { BenchOptions, Report } from './report.ts'
import { catcherKey, passerKey, startService } from './server-process.ts'

const replicas = 3
const mostWorkers = 1000
export const passesPerSecond = 500
/** How long a worker's request waits for its inbox, in seconds. */
const wait = 60
/** The scripts that catch from an inbox. */
const looking = ['take', 'turns', 'claim']
/** A handoff that comes while a replica looks makes it look once more; README.md says what the p99 is. */
const limits = { p99: 30, idle: 0, looks: 1.2 * replicas }

interface Round {
  /** Milliseconds from sending a pass to the worker's complete answer. */
  p50: number
  p99: number
  /** Looks at the inbox per second while nothing comes. */
  idle: number
  /** Looks at the inbox per handoff. */
  looks: number
}

/** Workers that wait for one inbox at three replicas: how soon a handoff reaches one of them, and what that costs Redis. */
export async function workers ({ rounds: count, seconds, waiters, say }: BenchOptions): Promise<Report> {
  const redis = await benchRedis(say)
  const number = Math.min(waiters, mostWorkers)
  const rounds: Round[] = []
  try {
    for (let round = 1; round <= count; round++) {
      const figures = await runRound(redis.url, number, seconds)
      rounds.push(figures)
      say(`workers: round ${round} of ${count}: p50 ${figures.p50.toFixed(2)}, p99 ${figures.p99.toFixed(2)} ms, ${figures.looks.toFixed(2)} looks a handoff, ${figures.idle.toFixed(1)} looks a second while nothing came`)
    }
  } finally {
    await redis.stop()
  }
  return report(rounds, number, redis.version)
}

async function runRound (url: string, number: number, seconds: number): Promise<Round> {
  const redis = new Redis(url)
  await redis.flushall('SYNC')
  const services = await Promise.all(Array.from({ length: replicas }, () => startService(url)))
  const urls = services.map(({ url }) => url)
  try {
    return await withWorkers(urls, number, async pass => {
      const before = await looksOf(urls)
      await sleep(seconds * 1000)
      const idle = (await looksOf(urls) - before) / seconds
      const times = await pass(seconds)
      return { ...percentiles(times), idle, looks: (await looksOf(urls) - before) / times.length }
    })
  } finally {
    await Promise.all(services.map(service => service.stop()))
    redis.disconnect()
  }
}

/**
 * Runs this while so many workers wait for one inbox at these replicas, each asking again at once.
 * @param run gets what passes handoffs to them for some seconds, and returns the milliseconds from sending each pass to the worker's complete answer
 */
export async function withWorkers<T> (urls: readonly string[], number: number, run: (pass: (seconds: number) => Promise<number[]>) => Promise<T>): Promise<T> {
  const client = new HttpClient((wait + 10) * 1000)
  const times: number[] = []
  const over = new AbortController()
  const work = async (at: number) => {
    const request = post(`/api/catch?wait=${wait}`, catcherKey, '{"inbox":"work"}')
    while (!over.signal.aborted) {
      const reply = await client.ask(urls[at % urls.length]!, request)
      const sent = reply === null ? undefined : /"task":"([^"]+)"/.exec(reply.body)?.[1]
      if (sent !== undefined) times.push(performance.now() - Number(sent))
    }
  }
  const working = Array.from({ length: number }, (_, at) => work(at))
  try {
    await untilWaiting(urls, number)
    return await run(async seconds => {
      const passed = await passFor(client, urls, seconds)
      for (let tries = 0; times.length < passed; tries++) {
        if (tries === 1000) throw new Error(`${passed} were passed, and ${times.length} caught`)
        await sleep(10)
      }
      return times
    })
  } finally {
    over.abort()
    client.close()
    await Promise.all(working)
  }
}

/** Passes handoffs at a constant rate; each task is the time when it was sent. @returns how many */
async function passFor (client: HttpClient, urls: readonly string[], seconds: number): Promise<number> {
  const under: Array<Promise<unknown>> = []
  const begin = performance.now()
  for (let number = 0; number < passesPerSecond * seconds; number++) {
    const due = begin + number * 1000 / passesPerSecond
    while (performance.now() < due) await sleep(1)
    under.push(client.ask(urls[number % urls.length]!, post('/api/pass', passerKey, JSON.stringify({ task: String(performance.now()), to: 'work' }))))
  }
  const replies = await Promise.all(under) as Array<{ status: number } | null>
  const wrong = replies.find(reply => reply?.status !== 201 && reply?.status !== 503)
  if (wrong !== undefined) throw new Error(`a pass was answered ${wrong?.status}`)
  // On a busy machine Redis may not answer in time; such a pass may have happened all the same.
  return replies.filter(reply => reply?.status === 201).length
}

/** Resolves when this many workers wait, by the services' own count. */
async function untilWaiting (urls: readonly string[], number: number): Promise<void> {
  for (let tries = 0; tries < 300; tries++) {
    const texts = await Promise.all(urls.map(async url => (await fetch(`${url}/metrics`)).text()))
    const waiting = texts.reduce((sum, text) => sum + Number(/^handoff_inbox_waiters (\d+)/m.exec(text)?.[1] ?? 0), 0)
    if (waiting === number) return
    await sleep(100)
  }
  throw new Error(`not all of the ${number} workers wait after 30 s`)
}

/** How often the replicas have called the scripts that catch from an inbox. */
async function looksOf (urls: readonly string[]): Promise<number> {
  const texts = await Promise.all(urls.map(async url => (await fetch(`${url}/metrics`)).text()))
  return texts.reduce((sum, text) => looking.reduce((sum, script) => sum + Number(new RegExp(`^handoff_redis_call_duration_seconds_count{script="${script}"} (\\d+)`, 'm').exec(text)?.[1] ?? 0), sum), 0)
}

function report (rounds: Round[], number: number, redisVersion: string): Report {
  const where = circumstances(redisVersion)
  const of = (figure: keyof Round) => median(rounds.map(round => round[figure]))
  const goals: Goal[] = [
    { what: `${number} workers wait for one inbox at ${replicas} replicas, ${passesPerSecond} handoffs a second: p99 of the way to one of them, ms`, atMost: limits.p99, measured: of('p99') },
    { what: 'looks at the inbox a second while nothing comes', atMost: limits.idle, measured: of('idle') },
    { what: 'looks at the inbox for each handoff, one a replica but for those that come during a look', atMost: limits.looks, measured: of('looks') },
  ]
  const table = markdownTable(['', 'measured', 'goal'], [
    ['p50 from sending the pass to the worker’s answer, ms', of('p50').toFixed(2), ''],
    ['p99', of('p99').toFixed(2), String(limits.p99)],
    ['looks at the inbox a second while nothing comes', of('idle').toFixed(1), String(limits.idle)],
    ['looks at the inbox for each handoff', of('looks').toFixed(2), limits.looks.toFixed(2)],
  ])
  return {
    table: `${table}\n${number} workers wait for one inbox at ${replicas} replicas; ${passesPerSecond} handoffs a second. Medians of ${rounds.length} rounds.\n\n${caption(where)}\n`,
    figures: { ...where, goals, workers: number, rounds },
  }
}
