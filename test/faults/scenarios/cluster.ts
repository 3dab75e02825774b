import slotOf from 'cluster-key-slot'
import { median } from '../../../bench/report.ts'
import { homeTag, tags } from '../../../src/core/ids.ts'
import { until } from '../../helpers/until.ts'
import { inboxShare, triedShare } from '../agents.ts'
import { everything } from '../everything/settings.ts'
import { info, isReplicated } from '../fleet/ask.ts'
import { startCluster } from '../fleet/cluster.ts'
import type { ClusterFleet } from '../fleet/cluster.ts'
import type { RedisServer } from '../fleet/redis.ts'
import { startServiceReplica } from '../fleet/service.ts'
import type { ServiceReplica } from '../fleet/service.ts'
import { clock } from '../history.ts'
import type { History } from '../history.ts'
import { tenants } from '../load-keys.ts'
import { Random } from '../random.ts'
import type { Outcome, Scenario, Stage } from '../scenario.ts'
import { Tally, operationsMore, runTrial } from '../trial.ts'

const roundsInFull = 32
const agents = 64
/** Operations before a fault, and between those of a round. */
const operationsInFull = 5000
/** How many slots a round moves, anywhere, and how often each with an approvals list: a tenth of all handoffs is there. */
const slotsInFull = 24
const movesOfHomes = 6

/** From the fault until the new master has a replica in sync: before that there is no master to write to, or no replica to acknowledge. */
interface Gap { from: number, to: number }

interface Befallen {
  fleet: ClusterFleet
  history: History
  random: Random
  /** Operations between one fault and the next. */
  between: number
  /** Share of a whole round's slots to move. */
  share: number
  /** The replicas of the service, and how one is started again where it was. */
  services: ServiceReplica[]
  restart (index: number): Promise<void>
}

/** A fault begins with a whole cluster, which becomes whole again afterwards. @returns the gaps that it may cause */
type Fault = (all: Befallen) => Promise<Gap[]>

/** The master dies, and restarts when its replica has replaced it. */
const killed: Fault = async all => {
  const [master, replica] = await pickPair(all)
  const from = clock()
  await master.kill()
  await all.fleet.untilMaster(replica)
  await master.restart()
  return [await gapSince(from, replica)]
}

/** The master pauses until its replica has replaced it; when it resumes, it still believes it is a master. */
const paused: Fault = async all => {
  const [master, replica] = await pickPair(all)
  const from = clock()
  master.pause()
  await all.fleet.untilMaster(replica)
  master.resume()
  return [await gapSince(from, replica)]
}

/** A failover by hand, of each master in turn: nothing is away, so no gap is allowed. */
const failedOver: Fault = async ({ fleet, history, between }) => {
  for (const master of await fleet.masters()) {
    const [replica] = await fleet.replicasOf(master)
    await fleet.failover(replica!)
    await operationsMore(history, between)
  }
  return []
}

/** Slots with handoffs move to other masters while they are in use. No gap is allowed. */
const slotsMoved: Fault = async ({ fleet, history, random, between, share }) => {
  const homes = tenants.map(homeTag)
  const chosen = Array.from({ length: Math.ceil(movesOfHomes * share) }, () =>
    [...homes, ...Array.from({ length: slotsInFull / movesOfHomes }, () => random.pick(tags))]).flat()
  const masters = await fleet.masters()
  for (const tag of chosen) {
    const owner = await fleet.ownerOf(slotOf(tag))
    await fleet.moveSlot(slotOf(tag), random.pick(masters.filter(master => master !== owner)))
    await operationsMore(history, Math.ceil(between / chosen.length))
  }
  return []
}

/** Replicas of the service die, and start again where they were: whoever relayed events does so no more. */
const replicasKilled: Fault = async ({ services, history, between, restart }) => {
  const gaps: Gap[] = []
  for (const [index, service] of [...services].entries()) {
    const from = clock()
    await service.kill()
    await restart(index)
    gaps.push({ from, to: clock() })
    await operationsMore(history, between)
  }
  return gaps
}

async function pickPair ({ fleet, random }: Befallen): Promise<[master: RedisServer, replica: RedisServer]> {
  const master = random.pick(await fleet.masters())
  const [replica] = await fleet.replicasOf(master)
  return [master, replica!]
}

async function gapSince (from: number, successor: RedisServer): Promise<Gap> {
  await until(() => isReplicated(successor, 1), 30_000)
  return { from, to: clock() }
}

const faults = { killed, slotsMoved, replicasKilled, paused, failedOver }
type FaultName = keyof typeof faults

export const cluster: Scenario = {
  name: 'cluster',
  fault: 'Cluster 3+3: kill a master, pause it, `CLUSTER FAILOVER`, move slots, kill replicas of the service, under load',
  goal: '0 lost, 0 CROSSSLOT, < 0.1 % 503 outside the gap',
  run: (t, scale) => runCluster(t, scale),
}

/** The share of requests that may be answered 503 outside the gap; in a test, which may share the machine with others. */
const mostUnserved = 0.001
export const mostUnservedWhenBusy = 0.02

/** @param kinds they take turns, each at least once */
export async function runCluster (t: Stage, scale: number, kinds = Object.keys(faults) as FaultName[], most = mostUnserved): Promise<Outcome> {
  const fleet = await startCluster(t)
  const settings = await everything(t)
  const envOf = (n: number) => ({ ...settings(n), REDIS_URL: fleet.url, DURABILITY: 'replicas:1' })
  const services = await Promise.all([0, 1].map(n => startServiceReplica(t, { env: envOf(n) })))
  const restart = async (index: number) => {
    services[index] = await startServiceReplica(t, { env: { ...envOf(index), PORT: new URL(services[index]!.url).port } })
  }
  const rounds = Math.max(kinds.length, Math.ceil(roundsInFull * scale))
  const random = new Random(200)
  const tally = new Tally()
  const lengths: number[] = []
  const outside = { requests: 0, unavailable: 0 }
  let crossSlot = 0
  // A short form has shorter rounds too, so that each fault occurs once.
  const share = Math.max(0.2, Math.min(1, 5 * scale))
  const between = operationsInFull * share
  for (let round = 0; round < rounds; round++) {
    const kind = kinds[round % kinds.length]!
    let gaps: Gap[] = []
    const { history } = await runTrial(t, {
      urls: services.map(({ url }) => url),
      agents,
      seed: 200 + round,
      tried: triedShare,
      inboxed: inboxShare,
      events: envOf(0),
      everything: true,
      async faults (history) {
        await operationsMore(history, between)
        gaps = await faults[kind]({ fleet, services, restart, history, random, between, share })
        await operationsMore(history, between)
      },
      async healed () {
        await fleet.untilWhole()
        return (await fleet.masters()).map(({ admin }) => admin)
      },
    }, tally)
    countOutside(history, gaps, outside)
    lengths.push(...gaps.map(({ from, to }) => to - from))
    for (const server of fleet.servers) if ('errorstat_CROSSSLOT' in await info(server, 'errorstats')) crossSlot++
    // Checked handoffs are dropped, to save memory.
    for (const { admin } of await fleet.masters()) await admin.flushall()
    t.comment(`round ${round + 1}, ${kind}: ${tally.result}; ${tally.delivered}; outside the gap ${outside.unavailable} of ${outside.requests} answered 503`)
  }
  const unserved = outside.unavailable / outside.requests
  return {
    load: `${rounds} faults; ${tally.counts.requests} requests, ${agents} agents, 2 replicas of the service, \`replicas:1\`; ${tally.delivered}`,
    result: `${tally.result}; ${crossSlot} CROSSSLOT; outside the gap ${(unserved * 100).toFixed(3)} % answered 503; ` +
      `gap p50 ${(median(lengths) / 1000).toFixed(2)} s, longest ${(Math.max(...lengths) / 1000).toFixed(2)} s`,
    held: tally.violations.length === 0 && crossSlot === 0 && unserved < most,
  }
}

/**
 * Counts requests outside gaps, and how many of them got a 503 or no answer. A request that was sent in a gap and given up to 2 s later belongs
 * to the gap; one sent after it must be served. One that was shed isn't counted: there the machine was too slow for the load.
 */
function countOutside (history: History, gaps: readonly Gap[], counts: { requests: number, unavailable: number }): void {
  for (const { operations, final } of [...history.tracks.values(), { operations: history.untold, final: null }]) {
    for (const operation of operations) {
      const { sent, ended, answered, status, answer, isAssumed } = operation
      // The final statuses, which no agent asked for, and catches that are counted as untold, or were answered.
      if (operation === final || isAssumed || answer?.overloaded) continue
      if (gaps.some(({ from, to }) => sent <= to && (ended ?? Infinity) >= from)) continue
      counts.requests++
      if (answered === null || status >= 500) counts.unavailable++
    }
  }
}
