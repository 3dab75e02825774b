import t from 'tap'
import { startRedisServer } from './fleet/redis.ts'
import { snapshotRedis } from './redis-state.ts'

/** More than SCAN returns at once. */
const handoffs = 5000

t.test('a snapshot has what there was at one moment, while handoffs come and go', async t => {
  const { admin } = await startRedisServer(t)
  const hash = (member: string) => `p:{A}:h:${member}`
  const begin = admin.pipeline()
  for (let number = 0; number < handoffs; number++) begin.hset(hash(`t:${number}`), 's', 'pending').zadd('p:{A}:due', number, `t:${number}`)
  await begin.exec()

  const writer = admin.duplicate({ lazyConnect: false })
  t.teardown(() => writer.disconnect())
  const over = new AbortController()
  const written = (async () => {
    // As the sweep does: one ends and another begins in one step.
    for (let number = 0; !over.signal.aborted; number++) {
      const [old, next] = [`t:${number}`, `t:${number + handoffs}`]
      await writer.multi().del(hash(old)).zrem('p:{A}:due', old).hset(hash(next), 's', 'pending').zadd('p:{A}:due', number, next).exec()
    }
    return writer.get('p:{A}:none')
  })()

  for (let round = 0; round < 5; round++) {
    const { due, hashes } = await snapshotRedis([admin], 'p')
    t.equal(due.length, handoffs)
    t.strictSame(new Set(hashes.map(({ member }) => member)), new Set(due.map(({ member }) => member)))
  }
  over.abort()
  t.equal(await written, null, 'writes go on afterwards')
})
