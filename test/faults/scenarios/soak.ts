import { setTimeout as sleep } from 'node:timers/promises'
import { inboxShare, triedShare } from '../agents.ts'
import { startSentinelFleet } from '../fleet/sentinel.ts'
import { startServiceReplica } from '../fleet/service.ts'
import { clock } from '../history.ts'
import { eventSettings } from '../load-keys.ts'
import type { Outcome, Scenario, Stage } from '../scenario.ts'
import { StoredKeys } from '../stored-keys.ts'
import { Tally, runTrial } from '../trial.ts'
import { HookedTenant } from '../webhook-receiver.ts'
import { describeWeights, growth, weigh } from '../weights.ts'
import type { Weights } from '../weights.ts'
import { killed, paused } from './sentinel.ts'

const minute = 60_000
const minutesInFull = 120
const replicas = 3
/** Handoffs per second, some seven requests each. A constant rate, or the memory of different minutes couldn't be compared. */
const perSecond = 40
/** Lifetimes in seconds of handoffs that nobody catches or ends, so that all end; those of what a deadline ended may get further attempts. */
const lifetime = 60
/** RETENTION in seconds: a round's handoffs must still be there when they are checked, and a round takes longest after a failover. */
const retention = 300
/** EVENTS_RETENTION in seconds: longer than a handoff can be there. */
const eventsRetention = 600
/** Until then more handoffs are made than deleted. */
const warmUp = 12
const failoverEvery = 10
const firstFailover = 4.5
/** Within this long of each minute (ms) every key is rotated. Faults come after that: a rotation must be answered, or its secret is lost. */
const rotating = 25_000
/**
 * Two hours on a machine that isn't the soak's alone (ms): a request that its client has given up may be read seconds later, and each part of a
 * sweep may take the 0.25 s that it is waited for. How fast both are is for other scenarios and tests to judge.
 */
const busy = { budget: 10_000, sweep: 20_000 }
/** Operations around a fault. */
const around = 500

const weigher = new URL('../weigh.mjs', import.meta.url).href

/** Two hours of everything: nothing may grow, and nothing break. */
export const soak: Scenario = {
  name: 'soak',
  fault: `soak, ${minutesInFull / 60} hours, ${replicas} replicas, Sentinel with \`replicas:1\`: approvals, inboxes, attempts, expiry, webhooks, keys rotated every minute, a failover every ${failoverEvery} minutes`,
  goal: '0 violations; memory, timers, connections flat after warm-up',
  run,
}

async function run (t: Stage, scale: number): Promise<Outcome> {
  const fleet = await startSentinelFleet(t)
  const { API_KEYS: _, APPROVER_KEYS: __, ...settings } = eventSettings
  const env = { ...settings, REDIS_URL: fleet.url, DURABILITY: 'replicas:1', RETENTION: `${retention}`, WORK_TTL: `${lifetime}`, EVENTS_RETENTION: `${eventsRetention}` }
  const services = await Promise.all(Array.from({ length: replicas }, () => startServiceReplica(t, { env, nodeOptions: ['--expose-gc', `--import=${weigher}`] })))
  const urls = services.map(({ url }) => url)
  const keys = await StoredKeys.make(env)
  const hooked = await Promise.all(['north', 'east'].map((tenant, number) => HookedTenant.start(tenant, number, urls[number]!, env)))
  for (const one of hooked) t.teardown(() => one.stop())

  const tally = new Tally()
  const weights: Weights[] = []
  const wrong: string[] = []
  const gaps: number[] = []
  const length = minutesInFull * minute * scale
  const began = clock()
  const end = began + length
  let failover = began + Math.min(firstFailover * minute, length / 2)
  for (let round = 0; clock() < end; round++) {
    const until = clock() + Math.min(minute, length)
    const fault = failover > until ? undefined : gaps.length % 2 === 0 ? killed : paused
    if (fault !== undefined) failover += failoverEvery * minute
    const { gap } = await runTrial(t, {
      urls,
      agents: 24,
      perSecond,
      seed: 1000 + round,
      tried: triedShare,
      inboxed: inboxShare,
      // What is left in one minute's inboxes nobody catches in the next.
      inboxes: [`work-${round}`, `mail-${round}`],
      brief: 0.1,
      lifetime,
      tolerance: { workTtl: lifetime * 1000, ...busy },
      events: env,
      hooked,
      secretOf: keys.secretOf,
      async faults (history) {
        await keys.rotate(Math.min(rotating, length))
        await fault?.(fleet, history, around)
        await sleep(Math.max(0, until - clock()))
      },
      async healed () {
        await fleet.untilWhole()
        return [(await fleet.master()).admin]
      },
    }, tally)
    wrong.push(...await keys.wrong(urls))
    if (fault !== undefined) gaps.push(gap)
    // By then the services have seen that the load has closed its connections.
    await sleep(1000)
    weights.push(await weigh(services, (await fleet.master()).admin))
    t.comment(`round ${round + 1}${fault === undefined ? '' : `, master ${fault.name}, gap ${Math.round(gap)} ms`}: ${describeWeights(weights.at(-1)!)}; ` +
      `${tally.counts.requests} operations, ${tally.violations.length} violations, ${tally.delivered}${wrong.map(one => `, ${one}`).join('')}`)
  }
  const minutes = Math.round((clock() - began) / minute)
  const { grown, told } = growth(weights.slice(Math.min(warmUp, weights.length >> 1)))
  return {
    load: `${minutes} minutes, ${tally.counts.requests.toLocaleString('en')} operations (${perSecond} handoffs a second), ${gaps.length} failovers, ${keys.rotations} rotations of keys; ${tally.delivered}`,
    result: `${told} after warm-up (${describeWeights(weights.at(-1)!)} in the end); ${wrong.length} keys answered wrong; ${tally.result}`,
    held: grown.length === 0 && wrong.length === 0 && tally.violations.length === 0,
  }
}
