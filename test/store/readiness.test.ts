import t from 'tap'
import { ownRedis } from '../helpers/own-redis.ts'
import { testStore } from '../helpers/redis.ts'
import { until } from '../helpers/until.ts'

t.test('it says why Redis can’t serve, in words of our own', async t => {
  const { url, admin } = await ownRedis(t)
  const { store } = await testStore(t, { url })
  await until(async () => await store.whyNotReady() === null)

  await admin.config('SET', 'maxmemory-policy', 'allkeys-lru')
  t.match(await store.whyNotReady(), /^maxmemory-policy is allkeys-lru: .*Set it to noeviction\.$/)
  await admin.config('SET', 'maxmemory-policy', 'noeviction')

  await admin.config('SET', 'maxmemory', 1)
  t.equal(await store.whyNotReady(), null, 'a full Redis still drains: it stays in the balancer')
  await admin.config('SET', 'maxmemory', 0)

  await admin.config('SET', 'min-replicas-to-write', 1)
  t.equal(await store.whyNotReady(), 'Redis takes no writes because it has too few replicas.')
  await admin.config('SET', 'min-replicas-to-write', 0)

  await admin.replicaof('127.0.0.1', '1')
  t.equal(await store.whyNotReady(), 'Redis is a replica and takes no writes.')
  await admin.replicaof('NO', 'ONE')
})
