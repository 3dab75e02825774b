import { setTimeout as sleep } from 'node:timers/promises'
import slotOf from 'cluster-key-slot'
import type { Test } from 'tap'
import { tags } from '../../src/core/ids.ts'
import type { HandoffPlace } from '../../src/store/handoffs.ts'
import { memberOf } from '../../src/store/key-names.ts'
import { startCluster } from '../faults/fleet/cluster.ts'
import { payload, placeIn, untilServing } from './handoffs.ts'
import { beginMove, migrate } from './moving-slot.ts'
import { fleetStore } from './redis.ts'

/** Three masters, a store on them that keeps events, and what tests of moving slots do with both. */
export async function movingCluster (t: Test) {
  const cluster = await startCluster(t, { replicas: 0, nodeTimeoutMs: 1000 })
  const store = fleetStore(t, cluster.url, { eventsRetention: 60_000 })
  const { handoffs } = store
  await untilServing(handoffs)
  let last = 0
  const freshTag = () => tags[(last += 89) % tags.length]!
  const keyOf = ({ tag, tenant, id }: HandoffPlace) => `handoff:{${tag}}:h:${memberOf(tenant, id)}`
  const passed = async (tag: string, options = '', more: object = {}): Promise<HandoffPlace> => {
    const place = placeIn(tag)
    await handoffs.pass({ ...place, token: '-', passedBy: 'alice', requireHuman: false, options, expiresIn: 60_000, payload, ...more })
    return place
  }
  /** The connection to the master that has a tag's slot now. */
  const admin = async (tag: string) => (await cluster.ownerOf(slotOf(tag))).admin

  /** Begins to move a tag's slot to another master. */
  async function begin (tag: string) {
    const slot = slotOf(tag)
    const from = await cluster.ownerOf(slot)
    const to = cluster.servers.find(server => server !== from)!
    await beginMove(slot, from, to)
    return { slot, from, to }
  }

  /** Begins a move with these keys gone ahead, asks, and ends the move a moment later. */
  async function whileMoving<T> (tag: string, ahead: readonly string[], ask: () => Promise<T>): Promise<T> {
    const { slot, from, to } = await begin(tag)
    await migrate(from, to, ...ahead)
    const answer = ask()
    await Promise.race([answer, sleep(200)])
    await cluster.moveSlot(slot, to)
    return await answer
  }

  return { cluster, store, freshTag, keyOf, passed, admin, begin, whileMoving }
}
