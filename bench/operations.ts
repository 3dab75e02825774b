import { casesTable, inTurns, measure } from './contest.ts'
import type { Contestant, Figures } from './contest.ts'
import { putOperation, putPasses } from './load.ts'
import { honest, startContest } from './peers/contestants.ts'
import { caption, circumstances } from './report.ts'
import type { BenchOptions, Report } from './report.ts'

const connections = 64
const operations = ['pass', 'status', 'catch', 'done'] as const
type Turn = Record<typeof operations[number], Figures>

/** Each operation alone: as many passes as there is time for, then the others on all that was passed. */
export async function operationsAlone (options: BenchOptions): Promise<Report> {
  const { rounds: count, seconds, say } = options
  const contest = await startContest(honest, options)
  try {
    for (const contestant of contest.contestants) await allFour(contestant, Math.min(seconds, 2))
    const turns = await inTurns(contest.contestants, count, async (contestant, round) => {
      const turn = await allFour(contestant, seconds)
      say(`operations: round ${round} of ${count}, ${contestant.name}: ${operations.map(name => `${name} ${turn[name].cpu.toFixed(1)}`).join(', ')} µs of CPU`)
      return turn
    })
    const cases = operations.map(name => ({
      name,
      rounds: Object.fromEntries(Object.entries(turns).map(([contestant, turns]) => [contestant, turns.map(turn => turn[name])])),
    }))
    const where = { ...circumstances(contest.redis), peers: contest.peers }
    return {
      table: casesTable('operation', cases) +
        `\n${connections} connections. Medians of ${count} rounds of ${seconds} s of passes, and whatever the others take for all that was passed.\n` +
        `\n${caption(where)} ${contest.peers}\n`,
      figures: { ...where, rounds: count, seconds, connections, cases },
    }
  } finally {
    await contest.stop()
  }
}

async function allFour (contestant: Contestant, seconds: number): Promise<Turn> {
  let ids: string[] = []
  const pass = await measure(contestant, async () => {
    const load = await putPasses(contestant.url, connections, seconds)
    ids = load.ids
    return load
  })
  const alone = (operation: 'status' | 'catch' | 'done') => measure(contestant, () => putOperation(contestant.url, connections, operation, ids))
  return { pass, status: await alone('status'), catch: await alone('catch'), done: await alone('done') }
}
