import { cpuOf } from './cpu.ts'
import type { LoadResult } from './load.ts'
import type { Store } from './peers/stores.ts'
import { markdownTable, median } from './report.ts'
import type { BenchOptions } from './report.ts'

/** The processes whose CPU is counted: the server's, and its store's if it has one. */
export interface Counted { name: string, pid: number, store?: Pick<Store, 'cpu'> }

/** A contestant: a server process, and its store if that runs in other processes. */
export interface Contestant extends Counted {
  url: string
  store?: Store
}

/** A contestant's figures of one turn. CPU is in microseconds per request, times are in milliseconds. */
export interface Figures {
  perSecond: number
  p50: number
  p99: number
  p999: number
  cpu: number
  /** All processes of its store. */
  storeCpu: number
  /** This process, which makes the load. */
  loadCpu: number
}
export type Rounds<Turn = Figures> = Record<string, Turn[]>

/**
 * Runs a number of rounds, in which each contestant has one turn. Every other round is in reverse order, so that other work on the machine affects
 * all alike. Before each turn, what earlier turns left is freed.
 */
export async function inTurns<Turn, One extends { name: string, store?: Pick<Store, 'clean'> }> (contestants: readonly One[], rounds: number,
  turn: (contestant: One, round: number) => Promise<Turn>): Promise<Rounds<Turn>> {
  const found: Rounds<Turn> = Object.fromEntries(contestants.map(({ name }) => [name, []]))
  for (let round = 1; round <= rounds; round++) {
    for (const contestant of round % 2 === 1 ? contestants : contestants.toReversed()) {
      await contestant.store?.clean()
      found[contestant.name]?.push(await turn(contestant, round))
    }
  }
  return found
}

/** How often a measurement with a failed request is repeated: on a busy machine a deadline may pass. */
const tries = 5

/** Puts load on one contestant and counts its CPU, until a run has no failed request. @throws if every run has one */
export async function measure (counted: Counted, load: () => Promise<LoadResult>): Promise<Figures> {
  let measured = await measureOnce(counted, load)
  for (let left = tries; measured.fault !== undefined && left > 1;) {
    process.stderr.write(`bench: measuring again: ${measured.fault}\n`)
    // Nothing was measured yet if no contestant has had a turn.
    if (measured.requests > 0) left--
    measured = await measureOnce(counted, load)
  }
  if (measured.fault !== undefined) throw new Error(measured.fault)
  return measured.figures
}

async function measureOnce ({ name, pid, store }: Counted, load: () => Promise<LoadResult>): Promise<{ figures: Figures, requests: number, fault: string | undefined }> {
  const cpu = () => {
    const { user, system } = process.cpuUsage()
    return { own: cpuOf(pid), store: store?.cpu() ?? 0, load: user + system }
  }
  const before = cpu()
  const { requests, perSecond, p50, p99, p999, faults } = await load()
  const after = cpu()
  const fault = faults > 0 || requests === 0 ? `${name}: ${faults} requests went wrong, of ${requests} that were answered` : undefined
  const aRequest = (part: keyof typeof after) => (after[part] - before[part]) / requests
  return { figures: { perSecond, p50, p99, p999, cpu: aRequest('own'), storeCpu: aRequest('store'), loadCpu: aRequest('load') }, requests: requests + faults, fault }
}

const measures = ['perSecond', 'p50', 'p99', 'p999', 'cpu', 'storeCpu', 'loadCpu'] as const satisfies Array<keyof Figures>

function each (figure: (measure: keyof Figures) => number): Figures {
  return Object.fromEntries(measures.map(measure => [measure, figure(measure)])) as unknown as Figures
}

function medianOf (turns: readonly Figures[]): Figures {
  return each(measure => median(turns.map(turn => turn[measure])))
}

export function mediansOf (rounds: Rounds): Record<string, Figures> {
  return Object.fromEntries(Object.entries(rounds).map(([name, turns]) => [name, medianOf(turns)]))
}

/** The median over the rounds of a figure made from neighbouring turns, during which the machine was the same. */
export function acrossRounds<Turn> (rounds: Rounds<Turn>, names: readonly string[], reckon: (...turns: Turn[]) => number): number {
  const [first = ''] = names
  return median((rounds[first] ?? []).map((_, round) => reckon(...names.map(name => rounds[name]?.[round] as Turn))))
}

/** The ratio of two contestants' figures. */
export function ratioOf (rounds: Rounds, one: string, other: string): Figures {
  return each(measure => acrossRounds(rounds, [one, other], (a, b) => a[measure] / b[measure]))
}

/** One of the cases of a scenario: a size, a number of connections, … */
export interface Case { name: string, rounds: Rounds }

/** Case by case: warms up all contestants, then runs the rounds. @param load the load for a contestant in each case, for so many seconds */
export async function runCases (what: string, contestants: readonly Contestant[], { rounds: count, seconds, say }: BenchOptions,
  load: Record<string, (url: string, seconds: number) => Promise<LoadResult>>): Promise<Case[]> {
  const cases: Case[] = []
  for (const [name, put] of Object.entries(load)) {
    // Until the compiler has optimised the hot code.
    for (const { url } of contestants) await put(url, Math.min(seconds, 3))
    const rounds = await inTurns(contestants, count, async (contestant, round) => {
      const figures = await measure(contestant, () => put(contestant.url, seconds))
      say(`${what}: ${name}, round ${round} of ${count}, ${contestant.name}: ${figures.cpu.toFixed(1)} µs of CPU a request, ${figures.storeCpu.toFixed(1)} of its store`)
      return figures
    })
    cases.push({ name, rounds })
  }
  return cases
}

/** A table of all cases' medians: each contestant's and its store's CPU, compared with the floor's. */
export function casesTable (head: string, cases: readonly Case[]): string {
  return markdownTable([head, '', ...figureHeads, 'CPU, of the floor’s', 'with its store’s'], cases.flatMap(({ name: of, rounds }) =>
    Object.entries(mediansOf(rounds)).map(([name, figures]) => {
      const ofFloor = (cpu: (figures: Figures) => number) =>
        name !== 'floor' && 'floor' in rounds ? acrossRounds(rounds, [name, 'floor'], (one, floor) => cpu(one!) / cpu(floor!)).toFixed(2) : ''
      return [of, name, ...figureCells(figures, figures.storeCpu > 0), ofFloor(one => one.cpu), ofFloor(one => one.cpu + one.storeCpu)]
    })))
}

/** A goal and the measured figure: null if it couldn't be measured, for example a time too short for the clock. */
export interface Goal { what: string, atMost?: number, atLeast?: number, measured: number | null }

export function isMet ({ atMost = Infinity, atLeast = -Infinity, measured }: Goal): boolean {
  return measured !== null && measured <= atMost && measured >= atLeast
}

export const goalHeads = ['goal', 'limit', 'measured', 'met']

/** A goal's row. */
export function goalCells (goal: Goal): string[] {
  const { what, atMost, atLeast, measured } = goal
  return [what, atMost === undefined ? `≥ ${atLeast?.toFixed(2)}` : `≤ ${atMost.toFixed(2)}`, measured?.toFixed(2) ?? '?', isMet(goal) ? 'yes' : '**no**']
}

/** The table of goals, to follow another table; empty without goals. */
export function goalsTable (goals: readonly Goal[]): string {
  return goals.length === 0 ? '' : '\n' + markdownTable(goalHeads, goals.map(goalCells))
}

export const figureHeads = ['requests/s', 'p50, ms', 'p99, ms', 'p99.9, ms', 'CPU, µs/request', 'its store’s, µs/request']

/** A row's cells. @param digits of a ratio's; figures have their own */
export function figureCells ({ perSecond, p50, p99, p999, cpu, storeCpu }: Figures, hasStore: boolean, digits?: number): string[] {
  return [
    perSecond.toFixed(digits ?? 0), ...[p50, p99, p999].map(time => time.toFixed(2)), cpu.toFixed(digits ?? 1),
    hasStore ? storeCpu.toFixed(digits ?? 1) : '',
  ]
}
