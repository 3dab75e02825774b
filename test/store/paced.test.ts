import t from 'tap'
import { Paced } from '../../src/store/leases.ts'
import { testStore } from '../helpers/redis.ts'
import { until } from '../helpers/until.ts'

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
