import { existsSync, readFileSync } from 'node:fs'
import { acrossRounds, goalsTable, inTurns, measure } from './contest.ts'
import type { Contestant, Figures, Goal, Rounds } from './contest.ts'
import { lasting, openLoad } from './plain-load.ts'
import { honest, startContest } from './peers/contestants.ts'
import { putLoad } from './load.ts'
import { caption, circumstances, markdownTable, median } from './report.ts'
import type { BenchOptions, Report } from './report.ts'

/** The number of agents that saturates the service. */
const agents = 128
const share = 0.7

interface Saturated extends Figures {
  /** RSS at the end, in MB; NaN without /proc. */
  memory: number
}
interface Eased extends Figures {
  /** p99 of how late the load itself was, in milliseconds. */
  lateness: number
}

/** The maximum throughput; then the latency at 70 % of it, at a fixed rate. */
export async function saturation (options: BenchOptions): Promise<Report> {
  const { rounds: count, seconds, say } = options
  const contest = await startContest(honest, options)
  try {
    const { contestants } = contest
    for (const { url } of contestants) await putLoad(url, agents, Math.min(seconds, 5))
    // One right after the other, since a machine's speed varies from minute to minute.
    const turns = await inTurns(contestants, count, async (contestant, round): Promise<{ saturated: Saturated, eased: Eased }> => {
      const figures = await measure(contestant, () => putLoad(contestant.url, agents, seconds))
      const saturated = { ...figures, memory: memoryOf(contestant.pid) }
      const eased = await ease(contestant, share * saturated.perSecond, seconds)
      say(`saturation: round ${round} of ${count}, ${contestant.name}: ${figures.perSecond.toFixed(0)}/s, at ${eased.perSecond.toFixed(0)}/s p99 ${eased.p99.toFixed(2)} ms`)
      return { saturated, eased }
    })
    const part = <Part extends 'saturated' | 'eased'>(part: Part) => Object.fromEntries(Object.entries(turns).map(([name, each]) => [name, each.map(turn => turn[part])]))
    const [saturated, eased] = [part('saturated'), part('eased')]
    const where = { ...circumstances(contest.redis), peers: contest.peers }
    const goals = goalsOf(saturated, eased)
    return {
      table: describe(saturated, eased) + goalsTable(goals) +
        `\nSaturation: ${agents} agents that pass, catch and report done without a pause. Medians of ${count} rounds of ${seconds} s of each.\n` +
        `\n${caption(where)} ${contest.peers}\n`,
      figures: { ...where, rounds: count, seconds, agents, share, goals, saturated, eased },
    }
  } finally {
    await contest.stop()
  }
}

async function ease (contestant: Contestant, perSecond: number, seconds: number): Promise<Eased> {
  let lateness = NaN
  const figures = await measure(contestant, async () => {
    const load = await openLoad(contestant.url, perSecond, lasting(seconds))
    lateness = load.lateness
    return load
  })
  return { ...figures, lateness }
}

function memoryOf (pid: number): number {
  const path = `/proc/${pid}/status`
  return existsSync(path) ? Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(path, 'utf8'))?.[1]) / 1024 : NaN
}

function goalsOf (saturated: Rounds<Saturated>, eased: Rounds<Eased>): Goal[] {
  const goals: Goal[] = []
  if ('service' in eased && 'floor' in eased) {
    const measured = acrossRounds(eased, ['service', 'floor'], (service, floor) => service!.p99 / floor!.p99)
    goals.push({ what: 'p99 at 70 % of saturation, of the floor’s at 70 % of its own', atMost: 2, measured })
  }
  if ('service' in saturated) {
    goals.push({ what: 'RSS of the service at saturation, MB, at the most', atMost: 160, measured: Math.max(...saturated.service!.map(({ memory }) => memory)) })
  }
  return goals
}

function describe (saturated: Rounds<Saturated>, eased: Rounds<Eased>): string {
  return markdownTable(['', 'requests/s', 'RSS, MB', 'at 70 %: p50, ms', 'p99, ms', 'p99.9, ms', 'the load late by (p99), ms', 'CPU, µs/request', 'its store’s'],
    Object.entries(saturated).map(([name, turns]) => {
      const at = (figure: keyof Eased) => median((eased[name] ?? []).map(turn => turn[figure]))
      return [
        name, median(turns.map(turn => turn.perSecond)).toFixed(0), median(turns.map(turn => turn.memory)).toFixed(0),
        ...(['p50', 'p99', 'p999', 'lateness'] as const).map(figure => at(figure).toFixed(2)),
        at('cpu').toFixed(1), at('storeCpu') > 0 ? at('storeCpu').toFixed(1) : '',
      ]
    }))
}
