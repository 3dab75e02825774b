import { setTimeout as sleep } from 'node:timers/promises'
import slotOf from 'cluster-key-slot'
import t from 'tap'
import { homeTag, inboxTag, randomToken, tags } from '../../src/core/ids.ts'
import { callerOf } from '../../src/core/model.ts'
import { InboxSettingsService } from '../../src/handoffs/inbox/settings.ts'
import { InboxService } from '../../src/handoffs/inbox/inboxes.ts'
import { Waiter } from '../../src/handoffs/wait/waiter.ts'
import { Reads } from '../../src/store/reads.ts'
import type { Store } from '../../src/store/store.ts'
import { KeyRing } from '../../src/auth/key-ring.ts'
import { InboxRounds } from '../../src/metrics/inboxes.ts'
import { info } from '../faults/fleet/ask.ts'
import { startCluster } from '../faults/fleet/cluster.ts'
import type { ClusterFleet } from '../faults/fleet/cluster.ts'
import type { RedisServer } from '../faults/fleet/redis.ts'
import { done, pass, placeIn, untilServing } from '../helpers/handoffs.ts'
import { fleetStore, quiet } from '../helpers/redis.ts'
import { callerBy, grantOf, newKey, untilKnown } from '../helpers/stored-keys.ts'
import { until } from '../helpers/until.ts'

/** One partition of each of three masters, with the initial slots. */
const apart = [0, 1, 2].map(third => tags[170 + third * 341]!)

t.test('three masters, each with a replica', async t => {
  const cluster = await startCluster(t, { nodeTimeoutMs: 1000 })
  const store = fleetStore(t, cluster.url, { replicas: 1 })
  for (const tag of apart) await untilServing(store.handoffs, placeIn(tag))

  await t.test('sessions and the approvals list work', async t => {
    const secrets = await Promise.all(Array.from({ length: 30 }, (_, n) => store.sessions.open(`digest${n}`, 60)))
    t.strictSame(await Promise.all(secrets.map(secret => store.sessions.find(secret))), secrets.map((_, n) => `digest${n}`))
    await store.sessions.end(secrets[0]!)
    t.equal(await store.sessions.find(secrets[0]!), null)
    for (const tag of apart) {
      const place = placeIn(tag)
      await store.handoffs.pass({ ...place, token: '-', passedBy: 'alice', requireHuman: true, options: ' l2 hdigest', expiresIn: 60_000, payload: Buffer.from('"task":"t"') })
      t.match(await store.lists.waiting({ tenant: 'default' }, null, 10), { items: [{ id: place.id }], next: null })
      t.match(await store.approvals.decide('approved', place, randomToken(), { agent: 'carol' }, {}, Buffer.from('null')), { outcome: 'decided' })
      t.match(await store.lists.decisions({ tenant: 'default' }, null, 10), { items: [{ by: 'carol', state: 'approved' }] })
      t.match(await store.handoffs.catch(place, randomToken(), 'bob'), { outcome: 'caught' })
    }
  })

  await t.test('keys work', async t => {
    const { keyRecords: records } = store
    const keys = new KeyRing([], store, quiet)
    keys.start()
    const { id, key } = await newKey(records)
    await untilKnown(keys, key)
    t.match(await records.list(), [{ id, agent: 'alice' }])
    const next = await records.rotate(id, 60_000, 'me') as { key: string }
    t.match(await callerBy(keys, key), { keyId: id }, 'in its grace')
    t.match(await callerBy(keys, next.key), { keyId: id })
    await records.limits.set({ tenant: 'acme', agent: null, ratePerMinute: 5 }, 'me')
    await until(() => keys.limits.of('acme')?.all === 5)
    t.match(await records.update(id, { scopes: ['status'], expiresIn: 60_000 }, 'me'), { outcome: 'updated' })
    await until(async () => [...(await callerBy(keys, key))!.scopes].join() === 'status')
    t.match(await records.revoke(id, 'me'), { outcome: 'revoked' })
    await until(async () => await callerBy(keys, key) === undefined && await callerBy(keys, next.key) === undefined)
    keys.stop()
  })

  await t.test('max_caught holds for two replicas, whether a person approved or not', async t => {
    const other = fleetStore(t, cluster.url, { replicas: 1 })
    // Some are large, and take turns: one at a time at each replica.
    const services = [store, other].map(({ inboxes, subscriptions }) => {
      return new InboxService(inboxes, subscriptions, new Waiter(subscriptions), new Reads(undefined, { slots: 1 }), 60_000)
    })
    t.teardown(() => services.forEach(service => service.close()))
    const settings = new InboxSettingsService(store.inboxes, new Reads(), { listening: async () => 0, waitedFor: async () => [] })
    const tenant = 'limited'
    const bob = callerOf(tenant, 'bob', [])
    const inbox = await apartFrom(cluster, tenant)
    const own = inboxTag(tenant, inbox)
    const passed = async (requireHuman: boolean, size = 1) => {
      const place = { ...placeIn(own), tenant }
      const options = ` t${inbox}${requireHuman ? ' l2 hdigest' : ''}`
      const handoff = { ...place, token: '-', passedBy: 'alice', requireHuman, to: inbox, options, expiresIn: 60_000, payload: Buffer.from(`"task":"${'t'.repeat(size)}"`) }
      const reply = await store.handoffs.pass(handoff)
      if (reply.outcome === 'passed' && requireHuman) await store.approvals.decide('approved', place, randomToken(), { agent: 'carol' }, {}, Buffer.from('null'))
      return { ...place, reply }
    }
    const all = await Promise.all(Array.from({ length: 60 }, (_, n) => passed(n % 2 === 0, n % 3 === 0 ? 70_000 : 1)))
    await settings.set(bob, inbox, { max_caught: 3 })
    const requester = { grant: () => grantOf(() => bob), isGone: () => false }
    const held = new Set<string>()
    let [most, ended, catches] = [0, 0, 0]
    const worker = async (n: number) => {
      while (ended < all.length) {
        // Half of them name another inbox too, and have a key for each catch.
        const [inboxes, key] = n < 3 ? [[inbox], undefined] as const : [['empty', inbox], `key-${catches++}`] as const
        const { items } = await services[n % 2]!.catch(bob, { inboxes, max: n % 3 + 1, bytes: Buffer.from(String(n)), requester }, key, null)
        for (const { id } of items) held.add(id)
        most = Math.max(most, held.size)
        for (const { id } of items) {
          held.delete(id)
          await store.handoffs.done({ tenant, id, tag: id.slice(0, 3) }, randomToken(), 'bob', Buffer.alloc(0), '')
          ended++
        }
        if (items.length === 0) await sleep(5)
      }
    }
    await Promise.all([0, 1, 2, 3, 4, 5].map(worker))
    t.equal(ended, all.length, 'each once')
    t.ok(most >= 1 && most <= 3, `${most} at once`)
    t.match(await settings.count(tenant, inbox), { pending: 0, caught: 0, max_caught: 3 })
    await settings.set(bob, inbox, { max_pending: 1 })
    const last = await passed(true)
    t.equal((await passed(false)).reply.outcome, 'inbox_full')
    await store.handoffs.catch(last, randomToken(), 'bob')
    await store.handoffs.done(last, randomToken(), 'bob', Buffer.alloc(0), '')
    t.match((await settings.list(bob, {})).items, [{ inbox, max_caught: 3, max_pending: 1 }])
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

  await t.test('live handoffs are counted over all masters, of a tenant and of an agent', async t => {
    const places = apart.map(tag => ({ ...placeIn(tag), tenant: 'live' }))
    const passIt = async (place: typeof places[number], options = '') =>
      await store.handoffs.pass({ ...place, token: '-', passedBy: 'alice', requireHuman: false, options, expiresIn: 60_000, payload: Buffer.from('"task":"t"') })
    for (const place of places) await passIt(place)
    await passIt({ ...placeIn(apart[1]!), tenant: 'live' }, ' J*:alice')
    const counts = async () => [await store.live.count('live', null), await store.live.count('live', 'alice')]
    t.strictSame(await counts(), [4, 1])
    store.indexer.limited = () => new Map([['live', { agents: new Map([['alice', 1]]) }]])
    await store.indexer.walk('live')
    t.strictSame(await counts(), [4, 4], 'what was passed before counts, too')
    await store.handoffs.catch(places[0]!, randomToken(), 'bob')
    t.match(await store.handoffs.done(places[0]!, randomToken(), 'bob', Buffer.alloc(0), ''), { outcome: 'done' })
    t.strictSame(await counts(), [3, 3])
  })

  await t.test('the metrics’ round adds up what all masters have', async t => {
    const rounds = new InboxRounds(store, 0, error => t.fail(String(error)))
    store.sweeper.start()
    await until(() => store.sweeper.counts !== undefined)
    const masters = await Promise.all(apart.map(tag => cluster.ownerOf(slotOf(tag))))
    for (const tag of apart) {
      const options = ' l2 hdigest'
      await store.handoffs.pass({ ...placeIn(tag), token: '-', passedBy: 'alice', requireHuman: true, options, expiresIn: 60_000, payload: Buffer.from('"task":"t"') })
      await store.inboxes.set({ tenant: 'default', inbox: `of-${tag}`, tag }, { paused: true, maxCaught: undefined, maxPending: undefined })
    }
    for (const [n, master] of masters.entries()) await master.admin.config('SET', 'maxmemory', (n + 1) * 100_000_000)
    await rounds.round()
    t.match(rounds.figures, { inboxes: [{ tenant: '', inbox: 'other', pending: 0 }], approvals: [{ tenant: 'default', waiting: 3 }], memory: { limit: 600_000_000 } })
    t.ok(rounds.figures!.memory!.used > 3 * 500_000, 'three masters’')
    await masters[1]!.admin.config('SET', 'maxmemory', 0)
    await rounds.round()
    t.equal(rounds.figures!.memory!.limit, 0, 'one has no limit')
    for (const master of masters) await master.admin.config('SET', 'maxmemory', 0)
    await store.sweeper.stop()
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
  for (const place of [first!, ...others]) await pass(store.handoffs, { ...place, tenant: 'live' })
  t.equal(await store.live.count('live', null), 3)
  away.pause()
  await store.handoffs.catch({ ...others[0]!, tenant: 'live' }, randomToken(), 'bob')
  await done(store.handoffs, { ...others[0]!, tenant: 'live' })
  t.equal(await store.live.count('live', null), 2, 'what it has counts as it was')
  for (const place of others) await until(() => freed(cluster, place), 9000)
  away.resume()
  await until(() => freed(cluster, first!), 9000)
})

/** An inbox whose two partitions have different masters. */
async function apartFrom (cluster: ClusterFleet, tenant: string): Promise<string> {
  const home = await cluster.ownerOf(slotOf(homeTag(tenant)))
  for (let n = 0; ; n++) if (await cluster.ownerOf(slotOf(inboxTag(tenant, `work-${n}`))) !== home) return `work-${n}`
}

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
