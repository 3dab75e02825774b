import type { Redis } from 'ioredis'
import { afterFaults } from './after-checks.ts'
import { audit, runAgents } from './agents.ts'
import { noCounts } from './asking.ts'
import { CallbackReceiver } from './callback-receiver.ts'
import { checkHistory, describe, foundInRedis, questionsOf, usual } from './checker.ts'
import type { Violation } from './checker.ts'
import { EverythingLoad } from './everything/load.ts'
import { feedFaultsInTime, readFeed } from './feed-checks.ts'
import { History, clock } from './history.ts'
import { listFaults } from './inbox-checks.ts'
import { indexFaults, untilSwept } from './index-checks.ts'
import { tenants } from './load-keys.ts'
import type { RedisState } from './redis-state.ts'
import type { Stage } from './scenario.ts'
import { owedIds, webhookFaults } from './webhook-checks.ts'
import { HookedTenant } from './webhook-receiver.ts'

/** Load on a service with faults, and the checks after recovery. */

/** Violations that are told of in full. */
const mostShown = 5
/**
 * How long the service may go on with a request after its client has left (ms): a busy machine reads it late, and only from then on its time
 * counts. The simulator looks at times to the millisecond.
 */
const budget = 20_000
/** The prefix of the service's keys. */
const prefix = 'handoff'

export interface Trial {
  urls: readonly string[]
  agents: number
  seed: number
  /** Makes the faults; the load goes on until this resolves. */
  faults (history: History): Promise<unknown>
  /** Resolves when everything has recovered. @returns a connection to each current master */
  healed (): Promise<readonly Redis[]>
  /** The share of handoffs with windows, heartbeats, attempts and successors; by default none. */
  tried?: number
  /** The share of handoffs for inboxes; by default none. */
  inboxed?: number
  /** The service's settings where it tells events: they are held to what happened, and a webhook of one of the tenants to its feed. */
  events?: Record<string, string>
  /** Whether some have callbacks where there are events; by default they do. */
  isCalled?: boolean
  /** Whether the service has the settings of everything/settings.ts: tokens and groups are in the load, and tasks, ticks and files beside it. */
  everything?: boolean
  /** Within how many milliseconds from its end Redis's lists are right; by default at once. */
  listsWithin?: () => number
  /** Time-out of a request in milliseconds; by default the load's own. */
  timeout?: number
}

/** The results of all trials together. */
export class Tally {
  readonly counts = noCounts()
  violations: Violation[] = []
  /** Those that answers told of. */
  readonly questions = { asked: 0, answered: 0 }
  /** What webhooks were owed, and how often any of it came again. */
  readonly webhooks = { events: 0, repeats: 0 }
  /** The same of callbacks. */
  readonly callbacks = { callbacks: 0, repeats: 0 }
  /** What went beside (everything/load.ts). */
  readonly beside = { tasks: 0, ticks: 0, files: 0 }

  /** The text for the table, with the first violations: of a run that failed it may be all that is left. */
  get result (): string {
    const { counts: { requests, unavailable }, questions } = this
    const shown = this.violations.slice(0, mostShown).map(({ invariant, handoff, sentence }) => `${invariant} ${handoff}: ${sentence}`)
    const which = shown.length === 0 ? '' : ` (${shown.join('; ')}${this.violations.length > mostShown ? '; …' : ''})`
    return `${this.violations.length} violations${which}; ${unavailable} of ${requests} answered 503; ${questions.answered} of ${questions.asked} questions answered`
  }

  /** What the webhooks had to do with, for the table. */
  get delivered (): string {
    const { events, repeats } = this.webhooks
    const { callbacks, repeats: again } = this.callbacks
    const beside = Object.entries(this.beside).map(([name, count]) => `${count.toLocaleString('en')} ${name}`).join(', ')
    return `${events.toLocaleString('en')} events for webhooks, ${repeats.toLocaleString('en')} repeats; ${callbacks.toLocaleString('en')} callbacks, ${again.toLocaleString('en')} repeats; ${beside}`
  }

  add (counts: typeof this.counts, violations: readonly Violation[]): void {
    for (const name of Object.keys(counts) as Array<keyof typeof counts>) this.counts[name] += counts[name]
    this.violations.push(...violations)
  }
}

/**
 * Runs one trial, checks its history against the invariants, and reports violations.
 * @returns the checked history, and the longest time without an acknowledgement during the faults, in milliseconds
 */
export async function runTrial (t: Stage, trial: Trial, tally: Tally): Promise<{ history: History, gap: number }> {
  const history = new History()
  const hooked = trial.events && new HookedTenant(tenants[trial.seed % tenants.length]!, trial.seed)
  const called = trial.events && trial.isCalled !== false ? new CallbackReceiver(trial.seed) : undefined
  const over = new AbortController()
  try {
    await hooked?.start(trial.urls[0]!, trial.events!)
    const callbacksAt = await called?.start(trial.urls[0]!)
    const load = runAgents({ ...trial, history, until: over.signal, callbacksAt })
    const beside = trial.everything === true ? new EverythingLoad(trial.urls, trial.seed) : undefined
    const besides = beside?.run(over.signal)
    for (const running of [load, besides]) running?.catch(() => {}) // awaited below
    try {
      await trial.faults(history)
    } finally {
      over.abort()
    }
    // Recovery first, because agents retry until they know the outcome.
    const gap = longestGap(history, clock())
    const masters = await trial.healed()
    const counts = await load
    await besides
    await audit(trial.urls, history)
    const isRight = (found: RedisState) => afterFaults(found, usual).length === 0 && (trial.listsWithin === undefined || listFaults(found, usual).length + indexFaults(found, usual).length === 0)
    const state = await untilSwept(masters, prefix, usual, isRight, trial.listsWithin?.())
    const untold = trial.events ? await feedFaultsInTime(state, masters, prefix, questionsOf(history)) : []
    for (const { answeredAt } of [...questionsOf(history).values()].flat()) {
      tally.questions.asked++
      if (answeredAt !== null) tally.questions.answered++
    }
    const unsent = hooked ? await webhookFaultsInTime(hooked, masters, tally) : []
    const uncalled = await called?.faultsInTime(masters, prefix) ?? []
    for (const name of ['callbacks', 'repeats'] as const) tally.callbacks[name] += called?.counts[name] ?? 0
    for (const name of ['tasks', 'ticks', 'files'] as const) tally.beside[name] += beside?.ended[name] ?? 0
    const violations: Violation[] = [
      ...checkHistory(history, { ...usual, budget }, state),
      ...foundInRedis('I15', untold, history),
      ...foundInRedis('I16', unsent, history),
      ...foundInRedis('I19', uncalled, history),
      ...foundInRedis('I22', beside?.faults ?? [], history),
    ]
    for (const violation of violations.slice(0, mostShown)) t.comment(describe(violation))
    tally.add(counts, violations)
    if (beside !== undefined) tally.add(beside.counts, [])
    return { history, gap }
  } finally {
    hooked?.stop()
    called?.stop()
  }
}

/** What a webhook's receiver got, held to the feed, once the deliveries have had their time. */
async function webhookFaultsInTime (hooked: HookedTenant, masters: readonly Redis[], tally: Tally): Promise<ReturnType<typeof webhookFaults>> {
  const { tenant, madeAt } = hooked
  const owed = owedIds(await readFeed(masters, prefix, tenant), madeAt)
  await hooked.untilTaken(owed)
  // Events go on, as handoffs expire: the feed is read after what has come.
  const received = new Map(hooked.received)
  tally.webhooks.events += received.size
  tally.webhooks.repeats += [...received.values()].reduce((sum, { times }) => sum + times - 1, 0)
  return webhookFaults({ tenant, feed: await readFeed(masters, prefix, tenant), ids: owed }, received)
}

/** The longest time, in milliseconds, in which nothing was acknowledged, from the first acknowledgement to `end`. */
function longestGap (history: History, end: number): number {
  const all = [...history.tracks.values()].flatMap(({ operations }) => operations)
  const times = all.filter(({ status, answered }) => status >= 200 && status < 300 && answered! <= end).map(({ answered }) => answered!).sort((a, b) => a - b)
  return times.reduce((longest, time, at) => Math.max(longest, (times[at + 1] ?? end) - time), 0)
}

/** Resolves when so many more operations have been sent. */
export async function operationsMore (history: History, more: number): Promise<void> {
  for (const goal = history.count + more; history.count < goal;) await new Promise(resolve => setTimeout(resolve, 1))
}
