import t from 'tap'
import { Unavailable } from '../../src/core/errors.ts'
import { tags } from '../../src/core/ids.ts'
import { Leases, Paced } from '../../src/store/leases.ts'
import { startCluster } from '../faults/fleet/cluster.ts'
import { skipInQuick } from '../helpers/extent.ts'
import { placeIn, untilServing } from '../helpers/handoffs.ts'
import { fleetStore, testStore } from '../helpers/redis.ts'
import { until } from '../helpers/until.ts'

t.test('a master that is connected and acknowledges nothing doesn’t keep a lease from its replicas', skipInQuick, async t => {
  const { servers: [first, second, replicaOfFirst], url } = await startCluster(t, { masters: 2, replicas: 1 })
  const [one, other] = [fleetStore(t, url, { replicas: 1 }), fleetStore(t, url, { replicas: 1 })]
  for (const { handoffs } of [one, other]) for (const tag of [tags[0]!, tags.at(-1)!]) await untilServing(handoffs, placeIn(tag))
  t.equal(await one.takeDelivering(100), true)
  await replicaOfFirst!.kill()
  await until(async () => /^connected_slaves:0\r$/m.test(await first!.admin.info('replication')))
  await Promise.all([one, other].map(store => t.rejects(store.takeDelivering(60_000), { name: 'Unavailable' })))
  t.equal(await one.takeDelivering(60_000), true)
  t.equal(await other.takeDelivering(60_000), false, 'one holds it')
  t.equal((await second!.admin.keys('*deliverer')).length, 1)
})

t.test('for a while a partition whose master took no lease is passed over, unless no other is reached', async t => {
  const asked: string[] = []
  const lanes = {
    async call ({ tag }: { tag: string }) {
      asked.push(tag)
      if (tag === 'aaa') throw new Unavailable('away')
      return true
    }
  }
  const leases = new Leases(lanes as never, { lease: {} } as never, 'me', tag => `the master of ${tag}`)
  const take = (reached = 'aaa bbb') => leases.takeReached(['aaa', 'bbb'], tag => reached.includes(tag), tag => `p:{${tag}}:lease`, 1000)
  await t.rejects(take(), { name: 'Unavailable' })
  t.ok(await take() && await take())
  await t.rejects(take('aaa'), { name: 'Unavailable' })
  t.strictSame(asked, ['aaa', 'bbb', 'bbb', 'aaa'])
})

t.test('one replica at a time has a lease', async t => {
  const one = await testStore(t)
  const other = await testStore(t, { prefix: one.prefix })
  for (const { store } of [one, other]) await untilServing(store.handoffs)
  const taken = []
  for (const { store } of [one, other, one]) taken.push(await store.takeDelivering(60_000))
  t.strictSame(taken, [true, false, true])
})

t.test('all listeners are woken at once, then not again for a while, and once more for what came meanwhile', async t => {
  const { store, redis, prefix } = await testStore(t)
  const paced = new Paced(store.subscriptions, 500)
  const channel = `${prefix}:{aaa}:x`
  let [one, other] = [0, 0]
  const leave = await paced.listen(channel, () => one++)
  await paced.listen(channel, () => other++)
  const tell = async (times: number) => {
    for (let count = 0; count < times; count++) await redis.spublish(channel, '')
  }
  await tell(1)
  await until(() => one === 1)
  await tell(20)
  t.ok(one <= 2, `${one} for 21 messages`)
  await until(() => one >= 2)
  t.equal(other, one)
  leave()
  leave()
  const before = one
  await tell(20)
  await until(() => other > before)
  t.equal(one, before, 'who left is not woken')
})

t.test('who listens while the last one leaves is woken', async t => {
  const { store, redis, prefix } = await testStore(t)
  const paced = new Paced(store.subscriptions, 10)
  const channel = `${prefix}:{aaa}:x`
  const leave = await paced.listen(channel, () => {})
  leave()
  let woken = 0
  await paced.listen(channel, () => woken++)
  // A connection that became ready only now has woken them too.
  const before = woken
  await redis.spublish(channel, '')
  await until(() => woken > before)
})

t.test('the last one who leaves ends the subscription', async t => {
  let subscribed = 0
  const listen = async () => {
    subscribed++
    return () => { subscribed-- }
  }
  const paced = new Paced({ listen } as never, 10)
  const [leave, leaveToo] = [await paced.listen('x', () => {}), await paced.listen('x', () => {})]
  leave()
  await new Promise(resolve => setImmediate(resolve))
  t.equal(subscribed, 1)
  leaveToo()
  await new Promise(resolve => setImmediate(resolve))
  t.equal(subscribed, 0)
})
