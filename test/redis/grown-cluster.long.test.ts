import { setTimeout as sleep } from 'node:timers/promises'
import slotOf from 'cluster-key-slot'
import t from 'tap'
import type { Test } from 'tap'
import { randomToken, tags } from '../../src/handoff/id.ts'
import type { Place } from '../../src/store/handoffs.ts'
import { Unavailable } from '../../src/redis/lanes.ts'
import type { Store } from '../../src/store/store.ts'
import { info } from '../faults/fleet/ask.ts'
import { startCluster } from '../faults/fleet/cluster.ts'
import type { RedisServer } from '../faults/fleet/redis.ts'
import { done, pass, payload, placeIn, untilServing } from '../helpers/handoffs.ts'
import { fleetStore } from '../helpers/redis.ts'
import { newKey } from '../helpers/stored-keys.ts'
import { until } from '../helpers/until.ts'

/** Partitions whose slots move, and all slots from the first to the last of them: the slots between are empty. */
const moving = tags.slice(400, 405)
const [firstTag, ...used] = moving as [string, ...string[]]
const lastTag = used.pop()!
const slots = Array.from({ length: slotOf(lastTag) - slotOf(firstTag) + 1 }, (_, n) => slotOf(firstTag) + n)

/** Milliseconds. */
const retention = 1000
const stores = [{ replicas: 0, prefix: 'plain' }, { replicas: 1, prefix: 'durable' }]

t.test('a new master takes over slots, and a leaving one gives all of its own away', async t => {
  const cluster = await startCluster(t, { masters: 1, empty: 2, nodeTimeoutMs: 5000 })
  const [first] = cluster.servers as [RedisServer]
  const [leaving, empty] = cluster.empty as [RedisServer, RedisServer]
  const services = stores.map(({ replicas, prefix }) => ({ prefix, ...fleetStore(t, cluster.url, { replicas, prefix, retention }) }))
  const kept = Array.from({ length: 30 }, (_, n) => placeIn(used[n % used.length]!))
  for (const { handoffs } of services) {
    await untilServing(handoffs)
    for (const place of kept) await pass(handoffs, place, 600_000)
  }
  const loads = services.map(service => startLoad(t, service))
  const goesOn = () => Promise.all(loads.map(({ goesOn }) => goesOn()))
  const laneNames = () => services.map(service => service.laneSizes().map(({ master }) => master).sort())
  const lanesOf = (...servers: RedisServer[]) => services.map(() => [...servers.map(({ at }) => at), 'unknown'].sort())

  /** Moves a slot and stops halfway for a check. */
  async function moveWithALook (t: Test, tag: string, from: RedisServer, to: RedisServer): Promise<void> {
    const [gone, here] = [placeIn(tag), placeIn(tag)]
    for (const { handoffs } of services) await Promise.all([pass(handoffs, gone), pass(handoffs, here)])
    await begin(slotOf(tag), from, to)
    for (const { prefix } of services) await migrate(from, to, handoffKey(gone, prefix), dueKey(gone, prefix))
    const sentOn = await refusals(from, 'ASK')
    for (const { handoffs, prefix } of services) {
      for (let look = 0; look < 5; look++) {
        t.match(await handoffs.status(gone), { outcome: 'found' }, `${prefix}: what has gone over`)
        t.match(await handoffs.status(here), { outcome: 'found' }, `${prefix}: what has not`)
      }
      t.match(await handoffs.catch(gone, randomToken(), 'bob'), { outcome: 'caught' }, prefix)
      t.match(await done(handoffs, gone), { outcome: 'done' }, prefix)
    }
    const asks = await refusals(from, 'ASK') - sentOn
    t.ok(asks >= 14 && asks < 60, `each call was sent on at once: ${asks} ASK`)
    await cluster.moveSlot(slotOf(tag), to)
    for (const { handoffs } of services) t.match(await handoffs.catch(here, randomToken(), 'bob'), { outcome: 'caught' })
  }

  await t.test('slots move to a master without any slot', async t => {
    await goesOn()
    await moveWithALook(t, firstTag, first, leaving)
    for (const slot of slots.slice(1)) await cluster.moveSlot(slot, leaving, 1)
    await goesOn()
    t.strictSame(laneNames(), lanesOf(first, leaving))
  })

  await t.test('slots move to a master that has one slot, and none of ours', async t => {
    await cluster.moveSlot(slotOf(firstTag) - 1, empty)
    await moveWithALook(t, firstTag, leaving, empty)
    await goesOn()
    t.strictSame(laneNames(), lanesOf(first, leaving, empty))
  })

  await t.test('slots move off the leaving master, to the last one', async t => {
    for (const slot of slots.slice(1, -1)) await cluster.moveSlot(slot, empty, 1)
    await moveWithALook(t, lastTag, leaving, empty)
    await goesOn()
    t.notOk((await cluster.masters()).includes(leaving), 'it has none')
  })

  for (const load of loads) await load.stop()
  for (const { handoffs, prefix } of services) {
    const caught = await Promise.all(kept.map(place => handoffs.catch(place, randomToken(), 'bob')))
    t.ok(caught.every(answer => 'payload' in answer && answer.payload.equals(payload)), `${prefix}: all is there`)
  }
  await t.test('no connection to the removed master stays open', async t => {
    // Once the nodes were asked again, and certainly nothing is on its way there any more.
    await until(() => laneNames().every(names => names.length === 3), 45_000)
    t.strictSame(laneNames(), lanesOf(first, empty))
  })
})

t.test('a server whose slots are all moving still acknowledges what it has', async t => {
  const cluster = await startCluster(t, { masters: 1, empty: 1, nodeTimeoutMs: 5000 })
  const [source] = cluster.servers as [RedisServer]
  const [target] = cluster.empty as [RedisServer]
  const { handoffs, approvals, sessions, keyRecords } = fleetStore(t, cluster.url, { replicas: 1 })
  await untilServing(handoffs)
  const [here, waiting] = [placeIn(firstTag), placeIn(firstTag)]
  await pass(handoffs, here)
  await handoffs.pass({ ...waiting, token: '-', passedBy: 'alice', requireHuman: true, options: ' l2 hdigest', expiresIn: 60_000, payload })
  const session = await sessions.open('digest')
  await newKey(keyRecords)
  const { last } = await keyRecords.changes('')
  for (const tag of tags) await begin(slotOf(tag), source, target)
  const before = await source.admin.hgetall(handoffKey(here))
  // A hash, an index and a string: the barrier writes to each and leaves it unchanged.
  t.match(await handoffs.status(here), { outcome: 'found' })
  t.match(await approvals.list('default', firstTag, null, 10), { items: [{ id: waiting.id }] })
  t.equal(await sessions.find(session), 'digest')
  // And the log of keys, without which replicas don't learn that a key has ended.
  for (let look = 0; look < 2; look++) t.match(await keyRecords.changes(''), { last })
  t.equal(await source.admin.xlen(`handoff:{${tags[0]}}:keys:log`), 1)
  t.strictSame(await source.admin.hgetall(handoffKey(here)), before)
  t.strictSame(await source.admin.zrange(`handoff:{${firstTag}}:w:default`, '0', '-1'), [`default:${waiting.id}`])
  t.match(await handoffs.sweep(firstTag, 10), { lookedAt: 0, live: 2 })
  t.match(await handoffs.catch(here, randomToken(), 'bob'), { outcome: 'caught' })
  t.match(await done(handoffs, here), { outcome: 'done' })
})

const handoffKey = ({ tag, tenant, id }: Place, prefix = 'handoff') => `${prefix}:{${tag}}:h:${tenant}:${id}`
const dueKey = ({ tag }: Place, prefix: string) => `${prefix}:{${tag}}:due`

async function begin (slot: number, from: RedisServer, to: RedisServer): Promise<void> {
  const [fromId, toId] = await Promise.all([from, to].map(async ({ admin }) => await admin.cluster('MYID')))
  await to.admin.call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', fromId!)
  await from.admin.call('CLUSTER', 'SETSLOT', slot, 'MIGRATING', toId!)
}

async function migrate (from: RedisServer, to: RedisServer, ...keys: string[]): Promise<void> {
  for (const key of keys) await from.admin.call('MIGRATE', to.host.address, to.port, key, 0, 5000)
}

/** How often this server has refused with this error. */
async function refusals (server: RedisServer, word: string): Promise<number> {
  const line = (await info(server, 'errorstats'))[`errorstat_${word}`]
  return Number(/count=(\d+)/.exec(line ?? 'count=0')![1])
}

/** Agents that pass, catch and finish in the moving partitions. A refused call is retried once, as with an Idempotency-Key. */
function startLoad (t: Test, { handoffs }: Store) {
  const load = { over: false, rounds: 0 }
  const asked = async <T>(ask: () => Promise<T>): Promise<T> => ask().catch((error: unknown) => {
    if (!(error instanceof Unavailable)) throw error
    return ask()
  })
  const agent = async (tag: string) => {
    while (!load.over) {
      const place = placeIn(tag)
      const [caughtBy, doneBy] = [randomToken(), randomToken()]
      await asked(() => pass(handoffs, place))
      const caught = await asked(() => handoffs.catch(place, caughtBy, 'bob'))
      if (!('payload' in caught)) t.fail(`the only catch was told ${caught.outcome}`)
      const asking = performance.now()
      const { outcome } = await asked(() => done(handoffs, place, doneBy))
      // Its first answer may be lost, and on a busy machine the handoff be forgotten before it is asked for again.
      const isForgotten = outcome === 'not_found' && performance.now() - asking > retention
      if (outcome !== 'done' && outcome !== 'replayed' && !isForgotten) t.fail(`the only done was told ${outcome}`)
      load.rounds++
      // Few enough that a slot moves within a call's budget: while it is half moved nothing can be passed.
      await sleep(40)
    }
  }
  const agents = Promise.all([...used, ...used].map(agent))
  agents.catch(() => {}) // reported when they are stopped
  t.teardown(() => { load.over = true })
  return {
    goesOn: async () => {
      const { rounds } = load
      await Promise.race([agents, until(() => load.rounds > rounds + 30, 20_000)])
    },
    stop: async () => {
      load.over = true
      await agents
    },
  }
}
