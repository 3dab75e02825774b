import { median } from '../../../bench/report.ts'
import { eventSettings, inboxShare, triedShare } from '../agents.ts'
import { info } from '../fleet/ask.ts'
import { startCluster } from '../fleet/cluster.ts'
import type { RedisServer } from '../fleet/redis.ts'
import { startServiceReplica } from '../fleet/service.ts'
import type { History } from '../history.ts'
import { Random } from '../random.ts'
import type { Outcome, Scenario, Stage } from '../scenario.ts'
import { Tally, operationsMore, runTrial } from '../trial.ts'
import { failedOver, killed, paused, replicasKilled, replicasPaused, resettled, resettledLightly, slotsMoved } from './cluster-faults.ts'
import type { Befell, ClusterFault, Gap } from './cluster-faults.ts'

const roundsInFull = 32
const agents = 64
/** Operations before a fault, and between those of a round. */
const operationsInFull = 5000

/**
 * A master dies, pauses, fails over by hand, or gives slots away, each under load; or replicas of the service die or pause; or a master gives
 * all slots to one without any, in turn with acknowledgement by the master alone and by its replica.
 */
export const cluster: Scenario = {
  name: 'cluster',
  fault: 'Cluster 3+3 and an empty master with its replica: kill a master, pause it, `CLUSTER FAILOVER`, move slots, replace a master by the empty one, kill and pause replicas of the service, under load',
  goal: '0 lost, 0 CROSSSLOT, < 0.1 % 503 outside the gap',
  run: (t, scale) => runCluster(t, scale),
}

const everyFault = [killed, slotsMoved, replicasKilled, paused, failedOver, replicasPaused, resettled, resettledLightly]

/** The share of requests that may be answered 503 outside the gap; in a test, which may share the machine with others. */
const mostUnserved = 0.001
export const mostUnservedWhenBusy = 0.02

/** @param faults they take turns, each at least once */
export async function runCluster (t: Stage, scale: number, faults: readonly ClusterFault[] = everyFault, most = mostUnserved): Promise<Outcome> {
  const fleet = await startCluster(t, { empty: 1 })
  const env = { ...eventSettings, REDIS_URL: fleet.url, DURABILITY: 'replicas:1' }
  const services = await Promise.all([1, 2].map(() => startServiceReplica(t, { env })))
  // No load without replicas while masters die: what only they have acknowledged would be lost.
  const light = await startServiceReplica(t, { env: { ...env, DURABILITY: 'none' } })
  const restart = async (index: number) => {
    services[index] = await startServiceReplica(t, { env: { ...env, PORT: new URL(services[index]!.url).port } })
  }
  const rounds = Math.max(faults.length, Math.ceil(roundsInFull * scale))
  const random = new Random(200)
  const refused = new Refusals()
  const befell: Befell[] = []
  const tally = new Tally()
  const outside = { requests: 0, unavailable: 0, shed: 0 }
  // A short form has shorter rounds too, so that each fault occurs once.
  const share = Math.max(0.2, Math.min(1, 5 * scale))
  const between = operationsInFull * share
  for (let round = 0; round < rounds; round++) {
    const began = befell.length
    const fault = faults[round % faults.length]!
    const { history } = await runTrial(t, {
      urls: (fault === resettledLightly ? [light] : services).map(({ url }) => url),
      agents,
      seed: 200 + round,
      tried: triedShare,
      inboxed: inboxShare,
      events: env,
      async faults (history) {
        await operationsMore(history, between)
        befell.push(await fault({ fleet, services, restart, history, random, between, share, ending: server => refused.read(server) }))
        await operationsMore(history, between)
      },
      async healed () {
        await fleet.untilWhole()
        return (await fleet.masters()).map(({ admin }) => admin)
      },
    }, tally)
    const { gaps } = befell[began]!
    const seen = countOutside(history, gaps)
    outside.requests += seen.requests
    outside.unavailable += seen.unavailable
    outside.shed += seen.shed
    await Promise.all(fleet.servers.map(server => refused.read(server)))
    // Checked handoffs are dropped, to save memory.
    for (const { admin } of await fleet.masters()) await admin.flushall()
    t.comment(`round ${round + 1}, ${fault.name}: ${tally.counts.requests} requests so far, ${tally.violations.length} violations, ${tally.delivered}; ` +
      `outside the gap ${seen.unavailable} of ${seen.requests} answered 503, ${seen.shed} shed${gaps.map(gap => `, gap ${Math.round(lengthOf(gap))} ms`).join('')}`)
  }
  const crossSlot = refused.total('CROSSSLOT') + [...services, light].flatMap(({ lines }) => lines).filter(line => line.includes('CROSSSLOT')).length
  const unserved = outside.unavailable / outside.requests
  const lengths = befell.flatMap(({ gaps }) => gaps.map(lengthOf))
  const sum = (of: (one: Befell) => number | undefined) => befell.reduce((sum, one) => sum + (of(one) ?? 0), 0)
  const times = (fault: unknown) => befell.filter((_, round) => faults[round % faults.length] === fault).length
  return {
    load: `${times(killed)} kills, ${times(paused)} pauses of 6 s, ${times(replicasKilled)} times each replica of the service killed, ${times(replicasPaused)} times paused, ${sum(one => one.failovers)} \`CLUSTER FAILOVER\`, ${times(resettled) + times(resettledLightly)} masters replaced by an empty one, ${sum(one => one.slots)} slots moved ` +
      `with ${sum(one => one.keys)} keys (met by ${refused.total('MOVED')} MOVED, ${refused.total('ASK')} ASK, ${refused.total('TRYAGAIN')} TRYAGAIN); ${tally.counts.requests} requests, ${agents} agents, 2 replicas of the service, \`replicas:1\` (every eighth round one with \`none\`); ${tally.delivered}`,
    result: `${tally.violations.length} violations; ${crossSlot} CROSSSLOT; outside the gap ${outside.unavailable} of ${outside.requests} ` +
      `answered 503 (${(unserved * 100).toFixed(3)} %), ${outside.shed} more shed for overload; gap p50 ${(median(lengths) / 1000).toFixed(2)} s, longest ${(Math.max(...lengths) / 1000).toFixed(2)} s`,
    held: tally.violations.length === 0 && crossSlot === 0 && unserved < most,
  }
}

function lengthOf ({ from, to }: Gap): number {
  return to - from
}

/**
 * Requests outside gaps, and how many of them got a 503 or no answer. A request that was sent in a gap and given up to 2 s later belongs
 * to the gap; one sent after it must be served. Shed requests are counted separately: there the machine was too slow for the load,
 * whatever the Cluster did.
 */
function countOutside (history: History, gaps: readonly Gap[]): { requests: number, unavailable: number, shed: number } {
  const counts = { requests: 0, unavailable: 0, shed: 0 }
  for (const { operations, final } of [...history.tracks.values(), { operations: history.untold, final: null }]) {
    for (const operation of operations) {
      const { sent, ended, answered, status, answer } = operation
      // The final statuses, which no agent asked for, and catches that are counted as untold, or were answered.
      if (operation === final || operation.isAssumed) continue
      if (gaps.some(({ from, to }) => sent <= to && (ended ?? Infinity) >= from)) continue
      counts.requests++
      if (answer?.overloaded) counts.shed++
      else if (answered === null || status >= 500) counts.unavailable++
    }
  }
  return counts
}

/** How often servers refused a call, by the error's first word. */
class Refusals {
  /** By process, because a restarted server counts from zero. */
  readonly #counts = new Map<number, Record<string, string>>()

  async read (server: RedisServer): Promise<void> {
    this.#counts.set(server.pid, await info(server, 'errorstats'))
  }

  total (error: string): number {
    const said = [...this.#counts.values()].map(counts => counts[`errorstat_${error}`] ?? 'count=0')
    return said.reduce((sum, count) => sum + Number(count.replace('count=', '')), 0)
  }
}
