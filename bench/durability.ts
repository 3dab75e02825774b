import { figureCells, figureHeads, goalsTable, mediansOf, ratioOf, runCases } from './contest.ts'
import type { Contestant, Goal } from './contest.ts'
import { exchange } from './exchange.ts'
import { startReplicated } from './peers/stores.ts'
import { putLoad } from './load.ts'
import { caption, circumstances, markdownTable } from './report.ts'
import type { BenchOptions, Report } from './report.ts'
import { startService } from './server-process.ts'

/** What agents that wait for their answers have at least; README.md says what they wait for. */
const lowest = 0.8
/** Enough connections to saturate (saturation.ts): with few of them, throughput is only the inverse of latency. */
const agents = [64, 128]
const settings = { none: 'none', 'replicas:1': 'replicas:1' }

/**
 * The cost of waiting for a replica: two services on one master with one replica, so that both pay for replication. Their turns take a second:
 * a busy machine's speed changes within seconds, and ratios of long turns varied between 0.75 and 1.2.
 */
export async function durability (options: BenchOptions): Promise<Report> {
  const { rounds: count, seconds, say } = options
  const stops: Array<() => Promise<void>> = []
  try {
    const { master } = await startReplicated(say, stops)
    const contestants: Contestant[] = []
    for (const [name, DURABILITY] of Object.entries(settings)) {
      const service = await startService(master.url, false, { DURABILITY })
      stops.push(service.stop)
      await exchange(service.url)
      contestants.push({ name, url: service.url, pid: service.pid, store: master })
    }
    const turns = { ...options, rounds: count * Math.ceil(seconds), seconds: Math.min(seconds, 1) }
    const load = Object.fromEntries(agents.map(connections => [`${connections} agents`, (url: string, seconds: number) => putLoad(url, connections, seconds)]))
    const cases = await runCases('durability', contestants, turns, load)
    const where = circumstances(master.version)
    const goals: Goal[] = cases.map(({ name, rounds }) => ({
      what: `requests/s of ${name} with replicas:1, of those with none`,
      atLeast: lowest,
      measured: ratioOf(rounds, 'replicas:1', 'none').perSecond,
    }))
    const rows = cases.flatMap(({ name: of, rounds }) => [
      ...Object.entries(mediansOf(rounds)).map(([name, figures]) => [of, name, ...figureCells(figures, true)]),
      [of, 'replicas:1 / none', ...figureCells(ratioOf(rounds, 'replicas:1', 'none'), true, 2)],
    ])
    return {
      table: markdownTable(['', 'DURABILITY', ...figureHeads], rows) + goalsTable(goals) +
        `\npass, catch, done in turn on each connection. Medians of ${turns.rounds} rounds of ${turns.seconds} s.\n\n${caption(where)}\n`,
      figures: { ...where, rounds: turns.rounds, seconds: turns.seconds, goals, each: Object.fromEntries(cases.map(({ name, rounds }) => [name, rounds])) },
    }
  } finally {
    for (const stop of stops.toReversed()) await stop()
  }
}
