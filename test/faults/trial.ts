import type { Redis } from 'ioredis'
import { audit, runAgents } from './agents.ts'
import type { Counts } from './agents.ts'
import { checkHistory, describe, usual } from './checker.ts'
import type { CheckOptions, Violation } from './checker.ts'
import { feedFaultsInTime } from './feed-checks.ts'
import { longestGap } from './gaps.ts'
import { History, clock } from './history.ts'
import { dumpRedis } from './redis-state.ts'
import type { Stage } from './scenario.ts'
import { untilSwept } from './swept.ts'

/** Load on a service with faults, and the checks after recovery. */
export interface Trial {
  urls: readonly string[]
  agents: number
  seed: number
  /** Makes the faults; the load goes on until this resolves. */
  faults (history: History): Promise<unknown>
  /** Resolves when everything has recovered. @returns a connection to each current master */
  healed (): Promise<readonly Redis[]>
  /** Tolerances of the checker that differ from the usual ones. */
  tolerance?: Partial<CheckOptions>
  /** The prefix of the service's keys. */
  prefix?: string
  /** The share of handoffs that expire during the load; by default the load's own. */
  brief?: number
  /** The share of handoffs with windows, heartbeats, attempts and successors; by default none. */
  tried?: number
  /** The share of handoffs for inboxes; by default none. */
  inboxed?: number
  /** Whether the service tells events, which are held to what happened. */
  events?: boolean
  /** Seconds until the other handoffs expire. */
  lifetime?: number
  /** Most handoffs begun per second. */
  perSecond?: number
}

/** The results of all trials together. */
export class Tally {
  counts: Counts = { handoffs: 0, requests: 0, acknowledged: 0, refused: 0, unavailable: 0, unanswered: 0, recognised: 0, givenUp: 0 }
  violations: Violation[] = []

  /** The text for the table. */
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
 * Runs one trial, checks its history against the invariants, and reports violations.
 * @returns the checked history, and the longest time without an acknowledgement during the faults, in milliseconds
 */
export async function runTrial (t: Stage, trial: Trial, tally: Tally): Promise<{ history: History, gap: number }> {
  const history = new History()
  const over = new AbortController()
  const load = runAgents({ ...trial, history, until: over.signal })
  load.catch(() => {}) // awaited below
  try {
    await trial.faults(history)
  } finally {
    over.abort()
  }
  // Recovery first, because agents retry until they know the outcome.
  const gap = longestGap(history, clock())
  const masters = await trial.healed()
  const counts = await load
  await audit(trial.urls, history)
  const prefix = trial.prefix ?? 'handoff'
  await untilSwept(masters, prefix)
  const state = await dumpRedis(masters, prefix)
  const untold = trial.events ? await feedFaultsInTime(state, masters, prefix) : []
  const violations: Violation[] = [
    ...checkHistory(history, { ...usual, ...trial.tolerance }, state),
    ...untold.map(({ member, sentence }): Violation => ({ invariant: 'I15', handoff: member, sentence, operations: history.of(member) })),
  ]
  for (const violation of violations.slice(0, 5)) t.comment(describe(violation))
  tally.add(counts, violations)
  return { history, gap }
}

/** Resolves when so many more operations have been sent. */
export async function operationsMore (history: History, more: number): Promise<void> {
  for (const goal = history.count + more; history.count < goal;) await new Promise(resolve => setTimeout(resolve, 1))
}
