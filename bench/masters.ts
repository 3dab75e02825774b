import type { RedisServer } from '../test/faults/fleet/redis.ts'
import { startCluster } from '../test/faults/fleet/cluster.ts'
import { callsOf } from './commands.ts'
import { measure } from './contest.ts'
import type { Goal } from './contest.ts'
import { cpuOf } from './cpu.ts'
import { exchange } from './exchange.ts'
import { putLoad } from './load.ts'
import { caption, circumstances, markdownTable, median } from './report.ts'
import type { BenchOptions, Report } from './report.ts'
import { startService } from './server-process.ts'
import type { ServerProcess } from './server-process.ts'

const counts = [1, 3, 6]
const connections = 64
const goal = 1.05

interface Fleet { count: number, masters: RedisServer[], service: ServerProcess }

interface Figures {
  /** CPU in microseconds per request: the service's, and that of all masters together. */
  service: number
  redis: number
  perSecond: number
  /** Milliseconds. */
  p99: number
  /** Script calls of handoffs, by master. */
  calls: number[]
  /** The largest master's share, divided by the mean. */
  fullest: number
}

/** A service on Clusters of 1, 3 and 6 masters, in turns: the cost of an operation, and how even the masters' shares are. */
export async function masters ({ rounds, seconds, say }: Pick<BenchOptions, 'rounds' | 'seconds' | 'say'>): Promise<Report> {
  const ends: Array<() => unknown> = []
  const stage = { teardown: (end: () => unknown) => { ends.unshift(end) }, comment: say }
  try {
    const fleets: Fleet[] = []
    for (const count of counts) {
      const cluster = await startCluster(stage, { masters: count, replicas: 0, options: ['--auto-aof-rewrite-percentage', '0'] })
      const service = await startService(cluster.url)
      ends.unshift(service.stop)
      fleets.push({ count, masters: cluster.servers, service })
    }
    for (const { service } of fleets) {
      await exchange(service.url)
      await putLoad(service.url, connections, Math.min(seconds, 5))
    }
    const found = new Map(counts.map(count => [count, [] as Figures[]]))
    for (let round = 1; round <= rounds; round++) {
      for (const fleet of round % 2 === 1 ? fleets : fleets.toReversed()) {
        const figures = await turn(fleet, seconds)
        found.get(fleet.count)?.push(figures)
        say(`masters: round ${round} of ${rounds}, ${fleet.count}: ${(figures.service + figures.redis).toFixed(1)} µs of CPU a request, the fullest ${figures.fullest.toFixed(3)} of the mean`)
      }
    }
    const [first] = fleets[0]?.masters ?? []
    return report(found, await versionOf(first as RedisServer), { rounds, seconds })
  } finally {
    for (const end of ends) await end()
  }
}

async function turn ({ masters, service }: Fleet, seconds: number): Promise<Figures> {
  const calls = () => Promise.all(masters.map(handoffCalls))
  const cluster = { cpu: () => masters.reduce((total, { pid }) => total + cpuOf(pid), 0) }
  const before = await calls()
  const { cpu, storeCpu, perSecond, p99 } = await measure({ name: 'masters', pid: service.pid, store: cluster }, () => putLoad(service.url, connections, seconds))
  const each = (await calls()).map((count, index) => count - (before[index] ?? NaN))
  return {
    service: cpu,
    redis: storeCpu,
    perSecond,
    p99,
    calls: each,
    fullest: Math.max(...each) / (each.reduce((total, one) => total + one) / each.length),
  }
}

/** Pass, catch and done call one PEXPIREAT each; the sweep and the lease none, as long as nothing expires. */
async function handoffCalls ({ admin }: RedisServer): Promise<number> {
  return (await callsOf(admin, 'pexpireat')).calls
}

async function versionOf ({ admin }: RedisServer): Promise<string> {
  return /^redis_version:(\S+)/m.exec(await admin.info('server'))?.[1] ?? 'unknown'
}

function report (found: ReadonlyMap<number, Figures[]>, redisVersion: string, { rounds, seconds }: Pick<BenchOptions, 'rounds' | 'seconds'>): Report {
  const where = circumstances(redisVersion)
  const one = found.get(1) ?? []
  const rows = [...found].map(([masters, each]) => {
    const of = (figure: (round: Figures) => number) => median(each.map(figure))
    return {
      masters,
      service: of(round => round.service),
      redis: of(round => round.redis),
      ratio: median(each.map((round, turn) => (round.service + round.redis) / ((one[turn]?.service ?? NaN) + (one[turn]?.redis ?? NaN)))),
      fullest: of(round => round.fullest),
      perSecond: of(round => round.perSecond),
      p99: of(round => round.p99),
    }
  })
  const table = markdownTable(
    ['masters', 'service, µs/request', 'all masters, µs/request', 'together, of one master’s', 'fullest master, of the mean', 'goal', 'requests/s', 'p99, ms'],
    rows.map(row => [
      String(row.masters), row.service.toFixed(1), row.redis.toFixed(1), row.ratio.toFixed(2), row.fullest.toFixed(3),
      row.masters === counts.at(-1) ? `≤ ${goal}` : '', row.perSecond.toFixed(0), row.p99.toFixed(2),
    ]))
  const most = rows.at(-1)!
  const goals: Goal[] = [{ what: `share of the fullest of ${most.masters} masters, of the mean`, atMost: goal, measured: most.fullest }]
  return {
    table: table + `\npass, catch, done in turn on each of ${connections} connections to one replica of the service. Medians of ${rounds} rounds of ${seconds} s.\n` +
      `\n${caption(where)}\n`,
    figures: { ...where, rounds, seconds, connections, goals, rows, each: Object.fromEntries(found) },
  }
}
