import { costOf, medianCost, medianRatio, startPair } from './growth-pair.ts'
import type { Cost, Pair } from './growth-pair.ts'
import { makeWaiting } from './handoffs.ts'
import { closedLoad } from './plain-load.ts'
import { caption, circumstances, markdownTable } from './report.ts'
import type { BenchOptions, Report } from './report.ts'

const agents = 64

interface Case { name: string, pair: Pair, approved: boolean, costs: Cost[] }

/**
 * What it costs that a person approves: the mix, the mix with an approval before each catch, and that with many others waiting.
 * All of a tenant's that wait are in one partition, so this is also what a list that nobody looks at does to it. Turn about.
 */
export async function approvals ({ rounds, seconds, listed, say }: Pick<BenchOptions, 'rounds' | 'seconds' | 'listed' | 'say'>): Promise<Report> {
  const few = await startPair(say)
  try {
    const many = await startPair(say)
    try {
      await makeWaiting(many.redis, listed)
      const cases: Case[] = [
        { name: 'nobody is asked', pair: few, approved: false, costs: [] },
        { name: 'a person approves each', pair: few, approved: true, costs: [] },
        { name: `the same, ${listed} others waiting`, pair: many, approved: true, costs: [] },
      ]
      const put = ({ pair, approved }: Case, seconds: number) => costOf(pair, url => closedLoad(url, agents, seconds, { approved }))
      for (const one of cases) await put(one, Math.min(seconds, 3))
      for (let round = 1; round <= rounds; round++) {
        for (const one of round % 2 === 1 ? cases : cases.toReversed()) {
          await few.redis.flushall('SYNC')
          one.costs.push(await put(one, seconds))
          say(`approvals: round ${round} of ${rounds}, ${one.name}: ${one.costs.at(-1)?.together.toFixed(1)} µs of CPU a request`)
        }
      }
      return report(cases, few.server.version, { rounds, seconds })
    } finally {
      await many.stop()
    }
  } finally {
    await few.stop()
  }
}

function report (cases: readonly Case[], version: string, { rounds, seconds }: Pick<BenchOptions, 'rounds' | 'seconds'>): Report {
  const where = circumstances(version)
  const [first] = cases as [Case, ...Case[]]
  const rows = cases.map(({ name, costs }) => ({ name, ...medianCost(costs), ratio: medianRatio(costs, first.costs) }))
  return {
    table: markdownTable(['', 'service, µs/request', 'Redis, µs/request', 'together', 'of that where nobody is', 'requests/s', 'p99, ms'], rows.map(row => [
      row.name, row.service.toFixed(1), row.redis.toFixed(1), row.together.toFixed(1), row.ratio.toFixed(2), row.perSecond.toFixed(0), row.p99.toFixed(2),
    ])) + `\npass, approve, catch, done in turn by ${agents} agents. Medians of ${rounds} rounds of ${seconds} s.\n\n${caption(where)}\n`,
    figures: { ...where, rounds, seconds, agents, rows, each: Object.fromEntries(cases.map(({ name, costs }) => [name, costs])) },
  }
}
