import { Redis } from 'ioredis'
import { pino } from 'pino'
import { tags } from '../src/core/ids.ts'
import { openStore } from '../src/store/store.ts'
import type { ListPosition } from '../src/store/lists.ts'
import { callsOf } from './commands.ts'
import { Maker, tenant } from './handoffs.ts'
import { besideLists } from './list-beside.ts'
import type { Beside } from './list-beside.ts'
import { keepAliveClient, walk } from './pages.ts'
import type { Client } from './pages.ts'
import { benchRedis } from './redis.ts'
import { caption, circumstances, markdownTable, median, percentile } from './report.ts'
import type { BenchOptions, Report } from './report.ts'
import { startService } from './server-process.ts'

/** The largest number of items per page. */
const limit = 100
/** Requests per round for each page. */
const requests = 300
const pages = ['first', 'middle'] as const
type Page = typeof pages[number]

interface Figures {
  /** Script calls per list. */
  calls: number
  /** Redis's time per list, in milliseconds. */
  redis: number
  /** The time at an HTTP client, in milliseconds. */
  p50: number
  p99: number
}

/** One page of a very long list of waiting handoffs: its cost for Redis and its time for the client. */
export async function list ({ rounds, seconds, listed, say }: BenchOptions): Promise<Report> {
  const server = await benchRedis(say)
  const redis = new Redis(server.url)
  const found: Record<Page, Figures[]> = { first: [], middle: [] }
  try {
    const maker = new Maker(server.url)
    await maker.waiting(listed)
    await maker.close()
    say(`list: ${listed} handoffs wait`)
    // First walk through all pages, which also warms up: together they must have each handoff once, in order.
    const cursor = await overHttp(server.url, client => walk(client, limit, listed))
    for (let round = 1; round <= rounds; round++) {
      const times = await atRedis(redis, server.url, cursor)
      const answers = await overHttp(server.url, client => atClient(client, cursor))
      for (const page of pages) {
        found[page].push({ ...times[page], p50: percentile(answers[page], 0.5), p99: percentile(answers[page], 0.99) })
      }
      say(`list: round ${round} of ${rounds}: ${times.first.redis.toFixed(3)} ms at Redis, ${percentile(answers.first, 0.5).toFixed(2)} ms at the client`)
    }
  } finally {
    redis.disconnect()
    await server.stop()
  }
  const besides: Beside[] = []
  for (let round = 1; round <= rounds; round++) {
    besides.push(await besideLists(seconds, say))
    say(`list: round ${round} of ${rounds}: another tenant's status ${besides.at(-1)!.beside.toFixed(1)} ms (p99) beside lists of long tasks`)
  }
  const where = circumstances(server.version)
  return {
    table: describe(found) + `\n${limit} out of ${listed} that wait for a person. Medians of ${rounds} rounds of ${requests} requests a page, one after the other.\n\n` +
      describeBeside(besides, seconds) +
      `\n${caption(where)}\n`,
    figures: { ...where, rounds, listed, limit, requests, each: found, besides },
  }
}

/** Uses the service's own store in this process, without its sweeper, so that Redis counts no other scripts. */
async function atRedis (redis: Redis, url: string, cursor: string): Promise<Record<Page, Pick<Figures, 'calls' | 'redis'>>> {
  const log = pino({ level: 'silent' })
  const store = openStore({ url, keyPrefix: 'handoff', tags, workTtl: 86400_000, retention: 86400_000, replicas: 0, log })
  const measure = async (after: ListPosition | null) => {
    const before = await callsOf(redis, 'evalsha')
    for (let n = 0; n < requests; n++) await store.lists.waiting({ tenant }, after, limit)
    const { calls, time } = await callsOf(redis, 'evalsha')
    return { calls: (calls - before.calls) / requests, redis: (time - before.time) / 1000 / requests }
  }
  try {
    await store.lists.waiting({ tenant }, null, limit)
    return { first: await measure(null), middle: await measure(placeIn(cursor)) }
  } finally {
    await store.close()
  }
}

/** Decodes a cursor of the service. */
function placeIn (cursor: string): ListPosition {
  const [, score, id = '', mark] = Buffer.from(cursor, 'base64url').toString().split(' ')
  return { score: Number(score), id, includes: mark === 'from' }
}

async function overHttp<T> (redisUrl: string, ask: (client: Client) => Promise<T>): Promise<T> {
  const service = await startService(redisUrl)
  const client = keepAliveClient(service.url)
  try {
    return await ask(client)
  } finally {
    client.close()
    await service.stop()
  }
}

/** The time of each request in milliseconds, after as many requests as a warm-up. */
async function atClient (client: Client, cursor: string): Promise<Record<Page, number[]>> {
  const times: Record<Page, number[]> = { first: [], middle: [] }
  for (let n = 0; n < 2 * requests; n++) {
    for (const [page, path] of [['first', `?limit=${limit}`], ['middle', `?limit=${limit}&cursor=${cursor}`]] as const) {
      const { milliseconds } = await client.get(`/api/approvals${path}`)
      if (n >= requests) times[page].push(milliseconds)
    }
  }
  return times
}

function describeBeside (besides: readonly Beside[], seconds: number): string {
  const of = (figure: keyof Beside) => median(besides.map(round => round[figure]))
  return markdownTable(['100 tasks of 1 MB, listed without pause', 'measured', 'goal'], [
    ['another tenant’s status, p99, nobody lists, ms', of('alone').toFixed(2), ''],
    ['beside the lists, ms', of('beside').toFixed(2), ''],
    ['of what it is without', median(besides.map(({ alone, beside }) => beside / alone)).toFixed(2), 'under 2'],
    ['lists in that time', String(of('lists')), ''],
    ['the service’s memory, more by, MB', (of('rss') / 1e6).toFixed(0), 'under 50'],
  ]) + `\nMedians of ${besides.length} rounds of ${seconds} s with and ${seconds} s without.\n`
}

function describe (found: Record<Page, Figures[]>): string {
  return markdownTable(['page', 'script calls', 'at Redis, ms', 'at the client p50, ms', 'p99, ms', 'goal'], pages.map(page => {
    const of = (figure: keyof Figures) => median(found[page].map(round => round[figure]))
    return [page, String(of('calls')), of('redis').toFixed(3), of('p50').toFixed(2), of('p99').toFixed(2), 'one call, 2 ms']
  }))
}
