import { median } from '../../../bench/report.ts'
import { until } from '../../helpers/until.ts'
import { eventSettings, inboxShare, triedShare } from '../agents.ts'
import { startSentinelFleet } from '../fleet/sentinel.ts'
import type { SentinelFleet } from '../fleet/sentinel.ts'
import { startServiceReplica } from '../fleet/service.ts'
import type { ServiceReplica } from '../fleet/service.ts'
import type { History } from '../history.ts'
import type { Outcome, Scenario, Stage } from '../scenario.ts'
import { Tally, operationsMore, runTrial } from '../trial.ts'

const acknowledgedInFull = 5_000_000
/** Operations before a fault, and after it once the new master serves. */
const operationsAround = 80_000
/** Until then, in rounds, the service grows as it gets warm; then memory may grow by this share, and the handles by so many. */
const warmUp = 8
const share = 1.05
const few = 10

/** What all replicas of the service hold after a garbage collection: memory in bytes, and what keeps their event loops alive (weigh.mjs). */
interface Weights { heap: number, handles: number }

const weigher = new URL('../weigh.mjs', import.meta.url).href

/** The master dies, or pauses and resumes, or a replica stalls before the master dies; the Sentinels make another one. */
export const sentinel: Scenario = {
  name: 'sentinel',
  fault: 'Sentinel, 2 replicas, `replicas:1`: kill, pause and resume, stalled replicas; failover by hand',
  goal: '0 lost; gap p50 < 2.5 s; memory, timers, connections flat after warm-up',
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
  const env = { ...eventSettings, REDIS_URL: fleet.url, DURABILITY: 'replicas:1' }
  const services = await Promise.all([1, 2].map(() => startServiceReplica(t, { env, nodeOptions: ['--expose-gc', `--import=${weigher}`] })))
  const around = Math.min(operationsAround, acknowledgedInFull * scale / 8)
  const tally = new Tally()
  const gaps: Record<keyof typeof faults, number[]> = { killed: [], paused: [], stalled: [], byHand: [] }
  const weights: Weights[] = []
  for (let round = 0; round < kinds.length || tally.counts.acknowledged < acknowledgedInFull * scale; round++) {
    const name = kinds[round % kinds.length]!
    const { gap } = await runTrial(t, {
      urls: services.map(({ url }) => url),
      agents: 96,
      seed: 100 + round,
      tried: triedShare,
      inboxed: inboxShare,
      events: env,
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
    weights.push(await weigh(services))
    t.comment(`round ${round + 1}, ${name}: ${tally.counts.acknowledged} acknowledged so far, gap ${Math.round(gap)} ms, ${tally.result}, ${tally.delivered}, ${JSON.stringify(weights.at(-1))}`)
  }
  const all = Object.values(gaps).flat()
  const { hasGrown, told } = growth(weights.slice(Math.min(warmUp, weights.length >> 1)))
  const each = kinds.map(name => `${name} ${seconds(median(gaps[name]))}`).join(', ')
  return {
    load: `${all.length} failovers (down-after 1.1 s), ${tally.counts.acknowledged.toLocaleString('en')} acknowledged; ${tally.delivered}`,
    result: `${tally.result}; gap p50 ${seconds(median(all))} (${each}); ${told}`,
    held: tally.violations.length === 0 && median(all) < 2500 && !hasGrown,
  }
}

function seconds (milliseconds: number): string {
  return `${(milliseconds / 1000).toFixed(2)} s`
}

async function weigh (services: readonly ServiceReplica[]): Promise<Weights> {
  const all = await Promise.all(services.map(async ({ pid, lines }) => {
    // Only the last lines are kept, so theirs are told apart by their number.
    const newest = () => JSON.parse(lines.findLast(line => line.startsWith('{"weighed":')) ?? '{"weighed":0}') as Weights & { weighed: number }
    const before = newest().weighed
    process.kill(pid, 'SIGWINCH')
    return await until(() => newest().weighed > before ? newest() : undefined)
  }))
  return { heap: all.reduce((sum, { heap }) => sum + heap, 0), handles: all.reduce((sum, { handles }) => sum + handles, 0) }
}

/** Medians of the last fifth of the rounds against those of the first fifth. */
function growth (rounds: readonly Weights[]): { hasGrown: boolean, told: string } {
  const fifth = Math.max(1, Math.floor(rounds.length / 5))
  const of = (name: keyof Weights) => [rounds.slice(0, fifth), rounds.slice(-fifth)].map(some => median(some.map(one => one[name]))) as [number, number]
  const [heap, handles] = [of('heap'), of('handles')]
  return {
    hasGrown: heap[1] > heap[0] * share || handles[1] > handles[0] + few,
    told: `heap ${heap.map(bytes => (bytes / 1e6).toFixed(1)).join(' → ')} MB, handles ${handles.join(' → ')}`,
  }
}
