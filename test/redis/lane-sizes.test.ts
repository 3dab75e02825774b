import t from 'tap'
import { callBudget } from '../../src/redis/lanes.ts'
import { newPlace, untilServing } from '../helpers/handoffs.ts'
import { ownRedis } from '../helpers/own-redis.ts'
import { testStore } from '../helpers/redis.ts'
import { until } from '../helpers/until.ts'

const idle = [{ master: 'redis', underWay: 0, parked: 0 }, { master: 'unknown', underWay: 0, parked: 0 }]

t.test('calls count as under way while Redis is silent, as parked while it is away, and not at all afterwards', async t => {
  const { url, pid } = await ownRedis(t)
  const { store } = await testStore(t, { url })
  await untilServing(store.handoffs)
  t.strictSame(store.laneSizes(), idle)
  process.kill(pid(), 'SIGSTOP')
  const calls = Promise.allSettled(Array.from({ length: 3 }, () => store.handoffs.status(newPlace())))
  t.strictSame(store.laneSizes()[0], { master: 'redis', underWay: 3, parked: 0 })
  process.kill(pid(), 'SIGKILL')
  t.ok(await until(() => store.laneSizes()[0]!.parked === 3))
  t.strictSame(store.laneSizes()[0], { master: 'redis', underWay: 0, parked: 3 })
  await calls
  t.ok(await until(() => store.laneSizes()[0]!.parked === 0), 'given up')
})

t.test('durations are recorded by script, those of given-up calls included', async t => {
  const { url, pid } = await ownRedis(t)
  const { store } = await testStore(t, { url })
  await untilServing(store.handoffs)
  const { took } = store.scripts.find(({ name }) => name === 'inspect')!
  await store.approvals.inspect(newPlace())
  t.equal(took.counts.reduce((sum, count) => sum + count, 0), 1)
  t.ok(took.sum > 0)
  process.kill(pid(), 'SIGSTOP')
  await t.rejects(store.approvals.inspect(newPlace()), { name: 'Unavailable' })
  process.kill(pid(), 'SIGCONT')
  t.equal(took.counts.at(-1), 1, 'above every bound')
  t.ok(took.sum >= callBudget, String(took.sum))
})
