import { acrossRounds, casesTable, goalsTable, runCases } from './contest.ts'
import type { Case, Goal } from './contest.ts'
import { passBodyOf, putLoad } from './load.ts'
import { honest, startContest } from './peers/contestants.ts'
import { caption, circumstances } from './report.ts'
import type { BenchOptions, Report } from './report.ts'

const connections = 64
/** Bytes of a pass's body. */
const sizes = { '100 B': 100, '1 KB': 1024, '10 KB': 10_240, '100 KB': 102_400 }

/** The mix with payloads of each size. */
export async function payloadSizes (options: BenchOptions): Promise<Report> {
  const { rounds: count, seconds } = options
  const contest = await startContest(honest, options)
  try {
    const cases = await runCases('sizes', contest.contestants, options, Object.fromEntries(Object.entries(sizes).map(([name, bytes]) => {
      const body = passBodyOf(bytes)
      return [name, (url: string, seconds: number) => putLoad(url, connections, seconds, body)]
    })))
    const where = { ...circumstances(contest.redis), peers: contest.peers }
    const goals = goalsOf(cases)
    return {
      table: casesTable('payload', cases) + goalsTable(goals) +
        `\npass, catch, done in turn on each of ${connections} connections. Medians of ${count} rounds of ${seconds} s.\n` +
        `\n${caption(where)} ${contest.peers}\n`,
      figures: { ...where, rounds: count, seconds, connections, goals, cases },
    }
  } finally {
    await contest.stop()
  }
}

function goalsOf (cases: readonly Case[]): Goal[] {
  const rounds = cases.at(-1)?.rounds ?? {}
  if (!('service' in rounds && 'floor' in rounds)) return []
  const measured = acrossRounds(rounds, ['service', 'floor'], (service, floor) => service!.cpu / floor!.cpu)
  return [{ what: 'service’s CPU with 100 KB, of the floor’s', atMost: 1.15, measured }]
}
