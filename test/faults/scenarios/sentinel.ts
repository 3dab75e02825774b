import { median } from '../../../bench/report.ts'
import { inboxShare, triedShare } from '../agents.ts'
import { everything } from '../everything/settings.ts'
import { startSentinelFleet } from '../fleet/sentinel.ts'
import type { SentinelFleet } from '../fleet/sentinel.ts'
import { startServiceReplica } from '../fleet/service.ts'
import type { History } from '../history.ts'
import type { Outcome, Scenario, Stage } from '../scenario.ts'
import { Tally, operationsMore, runTrial } from '../trial.ts'

const acknowledgedInFull = 5_000_000
/** Operations before a fault, and after it once the new master serves. */
const operationsAround = 80_000

/** The master dies, or pauses and resumes, or a replica stalls before the master dies; the Sentinels make another one. */
export const sentinel: Scenario = {
  name: 'sentinel',
  fault: 'Sentinel, 2 replicas, `replicas:1`: kill, pause and resume, stalled replicas; failover by hand',
  goal: '0 lost; gap p50 < 2.5 s',
  run: (t, scale) => runSentinel(t, scale),
}

/** A fault of the master of a whole fleet. Resolves when another one is master and the fault is repaired. */
type Fault = (fleet: SentinelFleet, history: History, around: number) => Promise<void>

const killed: Fault = async (fleet, history, around) => {
  const master = await fleet.master()
  const switched = fleet.switched()
  await master.kill()
  await switched
  await operationsMore(history, around)
  await master.restart()
}

const paused: Fault = async (fleet, history, around) => {
  const master = await fleet.master()
  const switched = fleet.switched()
  master.pause()
  await switched
  // It still believes that it is a master.
  master.resume()
  await operationsMore(history, around)
}

/** Only one replica has what was acknowledged while the other stalled, so that one must become the master. */
const stalled: Fault = async (fleet, history, around) => {
  const master = await fleet.master()
  const [behind] = await fleet.replicas()
  behind!.pause()
  await operationsMore(history, around)
  const switched = fleet.switched()
  await master.kill()
  await switched
  behind!.resume()
  await operationsMore(history, around)
  await master.restart()
}

/** As in docs/redis.md, "Failing over by hand": writes are paused, so the replicas have everything. */
const byHand: Fault = async (fleet, history, around) => {
  const switched = fleet.switched()
  await (await fleet.master()).admin.call('CLIENT', 'PAUSE', '10000', 'WRITE')
  await fleet.sentinels[0]!.admin.call('SENTINEL', 'FAILOVER', fleet.name)
  await switched
  await operationsMore(history, around)
}

const faults = { killed, paused, stalled, byHand }

/** @param kinds they take turns, each at least once */
export async function runSentinel (t: Stage, scale: number, kinds = Object.keys(faults) as Array<keyof typeof faults>): Promise<Outcome> {
  const fleet = await startSentinelFleet(t)
  const settings = await everything(t)
  const envOf = (n: number) => ({ ...settings(n), REDIS_URL: fleet.url, DURABILITY: 'replicas:1' })
  const services = await Promise.all([0, 1].map(n => startServiceReplica(t, { env: envOf(n) })))
  const around = Math.min(operationsAround, acknowledgedInFull * scale / 8)
  const tally = new Tally()
  const gaps: Record<keyof typeof faults, number[]> = { killed: [], paused: [], stalled: [], byHand: [] }
  for (let round = 0; round < kinds.length || tally.counts.acknowledged < acknowledgedInFull * scale; round++) {
    const name = kinds[round % kinds.length]!
    const { gap } = await runTrial(t, {
      urls: services.map(({ url }) => url),
      agents: 96,
      seed: 100 + round,
      tried: triedShare,
      inboxed: inboxShare,
      events: envOf(0),
      everything: true,
      async faults (history) {
        await operationsMore(history, around)
        await faults[name](fleet, history, around)
      },
      async healed () {
        await fleet.untilWhole()
        return [(await fleet.master()).admin]
      },
    }, tally)
    gaps[name].push(gap)
    // Checked handoffs are dropped, to save memory.
    await (await fleet.master()).admin.flushall()
    t.comment(`round ${round + 1}, ${name}: ${tally.counts.acknowledged} acknowledged so far, gap ${Math.round(gap)} ms, ` +
      `${tally.result}, ${tally.delivered}`)
  }
  const all = Object.values(gaps).flat()
  const each = kinds.map(name => `${name} ${seconds(median(gaps[name]))}`).join(', ')
  return {
    load: `${all.length} failovers (down-after 1.1 s), ${tally.counts.acknowledged.toLocaleString('en')} acknowledged; ${tally.delivered}`,
    result: `${tally.result}; gap p50 ${seconds(median(all))} (${each})`,
    held: tally.violations.length === 0 && median(all) < 2500,
  }
}

function seconds (milliseconds: number): string {
  return `${(milliseconds / 1000).toFixed(2)} s`
}
