import { randomBytes } from 'node:crypto'
import type { Goal } from './contest.ts'
import { cpuOfTurn } from './in-turns.ts'
import { benchRedis } from './redis.ts'
import { caption, circumstances, markdownTable, median } from './report.ts'
import type { BenchOptions, Report } from './report.ts'
import { startService } from './server-process.ts'

/** Handoffs a turn, connections, and turns of each way in a round: short ones, so that a busy minute is both's. */
const turn = { handoffs: 200, connections: 32, times: 40 }
const limit = 1.25

/** Two replicas on one Redis. */
const ways = ['plain', 'encrypted'] as const
type Way = typeof ways[number]

/** Microseconds of the service's CPU a request; and of the turns that followed each other, what the second way took of the first. */
type Round = Record<Way, number> & { ratio: number }

/** What it costs to encrypt payloads (PAYLOAD_KEYS), beside a service that doesn't. */
export async function encryption ({ rounds: count, say }: BenchOptions): Promise<Report> {
  const server = await benchRedis(say)
  const services = {
    plain: await startService(server.url),
    encrypted: await startService(server.url, false, { PAYLOAD_KEYS: `bench:${randomBytes(32).toString('base64')}` })
  }
  const rounds: Round[] = []
  try {
    for (let round = 0; round <= count; round++) {
      const costs: Record<Way, number[]> = { plain: [], encrypted: [] }
      for (let time = 0; time < turn.times; time++) {
        for (const way of time % 2 === 0 ? ways : [...ways].reverse()) costs[way].push(await cpuOfTurn(services[way], turn))
      }
      const ratio = median(costs.encrypted.map((cost, time) => cost / costs.plain[time]!))
      const figures = { plain: median(costs.plain), encrypted: median(costs.encrypted), ratio }
      // The first round is a warm-up.
      if (round > 0) rounds.push(figures)
      say(`encryption: round ${round} of ${count}: ${ways.map(way => `${way} ${figures[way].toFixed(1)}`).join(', ')} µs: ${ratio.toFixed(3)}`)
    }
  } finally {
    await Promise.all(ways.map(way => services[way].stop()))
    await server.stop()
  }
  return report(rounds, server.version)
}

function report (rounds: Round[], redisVersion: string): Report {
  const where = circumstances(redisVersion)
  const of = (one: (round: Round) => number) => median(rounds.map(one))
  const ratio = of(({ ratio }) => ratio)
  const goals: Goal[] = [{ what: 'the service’s CPU of a request with encryption, of one without', atMost: limit, measured: ratio }]
  const table = markdownTable(['µs of CPU a request', 'service', 'of the plain one’s'], ways.map(way =>
    [way, of(round => round[way]).toFixed(1), way === 'plain' ? '' : ratio.toFixed(3)]))
  return {
    table: `${table}\nMedians of ${rounds.length} rounds of ${turn.times} turns of each, of ${turn.handoffs} handoffs of 1 KB over ${turn.connections} connections: pass, catch and done.\n\n${caption(where)}\n`,
    figures: { ...where, goals, rounds },
  }
}
