import { casesTable, runCases } from './contest.ts'
import { closedLoad } from './plain-load.ts'
import { honest, startContest } from './peers/contestants.ts'
import { caption, circumstances } from './report.ts'
import type { BenchOptions, Report } from './report.ts'

const numbers = [1, 16, 64, 256]

/** The mix over few and many connections. */
export async function connectionCounts (options: BenchOptions): Promise<Report> {
  const { rounds: count, seconds } = options
  const contest = await startContest(honest, options)
  try {
    const cases = await runCases('connections', contest.contestants, options, Object.fromEntries(numbers.map(connections =>
      [String(connections), (url: string, seconds: number) => closedLoad(url, connections, seconds)])))
    const where = { ...circumstances(contest.redis), peers: contest.peers }
    return {
      table: casesTable('connections', cases) +
        `\npass, catch, done in turn on each of them. Medians of ${count} rounds of ${seconds} s.\n\n${caption(where)} ${contest.peers}\n`,
      figures: { ...where, rounds: count, seconds, cases },
    }
  } finally {
    await contest.stop()
  }
}
