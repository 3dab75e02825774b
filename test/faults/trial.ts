import type { Redis } from 'ioredis'
import { audit, runAgents } from './agents.ts'
import type { Counts } from './agents.ts'
import { check, describe, usual } from './checker.ts'
import type { CheckOptions, Violation } from './checker.ts'
import { longestGap } from './gaps.ts'
import { History, clock } from './history.ts'
import { dumpRedis } from './redis-state.ts'
import type { Stage } from './scenario.ts'
import { untilSwept } from './swept.ts'

/** Load on a service, faults meanwhile, and what must be so when all is well again. */
export interface Trial {
  urls: readonly string[]
  agents: number
  seed: number
  /** Makes the faults; the load goes on until this resolves. */
  faults (history: History): Promise<unknown>
  /** Resolves when all that was broken is well again. @returns a connection to each master there is then */
  healed (): Promise<readonly Redis[]>
  /** What is otherwise than usual of the checker's tolerance. */
  tolerance?: Partial<CheckOptions>
  /** Of the service's keys. */
  prefix?: string
  /** The share of handoffs that expire while they are asked for; as the load has it otherwise. */
  brief?: number
  /** The share of those with windows, heartbeats, attempts and successors; none as it is. */
  tried?: number
  /** Seconds until the other handoffs expire. */
  lifetime?: number
  /** Handoffs begun a second at the most. */
  perSecond?: number
}

/** What trials came to, all together. */
export class Tally {
  counts: Counts = { handoffs: 0, requests: 0, acknowledged: 0, refused: 0, unavailable: 0, unanswered: 0, recognised: 0, givenUp: 0 }
  violations: Violation[] = []

  /** What the table says of it. */
  get result (): string {
    const { requests, unavailable } = this.counts
    return `${this.violations.length} violations; ${unavailable} of ${requests} answered 503`
  }

  add (counts: Counts, violations: readonly Violation[]): void {
    for (const name of Object.keys(counts) as Array<keyof Counts>) this.counts[name] += counts[name]
    this.violations.push(...violations)
  }
}

/**
 * Runs one trial and holds its history to the invariants; what breaks one is told.
 * @returns the history, checked, and the longest time in which nothing was acknowledged while there were faults, in milliseconds
 */
export async function runTrial (t: Stage, trial: Trial, tally: Tally): Promise<{ history: History, gap: number }> {
  const history = new History()
  const over = new AbortController()
  const load = runAgents({ ...trial, history, until: over.signal })
  load.catch(() => {}) // looked at below
  try {
    await trial.faults(history)
  } finally {
    over.abort()
  }
  // Healed first: those under way ask until they know.
  const gap = longestGap(history, clock())
  const masters = await trial.healed()
  const counts = await load
  await audit(trial.urls, history)
  await untilSwept(masters, trial.prefix)
  const state = await dumpRedis(masters, trial.prefix ?? 'handoff')
  const violations = check(history.tracks.values(), { ...usual, ...trial.tolerance }, state)
  for (const violation of violations.slice(0, 5)) t.comment(describe(violation))
  tally.add(counts, violations)
  return { history, gap }
}

/** Resolves when so many more operations were sent than there are now. */
export async function operationsMore (history: History, more: number): Promise<void> {
  for (const goal = history.count + more; history.count < goal;) await new Promise(resolve => setTimeout(resolve, 1))
}
