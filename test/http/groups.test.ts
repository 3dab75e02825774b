import t from 'tap'
import { inboxTag, randomToken } from '../../src/core/ids.ts'
import { Random } from '../faults/random.ts'
import { testApp } from '../helpers/app.ts'
import type { TestApp } from '../helpers/app.ts'
import { inboxWaiters } from '../helpers/metrics.ts'
import { isProblem } from '../helpers/problems.ts'
import { until } from '../helpers/until.ts'

/** Groups of an inbox take turns, and may have so many caught each. */

type Json = Record<string, any>

const one = await testApp(t, {}, { retention: 600_000, workTtl: 600_000 })
const spread = await testApp(t, {}, { retention: 600_000, workTtl: 600_000, isSpread: true })

let count = 0
/** What a test does with an inbox of its own. */
function work ({ call, redis, prefix, store }: TestApp, name = `work-${++count}`) {
  const send = async (who: 'alice' | 'bob' | 'operator', path: string, body: object = {}, method: 'POST' | 'PUT' = 'POST') => {
    const answer = await call(who, method, path, body)
    if (answer.statusCode >= 300) throw new Error(answer.body)
    return answer.json() as Json
  }
  const pass = async (group: string | null = null, more: object = {}) =>
    (await send('alice', '/api/pass', { task: 't', to: name, group, ...more })).handoff_id as string
  /** What was taken, as its group. */
  const items = async (max = 1, wait = 0, headers = {}) => {
    const answer = await call('bob', 'POST', `/api/catch?wait=${wait}`, { inbox: name, max }, headers)
    if (answer.statusCode !== 200) throw new Error(answer.body)
    return answer.json().items as Json[]
  }
  const groupsOf = (all: Json[]) => all.map(({ group = null }) => group as string | null)
  const take = async (max = 1, wait = 0) => groupsOf(await items(max, wait))
  const takes = async (times: number) => {
    const all: Array<string | null> = []
    for (let n = 0; n < times; n++) all.push(...await take())
    return all
  }
  const ids = async (max = 1) => (await items(max)).map(({ handoff_id: id }) => id as string)
  const byId = (id: string) => call('bob', 'GET', `/api/catch/${id}`)
  const set = (settings: object) => send('operator', `/api/inboxes/${name}`, settings, 'PUT')
  const look = async () => (await call('alice', 'GET', `/api/inboxes/${name}`)).json() as Json
  const listed = async (query = '') => (await call('alice', 'GET', `/api/inboxes/${name}/groups${query}`)).json() as Json
  const done = (id: string) => send('bob', `/api/done/${id}`)
  const list = `${prefix}:{${inboxTag('default', name)}}:i:default:${name}`
  /** The keys beside the inbox's list. */
  const keys = async () => {
    const found: string[] = []
    for await (const some of redis.scanStream({ match: `${list}*`, count: 10_000 })) found.push(...some as string[])
    return found.map(key => key.slice(list.length)).sort()
  }
  const sweep = () => store.handoffs.sweep(inboxTag('default', name), 100, false)
  return { name, list, keys, send, call, pass, items, groupsOf, take, takes, ids, byId, set, look, listed, done, sweep }
}

for (const [where, service] of [['one Redis', one], ['spread', spread]] as const) {
  t.test(`groups take turns: ${where}`, async t => {
    const { pass, take, takes, keys, look } = work(service)
    for (const group of ['a', 'a', 'a', 'b', 'c', 'c', null, null, 'a']) await pass(group)
    t.match(await look(), { pending: 9, groups: 4 })
    t.strictSame(await takes(4), ['a', 'b', 'c', null], 'four groups in four takes')
    t.match(await look(), { pending: 5, caught: 4, groups: 3 })
    await pass('d')
    t.strictSame(await takes(3), ['a', 'c', null], 'those that were there before')
    await pass('b')
    t.strictSame(await takes(4), ['d', 'a', 'b', 'a'])
    t.strictSame(await take(), [])
    t.strictSame(await keys(), [':caught', ':caught-groups'])
  })

  t.test(`as sequences of takes, a take of several has several turns: ${where}`, async t => {
    const { pass, take } = work(service)
    for (const group of ['a', 'a', 'a', 'a', 'b', 'b', null, 'c']) await pass(group)
    t.strictSame(await take(3), ['a', 'b', null])
    t.strictSame(await take(100), ['c', 'a', 'b', 'a', 'a'])
  })

  t.test(`priority counts within a group: ${where}`, async t => {
    const { pass, ids } = work(service)
    const [late, urgent] = [await pass('a'), await pass('a', { priority: 5 })]
    const other = await pass('b', { priority: 9 })
    t.strictSame(await ids(3), [urgent, other, late])
  })

  t.test(`what was one group alone is one of two: ${where}`, async t => {
    const { pass, takes, keys } = work(service)
    await pass()
    await pass()
    await pass('a')
    t.strictSame(await takes(3), [null, 'a', null])
    await pass('a')
    await pass()
    await pass('a')
    t.strictSame(await takes(3), ['a', null, 'a'], 'and by when each came')
    t.strictSame(await keys(), [':caught', ':caught-groups'])
  })
}

t.test('ten thousand of one customer hold up another’s by one turn', async t => {
  const { pass, take, list } = work(one)
  await pass('big')
  await one.redis.eval(`for i = 1, 10000 do
    local position = 9000000000000000 - 20000 + i
    redis.call('ZADD', KEYS[1] .. ':grouped', position, 'default:zzz' .. i)
    redis.call('ZADD', KEYS[1] .. ':groups', 0, 'big ' .. string.format('%016d', position) .. ' default:zzz' .. i)
  end`, 1, list)
  await pass('small')
  t.strictSame([await take(), await take()], [['big'], ['small']])
})

t.test('no service is without its group: catch, status, lists, events, approvals, and what comes after', async t => {
  const { pass, items, send, call, name } = work(await testApp(t, {}, { eventsRetention: 60_000 }))
  const id = await pass('a', { max_attempts: 2, retry_delay: 0 })
  const [taken] = await items()
  t.match(taken, { handoff_id: id, group: 'a' })
  const { reissued_as: next } = await send('bob', `/api/fail/${id}`, { error: { message: 'no' } })
  t.match(await call('alice', 'GET', `/api/status/${next}`).then(answer => answer.json()), { group: 'a', to: name })
  t.match(await items(), [{ handoff_id: next, group: 'a' }])
  const events = (await call('alice', 'GET', '/api/events?after=0-0')).json().items as Json[]
  t.ok(events.length > 5)
  t.ok(events.every(({ data }) => data.group === 'a'))
  await pass('b')
  const inList = async (query: string) => ((await call('alice', 'GET', `/api/handoffs?${query}`)).json().items as Json[]).map(({ group }) => group)
  t.strictSame([await inList('group=a'), await inList('group=b'), await inList('group=c'), await inList('state=ended&attempts=all&group=a')], [['a'], ['b'], [], ['a']])
  isProblem(t, await call('alice', 'GET', '/api/handoffs?group=a%20b'), 400, 'invalid_request')
})

t.test('lists by group, and what purge and redrive do to groups', async t => {
  const { pass, take, ids, send, call, listed, keys, name } = work(one)
  const inList = async (query: string) => ((await call('operator', 'GET', `/api/handoffs?inbox=${name}&${query}`)).json().items as Json[]).map(({ handoff_id: id }) => id)
  const failed: string[] = []
  for (const group of ['a', 'b']) {
    await pass(group)
    const [id] = await ids() as [string]
    failed.push(id)
    await send('bob', `/api/fail/${id}`, { error: { message: 'no' } })
    await pass(group)
    await take()
  }
  for (const group of ['a', 'b', 'a', 'b', 'b']) await pass(group, { require_human: group === 'a' })
  for (const group of ['a', 'b', 'b']) await pass(group)
  for (const [at, group] of ['a', 'b'].entries()) {
    t.strictSame(await inList(`state=failed&group=${group}`), [failed[at]])
    t.strictSame(await inList(`state=ended&group=${group}`), [failed[at]])
    t.equal((await inList(`group=${group}`)).length, [4, 6][at])
  }
  t.match(await listed(), { items: [{ group: 'a', pending: 1, caught: 1 }, { group: 'b', pending: 5, caught: 1 }] })
  t.match(await send('operator', '/api/redrive', { inbox: name }), { reissued: 2 })
  t.match(await listed(), { items: [{ group: 'a', pending: 2, caught: 1 }, { group: 'b', pending: 6, caught: 1 }] })
  t.strictSame(await take(3), ['b', 'a', 'b'], 'what is tried again has turns like others')
  t.match(await send('operator', '/api/purge', { inbox: name }), { cancelled: 7 })
  t.match(await listed(), { items: [{ group: 'a', pending: 0, caught: 2 }, { group: 'b', pending: 0, caught: 3 }] })
  t.match(await send('operator', '/api/purge', { inbox: name, caught: 'force' }), { cancelled: 5 })
  t.strictSame([await inList('group=a'), await inList('state=failed&group=a')], [[], []])
  t.strictSame(await keys(), [])
})

t.test('a take looks at so many groups that are at their limit at most', async t => {
  const { pass, take, set, list, name } = work(one)
  for (let n = 0; n < 80; n++) await pass(`g${n % 40}`)
  t.equal((await take(40)).length, 40)
  await set({ max_caught_per_group: 1 })
  const look = () => one.store.inboxes.take({ tenant: 'default', inbox: name, tag: inboxTag('default', name) }, { token: randomToken(), agent: 'bob', max: 1, lifetime: null, request: '-' })
  const held = () => one.redis.zcard(`${list}:held`)
  t.match(await look(), { isMore: true, items: [] })
  t.equal(await held(), 32)
  t.match(await look(), { isMore: false, items: [] })
  t.equal(await held(), 40)
})

t.test('what a group may be', async t => {
  const { call } = one
  for (const group of ['a', 'A.b_c:d@e-9', 'x'.repeat(64)]) t.equal((await call('alice', 'POST', '/api/pass', { task: 't', to: 'any', group })).statusCode, 201, group)
  for (const group of ['', 'a b', 'a/b', 'ä', 'x'.repeat(65), 7]) t.match((await call('alice', 'POST', '/api/pass', { task: 't', to: 'any', group })).json(), { code: 'invalid_request', errors: [{ pointer: '/group' }] }, String(group))
  t.match((await call('alice', 'POST', '/api/pass', { task: 't', group: 'a', priority: 1 })).json(), { errors: [{ pointer: '/priority', message: 'needs to' }, { pointer: '/group', message: 'needs to' }] })
})

t.test('what uses no turn', async t => {
  const { pass, items, take, byId, ids, keys } = work(one)
  const [first] = [await pass('a'), await pass('a'), await pass('b')]
  await byId(first)
  t.strictSame(await take(2), ['a', 'b'], 'a catch by id')
  const task = 'x'.repeat(800_000)
  for (const group of ['a', 'b', 'c', 'd', 'e', 'f', 'a']) await pass(group, { task })
  t.strictSame((await items(100)).map(({ group }) => group), ['a', 'b', 'c', 'd', 'e'], 'what 4 MiB leave out')
  t.strictSame((await items(100)).map(({ group }) => group), ['f', 'a'])
  const gone = [await pass('a'), await pass('b'), await pass('b'), await pass('a')]
  await one.redis.del(...gone.slice(0, 2).map(id => `${one.prefix}:{${id.slice(0, 3)}}:h:default:${id}`))
  t.strictSame(await ids(2), [gone[3], gone[2]], 'entries of what has gone')
  t.strictSame(await keys(), [':caught', ':caught-groups'])
})

t.test('an Idempotency-Key gets the same again, and uses no other turn', async t => {
  const { pass, items, take } = work(one)
  for (const group of ['a', 'a', 'b', 'b']) await pass(group)
  const key = { 'idempotency-key': 'once' }
  const first = await items(2, 0, key)
  t.strictSame(await items(2, 0, key), first)
  t.strictSame(first.map(({ group }) => group), ['a', 'b'])
  t.strictSame(await take(4), ['a', 'b'])
})

t.test('whatever enters an inbox enters its group, and whatever leaves leaves it', async t => {
  const { pass, send, call, take, keys, sweep, done, items, look, byId } = work(one)
  const enters = async (how: string, id: string) => {
    await until(async () => { await sweep(); return (await look()).pending === 1 })
    t.match(await items(), [{ handoff_id: id, group: 'a' }], how)
    await done(id)
  }
  const asked = await pass('a', { require_human: true })
  t.match(await look(), { pending: 0, groups: 0, waiting_approval: 1 })
  await call('approver', 'POST', `/api/approve/${asked}`)
  await enters('approved', asked)
  await enters('delayed', await pass('a', { delay: 1 }))
  const before = await one.pass()
  const after = await pass('a', { after: [before] })
  t.match(await look(), { pending: 0, groups: 0, blocked: 1 })
  await call('bob', 'GET', `/api/catch/${before}`)
  await send('bob', `/api/done/${before}`)
  await enters('what it came after has ended', after)
  const again = await pass('a')
  await items()
  const { handoff_id: next } = await send('alice', `/api/reissue/${again}`)
  await enters('reissued', next)
  t.strictSame(await keys(), [])

  await send('alice', `/api/cancel/${await pass('a')}`)
  t.strictSame(await keys(), [], 'cancelled')
  await pass('a', { expires_in: 1 })
  await until(async () => { await sweep(); return (await keys()).join() === ':failed' })
  const [own, other] = [await pass(), await pass('a')]
  await byId(other)
  t.strictSame(await keys(), ['', ':caught', ':caught-groups', ':failed'], 'what has no group stays')
  await send('alice', `/api/cancel/${other}`, { force: true })
  t.strictSame(await take(), [null])
  await done(own)
  t.strictSame(await keys(), [':failed'])
  await pass('a')
  await pass('b')
  await send('operator', '/api/purge', { inbox: (await look()).inbox })
  t.strictSame(await keys(), [':failed'], 'purged')
})

t.test('by groups: who has what', async t => {
  const { pass, listed, items, call, name, done } = work(one)
  t.strictSame(await listed(), { items: [], next_cursor: null })
  const began = Date.now()
  for (const group of ['b', 'C', 'a', 'a-', 'a:', 'a', null, 'B', '-']) await pass(group)
  const [taken] = await items(2)
  const all = (await listed()).items as Json[]
  t.strictSame(all.map(({ group, pending, caught }) => [group, pending, caught]), [[null, 1, 0], ['-', 1, 0], ['B', 1, 0], ['C', 0, 1], ['a', 2, 0], ['a-', 1, 0], ['a:', 1, 0], ['b', 0, 1]])
  for (const { group, oldest_at: oldest } of all) {
    if (group === 'b' || group === 'C') t.equal(oldest, null)
    else t.ok(Date.parse(oldest) >= began - 1000 && Date.parse(oldest) <= Date.now() + 1000, `${group}`)
  }
  const seen: unknown[] = []
  let cursor: string | null = ''
  do {
    const page = await listed(`?limit=1${cursor === '' ? '' : `&cursor=${cursor}`}`)
    t.ok(page.items.length <= 1)
    seen.push(...page.items.map(({ group }: Json) => group))
    cursor = page.next_cursor
  } while (cursor !== null && seen.length < 20)
  t.strictSame(seen, all.map(({ group }) => group), 'page by page')
  await done(taken!.handoff_id)
  t.strictSame((await listed()).items.at(-1).group, 'a:', 'it is gone with its last')
  await items(10)
  t.match((await listed()).items[0], { group: null, pending: 0, caught: 1, oldest_at: null }, 'what has no group is there for what is caught alone')
  for (const query of ['cursor=x', 'cursor=', 'limit=0', 'limit=101', 'who=1']) isProblem(t, await call('alice', 'GET', `/api/inboxes/${name}/groups?${query}`), 400, 'invalid_request', query)
  isProblem(t, await call('alice', 'GET', '/api/inboxes/a%20b/groups'), 404, 'not_found')
  t.strictSame((await call('foreignAlice', 'GET', `/api/inboxes/${name}/groups`)).json().items, [], 'another tenant’s')
})

t.test('so many of a group are caught, and no more', async t => {
  const { pass, take, takes, ids, byId, set, look, listed, done, send, call, keys } = work(one)
  for (const group of ['a', 'a', 'a', 'b', null, null, null]) await pass(group)
  t.match(await set({ max_caught_per_group: 1 }), { max_caught_per_group: 1, max_caught: null, groups: 3 })
  t.strictSame(await take(10), ['a', 'b', null, null, null], 'what has no group has no limit')
  t.strictSame(await take(10), [], 'it is as an empty one')
  t.match(await look(), { pending: 2, caught: 5, groups: 1, max_caught_per_group: 1 })
  await pass()
  await pass('c')
  t.strictSame(await takes(3), [null, 'c'], 'others go on')
  const caught = async () => (await call('alice', 'GET', `/api/handoffs?inbox=${(await look()).inbox}&group=a&caught_by=bob`)).json().items.map(({ handoff_id: id }: Json) => id) as string[]
  const ends: Array<[how: string, end: (id: string) => Promise<unknown>]> = [
    ['done', id => done(id)],
    ['failed', id => send('bob', `/api/fail/${id}`, { error: { message: 'no' }, retry: false })],
    ['declined', id => send('bob', `/api/decline/${id}`, { reason: 'no' })],
    ['cancelled', id => send('alice', `/api/cancel/${id}`, { force: true })],
    ['reissued', id => send('alice', `/api/reissue/${id}`)],
  ]
  for (const [how, end] of ends) {
    await pass('a')
    t.strictSame(await take(), [], `not before it has ${how}`)
    const [id, ...others] = await caught()
    t.strictSame(others, [])
    await end(id!)
    t.strictSame(await takes(2), ['a'], how)
  }
  t.match((await listed()).items.find(({ group }: Json) => group === 'a'), { pending: 3, caught: 1 })
  const [held] = (await call('alice', 'GET', `/api/handoffs?inbox=${(await look()).inbox}&group=a`)).json().items.filter(({ status }: Json) => status === 'pending') as Json[]
  t.equal((await byId(held!.handoff_id)).statusCode, 200, 'by id it is caught')
  await done((await caught())[0]!)
  t.strictSame(await ids(), [], 'and counts')
  await done((await caught())[0]!)
  t.strictSame(await takes(3), ['a'])
  await send('operator', '/api/purge', { inbox: (await look()).inbox, caught: 'force' })
  t.match(await look(), { pending: 0, caught: 0, groups: 0 })
  t.strictSame(await keys(), [':failed', ':per-group'], 'nothing is left but the setting')
  await set({ max_caught_per_group: null })
})

t.test('how many may be caught', async t => {
  const { name, set } = work(one)
  for (const wrong of [0, -1, 1.5, 100_001, '1', true, []]) t.match((await one.call('operator', 'PUT', `/api/inboxes/${name}`, { max_caught_per_group: wrong })).json(), { code: 'invalid_request', errors: [{ pointer: '/max_caught_per_group' }] }, String(wrong))
  t.match(await set({ max_caught_per_group: 100_000, max_caught: 5 }), { max_caught_per_group: 100_000, max_caught: 5 })
  t.match(await set({ paused: true }), { max_caught_per_group: 100_000, max_caught: 5, paused: true }, 'what is left out stays')
  t.match(await set({ max_caught_per_group: null }), { max_caught_per_group: null, max_caught: 5, paused: true })
  isProblem(t, await one.call('alice', 'PUT', `/api/inboxes/${name}`, { max_caught_per_group: 1 }), 403, 'insufficient_scope')
})

t.test('a work that expires makes room too, and so does its next attempt', async t => {
  const { pass, take, takes, set, sweep, items } = work(one)
  await set({ max_caught_per_group: 1 })
  await pass('a', { work_within: 1 })
  await pass('a', { work_within: 1, max_attempts: 2, retry_delay: 0 })
  t.strictSame(await takes(2), ['a'])
  const next = async () => until(async () => { await sweep(); return (await take()).length === 1 })
  await next()
  await next()
  t.strictSame(await items(), [], 'the second attempt is caught')
})

t.test('a limit that is raised, lowered and taken away', async t => {
  const { pass, take, set, list, keys } = work(one)
  await set({ max_caught_per_group: 1 })
  for (const group of ['c', 'c', 'c', 'c', 'b', 'b', 'b', 'a']) await pass(group)
  t.strictSame(await take(8), ['c', 'b', 'a'])
  await pass('d')
  await set({ max_caught_per_group: 2 })
  await pass('e')
  t.strictSame(await take(8), ['d', 'b', 'c', 'e'], 'what came before the limit was raised, then what it let go, then what came later')
  await set({ max_caught_per_group: 1 })
  t.strictSame(await take(8), [])
  await set({ max_caught_per_group: 2 })
  t.strictSame(await take(8), [])
  await set({ max_caught_per_group: null })
  await pass('a')
  t.strictSame(await take(8), ['b', 'c', 'a', 'c'])
  t.strictSame(await keys(), [':caught', ':caught-groups', ':per-group'])
  t.ok(await one.redis.pttl(`${list}:per-group`) > 0)
})

t.test('a limit that was raised has let a group go before one of its caught ends', async t => {
  const { pass, ids, take, set, done } = work(one)
  await set({ max_caught_per_group: 1 })
  for (const group of ['a', 'a', 'a']) await pass(group)
  const [first] = await ids()
  t.strictSame(await take(), [])
  await set({ max_caught_per_group: 2 })
  await pass('b')
  await done(first!)
  t.strictSame(await take(2), ['a', 'b'])
})

t.test('a group that is left out, and then has nothing more, leaves nothing', async t => {
  const { pass, take, set, send, look, keys } = work(one)
  await set({ max_caught_per_group: 1 })
  await pass('a')
  const last = await pass('a')
  t.strictSame(await take(2), ['a'])
  t.match(await look(), { groups: 1, pending: 1 })
  await send('alice', `/api/cancel/${last}`)
  t.match(await look(), { groups: 0, pending: 0 })
  t.strictSame(await keys(), [':caught', ':caught-groups', ':per-group'])
})

t.test('thousands that a limit held come back before any is served twice', async t => {
  const { pass, takes, set, list, items } = work(one)
  await set({ max_caught_per_group: 1 })
  const names = Array.from({ length: 300 }, (_, n) => `g${String(n).padStart(3, '0')}`)
  const all = async () => {
    const operations = names.map(group => ({ op: 'pass', body: { task: 't', to: work(one, list.slice(list.lastIndexOf(':') + 1)).name, group } }))
    for (let at = 0; at < operations.length; at += 100) await one.call('alice', 'POST', '/api/batch', { operations: operations.slice(at, at + 100) })
  }
  await all()
  await all()
  for (let n = 0; n < 4; n++) await items(100)
  t.equal(await one.redis.zcard(`${list}:held`), 300, 'all are held')
  await pass(null)
  await pass(null)
  await pass(null)
  t.strictSame(await takes(1), [null])
  await set({ max_caught_per_group: null })
  const seen = [...(await items(100)), ...(await items(100)), ...(await items(100)), ...(await items(100))].map(({ group = null }) => group)
  t.strictSame(seen, [null, ...names, null])
})

t.test('what is catchable again wakes who waits', async t => {
  const { pass, take, ids, set, done } = work(one)
  await set({ max_caught_per_group: 1 })
  await pass('a')
  await pass('a')
  const [first] = await ids()
  const began = performance.now()
  const waits = async (wakes: () => Promise<unknown>) => {
    const waiting = take(1, 30)
    await until(async () => await inboxWaiters(one.app) === 1)
    await wakes()
    return await waiting
  }
  t.strictSame(await waits(() => done(first!)), ['a'], 'one has ended')
  await pass('a')
  t.strictSame(await waits(() => set({ max_caught_per_group: 2 })), ['a'], 'the limit was raised')
  await pass('a')
  t.strictSame(await waits(() => set({ max_caught_per_group: null })), ['a'], 'the limit was taken away')
  t.strictSame(await waits(() => pass('b')), ['b'], 'a group has come')
  t.ok(performance.now() - began < 15_000)
})

t.test('each of those who wait gets one of what a pause held', async t => {
  const { pass, take, set } = work(one)
  await set({ paused: true })
  for (let n = 0; n < 4; n++) await pass('a')
  const began = performance.now()
  const waiting = Array.from({ length: 4 }, () => take(1, 30))
  await until(async () => await inboxWaiters(one.app) === 4)
  await set({ paused: false })
  t.strictSame((await Promise.all(waiting)).flat(), ['a', 'a', 'a', 'a'])
  t.ok(performance.now() - began < 20_000)
})

t.test('a group that a waiting take has filled wakes who waits for its next one', async t => {
  const { pass, items, set, done } = work(one)
  await set({ max_caught_per_group: 1 })
  const all = []
  for (let n = 0; n < 4; n++) all.push(await pass('a'))
  const began = performance.now()
  for (const id of all) {
    const waiting = items(1, 30)
    await until(async () => await inboxWaiters(one.app) <= 1)
    const [{ handoff_id: got }] = await waiting as [Json]
    t.equal(got, id)
    const next = id === all.at(-1) ? null : items(1, 30)
    if (next !== null) await until(async () => await inboxWaiters(one.app) === 1)
    await done(id)
    if (next === null) continue
    const [{ handoff_id: second }] = await next as [Json]
    t.equal(second, all[all.indexOf(id) + 1])
    await done(second)
    all.splice(all.indexOf(id) + 1, 1)
  }
  t.ok(performance.now() - began < 20_000)
})

t.test('max_caught and a pause hold for all groups together', async t => {
  const { pass, take, set, look } = work(one)
  for (const group of ['a', 'a', 'b', null]) await pass(group)
  await set({ max_caught: 3, max_pending: 4 })
  isProblem(t, await one.call('alice', 'POST', '/api/pass', { task: 't', to: (await look()).inbox, group: 'c' }), 429, 'inbox_full')
  t.strictSame(await take(10), ['a', 'b', null])
  t.strictSame(await take(10), [])
  await set({ max_caught: null, paused: true })
  t.strictSame(await take(10), [])
  await set({ paused: false })
  t.strictSame(await take(10), ['a'])
})

/** What an inbox should do: its groups, each in its order; the turns; and what is left out of them. */
class Model {
  readonly #entries = new Map<string, Array<{ id: string, priority: number, place: number }>>()
  readonly #caught = new Map<string, number>()
  readonly #held = new Map<string, number>()
  #turns: string[] = []
  #limit = Infinity
  #places = 0

  enter (name: string, id: string, priority: number): void {
    const entries = this.#entries.get(name) ?? []
    if (entries.length === 0) this.#turns.push(name)
    this.#entries.set(name, [...entries, { id, priority, place: this.#places++ }].sort((a, b) => b.priority - a.priority || a.place - b.place))
  }

  leave (name: string, id: string): void {
    const rest = this.#entries.get(name)!.filter(one => one.id !== id)
    this.#entries.set(name, rest)
    if (rest.length > 0) return
    this.#turns = this.#turns.filter(one => one !== name)
    this.#held.delete(name)
  }

  caught (name: string): void { this.#caught.set(name, this.#of(name) + 1) }

  ended (name: string): void {
    this.#caught.set(name, this.#of(name) - 1)
    if (this.#held.delete(name)) this.#turns.push(name)
  }

  limit (limit: number): void {
    this.#limit = limit
    const back = [...this.#held].filter(([, count]) => count < limit).map(([name]) => name).sort()
    for (const name of back) this.#held.delete(name)
    this.#turns.push(...back)
  }

  take (max: number): string[] {
    const taken: string[] = []
    const served = new Set<string>()
    while (taken.length < max) {
      const name = this.#turns.shift()
      if (name === undefined) break
      if (name !== '' && this.#of(name) >= this.#limit) {
        this.#held.set(name, this.#of(name))
        continue
      }
      const [first, ...rest] = this.#entries.get(name)!
      taken.push(first!.id)
      this.#entries.set(name, rest)
      this.caught(name)
      if (rest.length > 0) this.#turns.push(name)
      served.add(name)
    }
    const full = this.#turns.filter(name => name !== '' && served.has(name) && this.#of(name) >= this.#limit)
    for (const name of full) this.#held.set(name, this.#of(name))
    this.#turns = this.#turns.filter(name => !full.includes(name))
    return taken
  }

  #of (name: string): number { return this.#caught.get(name) ?? 0 }
}

for (const seed of [1, 2, 3, 4, 5, 6]) {
  t.test(`whatever happens, in whatever order: ${seed}`, async t => {
    const { pass, ids, byId, done, set, send, keys, listed, look } = work(one)
    const random = new Random(seed)
    const [model, names] = [new Model(), ['', '', ...'abcdefg'.slice(0, random.between(2, 7))]]
    const [pending, caught] = [new Map<string, string>(), new Map<string, string>()]
    const pick = (from: Map<string, string>) => random.pick([...from])
    const steps: Array<[share: number, step: () => Promise<void>]> = [
      [10, async () => {
        const [name, priority] = [random.pick(names), random.chance(0.2) ? random.between(1, 9) : 0]
        const id = await pass(name === '' ? null : name, { priority })
        model.enter(name, id, priority)
        pending.set(id, name)
      }],
      [5, async () => {
        const max = random.chance(0.7) ? 1 : random.between(2, 12)
        const taken = await ids(max)
        t.strictSame(taken, model.take(max), `step ${step}: of ${taken.map(id => pending.get(id))}`)
        for (const id of taken) {
          caught.set(id, pending.get(id)!)
          pending.delete(id)
        }
      }],
      [5, async () => {
        if (caught.size === 0) return
        const [id, name] = pick(caught)
        await (random.chance(0.5) ? done(id) : send('alice', `/api/cancel/${id}`, { force: true }))
        model.ended(name)
        caught.delete(id)
      }],
      [2, async () => {
        if (pending.size === 0) return
        const [id, name] = pick(pending)
        model.leave(name, id)
        pending.delete(id)
        if (random.chance(0.5)) await send('alice', `/api/cancel/${id}`)
        else {
          await byId(id)
          model.caught(name)
          caught.set(id, name)
        }
      }],
      [0.5, async () => {
        const limit = random.chance(0.3) ? null : random.between(1, 3)
        await set({ max_caught_per_group: limit })
        model.limit(limit ?? Infinity)
        // What this lets go is back with the next take.
        await ids(1).then(taken => t.strictSame(taken, model.take(1).map(id => {
          caught.set(id, pending.get(id)!)
          pending.delete(id)
          return id
        })))
      }],
    ]
    let step = 0
    for (; step < 250; step++) {
      let at = random.next() * steps.reduce((sum, [share]) => sum + share, 0)
      await steps.find(([share]) => (at -= share) < 0)![1]()
      if (!t.passing()) return
    }
    const numbers = (from: Map<string, string>, name: string) => [...from.values()].filter(one => one === name).length
    for (const { group, pending: waits, caught: works } of (await listed('?limit=100')).items as Json[]) t.strictSame([waits, works], [numbers(pending, group ?? ''), numbers(caught, group ?? '')], `${group}`)
    t.match(await look(), { pending: pending.size, caught: caught.size, groups: new Set(pending.values()).size })
    await set({ max_caught_per_group: null })
    for (const id of [...await ids(100), ...caught.keys()]) await done(id)
    await ids(100).then(rest => Promise.all(rest.map(done)))
    t.strictSame(await keys(), [':per-group'], 'nothing is left')
  })
}

t.test('why one waits: its group, and who is ahead in it', async t => {
  const { pass, take, byId, set, name, call } = work(one)
  const [a1, a2, a3] = [await pass('a'), await pass('a'), await pass('a', { priority: 1 })]
  const [none, b] = [await pass(), await pass('b')]
  const why = async (id: string) => (await call('alice', 'GET', `/api/status/${id}?explain=true`)).json().waits_for.filter(({ reason }: Json) => reason !== 'no_listener')
  t.strictSame(await Promise.all([a3, a1, a2, none, b].map(why)), [[], [{ reason: 'ahead', ahead: 1 }], [{ reason: 'ahead', ahead: 2 }], [], []])
  await set({ max_caught_per_group: 1 })
  await byId(a1)
  t.strictSame(await Promise.all([a2, none].map(why)), [[{ reason: 'max_caught_per_group', caught: 1, max: 1 }, { reason: 'ahead', ahead: 1 }], []])
  t.strictSame(await take(9), [null, 'b'])
  t.match((await call('operator', 'GET', `/api/status/${a3}?explain=true`)).json(), { group: 'a', to: name, waits_for: [{ reason: 'max_caught_per_group', caught: 1, max: 1 }] })
})

t.test('what replicas of version 0.2.0 leave behind, and put elsewhere', async t => {
  const { pass, take, takes, items, look, listed, list, name, keys, set, done } = work(one)
  const { redis, prefix, store } = one
  const status = async (id: string, was: string, is: string) => {
    const key = `${prefix}:{${id.slice(0, 3)}}:h:default:${id}`
    await redis.hset(key, 's', (await redis.hget(key, 's'))!.replace(was, is))
  }
  const tidy = () => store.inboxes.tidy({ tenant: 'default', inbox: name, tag: inboxTag('default', name) })
  const [a, b] = [await pass('a'), await pass('b'), await pass('c')]
  const again = await pass('a')
  // It enters no turn for what has no group.
  await pass()
  await redis.zrem(`${list}:turns`, '')
  await status(b, 'pending', 'cancelled')
  t.match(await look(), { pending: 5, groups: 4 })
  await tidy()
  t.match(await look(), { pending: 4, groups: 3 })
  t.strictSame(await takes(4), ['a', 'c', null, 'a'])
  await done(again)
  await set({ max_caught_per_group: 1 })
  for (const group of ['a', 'a', 'd']) await pass(group)
  t.strictSame(await takes(2), ['d'])
  await status(a, 'caught', 'done')
  t.strictSame(await take(), [])
  await redis.srem(`${list}:caught`, `default:${a}`)
  const waiting = take(1, 30)
  await until(async () => await inboxWaiters(one.app) === 1)
  await tidy()
  t.strictSame(await waiting, ['a'], 'a group that it made room in')
  t.match((await listed()).items.find(({ group }: Json) => group === 'a'), { pending: 1, caught: 1 })
  // Its sweep enters what was delayed into the inbox’s own list.
  const later = await pass('e')
  await redis.zadd(list, (await redis.zscore(`${list}:grouped`, `default:${later}`))!, `default:${later}`)
  await redis.zrem(`${list}:groups`, ...(await redis.zrangebylex(`${list}:groups`, '[e ', '(e!')))
  await redis.zrem(`${list}:grouped`, `default:${later}`)
  await redis.zrem(`${list}:turns`, 'e')
  t.match(await items(), [{ handoff_id: later, group: 'e' }])
  t.ok((await keys()).includes(':caught-groups'))
  t.match((await listed()).items.find(({ group }: Json) => group === 'e'), { pending: 0, caught: 1 })
})

t.test('back to version 0.2.0, and forward again', async t => {
  const service = await testApp(t)
  const { pass, ids, items, keys, look, done, list } = work(service)
  const all: string[] = []
  for (let n = 0; n < 250; n++) all.push(await pass(n % 9 === 0 ? null : `g${n % 7}`))
  const taken = await ids(2)
  await service.store.indexer.goBack()
  t.strictSame(await keys(), ['', ':caught', ':caught-groups'])
  const left = all.filter(id => !taken.includes(id))
  t.strictSame(await service.redis.zrange(list, '0', '-1'), left.map(id => `default:${id}`), 'all are in the list that it knows, in their order')
  await pass('g1')
  t.match(await look(), { pending: 249, groups: 2 })
  t.strictSame((await items(3)).map(({ handoff_id: id }) => id).filter(id => left.includes(id)), left.slice(0, 2), 'what has no group any more takes turns')
  for (const id of taken) await done(id)
})
