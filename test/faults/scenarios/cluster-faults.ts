import { setTimeout as sleep } from 'node:timers/promises'
import slotOf from 'cluster-key-slot'
import { homeTag, tags } from '../../../src/handoff/id.ts'
import { until } from '../../helpers/until.ts'
import { isReplicated } from '../fleet/ask.ts'
import type { ClusterFleet } from '../fleet/cluster.ts'
import type { RedisServer } from '../fleet/redis.ts'
import type { ServiceReplica } from '../fleet/service.ts'
import { moveSlot } from '../fleet/slots.ts'
import { clock } from '../history.ts'
import type { History } from '../history.ts'
import { agentKeys } from '../load-keys.ts'
import type { Random } from '../random.ts'
import { operationsMore } from '../trial.ts'

/** Faults of a Cluster under load, and how long each may make slots unavailable. */

/** How long a paused master is away, in milliseconds; when it resumes, it still believes it is a master. */
const away = 6000
/** How many slots a round moves, anywhere. */
const slotsInFull = 24
/** How often a round moves each slot with an approvals list: a tenth of all handoffs is there, so some are used while it moves. */
const movesOfHomes = 6

/**
 * From the fault until the new master has a replica in sync: before that there is no master to write to, or no replica to acknowledge.
 * Times by `clock`.
 */
export interface Gap { from: number, to: number }

export interface Befallen {
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
  /** Called before a server ends, while its counters can still be read. */
  ending (server: RedisServer): Promise<void>
}

/** What a fault did, and the gaps that it may cause. */
export interface Befell { gaps: Gap[], failovers?: number, slots?: number, keys?: number }

/** A fault begins with a whole cluster, which becomes whole again afterwards. */
export type ClusterFault = (all: Befallen) => Promise<Befell>

/** The master dies, and restarts when its replica has replaced it. */
export const killed: ClusterFault = async all => {
  const [master, replica] = await pickPair(all)
  await all.ending(master)
  const from = clock()
  await master.kill()
  await all.fleet.untilMaster(replica)
  await master.restart()
  return { gaps: [await gapSince(from, replica)] }
}

/** The master pauses for longer than cluster-node-timeout, and then resumes. */
export const paused: ClusterFault = async all => {
  const [master, replica] = await pickPair(all)
  const from = clock()
  master.pause()
  await sleep(away)
  master.resume()
  await all.fleet.untilMaster(replica)
  return { gaps: [await gapSince(from, replica)] }
}

/** A failover by hand, of each master in turn: nothing is away, so no gap is allowed. */
export const failedOver: ClusterFault = async ({ fleet, history, between }) => {
  const masters = await fleet.masters()
  for (const master of masters) {
    const [replica] = await fleet.replicasOf(master)
    await fleet.failover(replica!)
    await operationsMore(history, between)
  }
  return { gaps: [], failovers: masters.length }
}

/** Slots with handoffs move to other masters while they are in use. No gap is allowed. */
export const slotsMoved: ClusterFault = async ({ fleet, history, random, between, share }) => {
  const homes = [...new Set(agentKeys.map(({ tenant }) => homeTag(tenant)))]
  const chosen: string[] = []
  for (let turn = 0; turn < movesOfHomes * share; turn++) {
    chosen.push(...homes, ...Array.from({ length: slotsInFull / movesOfHomes }, () => random.pick(tags)))
  }
  const masters = await fleet.masters()
  let keys = 0
  for (const tag of chosen) {
    const owner = await fleet.ownerOf(slotOf(tag))
    keys += await moveSlot(slotOf(tag), owner, random.pick(masters.filter(master => master !== owner)), masters)
    await operationsMore(history, Math.ceil(between / chosen.length))
  }
  return { gaps: [], slots: chosen.length, keys }
}

/** Few enough keys at once that some calls meet a half-moved slot, yet even the fullest slot (thousands of keys) moves within a call's budget. */
const fewAtOnce = 10

/**
 * A master without slots takes over all slots of another, which is the empty one the next time. No gap is allowed.
 */
export const resettled: ClusterFault = async ({ fleet, history, random, between }) => {
  const masters = await fleet.masters()
  const [to] = await fleet.withoutSlots() as [RedisServer]
  const from = random.pick(masters)
  const slots = await fleet.slotsOf(from)
  const ours = slots.filter(slot => ownSlots.has(slot))
  // Slots without our keys get no calls.
  await fleet.giveEmptySlots(slots.filter(slot => !ownSlots.has(slot)), from, to)
  let keys = 0
  for (const slot of ours) keys += await moveSlot(slot, from, to, [...masters, to], fewAtOnce)
  await operationsMore(history, between)
  return { gaps: [], slots: ours.length, keys }
}

/** The same with DURABILITY at the master's word. */
export const resettledLightly: ClusterFault = all => resettled(all)

/** How long a replica of the service is paused, in milliseconds: others take its leases over, and it resumes with what it had read. */
const servicePause = 3000

/** Replicas of the service die, and start again where they were: whoever relayed events does so no more. */
export const replicasKilled: ClusterFault = async ({ services, history, between, restart }) => {
  const gaps: Gap[] = []
  for (const [index, service] of [...services].entries()) {
    const from = clock()
    await service.kill()
    await restart(index)
    gaps.push({ from, to: clock() })
    await operationsMore(history, between)
  }
  return { gaps }
}

/** The same with a pause. */
export const replicasPaused: ClusterFault = async ({ services, history, between }) => {
  const gaps: Gap[] = []
  for (const service of services) {
    const from = clock()
    service.pause()
    await sleep(servicePause)
    service.resume()
    gaps.push({ from, to: clock() })
    await operationsMore(history, between)
  }
  return { gaps }
}

const ownSlots = new Set(tags.map(tag => slotOf(tag)))

async function pickPair ({ fleet, random }: Befallen): Promise<[master: RedisServer, replica: RedisServer]> {
  const master = random.pick(await fleet.masters())
  const [replica] = await fleet.replicasOf(master)
  return [master, replica!]
}

async function gapSince (from: number, successor: RedisServer): Promise<Gap> {
  await until(() => isReplicated(successor, 1), 30_000)
  return { from, to: clock() }
}
