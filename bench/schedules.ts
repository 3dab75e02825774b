import { loadavg } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Goal } from './contest.ts'
import { cpuOf } from './cpu.ts'
import { benchRedis } from './redis.ts'
import type { BenchRedis } from './redis.ts'
import { caption, circumstances, markdownTable, percentile } from './report.ts'
import type { BenchOptions, Report } from './report.ts'
import { passerKey, startService } from './server-process.ts'
import type { ServerProcess } from './server-process.ts'

/** How many schedules tick once a minute, and how many requests make them at once. */
const schedulesAtOnce = { count: 1000, making: 20 }
const minute = 60_000
/** How late a run may come, in milliseconds. */
const mostLate = 1000
/** How the ticks lie within the minute. */
const spreads = { 'spread over the minute': true, 'all in one second': false } as const
type Spread = keyof typeof spreads

interface Run { scheduled_for: string, at: string, outcome: string }
/** Lateness in milliseconds; CPU as a share of a core, while they tick and, before that, while they rest. */
interface Ticking { runs: number, p50: number, p99: number, longest: number, service: number, redis: number, resting: number }

/** How late the runs of 1,000 schedules come that tick once a minute: each round is a minute. */
export async function schedules ({ rounds, say }: BenchOptions): Promise<Report> {
  const found = new Map<Spread, Ticking>()
  const load = loadavg()[0]!
  let version = ''
  for (const [name, isSpread] of Object.entries(spreads) as Array<[Spread, boolean]>) {
    const server = await benchRedis(say)
    version = server.version
    const service = await startService(server.url)
    try {
      const figures = await ticking(service, server, isSpread, rounds)
      found.set(name, figures)
      say(`schedules: ${name}: ${figures.runs} runs, late by p50 ${figures.p50} ms, p99 ${figures.p99} ms`)
    } finally {
      await service.stop()
      await server.stop()
    }
  }
  return report(found, version, rounds, load)
}

async function ticking (service: ServerProcess, server: BenchRedis, isSpread: boolean, rounds: number): Promise<Ticking> {
  const call = async (method: string, path: string, body?: object) => {
    const answer = await fetch(`${service.url}${path}`, {
      method,
      headers: { authorization: `Bearer ${passerKey}`, ...body !== undefined && { 'content-type': 'application/json' } },
      ...body !== undefined && { body: JSON.stringify(body) }
    })
    if (!answer.ok) throw new Error(`${method} ${path} was answered ${answer.status}: ${await answer.text()}`)
    return await answer.json()
  }
  const { count, making } = schedulesAtOnce
  const each = async (run: (at: number) => Promise<unknown>) => {
    for (let at = 0; at < count; at += making) await Promise.all(Array.from({ length: making }, (_, n) => run(at + n)))
  }
  const body = (at: number, startsAt: number) => ({
    every: minute / 1000,
    overlap: 'allow',
    starts_at: new Date(startsAt + (isSpread ? at * minute / count : 0)).toISOString(),
    handoff: { task: 'Write the report for {{scheduled_for}}.', to: `inbox-${at % 20}`, labels: { at: String(at) } }
  })
  const start = Math.ceil(Date.now() / 1000) * 1000 + 2 * minute
  await each(at => call('PUT', `/api/schedules/s${at}`, body(at, start)))
  if (Date.now() > start - 15_000) throw new Error('schedules: making them took too long')
  await sleep(start - 12_000 - Date.now())
  const cpu = () => ({ at: performance.now(), service: cpuOf(service.pid), redis: cpuOf(server.pid) })
  const share = (from: ReturnType<typeof cpu>, to: ReturnType<typeof cpu>, part: 'service' | 'redis') => (to[part] - from[part]) / 1000 / (to.at - from.at)
  const before = cpu()
  await sleep(start - 1000 - Date.now())
  const begun = cpu()
  await sleep(start + rounds * minute + (isSpread ? 2000 : -2000) - Date.now())
  const ended = cpu()
  const late: number[] = []
  await each(async at => {
    const { items: all } = await call('GET', `/api/schedules/s${at}/runs`) as { items: Run[] }
    // Reading takes a while.
    const items = all.filter(({ scheduled_for: time }) => Date.parse(time) < start + rounds * minute)
    if (items.length !== rounds || items.some(({ outcome }) => outcome !== 'passed')) throw new Error(`schedules: s${at} ran ${items.length} times`)
    late.push(...items.map(({ scheduled_for: time, at }) => Date.parse(at) - Date.parse(time)))
  })
  return {
    runs: late.length,
    p50: percentile(late, 0.5),
    p99: percentile(late, 0.99),
    longest: percentile(late, 1),
    service: share(begun, ended, 'service'),
    redis: share(begun, ended, 'redis'),
    resting: share(before, begun, 'service')
  }
}

function report (found: ReadonlyMap<Spread, Ticking>, redisVersion: string, rounds: number, load: number): Report {
  const where = circumstances(redisVersion)
  const all = [...found.values()]
  const row = (name: string, text: (one: Ticking) => string) => [name, ...all.map(text)]
  const percent = (part: 'service' | 'redis' | 'resting') => (one: Ticking) => `${(100 * one[part]).toFixed(1)} %`
  const rows = [
    row('runs', ({ runs }) => String(runs)),
    row('late by, p50, ms', ({ p50 }) => String(p50)),
    row('late by, p99, ms', ({ p99 }) => `${p99} (goal ≤ ${mostLate})`),
    row('late by, the longest, ms', ({ longest }) => String(longest)),
    row('the service, of a core', percent('service')),
    row('Redis, of a core', percent('redis')),
    row('the service before the first tick, of a core', percent('resting'))
  ]
  const goals: Goal[] = [...found].map(([name, { p99 }]) => ({
    what: `p99 by which runs of 1,000 schedules a minute are late, ${name}, ms`, atMost: mostLate, measured: p99
  }))
  return {
    table: markdownTable(['', ...found.keys()], rows) + `\n${schedulesAtOnce.count.toLocaleString('en')} schedules that tick once a minute, for ` +
      `${rounds} ${rounds === 1 ? 'minute' : 'minutes'}; late: from the tick until its handoff was made, by Redis’s clock. The machine’s load was ` +
      `${load.toFixed(1)} at the start.\n\n${caption(where)}\n`,
    figures: { ...where, rounds, load, goals, each: Object.fromEntries(found) },
  }
}
