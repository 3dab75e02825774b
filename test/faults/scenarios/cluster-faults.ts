import { setTimeout as sleep } from 'node:timers/promises'
import slotOf from 'cluster-key-slot'
import { homeTag, tags } from '../../../src/handoff/id.ts'
import { until } from '../../helpers/until.ts'
import { isReplicated } from '../fleet/ask.ts'
import type { ClusterFleet } from '../fleet/cluster.ts'
import type { RedisServer } from '../fleet/redis.ts'
import { moveSlot } from '../fleet/slots.ts'
import { clock } from '../history.ts'
import type { History } from '../history.ts'
import { agentKeys } from '../load-keys.ts'
import type { Random } from '../random.ts'
import { operationsMore } from '../trial.ts'

/** What befalls a Cluster under load, and how long some of its slots can't be served for it. */

/** How long a master is away that comes back and still takes itself for one, in milliseconds. */
const away = 6000
/** How many slots a round moves once, anywhere. */
const slotsInFull = 24
/** How often a round moves each slot with a waiting list: a tenth of all handoffs lies there, and some are asked for while it moves. */
const movesOfHomes = 6

/**
 * From the fault until the master that took over has its replica in sync: before that there is nobody to write to, or nobody to
 * acknowledge it. Times by `clock`.
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
  /** Told before a server is ended, while what it counts can still be read. */
  ending (server: RedisServer): Promise<void>
}

/** What a fault did, and the gaps that it is granted. */
export interface Befell { gaps: Gap[], failovers?: number, slots?: number, keys?: number }

/** The cluster is whole before it, and is left to become whole again. */
export type ClusterFault = (all: Befallen) => Promise<Befell>

/** The master dies, and comes back when its replica has taken its place. */
export const killed: ClusterFault = async all => {
  const [master, replica] = await pickPair(all)
  await all.ending(master)
  const from = clock()
  await master.kill()
  await all.fleet.untilMaster(replica)
  await master.restart()
  return { gaps: [await gapSince(from, replica)] }
}

/** The master stands still for longer than the others wait for it, and goes on as if nothing had happened. */
export const paused: ClusterFault = async all => {
  const [master, replica] = await pickPair(all)
  const from = clock()
  master.pause()
  await sleep(away)
  master.resume()
  await all.fleet.untilMaster(replica)
  return { gaps: [await gapSince(from, replica)] }
}

/** By hand, each master in turn: nothing is away, so no gap is granted. */
export const failedOver: ClusterFault = async ({ fleet, history, between }) => {
  const masters = await fleet.masters()
  for (const master of masters) {
    const [replica] = await fleet.replicasOf(master)
    await fleet.failover(replica!)
    await operationsMore(history, between)
  }
  return { gaps: [], failovers: masters.length }
}

/** Slots that hold handoffs, to other masters while they are in use. No gap is granted. */
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

/** Some calls come between a slot's halves, and yet the fullest is over before a call is given up: those with a waiting list have thousands. */
const fewAtOnce = 10

/**
 * A master that has no slots takes over all that another has: the one that leaves is left without
 * any, as the next time's empty one. No gap is granted.
 */
export const resettled: ClusterFault = async ({ fleet, history, random, between }) => {
  const masters = await fleet.masters()
  const [to] = await fleet.withoutSlots() as [RedisServer]
  const from = random.pick(masters)
  const slots = await fleet.slotsOf(from)
  const ours = slots.filter(slot => ownSlots.has(slot))
  // Where nothing of ours lies nothing is asked for.
  await fleet.giveEmptySlots(slots.filter(slot => !ownSlots.has(slot)), from, to)
  let keys = 0
  for (const slot of ours) keys += await moveSlot(slot, from, to, [...masters, to], fewAtOnce)
  await operationsMore(history, between)
  return { gaps: [], slots: ours.length, keys }
}

/** The same where a master's word is enough. */
export const resettledLightly: ClusterFault = all => resettled(all)

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
