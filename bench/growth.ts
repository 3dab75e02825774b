import { lineChart } from './chart.ts'
import { countLive, Maker, payloadOf } from './handoffs.ts'
import { costOf, medianCost, medianRatio, startPair } from './growth-pair.ts'
import type { Cost, Pair } from './growth-pair.ts'
import { exchange } from './exchange.ts'
import type { Goal } from './contest.ts'
import { putLoad } from './load.ts'
import { caption, circumstances, markdownTable } from './report.ts'
import type { BenchOptions, Report } from './report.ts'

/** The numbers of live handoffs, up to `--live`. */
const sizes = [1_000, 100_000, 1_000_000, 5_000_000]
const smallest = 1_000
const connections = 64
/** The payload of the live handoffs, in bytes; the load passes the benchmarks' usual 0.9 KB. */
const payload = payloadOf(100)
/** Milliseconds: from an hour to two days, so that the load's deadlines, a day ahead, fall among those of the live handoffs. */
const expiresIn = () => 3600_000 + Math.floor(Math.random() * 47 * 3600_000)
const goal = 1.2

interface Size { live: number, grown: Cost[], small: Cost[] }

/** The cost of a request with more and more live handoffs, in turns with its cost with a thousand. */
export async function growth ({ rounds, seconds, live, say }: BenchOptions): Promise<Report> {
  if (live < smallest) throw new Error(`growth: --live must be at least ${smallest}`)
  const pairs: Pair[] = []
  const found: Size[] = []
  try {
    const small = await startPair(say)
    pairs.push(small)
    const grown = await startPair(say)
    pairs.push(grown)
    for (const { service } of pairs) {
      await exchange(service.url)
      await putLoad(service.url, connections, Math.min(seconds, 5))
    }
    await grown.redis.flushall('SYNC')
    for (const size of sizes.filter(size => size <= live)) {
      await growTo(grown, size)
      say(`growth: ${size} are live`)
      found.push(await turnAbout(small, grown, size, { rounds, seconds, say }))
    }
    return report(found, grown.server.version, { rounds, seconds })
  } finally {
    for (const pair of pairs.reverse()) await pair.stop()
  }
}

async function growTo ({ server, redis }: Pair, size: number): Promise<void> {
  const maker = new Maker(server.url)
  try {
    await maker.pass(size - await countLive(redis), payload, expiresIn)
  } finally {
    await maker.close()
  }
}

async function turnAbout (small: Pair, grown: Pair, live: number, { rounds, seconds, say }: Pick<BenchOptions, 'rounds' | 'seconds' | 'say'>): Promise<Size> {
  const size: Size = { live, grown: [], small: [] }
  for (let round = 1; round <= rounds; round++) {
    // Finished handoffs stay for a day. Without this, the small service would grow as well.
    await small.redis.flushall('SYNC')
    await growTo(small, smallest)
    // Every other round in reverse order, so that neither is always first.
    for (const name of round % 2 === 1 ? ['small', 'grown'] as const : ['grown', 'small'] as const) {
      size[name].push(await costOf({ small, grown }[name], url => putLoad(url, connections, seconds)))
    }
    // The load stops in the middle of some handoffs, so there may be a few more.
    const counted = await countLive(grown.redis)
    if (counted < live) throw new Error(`growth: ${counted} handoffs are live, not ${live}`)
    const [own, other] = [size.grown.at(-1), size.small.at(-1)]
    say(`growth: round ${round} of ${rounds}: ${own?.together.toFixed(1)} µs of CPU a request, ${other?.together.toFixed(1)} beside ${smallest}`)
  }
  return size
}

function report (found: readonly Size[], redisVersion: string, { rounds, seconds }: Pick<BenchOptions, 'rounds' | 'seconds'>): Report {
  const where = circumstances(redisVersion)
  const rows = found.map(({ live, grown, small }) => ({
    live, ...medianCost(grown), togetherSmall: medianCost(small).together, ratio: medianRatio(grown, small), ratioRedis: medianRatio(grown, small, 'redis'),
  }))
  const table = markdownTable(
    ['live', 'service, µs/request', 'Redis, µs/request', 'together', `with ${smallest} live, turn about`, 'ratio', 'goal', 'requests/s', 'p99, ms'],
    rows.map(row => [
      String(row.live), row.service.toFixed(1), row.redis.toFixed(1), row.together.toFixed(1), row.togetherSmall.toFixed(1),
      row.ratio.toFixed(2), row.live === sizes.at(-1) ? `≤ ${goal}` : '', row.perSecond.toFixed(0), row.p99.toFixed(2),
    ]))
  const largest = rows.at(-1)!
  const goals: Goal[] = [{
    what: `cost of a request, service and Redis, with ${largest.live.toLocaleString('en')} live, of that with 1,000`, atMost: goal, measured: largest.ratio,
  }]
  return {
    table: table + `\npass, catch, done in turn on each of ${connections} connections. Medians of ${rounds} rounds of ${seconds} s.\n\n${caption(where)}\n`,
    figures: { ...where, rounds, seconds, connections, goals, rows, each: found },
    charts: { 'growth.svg': chart(rows) },
  }
}

function chart (rows: ReadonlyArray<Cost & { live: number, togetherSmall: number }>): string {
  const points = (figure: 'service' | 'redis' | 'together' | 'togetherSmall') => rows.map(row => [row.live, row[figure]] as const)
  return lineChart({
    title: 'What a request costs, by how many handoffs are live',
    x: 'live handoffs',
    y: 'CPU a request, µs',
    logX: true,
    series: [
      { name: 'service', points: points('service') },
      { name: 'Redis', points: points('redis') },
      { name: 'together', points: points('together') },
      { name: 'together with 1,000 live, turn about', points: points('togetherSmall'), dashed: true },
    ],
  })
}
