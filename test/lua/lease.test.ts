import t from 'tap'
import { testRedis } from '../helpers/redis.ts'
import type { TestRedis } from '../helpers/redis.ts'
import { lease, raw, tag } from '../helpers/scripts.ts'
import { T } from '../helpers/states.ts'

const hour = 3600_000
/** How much longer it is kept from replicas of 0.1.0, which see only whether the key is there. */
const older = 5000

/** The lease as it lies in Redis: who holds it, and until when by the server's own clock. */
async function look (test: TestRedis): Promise<{ holder: unknown, expires: number } | null> {
  const { [`{${tag}}:sweeps`]: held, ...others } = await test.dump() as Record<string, { content: unknown, expires: number }>
  if (Object.keys(others).length > 0) throw new Error(`nothing else is written: ${Object.keys(others)}`)
  return held === undefined ? null : { holder: held.content, expires: held.expires }
}

async function serverTime (test: TestRedis): Promise<number> {
  const [seconds, microseconds] = await test.redis.time()
  return Number(seconds) * 1000 + Math.floor(Number(microseconds) / 1000)
}

t.test('it is one holder’s at a time', async t => {
  const test = testRedis(t)
  const on = raw(test)

  t.strictSame(await lease(on, T, 'one', hour, T - 1), ['late'])
  t.equal(await look(test), null, 'too late takes nothing')

  const before = await serverTime(test)
  t.strictSame(await lease(on, T, 'one', hour, T), ['held'], 'at its very deadline the call still runs')
  const after = await serverTime(test)
  const taken = await look(test)
  t.equal(taken?.holder, `one ${T + hour}`)
  t.ok(taken!.expires >= before + hour + older && taken!.expires <= after + hour + older, 'for as long as was asked, and for 0.1.0 longer')

  t.strictSame(await lease(on, T, 'two', hour), ['taken'])
  t.strictSame(await lease(on, T, 'two', hour, T - 1), ['late'])
  t.strictSame(await lease(on, T, 'one', 2 * hour, T - 1), ['late'])
  t.strictSame(await look(test), taken, 'none of these changed it')

  t.strictSame(await lease(on, T, 'one', 2 * hour), ['held'])
  const renewed = await look(test)
  t.equal(renewed?.holder, `one ${T + 2 * hour}`)
  t.ok(renewed!.expires >= after + 2 * hour, 'renewed from now')
})

t.test('once it has run out it is anybody’s', async t => {
  const test = testRedis(t)
  const on = raw(test)
  await lease(on, T, 'one', hour)
  // What Redis does when its time is over.
  await test.redis.pexpireat(on.keys.sweeper(tag), 1)
  t.strictSame(await lease(on, T, 'two', hour), ['held'])
  t.equal((await look(test))?.holder, `two ${T + hour}`)
  t.strictSame(await lease(on, T + hour - 1, 'one', hour), ['taken'])
  t.strictSame(await lease(on, T + hour, 'one', hour), ['held'], 'although the key is there still')
})

t.test('a replica of 0.1.0 that has it loses it to a newer one', async t => {
  const test = testRedis(t)
  const on = raw(test)
  await test.redis.set(on.keys.sweeper(tag), 'b1946ac9-2492-4d23-8e3f-6f5f0b8c1a11', 'PX', hour)
  t.strictSame(await lease(on, T, 'one', hour), ['held'])
  t.equal((await look(test))?.holder, `one ${T + hour}`)
})

t.test('one that was taken before the clock was set back an hour is anybody’s', async t => {
  const test = testRedis(t)
  const on = raw(test)
  await lease(on, T + hour, 'one', 1500, T + hour)
  // Redis keeps the key until the same moment, which is an hour away now.
  await test.redis.pexpireat(on.keys.sweeper(tag), await serverTime(test) + hour)
  t.strictSame(await lease(on, T, 'two', 1500), ['held'])
  const taken = await look(test)
  t.equal(taken?.holder, `two ${T + 1500}`)
  t.ok(taken!.expires <= await serverTime(test) + 1500 + older, 'for no longer than was asked')
  t.strictSame(await lease(on, T - 1000, 'one', 1500), ['held'], 'set back by a second: it would last for longer than one lease')
  t.strictSame(await lease(on, T, 'two', 1500), ['taken'])
})
