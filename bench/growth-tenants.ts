import type { Request } from 'autocannon'
import { fileURLToPath } from 'node:url'
import { costOf, medianCost, medianRatio, startPair } from './growth-pair.ts'
import type { Cost, Pair } from './growth-pair.ts'
import { doneBody, passBody, runLoad } from './load.ts'
import type { LoadResult } from './load.ts'
import { caption, circumstances, markdownTable } from './report.ts'
import type { BenchOptions, Report } from './report.ts'
import { startServer } from './server-process.ts'

const sizes = [1, 10, 100, 1_000]
const connections = 64
const main = fileURLToPath(new URL('../dist/main.js', import.meta.url))

interface Contestant { count: number, pair: Pair, costs: Cost[] }

/** pass, catch, done by agents of 1 to 1,000 tenants, each handoff by another tenant's: turn about, each service with a Redis of its own. */
export async function tenants ({ rounds, seconds, say }: Pick<BenchOptions, 'rounds' | 'seconds' | 'say'>): Promise<Report> {
  const contestants: Contestant[] = []
  try {
    for (const count of sizes) {
      contestants.push({ count, pair: await startPair(say, url => startServer([main], settings(count, url))), costs: [] })
    }
    for (const { pair, count } of contestants) await put(pair.service.url, count, Math.min(seconds, 5))
    for (let round = 1; round <= rounds; round++) {
      for (const { pair, count, costs } of round % 2 === 1 ? contestants : contestants.toReversed()) {
        await pair.redis.flushall('SYNC')
        costs.push(await costOf(pair, url => put(url, count, seconds)))
        say(`tenants: round ${round} of ${rounds}, ${count}: ${costs.at(-1)?.together.toFixed(1)} µs of CPU a request`)
      }
    }
    return report(contestants, { rounds, seconds })
  } finally {
    for (const { pair } of contestants) await pair.stop()
  }
}

function report (contestants: readonly Contestant[], { rounds, seconds }: Pick<BenchOptions, 'rounds' | 'seconds'>): Report {
  const [one] = contestants as [Contestant, ...Contestant[]]
  const where = circumstances(one.pair.server.version)
  const rows = contestants.map(({ count, costs }) => ({ tenants: count, ...medianCost(costs), ratio: medianRatio(costs, one.costs) }))
  const table = markdownTable(['tenants', 'service, µs/request', 'Redis, µs/request', 'together', 'of that with one', 'requests/s', 'p99, ms'], rows.map(row => [
    String(row.tenants), row.service.toFixed(1), row.redis.toFixed(1), row.together.toFixed(1), row.ratio.toFixed(2), row.perSecond.toFixed(0), row.p99.toFixed(2),
  ]))
  return {
    table: table + `\npass, catch, done in turn on each of ${connections} connections, each handoff of the next tenant. Medians of ${rounds} rounds of ${seconds} s.\n` +
      `\n${caption(where)}\n`,
    figures: { ...where, rounds, seconds, connections, rows, each: contestants.map(({ count, costs }) => ({ tenants: count, costs })) },
  }
}

function settings (count: number, redisUrl: string): Record<string, string> {
  const keys = Array.from({ length: count }, (_, tenant) => `tenant-${tenant}/agent:${secretOf(tenant)}`)
  return { PORT: '0', API_KEYS: keys.join(','), REDIS_URL: redisUrl, DRAIN_DELAY: '0' }
}

function secretOf (tenant: number): string {
  return `the-key-of-tenant-${tenant}`
}

/** As the mix is, but that each handoff is passed, caught and finished by the next tenant's agent. */
function put (url: string, count: number, seconds: number): Promise<LoadResult> {
  return runLoad({ url, connections, duration: seconds, requests: requests(count) })
}

function requests (count: number): Request[] {
  const json = { 'content-type': 'application/json' }
  let next = 0
  const as = (key: string | undefined, request: Request) => ({ ...request, headers: { ...request.headers, authorization: `Bearer ${key}` } })
  const onIt = (path: string) => (request: Request, { id, key }: Record<string, string>) =>
    id === undefined ? undefined : as(key, { ...request, path: path + id })
  return [
    {
      method: 'POST',
      path: '/api/pass',
      headers: json,
      body: passBody,
      setupRequest (request, context) {
        context.key = secretOf(next++ % count)
        return as(context.key, request)
      },
      onResponse (status, body, context) {
        if (status === 201) context.id = (JSON.parse(body) as { handoff_id: string }).handoff_id
      },
    },
    { method: 'GET', path: '/api/catch/', headers: {}, setupRequest: onIt('/api/catch/') },
    { method: 'POST', path: '/api/done/', headers: json, body: doneBody, setupRequest: onIt('/api/done/') },
  ]
}
