import { setTimeout as sleep } from 'node:timers/promises'
import { median } from '../../../bench/report.ts'
import { loadSettings } from '../agents.ts'
import { startSentinelFleet } from '../fleet/sentinel.ts'
import type { SentinelFleet } from '../fleet/sentinel.ts'
import { startServiceReplica } from '../fleet/service.ts'
import type { History } from '../history.ts'
import type { Outcome, Scenario, Stage } from '../scenario.ts'
import { Tally, operationsMore, runTrial } from '../trial.ts'

const acknowledgedInFull = 5_000_000
/** Operations before a fault, and after it when the new master serves. */
const operationsAround = 20_000
/** How long a master is away that comes back and still takes itself for one. */
const away = 6000

/** The master dies, or pauses and comes back, or a replica stalls before it dies; the Sentinels make another. */
export const sentinel: Scenario = {
  name: 'sentinel',
  fault: 'Sentinel, 2 replicas, `replicas:1`: kill, pause 6 s and resume, stalled replicas; failover by hand',
  goal: '0 lost; gap p50 < 2.5 s',
  run,
}

/** What befalls the master; the fleet is whole before it. Resolves when another is master and what was broken is repaired. */
type Fault = (fleet: SentinelFleet, history: History) => Promise<void>

const killed: Fault = async (fleet, history) => {
  const master = await fleet.master()
  const switched = fleet.switched()
  await master.kill()
  await switched
  await operationsMore(history, operationsAround)
  await master.restart()
}

const paused: Fault = async (fleet, history) => {
  const master = await fleet.master()
  const switched = fleet.switched()
  master.pause()
  await sleep(away)
  master.resume()
  await switched
  await operationsMore(history, operationsAround)
}

/** One replica alone has what was acknowledged while the other stalled, and it is that one which must become the master. */
const stalled: Fault = async (fleet, history) => {
  const master = await fleet.master()
  const [behind] = await fleet.replicas()
  behind!.pause()
  await operationsMore(history, operationsAround)
  const switched = fleet.switched()
  await master.kill()
  await switched
  behind!.resume()
  await operationsMore(history, operationsAround)
  await master.restart()
}

/** As README.md has it: what nobody may write to meanwhile the replicas have all of. */
const byHand: Fault = async (fleet, history) => {
  const switched = fleet.switched()
  await (await fleet.master()).admin.call('CLIENT', 'PAUSE', '10000', 'WRITE')
  await fleet.sentinels[0]!.admin.call('SENTINEL', 'FAILOVER', fleet.name)
  await switched
  await operationsMore(history, operationsAround)
}

const faults = [killed, paused, stalled, byHand]

async function run (t: Stage, scale: number): Promise<Outcome> {
  const fleet = await startSentinelFleet(t)
  const env = { ...loadSettings, REDIS_URL: fleet.url, DURABILITY: 'replicas:1' }
  const services = await Promise.all([1, 2].map(() => startServiceReplica(t, { env })))
  const tally = new Tally()
  const gaps: number[] = []
  for (let round = 0; round < faults.length || tally.counts.acknowledged < acknowledgedInFull * scale; round++) {
    const { gap } = await runTrial(t, {
      urls: services.map(({ url }) => url),
      agents: 64,
      seed: 100 + round,
      async faults (history) {
        await operationsMore(history, operationsAround)
        await faults[round % faults.length]!(fleet, history)
      },
      async healed () {
        await fleet.untilWhole()
        return [(await fleet.master()).admin]
      },
    }, tally)
    gaps.push(gap)
    // What was checked is in nobody's way any more.
    await (await fleet.master()).admin.flushall()
    const { acknowledged } = tally.counts
    t.comment(`round ${round + 1}: ${acknowledged} acknowledged so far, gap ${Math.round(gap)} ms, ${tally.violations.length} violations`)
  }
  const { acknowledged } = tally.counts
  const typical = median(gaps)
  return {
    load: `${gaps.length} failovers (down-after 1,200 ms), ${acknowledged} acknowledged`,
    result: `${tally.result}; gap p50 ${(typical / 1000).toFixed(2)} s, longest ${(Math.max(...gaps) / 1000).toFixed(2)} s`,
    held: tally.violations.length === 0 && typical < 2500,
  }
}
