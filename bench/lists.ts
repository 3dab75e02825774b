import { Redis } from 'ioredis'
import { callsOf } from './commands.ts'
import { goalsTable } from './contest.ts'
import type { Goal } from './contest.ts'
import { Maker } from './handoffs.ts'
import { keepAliveClient } from './pages.ts'
import type { Client } from './pages.ts'
import { lasting } from './plain-load.ts'
import { benchRedis } from './redis.ts'
import { caption, circumstances, markdownTable, median, percentile } from './report.ts'
import type { BenchOptions, Report } from './report.ts'
import { approverKey, keySettings, startService } from './server-process.ts'

/** Requests for each page, and as many before them that don't count. */
const requests = 50
const otherKey = 'the-key-of-another-tenant'
/** Of so many live handoffs, these have the label that is looked for. */
const labelled = 3
const payload = Buffer.from('"task":"Count the rows.","output":{},"context":{},"constraints":null')

const pages = {
  'live, first page of 20': '/api/handoffs',
  'live, a page in the middle': '/api/handoffs?cursor=',
  'live, 3 have the label': '/api/handoffs?labels=run:42',
  'failed, first page of 20': '/api/handoffs?state=failed',
  'failed, no error has the code': '/api/handoffs?state=failed&error_code=none',
}
type PageName = keyof typeof pages

/** Of one page: script calls, Redis's time and the client's (ms); and another tenant's status beside it (p99, ms), and alone. */
interface Figures { calls: number, redis: number, p50: number, p99: number, beside: number, alone: number }

/** Lists of a tenant's live and failed handoffs: what a page costs, and what it costs others. */
export async function lists ({ rounds, seconds, listed, say }: BenchOptions): Promise<Report> {
  const server = await benchRedis(say)
  const redis = new Redis(server.url)
  const each: Array<Record<PageName, Figures>> = []
  try {
    const maker = new Maker(server.url)
    const hours = () => 3_600_000 * (1 + 20 * Math.random())
    await maker.pass(listed, payload, hours)
    await maker.pass(labelled, payload, hours, undefined, ' jrun:42')
    await maker.failed(Math.ceil(listed / 10))
    await maker.close()
    const service = await startService(server.url, false, {
      API_KEYS: `${keySettings.API_KEYS},other/requester:${otherKey}`, APPROVER_KEYS: `approver:${approverKey}`
    })
    try {
      const [client, other] = [keepAliveClient(service.url), keepAliveClient(service.url, otherKey)]
      const cursor = await middleOf(client)
      for (let round = 1; round <= rounds; round++) {
        const found = {} as Record<PageName, Figures>
        for (const [name, path] of Object.entries(pages) as Array<[PageName, string]>) {
          found[name] = await measure(redis, client, other, path.endsWith('cursor=') ? path + cursor : path, seconds)
          say(`lists: round ${round} of ${rounds}: ${name}: ${found[name].p50.toFixed(1)} ms`)
        }
        each.push(found)
      }
      client.close()
      other.close()
    } finally {
      await service.stop()
    }
  } finally {
    redis.disconnect()
    await server.stop()
  }
  const where = circumstances(server.version)
  const goals = goalsOf(each, listed)
  return {
    table: describe(each) + goalsTable(goals) + `\n${listed} live and ${Math.ceil(listed / 10)} failed, in 1,024 partitions. Medians of ${rounds} rounds of ${requests} requests a page, one after ` +
      `another; the others' status is asked one after another for ${seconds} s, with and without such requests beside it.\n\n${caption(where)}\n`,
    figures: { ...where, rounds, listed, requests, goals, each },
  }
}

async function measure (redis: Redis, client: Client, other: Client, path: string, seconds: number): Promise<Figures> {
  for (let n = 0; n < requests; n++) await client.get(path)
  const before = await callsOf(redis, 'evalsha')
  const times: number[] = []
  for (let n = 0; n < requests; n++) times.push((await client.get(path)).milliseconds)
  const { calls, time } = await callsOf(redis, 'evalsha')
  const status = '/api/inboxes/none'
  const alone = await again(other, status, lasting(seconds))
  const isOver = lasting(seconds)
  const [beside] = await Promise.all([again(other, status, isOver), again(client, path, isOver)])
  return {
    calls: (calls - before.calls) / requests,
    redis: (time - before.time) / 1000 / requests,
    p50: percentile(times, 0.5),
    p99: percentile(times, 0.99),
    alone: percentile(alone, 0.99),
    beside: percentile(beside, 0.99),
  }
}

async function again (client: Client, path: string, isOver: () => boolean): Promise<number[]> {
  const times: number[] = []
  while (!isOver()) times.push((await client.get(path)).milliseconds)
  return times
}

/** The cursor of a page that is some pages from the start. */
async function middleOf (client: Client): Promise<string> {
  let cursor = ''
  for (let page = 0; page < 10; page++) {
    const { body } = await client.get(`/api/handoffs?limit=20${cursor && `&cursor=${cursor}`}`)
    cursor = (JSON.parse(String(body)) as { next_cursor: string | null }).next_cursor ?? cursor
  }
  return cursor
}

/** Those that look at all handoffs, since few or none have what is wanted. */
const reading = new Set<PageName>(['live, 3 have the label', 'failed, no error has the code'])

/** Of each kind of page the one that is the slowest, and of all the one that delays others most. */
function goalsOf (each: ReadonlyArray<Record<PageName, Figures>>, listed: number): Goal[] {
  const names = Object.keys(pages) as PageName[]
  const largest = (of: (figures: Figures) => number, among = names) => Math.max(...among.map(name => median(each.map(round => of(round[name])))))
  const live = listed.toLocaleString('en')
  return [
    { what: `a page of 20 among ${live} live: p99 at the client, ms`, atMost: listed > 10_000 ? 150 : 30, measured: largest(({ p99 }) => p99, names.filter(name => !reading.has(name))) },
    { what: `a page that looks at all of ${live}: p99 at the client, ms for each thousand`, atMost: 5, measured: largest(({ p99 }) => p99, ['live, 3 have the label']) / (listed / 1000) },
    { what: 'p99 of another tenant’s requests beside such pages, of what it is without', atMost: 5, measured: largest(({ beside, alone }) => beside / alone) },
  ]
}

function describe (each: ReadonlyArray<Record<PageName, Figures>>): string {
  const columns = ['page', 'script calls', 'at Redis, ms', 'at the client p50, ms', 'p99, ms', 'others beside it, p99, ms', 'of what it is without']
  return markdownTable(columns, (Object.keys(pages) as PageName[]).map(name => {
    const of = (figure: keyof Figures) => median(each.map(round => round[name][figure]))
    return [
      name, of('calls').toFixed(0), of('redis').toFixed(1), of('p50').toFixed(1), of('p99').toFixed(1), of('beside').toFixed(1),
      median(each.map(round => round[name].beside / round[name].alone)).toFixed(2),
    ]
  }))
}
