import slotOf from 'cluster-key-slot'
import t from 'tap'
import { randomToken, tags } from '../../src/core/ids.ts'
import { startCluster } from '../faults/fleet/cluster.ts'
import type { RedisServer } from '../faults/fleet/redis.ts'
import { done, pass, payload, placeIn, untilServing } from '../helpers/handoffs.ts'
import { beginMove, migrate } from '../helpers/moving-slot.ts'
import { fleetStore } from '../helpers/redis.ts'
import { newKey } from '../helpers/stored-keys.ts'
import { until } from '../helpers/until.ts'

const tag = tags[400]!

t.test('a server whose slots are all moving still acknowledges what it has', async t => {
  const cluster = await startCluster(t, { masters: 1, empty: 1, nodeTimeoutMs: 5000 })
  const [source] = cluster.servers as [RedisServer]
  const [target] = cluster.empty as [RedisServer]
  const { handoffs, lists, sessions, keyRecords } = fleetStore(t, cluster.url, { replicas: 1 })
  await untilServing(handoffs)
  const [here, waiting] = [placeIn(tag), placeIn(tag)]
  await pass(handoffs, here)
  await handoffs.pass({ ...waiting, token: '-', passedBy: 'alice', requireHuman: true, options: ' l2 hdigest', expiresIn: 60_000, payload })
  const session = await sessions.open('digest', 60)
  await newKey(keyRecords)
  const { last } = await keyRecords.changes('')
  for (const tag of tags) await beginMove(slotOf(tag), source, target)
  const key = `handoff:{${tag}}:h:default:${here.id}`
  const before = await source.admin.hgetall(key)
  // A hash, an index and a string: the barrier writes to each and leaves it unchanged.
  t.match(await handoffs.status(here), { outcome: 'found' })
  t.match(await lists.waiting({ tenant: 'default' }, null, 10), { items: [{ id: waiting.id }] })
  t.equal(await sessions.find(session), 'digest')
  // And the log of keys, without which replicas don't learn that a key has ended.
  for (let look = 0; look < 2; look++) t.match(await keyRecords.changes(''), { last })
  t.equal(await source.admin.xlen(`handoff:{${tags[0]}}:keys:log`), 1)
  t.strictSame(await source.admin.hgetall(key), before)
  t.strictSame(await source.admin.zrange(`handoff:{${tag}}:w:default`, '0', '-1'), [`default:${waiting.id}`])
  t.match(await handoffs.sweep(tag, 10), { lookedAt: 0, live: 2 })
  t.match(await handoffs.catch(here, randomToken(), 'bob'), { outcome: 'caught' })
  t.match(await done(handoffs, here), { outcome: 'done' })
  // What has gone ahead is acknowledged there, without a key that would be in the way of the other node's.
  await migrate(source, target, key)
  t.match(await handoffs.status(here), { outcome: 'found' })
  t.strictSame(await target.admin.keys('*'), [key])
})

t.test('no connection to a master without slots stays open', async t => {
  const cluster = await startCluster(t, { masters: 1, empty: 1, nodeTimeoutMs: 5000 })
  const [first] = cluster.servers as [RedisServer]
  const [other] = cluster.empty as [RedisServer]
  const store = fleetStore(t, cluster.url)
  await untilServing(store.handoffs, placeIn(tag))
  const lanes = (...servers: RedisServer[]) => until(async () => {
    await store.handoffs.status(placeIn(tag))
    return store.laneSizes().map(({ master }) => master).sort().join() === [...servers.map(({ at }) => at), 'unknown'].sort().join()
  }, 60_000)
  t.ok(await lanes(first))
  await cluster.moveSlot(slotOf(tag), other)
  t.ok(await lanes(first, other))
  await cluster.moveSlot(slotOf(tag), first)
  t.ok(await lanes(first))
})
