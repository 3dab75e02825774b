import { setTimeout as sleep } from 'node:timers/promises'
import { tags } from '../src/core/ids.ts'
import type { Goal } from './contest.ts'
import { cpuOf } from './cpu.ts'
import { exchange } from './exchange.ts'
import { Maker, payloadOf } from './handoffs.ts'
import { startFleet } from './due-fleet.ts'
import type { Fleet } from './due-fleet.ts'
import { lasting, openLoad } from './plain-load.ts'
import type { Timed } from './plain-load.ts'
import { caption, circumstances, markdownTable, median, percentile } from './report.ts'
import type { BenchOptions, Report } from './report.ts'

/** The size of the due handoffs' payloads, in bytes. */
const payload = payloadOf(1024)
/** Other requests per second. */
const perSecond = 1_500
/** How many partitions' indexes are checked in how many milliseconds, also before the deadline: checking all at once would itself delay Redis. */
const look = { partitions: 32, every: 20 }
/** By the number of masters: seconds until all are gone, and how many times as long the slowest of the rest take meanwhile. */
const limits: Record<number, { gone: number, p99: number }> = { 1: { gone: 20, p99: 2.2 }, 2: { gone: 11, p99: 2 } }

interface Latency { requests: number, unavailable: number, p50: number, p99: number, longest: number }
interface Figures {
  /** From the first deadline until the last handoff has left the index. */
  seconds: number
  before: Latency
  during: Latency
  p99Ratio: number
  /** Share of a core, before and during the sweep; of all masters together. */
  redis: [number, number]
  service: [number, number]
}

/** Very many uncaught handoffs come due within one second: how long the sweep takes, and the effect on other requests. With one master, and with two. */
export async function due ({ rounds, seconds, due: count, say }: BenchOptions): Promise<Report> {
  const found = new Map<number, Figures[]>()
  let version = ''
  for (const masters of Object.keys(limits).map(Number)) {
    const each: Figures[] = []
    found.set(masters, each)
    const fleet = await startFleet(masters, say)
    version = fleet.version
    try {
      await exchange(fleet.service.url)
      await openLoad(fleet.service.url, perSecond, lasting(Math.min(seconds, 5)))
      for (let round = 1; round <= rounds; round++) {
        const figures = await sweepOf(count, fleet, seconds)
        each.push(figures)
        const { during, before } = figures
        say(`due: ${masters} masters, round ${round} of ${rounds}: gone in ${figures.seconds.toFixed(1)} s, p99 of the rest ${during.p99.toFixed(1)} ms, before ${before.p99.toFixed(1)}`)
      }
    } finally {
      await fleet.stop()
    }
  }
  return report(found, version, { rounds, seconds, due: count })
}

async function sweepOf (count: number, fleet: Fleet, seconds: number): Promise<Figures> {
  const { service } = fleet
  const first = await makeDue(count, fleet, seconds)
  await sleep(first - Date.now() - (seconds + 1) * 1000)
  const cpu = () => ({ at: performance.now(), redis: fleet.cpu(), service: cpuOf(service.pid) })
  let gone = Infinity
  const load = openLoad(service.url, perSecond, () => gone < Infinity)
  load.catch(() => {}) // awaited below, together with the other promise
  const start = cpu()
  let dueAt = start
  try {
    // An emptied index stays empty, so all are empty once each has been seen empty.
    for (let at = 0; at < tags.length; at += look.partitions) {
      while (await fleet.countLive(lastOf(first), tags.slice(at, at + look.partitions)) > 0) {
        if (Date.now() < first) dueAt = cpu()
        await sleep(look.every)
      }
    }
  } finally {
    gone = performance.now()
  }
  const end = cpu()
  const { times } = await load
  const begin = first - Date.now() + performance.now()
  const before = latency(times.filter(({ due }) => due >= begin - seconds * 1000 && due < begin))
  const during = latency(times.filter(({ due }) => due >= begin && due < gone))
  const share = (part: 'redis' | 'service'): [number, number] =>
    [[start, dueAt], [dueAt, end]].map(([from, to]) => ((to?.[part] ?? NaN) - (from?.[part] ?? NaN)) / 1000 / ((to?.at ?? NaN) - (from?.at ?? NaN))) as [number, number]
  return { seconds: (gone - begin) / 1000, before, during, p99Ratio: during.p99 / before.p99, redis: share('redis'), service: share('service') }
}

/** A time when all of these are due, and none of the load's handoffs yet. */
function lastOf (first: number): number {
  return first + 60_000
}

/**
 * Empties Redis and makes the handoffs, early enough to measure other requests first.
 * @returns when the first is due; the last follows within a second
 */
async function makeDue (count: number, fleet: Fleet, seconds: number): Promise<number> {
  const maker = new Maker(fleet.url)
  try {
    // This machine's speed decides how far ahead the deadline must be.
    const trial = Math.ceil(count / 20)
    const began = performance.now()
    await maker.pass(trial, payload)
    const making = (performance.now() - began) / trial * count
    await fleet.empty()
    const first = Date.now() + Math.ceil(1.5 * making) + (seconds + 2) * 1000
    // The script sets the deadline when it runs, some milliseconds after the call: half of the second is reserved for that.
    await maker.pass(count, payload, () => first + Math.floor(Math.random() * 500) - Date.now())
    if (Date.now() > first - (seconds + 1) * 1000) throw new Error(`due: making ${count} handoffs took too long`)
    const within = await fleet.countLive(first + 1000) - await fleet.countLive(first - 1)
    // On a busy machine a few are due later, and are waited for too.
    if (within < 0.999 * count || await fleet.countLive(lastOf(first)) !== count) throw new Error(`due: ${within} of ${count} are due within the second`)
    return first
  } finally {
    await maker.close()
  }
}

function latency (times: readonly Timed[]): Latency {
  const milliseconds = times.map(one => one.milliseconds)
  return { requests: times.length, unavailable: times.filter(one => one.unavailable).length, p50: percentile(milliseconds, 0.5), p99: percentile(milliseconds, 0.99), longest: percentile(milliseconds, 1) }
}

function report (found: ReadonlyMap<number, Figures[]>, redisVersion: string, { rounds, seconds, due }: Pick<BenchOptions, 'rounds' | 'seconds' | 'due'>): Report {
  const where = circumstances(redisVersion)
  const rows: string[][] = []
  const goals: Goal[] = []
  for (const [masters, each] of found) {
    const of = (figure: (round: Figures) => number) => median(each.map(figure))
    const time = (figure: keyof Latency) => [of(round => round.before[figure]).toFixed(2), of(round => round.during[figure]).toFixed(2)]
    const share = (part: 'redis' | 'service') => [0, 1].map(when => `${(100 * of(round => round[part][when] ?? NaN)).toFixed(0)} %`)
    const [goneAfter, p99Ratio] = [of(round => round.seconds), of(round => round.p99Ratio)]
    const { gone, p99 } = limits[masters]!
    const on = masters === 1 ? 'one master' : `${masters} masters`
    rows.push(
      [`**${on}**`, '', '', ''],
      ['gone from the index after, s', '', goneAfter.toFixed(2), `≤ ${gone}`],
      ['p50 of the rest, ms', ...time('p50'), ''],
      ['p99 of the rest, ms', ...time('p99'), `≤ ${p99} × before: ${p99Ratio.toFixed(2)}`],
      ['the longest, ms', ...time('longest'), ''],
      ['answered 503', ...[0, 1].map(when => of(({ before, during }) => [before, during][when]?.unavailable ?? NaN).toFixed(0)), '0'],
      ['Redis, of a core', ...share('redis'), ''],
      ['the service, of a core', ...share('service'), '']
    )
    goals.push(
      { what: `${due.toLocaleString('en')} due in one second on ${on} are gone from the index after, s`, atMost: gone, measured: goneAfter },
      { what: `p99 of the rest meanwhile, on ${on}, of what it was before`, atMost: p99, measured: p99Ratio }
    )
  }
  return {
    table: markdownTable(['', 'before', 'while they are swept', 'goal'], rows) + `\n${due} handoffs of ${payload.length} bytes due in one second, beside ` +
      `${perSecond} requests a second. Medians of ${rounds} rounds, ${seconds} s before each.\n\n${caption(where)}\n`,
    figures: { ...where, rounds, seconds, due, perSecond, goals, goneAfter: goals[0]!.measured, p99Ratio: goals[1]!.measured, each: Object.fromEntries(found) },
  }
}
