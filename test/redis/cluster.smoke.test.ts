import { setTimeout as sleep } from 'node:timers/promises'
import slotOf from 'cluster-key-slot'
import t from 'tap'
import type { Test } from 'tap'
import { randomToken, tags } from '../../src/handoff/id.ts'
import { Unavailable, callBudget } from '../../src/redis/lanes.ts'
import type { Store } from '../../src/store/store.ts'
import { StoredKeys } from '../../src/auth/stored-keys.ts'
import { info } from '../faults/fleet/ask.ts'
import { startCluster } from '../faults/fleet/cluster.ts'
import type { ClusterFleet } from '../faults/fleet/cluster.ts'
import type { RedisServer } from '../faults/fleet/redis.ts'
import { timeRun } from '../helpers/clock.ts'
import { done, pass, placeIn, untilServing } from '../helpers/handoffs.ts'
import { fleetStore, quiet } from '../helpers/redis.ts'
import { newKey, untilKnown } from '../helpers/stored-keys.ts'
import { until } from '../helpers/until.ts'

/** One partition of each of three masters, with the initial slots. */
const apart = [0, 1, 2].map(third => tags[170 + third * 341]!)

t.test('three masters, each with a replica', async t => {
  const cluster = await startCluster(t, { nodeTimeoutMs: 1000 })
  const store = fleetStore(t, cluster.url, { replicas: 1 })
  for (const tag of apart) await untilServing(store.handoffs, placeIn(tag))

  await t.test('sessions and the approvals list work', async t => {
    const secrets = await Promise.all(Array.from({ length: 30 }, (_, n) => store.sessions.open(`digest${n}`)))
    t.strictSame(await Promise.all(secrets.map(secret => store.sessions.find(secret))), secrets.map((_, n) => `digest${n}`))
    await store.sessions.end(secrets[0]!)
    t.equal(await store.sessions.find(secrets[0]!), null)
    for (const tag of apart) {
      const place = placeIn(tag)
      await store.handoffs.pass({ ...place, token: '-', passedBy: 'alice', requireHuman: true, options: ' l2 hdigest', expiresIn: 60_000, payload: Buffer.from('"task":"t"') })
      t.match(await store.approvals.list('default', tag, null, 10), { items: [{ id: place.id }], next: null })
      t.match(await store.approvals.decide('approved', place, randomToken(), 'carol', {}, Buffer.from('null')), { outcome: 'decided' })
      t.match(await store.handoffs.catch(place, randomToken(), 'bob'), { outcome: 'caught' })
    }
  })

  await t.test('keys work', async t => {
    const { keyRecords: records } = store
    const keys = new StoredKeys(records, store.subscriptions, quiet)
    keys.start()
    const { id, key } = await newKey(records)
    await untilKnown(keys, key)
    t.match(await records.list(), [{ id, agent: 'alice' }])
    const next = await records.rotate(id, 60_000, 'me') as { key: string }
    t.match(await keys.find(key), { keyId: id }, 'in its grace')
    t.match(await keys.find(next.key), { keyId: id })
    t.match(await records.revoke(id, 'me'), { outcome: 'revoked' })
    await until(async () => await keys.find(key) === undefined && await keys.find(next.key) === undefined, 2000)
    keys.stop()
  })

  await t.test('a failover by hand under load loses nothing', async t => {
    const master = await cluster.ownerOf(slotOf(apart[0]!))
    const [replica] = await cluster.replicasOf(master)
    const waiter = await listenTo(store, apart[0]!)
    const load = startLoad(t, store)
    await load.goesOn()
    await cluster.failover(replica!)
    await load.goesOn()
    await load.stop()
    t.strictSame(load.refused, [], 'nobody was refused')
    t.ok(load.rounds > 50, `${load.rounds} rounds`)
    // No calls any more: the new master's messages arrive all the same.
    await waiter.rungBy(replica!)
    t.equal(await store.whyNotReady(), null)
    await cluster.untilWhole()
  })

  await t.test('a waiter is told after its slot has moved', async t => {
    const tag = apart[1]!
    // The failover is known by now: no more queries of the nodes, and no calls.
    await sleep(2500)
    const from = await cluster.ownerOf(slotOf(tag))
    const to = (await cluster.masters()).find(server => server !== from)!
    const waiter = await listenTo(store, tag)
    await cluster.moveSlot(slotOf(tag), to)
    await waiter.rungBy(to)
    await cluster.moveSlot(slotOf(tag), from)
    await waiter.rungBy(from)
  })

  await t.test('one master with an eviction policy makes the service not ready', async t => {
    const master = await cluster.ownerOf(slotOf(apart[2]!))
    await master.admin.config('SET', 'maxmemory-policy', 'volatile-ttl')
    t.match(await store.whyNotReady(), /^maxmemory-policy is volatile-ttl/)
    await master.admin.config('SET', 'maxmemory-policy', 'noeviction')
    t.equal(await store.whyNotReady(), null)
  })

  await t.test('a dead master is replaced and nothing acknowledged is lost', async t => {
    const master = await cluster.ownerOf(slotOf(apart[2]!))
    const [replica] = await cluster.replicasOf(master)
    const waiter = await listenTo(store, apart[2]!)
    const due = apart.map(tag => placeIn(tag))
    await Promise.all(due.map(place => pass(store.handoffs, place, 1)))
    const load = startLoad(t, store)
    await load.goesOn()
    await master.kill()
    t.equal(await store.whyNotReady(), null, 'the others serve')
    // Before it is replaced: the first partition's master has the lease, and the other masters' partitions are swept.
    store.sweeper.start()
    // A sweep that waited for the dead master's partitions would take a call's 2 s for each few of them.
    await until(async () => (await freed(cluster, due[0]!)) && (await freed(cluster, due[1]!)), 12_000)
    await cluster.untilMaster(replica!)
    await waiter.rungBy(replica!)
    // Without a replica nothing is acknowledged there, but it is swept like the others.
    const late = apart.map(tag => placeIn(tag))
    await Promise.all(late.map(place => pass(store.handoffs, place, 1).catch(() => {})))
    for (const place of [due[2]!, ...late]) await until(() => freed(cluster, place), 9000)
    await load.stop()
    t.ok(load.slowest < 2 * callBudget, `the slowest took ${Math.round(load.slowest)} ms`)
    t.ok(load.refused.every(({ tag, error }) => tag === apart[2] && error instanceof Unavailable), 'only its own were refused')
    await master.restart()
    await cluster.untilWhole()
    await load.nothingLost(t)
  })

  for (const server of cluster.servers) t.notMatch(await info(server, 'errorstats'), { errorstat_CROSSSLOT: String })
})

t.test('the sweep goes on with the other partitions when the first one’s master is away', async t => {
  const cluster = await startCluster(t, { replicas: 0, nodeTimeoutMs: 1000 })
  const store = fleetStore(t, cluster.url)
  for (const tag of apart) await untilServing(store.handoffs, placeIn(tag))
  t.strictSame(store.laneSizes().map(({ master }) => master).sort(), [...cluster.servers.map(({ at }) => at), 'unknown'].sort(), 'each by its address')
  store.sweeper.start()
  const [first, ...others] = apart.map(tag => placeIn(tag))
  await Promise.all([first!, ...others].map(place => pass(store.handoffs, place, 500)))
  const away = await cluster.ownerOf(slotOf(tags[0]!))
  t.equal(away, await cluster.ownerOf(slotOf(first!.tag)))
  away.pause()
  for (const place of others) await until(() => freed(cluster, place), 9000)
  away.resume()
  await until(() => freed(cluster, first!), 9000)
})

/** Reads Redis itself: a status would say expired whether it was swept or not. */
async function freed (cluster: ClusterFleet, { tag, id }: { tag: string, id: string }): Promise<boolean> {
  const owner = await cluster.ownerOf(slotOf(tag))
  return await owner.admin.hstrlen(`handoff:{${tag}}:h:default:${id}`, 'p') === 0
}

/** A waiter on this partition. */
async function listenTo (store: Store, tag: string) {
  const channel = store.handoffs.channelOf(placeIn(tag))
  const bell = { rung: 0 }
  await store.subscriptions.listen(channel, () => { bell.rung++ })
  return {
    /** Resolves once messages come from this server, and only from it. */
    async rungBy (server: RedisServer): Promise<void> {
      await until(async () => String(await server.admin.call('PUBSUB', 'SHARDNUMSUB', channel)) === `${channel},1`, 3000)
      const before = bell.rung
      await server.admin.spublish(channel, 'x')
      await until(() => bell.rung > before)
    },
  }
}

/** Agents that pass, catch and finish in a partition of each master, until they are stopped. */
function startLoad (t: Test, store: Store) {
  const load = { over: false, rounds: 0, slowest: 0, refused: [] as Array<{ tag: string, error: unknown }>, passed: [] as string[], goesOn, stop, nothingLost }
  const agent = async (tag: string) => {
    while (!load.over) {
      const place = placeIn(tag)
      const began = timeRun()
      try {
        await pass(store.handoffs, place)
        load.passed.push(place.id)
        const caught = await store.handoffs.catch(place, randomToken(), 'bob')
        if (!('payload' in caught)) t.fail(`the only catch was told ${caught.outcome}`)
        await done(store.handoffs, place)
        load.rounds++
      } catch (error) {
        load.refused.push({ tag, error })
      }
      // Three calls at most, of which the last one may have been refused.
      load.slowest = Math.max(load.slowest, timeRun() - began)
      await sleep(5)
    }
  }
  const agents = [...apart, ...apart].map(agent)
  t.teardown(() => { load.over = true })

  async function goesOn (): Promise<void> {
    const { rounds } = load
    await until(() => load.rounds > rounds + 30)
  }

  async function stop (): Promise<void> {
    load.over = true
    await Promise.all(agents)
  }

  async function nothingLost (t: Test): Promise<void> {
    const found = await Promise.all(load.passed.map(id => store.handoffs.status(placeOf(id))))
    t.ok(found.every(({ outcome }) => outcome === 'found'), `${found.length} passed, none lost`)
  }
  return load
}

function placeOf (id: string) {
  return { tenant: 'default', id, tag: id.slice(0, 3) }
}
