import t from 'tap'
import { testRedis } from '../helpers/redis.ts'
import { approve, decided, member, put, raw, reject, tag, tenant } from '../helpers/scripts.ts'
import { T, states } from '../helpers/states.ts'

/** What people decided last. */

const asking = { agent: 'carol', token: 'dectok', deadline: T + 600 }
const waits = states['pending, waiting']

t.test('a decision is listed, the latest first, as long as its handoff is that one', async t => {
  const on = raw(testRedis(t))
  await put(on, waits)
  t.strictSame(await decided(on, T + 500, 10), ['listed', T + 500])
  await approve(on, T + 500, asking)
  const { s, d } = await on.redis.hgetall(on.keys.handoff(tag, member)) as { s: string, d: string }
  t.strictSame(await decided(on, T + 600, 10), ['listed', T + 600, member, s, d, null, '"t"'])
  const list = on.keys.decided(tag, tenant)
  t.equal(await on.redis.pexpiretime(list), T + 500 + 7 * 24 * 3600_000)

  await put(on, waits)
  t.strictSame(await decided(on, T + 600, 10), ['listed', T + 600], 'its id is another one’s, which waits')
  await on.redis.hset(on.keys.handoff(tag, member), { d: `${T + 450} dave dectok null` })
  t.strictSame(await decided(on, T + 600, 10), ['listed', T + 600], 'or was decided on at another time')
  await put(on, waits)
  await reject(on, T + 600, asking)
  t.match(await decided(on, T + 600, 10), ['listed', T + 600, member, /^rejected /, / "no"$/])
  t.equal(await on.redis.zcard(list), 1)
  await on.redis.hset(on.keys.handoff(tag, member), { p: '' })
  t.equal((await decided(on, T + 600, 10) as unknown[]).at(-1), null, 'its payload was freed')
  await on.redis.hset(on.keys.handoff(tag, member), { p: `"task":"${'x'.repeat(2_100_000)}"` })
  t.equal((await decided(on, T + 600, 10) as unknown[]).at(-1), null, 'or is too long')
  const escaped = '\\ud83d\\ude00'.repeat(300)
  await on.redis.hset(on.keys.handoff(tag, member), { p: `"task":"${escaped}"` })
  t.equal((await decided(on, T + 600, 10) as unknown[]).at(-1), `"${escaped.slice(0, 2439)}`, 'the beginning of a long one: enough for 200 characters')
  await on.redis.del(on.keys.handoff(tag, member))
  t.strictSame(await decided(on, T + 600, 10), ['listed', T + 600], 'it is gone')
})

t.test('the latest 50 are kept', async t => {
  const on = raw(testRedis(t))
  const list = on.keys.decided(tag, tenant)
  for (let n = 0; n < 55; n++) await on.redis.zadd(list, T - 1000 + n, `${tenant}:n${n}`)
  await put(on, waits)
  await reject(on, T + 500, asking)
  const kept = await on.redis.zrange(list, '0', '-1')
  t.strictSame([kept.length, kept[0], kept.at(-1)], [50, `${tenant}:n6`, member])
})
