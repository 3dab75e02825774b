import t from 'tap'
import { testRedis } from '../helpers/redis.ts'
import { answer, ask, lifetimes, pass, raw, run, sweep, tag } from '../helpers/scripts.ts'
import type { Raw } from '../helpers/scripts.ts'
import { T } from '../helpers/states.ts'

/** The due indexes of a partition, one for each tenant, and when the sweep looks at which (lua/lib/due.lua). */

/** Within how long the sweep looks at each tenant with live handoffs (ms). */
const look = 600_000

const scored = (flat: string[]) => Object.fromEntries(flat.flatMap((member, at) => at % 2 === 0 ? [[member, flat[at + 1]]] : []))
const tenantsOf = async ({ redis, keys }: Raw) => scored(await redis.zrange(keys.tenants(tag), '0', '-1', 'WITHSCORES'))
const dueOf = async ({ redis, keys }: Raw, tenant: string) => scored(await redis.zrange(keys.due(tag, tenant), '0', '-1', 'WITHSCORES'))

/** Passes one for a tenant, at T or later. */
function passFor (on: Raw, tenant: string, name: string, expiresIn: number, now = T, options = '') {
  const keys = [on.keys.handoff(tag, `${tenant}:${name}`), on.keys.due(tag, tenant)]
  return run(on, 'pass', now, keys, [now, 'passer ptok', expiresIn, ...options === '' ? [] : [options], '"task":"t"'])
}

t.test('a tenant is looked at when its first handoff is due, and within ten minutes anyway', async t => {
  const on = raw(testRedis(t))
  await passFor(on, 'acme', 'late', 86_400_000)
  t.strictSame(await tenantsOf(on), { acme: `${T + look}` })
  t.strictSame(await dueOf(on, 'acme'), { 'acme:late': `${T + 86_400_000}`, '-': 'inf' })
  await passFor(on, 'acme', 'soon', 500)
  t.strictSame(await tenantsOf(on), { acme: `${T + 500}` }, 'a sooner time counts')
  await passFor(on, 'acme', 'later', 700)
  t.strictSame(await tenantsOf(on), { acme: `${T + 500}` }, 'a later one doesn’t')
  await passFor(on, 'other', 'delayed', 86_400_000, T, ' a300')
  t.strictSame(await tenantsOf(on), { acme: `${T + 500}`, other: `${T + 300}` }, 'the end of a delay')
  t.match(await sweep(on, T + 500), ['swept', 2, 1, 3, 200])
  t.strictSame(await tenantsOf(on), { acme: `${T + 700}`, other: `${T + 500 + look}` })
  t.match(await sweep(on, T + 700), ['swept', 1, 1, 2])
  t.strictSame(await tenantsOf(on), { acme: `${T + 700 + look}`, other: `${T + 500 + look}` }, 'what is far ahead is looked at within ten minutes')
})

t.test('the sweep forgets a tenant that has nothing, and a pass brings it back', async t => {
  const test = testRedis(t)
  const on = { ...raw(test), member: 'acme:one' }
  await passFor(on, 'acme', 'one', 86_400_000)
  await run(on, 'catch', T, [on.keys.handoff(tag, 'acme:one'), on.keys.due(tag, 'acme')], [T, 'bob ctok'])
  await run(on, 'done', T, [on.keys.handoff(tag, 'acme:one'), on.keys.due(tag, 'acme')], [T, 'bob', 'dtok', ''])
  t.strictSame(await dueOf(on, 'acme'), { '-': 'inf' })
  t.match(await sweep(on, T + lifetimes.workTtl - 1), ['swept', 0, 0, 0, 1], 'not before its time: most come back at once')
  t.match(await sweep(on, T + lifetimes.workTtl), ['swept', 0, 0, 0, null])
  t.strictSame(await test.redis.keys(`${test.prefix}:*`), [on.keys.handoff(tag, 'acme:one')], 'nothing is left of it')
  await passFor(on, 'acme', 'two', 86_400_000, T + look)
  t.strictSame(await tenantsOf(on), { acme: `${T + 2 * look}` })
})

t.test('a catch, a question, a retry and a release that are due sooner are looked at in time', async t => {
  const on = raw(testRedis(t))
  const [key, due] = [on.keys.handoff(tag, 'acme:one'), on.keys.due(tag, 'acme')]
  await passFor(on, 'acme', 'one', 86_400_000, T, ' w5000 m2 d3000')
  await run(on, 'catch', T + 100, [key, due], [T + 100, 'bob ctok'])
  t.strictSame(await tenantsOf(on), { acme: `${T + 5100}` })
  await sweep(on, T + 5100)
  const [next] = Object.keys(await dueOf(on, 'acme'))
  t.strictSame([await tenantsOf(on), (await dueOf(on, 'acme'))[next!]], [{ acme: `${T + 8100}` }, `${T + 8100}`])
  await sweep(on, T + 8100)
  const its = { ...on, member: next! }
  await run(on, 'catch', T + 8100, [on.keys.handoff(tag, next!), due], [T + 8100, 'bob ctok'])
  const bob = { agent: 'bob', token: 'qtok', deadline: T + 10_000 }
  await ask(its, T + 8200, bob, { openFor: 1000 })
  t.strictSame(await tenantsOf(on), { acme: `${T + 9200}` })
  await sweep(on, T + 9200)
  t.equal((await dueOf(on, 'acme'))[next!], `${T + 14_100}`, 'then what was left of the work')
  await ask(its, T + 9300, { ...bob, token: 'qtok2' }, { openFor: 60_000 })
  t.equal((await dueOf(on, 'acme'))[next!], `${T + 18_100}`, 'and no longer than it may take in all')
  await answer(its, T + 9400, { ...bob, agent: 'person' })
  t.equal((await dueOf(on, 'acme'))[next!], `${T + 14_200}`)
})

t.test('the sweep that comes to an open question too early comes again at its end', async t => {
  const on = raw(testRedis(t))
  const [key, due] = [on.keys.handoff(tag, 'acme:one'), on.keys.due(tag, 'acme')]
  await passFor(on, 'acme', 'one', 86_400_000)
  await run(on, 'catch', T, [key, due], [T, 'bob ctok'])
  await run(on, 'ask', T, [key, due], [T, 'bob', lifetimes.retention, 'acme:one', lifetimes.maxWorkTtl, 'qtok', 'askId', 'p', 1000, '-', '0 0', '', '"?"', ''])
  t.equal((await dueOf(on, 'acme'))['acme:one'], `${T + 1000}`)
  // As what an older replica passed comes into the index.
  await on.redis.multi().zadd(due, T + 100, 'acme:one').zadd(on.keys.tenants(tag), T + 100, 'acme').exec()
  t.match(await sweep(on, T + 100), ['swept', 1, 0, 1, 900])
  t.equal((await dueOf(on, 'acme'))['acme:one'], `${T + 1000}`)
})

t.test('what came sooner while the slot moved is found once it has, and later ones stay as they are', async t => {
  const on = raw(testRedis(t))
  for (const [tenant, expiresIn] of [['acme', 86_400_000], ['other', 5000], ['third', 86_400_000]] as const) await passFor(on, tenant, 'one', expiresIn)
  for (const [tenant, due] of [['acme', 3000], ['other', 7000]] as const) await on.redis.zadd(on.keys.due(tag, tenant), T + due, `${tenant}:one`)
  t.match(await sweep(on, T), ['swept', 0, 0, 3, 5000], 'this is not known without being told')
  t.match(await sweep(on, T, 10, T, 0, 1), ['swept', 0, 0, 3, 3000])
  t.strictSame(await tenantsOf(on), { acme: `${T + 3000}`, other: `${T + 5000}`, third: `${T + look}` })
})

t.test('where Redis’s clock is set back, what is passed since then is looked at in time', async t => {
  const on = raw(testRedis(t))
  for (const tenant of ['acme', 'other', 'third']) await passFor(on, tenant, 'before', 86_400_000, T + 3_600_000)
  await passFor(on, 'acme', 'since', look + 1000)
  t.match(await sweep(on, T, 2), ['swept', 0, 0, 4, 0], 'and the rest at once')
  t.match(await sweep(on, T, 2), ['swept', 0, 0, 4, look])
  t.match(await sweep(on, T + look + 1000), ['swept', 1, 1, 3])
})

t.test('tenants with something due take turns, whoever has more, and however many they are', async t => {
  const on = raw(testRedis(t))
  for (let n = 0; n < 100; n++) await passFor(on, 'big', `b${n}`, 100 + n)
  await passFor(on, 'small', 's', 400)
  await passFor(on, 'tiny', 't', 401)
  const expired = async () => (await on.redis.keys(`${on.prefix}:*:h:*`)).length
  t.equal(await expired(), 102)
  const looks: string[][] = []
  for (let n = 0; n < 3; n++) {
    const [, , , , , , , , ...members] = await sweep(on, T + 1000 + n, 4, T + 1000 + n, 1) as string[]
    looks.push(members.map(member => member.split(':')[0]!))
  }
  t.strictSame(looks[0], ['big', 'big', 'small', 'tiny'], 'each gets its share of the first call')
  t.strictSame(looks[1], ['big', 'big', 'big', 'big'])
  // More tenants than one call looks at.
  for (let n = 0; n < 10; n++) await passFor(on, `many${n}`, 'm', 10, T + 1500)
  const rest = new Set(Array.from({ length: 10 }, (_, n) => `many${n}`))
  let calls = 0
  for (; rest.size > 0 && calls < 10; calls++) {
    const [, , , , , , , , ...members] = await sweep(on, T + 2000 + calls, 4, T + 2000 + calls, 1) as string[]
    for (const member of members) rest.delete(member.split(':')[0]!)
  }
  t.ok(calls <= 3, `all ten had a turn within ${calls} calls, although another has 80 due`)
})

t.test('live handoffs are counted, of many tenants now and then, and estimated beyond that', async t => {
  const on = raw(testRedis(t))
  const counted = async (how: 'few' | 'all') =>
    (await run(on, 'sweep', T, [on.keys.tenants(tag)], [T, on.keys.partition(tag), 5, 0, lifetimes.retention, how, 0]) as number[])[3]
  let [tenants, live] = [0, 0]
  for (const upto of [0, 1, 8, 9, 128, 200]) {
    for (; tenants < upto; tenants++) for (let of = 0; of <= tenants % 3; of++, live++) await passFor(on, `t${tenants}`, `h${of}`, 86_400_000)
    t.equal(await counted('few'), upto <= 8 ? live : null, `${upto}`)
    if (upto <= 128) t.equal(await counted('all'), live, `${upto}`)
    else t.ok(Math.abs(await counted('all') as number / live - 1) < 0.05, 'about as many')
  }
})

t.test('what version 0.2.0 has in one index for all goes to the tenants’ own', async t => {
  const test = testRedis(t)
  const on = raw(test)
  const old = `${on.keys.partition(tag)}due`
  const hash = (expires: number) => ({ s: `pending none ${T} ${expires} passer ptok`, p: '"task":"t"' })
  for (let n = 0; n < 450; n++) {
    const [member, expires] = [`t${n % 3}:h${n}`, n < 5 ? T + 100 : T + 86_400_000]
    await test.redis.multi().hset(on.keys.handoff(tag, member), hash(expires)).pexpireat(on.keys.handoff(tag, member), expires + 5000).zadd(old, expires, member).exec()
  }
  // A replica of this version caught one of them meanwhile, for a shorter time.
  await test.redis.zadd(on.keys.due(tag, 't0'), T + 400, 't0:h9', 'inf', '-')
  const replies = []
  do replies.push(await sweep(on, T + 200) as number[]); while (replies.at(-1)![4]! <= 0 && replies.length < 10)
  t.equal(replies.length, 3, 'and goes on at once until all of it has')
  t.equal(replies.reduce((sum, [, , expired]) => sum + expired!, 0), 5, 'what is due is swept in the same calls')
  t.equal(await test.redis.exists(old), 0)
  const all = await Promise.all([0, 1, 2].map(n => dueOf(on, `t${n}`)))
  t.strictSame(all.map(one => Object.keys(one).length), [148 + 1, 148 + 1, 149 + 1])
  t.equal(all[0]!['t0:h9'], `${T + 400}`, 'the sooner time stays')
  t.equal((await tenantsOf(on)).t0, `${T + 400}`)
})

t.test('a pass that comes again changes no index', async t => {
  const test = testRedis(t)
  const on = { ...raw(test), member: 'acme:one' }
  const again = () => pass(on, T + 5, { agent: 'passer', token: 'ptok', deadline: T + 5 })
  await again()
  const before = [await tenantsOf(on), await dueOf(on, 'acme')]
  t.match(await again(), ['replayed'])
  t.strictSame([await tenantsOf(on), await dueOf(on, 'acme')], before)
})
