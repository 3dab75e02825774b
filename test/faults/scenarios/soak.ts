import { setTimeout as sleep } from 'node:timers/promises'
import { median } from '../../../bench/report.ts'
import { until } from '../../helpers/until.ts'
import { eventSettings, inboxShare, triedShare } from '../agents.ts'
import { startSentinelFleet } from '../fleet/sentinel.ts'
import { startServiceReplica } from '../fleet/service.ts'
import type { ServiceReplica } from '../fleet/service.ts'
import { clock } from '../history.ts'
import type { Outcome, Scenario, Stage } from '../scenario.ts'
import { Tally, runTrial } from '../trial.ts'
import { killed, paused } from './sentinel.ts'

const minute = 60_000
const minutesInFull = 120
const replicas = 3
const failoverEvery = 10
/** Until then, in minutes, the service grows as it gets warm. */
const warmUp = 12
/** The share by which memory may grow, and by how many the handles may. */
const share = 1.05
const few = 10
/** Operations around a fault. */
const around = 500

/** What all replicas hold after a garbage collection: memory in bytes, and what keeps their event loops alive (weigh.mjs). */
interface Weights { heap: number, handles: number }

const weigher = new URL('../weigh.mjs', import.meta.url).href

/** Two hours of everything: nothing may grow, and nothing break. */
export const soak: Scenario = {
  name: 'soak',
  fault: `soak, ${minutesInFull / 60} hours, ${replicas} replicas, Sentinel with \`replicas:1\`, a failover every ${failoverEvery} minutes`,
  goal: '0 violations; memory, timers, connections flat after warm-up',
  async run (t: Stage, scale: number): Promise<Outcome> {
    const fleet = await startSentinelFleet(t)
    const env = { ...eventSettings, REDIS_URL: fleet.url, DURABILITY: 'replicas:1' }
    const start = () => startServiceReplica(t, { env, nodeOptions: ['--expose-gc', `--import=${weigher}`] })
    const services = await Promise.all(Array.from({ length: replicas }, start))
    const tally = new Tally()
    const weights: Weights[] = []
    const length = minutesInFull * minute * scale
    const end = clock() + length
    for (let round = 0; clock() < end; round++) {
      const over = clock() + Math.min(minute, length)
      const fault = round % failoverEvery !== 0 ? undefined : round % (2 * failoverEvery) === 0 ? killed : paused
      await runTrial(t, {
        urls: services.map(({ url }) => url),
        agents: 24,
        seed: 1000 + round,
        tried: triedShare,
        inboxed: inboxShare,
        events: env,
        async faults (history) {
          await fault?.(fleet, history, around)
          await sleep(Math.max(0, over - clock()))
        },
        async healed () {
          await fleet.untilWhole()
          return [(await fleet.master()).admin]
        },
      }, tally)
      // Checked handoffs are dropped, to save memory.
      await (await fleet.master()).admin.flushall()
      weights.push(await weigh(services))
      t.comment(`round ${round + 1}: ${JSON.stringify(weights.at(-1))}; ${tally.counts.requests} operations, ${tally.violations.length} violations, ${tally.delivered}`)
    }
    const { hasGrown, told } = growth(weights.slice(Math.min(warmUp, weights.length >> 1)))
    return {
      load: `${weights.length} minutes, ${tally.counts.requests.toLocaleString('en')} operations; ${tally.delivered}`,
      result: `${told} after warm-up; ${tally.result}`,
      held: !hasGrown && tally.violations.length === 0,
    }
  },
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

/** Medians of the last fifth of the minutes against those of the first fifth. */
function growth (minutes: readonly Weights[]): { hasGrown: boolean, told: string } {
  const fifth = Math.max(1, Math.floor(minutes.length / 5))
  const of = (name: keyof Weights) => [minutes.slice(0, fifth), minutes.slice(-fifth)].map(some => median(some.map(one => one[name]))) as [number, number]
  const [heap, handles] = [of('heap'), of('handles')]
  return {
    hasGrown: heap[1] > heap[0] * share || handles[1] > handles[0] + few,
    told: `heap ${heap.map(bytes => (bytes / 1e6).toFixed(1)).join(' → ')} MB, handles ${handles.join(' → ')}`,
  }
}
