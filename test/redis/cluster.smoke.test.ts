import slotOf from 'cluster-key-slot'
import t from 'tap'
import { randomToken, tags } from '../../src/core/ids.ts'
import type { Store } from '../../src/store/store.ts'
import { StoredKeys } from '../../src/auth/stored-keys.ts'
import { info } from '../faults/fleet/ask.ts'
import { startCluster } from '../faults/fleet/cluster.ts'
import type { ClusterFleet } from '../faults/fleet/cluster.ts'
import type { RedisServer } from '../faults/fleet/redis.ts'
import { pass, placeIn, untilServing } from '../helpers/handoffs.ts'
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
    await records.limits.set('acme', null, 5, 'me')
    await until(() => keys.limits.of('acme')?.all === 5, 2000)
    t.match(await records.update(id, { scopes: ['status'], expiresIn: 60_000 }, 'me'), { outcome: 'updated' })
    await until(async () => [...(await keys.find(key))!.scopes].join() === 'status', 2000)
    t.match(await records.revoke(id, 'me'), { outcome: 'revoked' })
    await until(async () => await keys.find(key) === undefined && await keys.find(next.key) === undefined, 2000)
    keys.stop()
  })

  await t.test('a waiter is told after a failover by hand, and after its slot has moved', async t => {
    const [tag] = apart as [string]
    const waiter = await listenTo(store, tag)
    const [replica] = await cluster.replicasOf(await cluster.ownerOf(slotOf(tag)))
    await cluster.failover(replica!)
    // There are no calls: the new master's messages arrive all the same.
    await waiter.rungBy(replica!)
    t.equal(await store.whyNotReady(), null)
    await cluster.untilWhole()
    const from = await cluster.ownerOf(slotOf(tag))
    const to = (await cluster.masters()).find(server => server !== from)!
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
