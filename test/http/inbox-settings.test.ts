import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { homeTag, inboxTag, randomToken, tagOf } from '../../src/core/ids.ts'
import { callerOf } from '../../src/core/model.ts'
import { testApp } from '../helpers/app.ts'
import type { TestApp } from '../helpers/app.ts'
import { skipInQuick } from '../helpers/extent.ts'
import { inboxWaiters, scrape } from '../helpers/metrics.ts'
import { isProblem } from '../helpers/problems.ts'
import { until } from '../helpers/until.ts'

/** What inboxes have, and what operators set for them: pauses and limits. On one Redis, and as in a Cluster. */

const tenants = ['names', 'many', 'empty']
const secretOf = (tenant: string) => `${tenant}-ann-secret-0123456789`
const more = tenants.map(tenant => ({ caller: callerOf(tenant, 'ann', ['pass', 'catch', 'status', 'operate']), secret: secretOf(tenant) }))
const one = await testApp(t, {}, { retention: 600_000, workTtl: 600_000 }, more)
const spread = await testApp(t, {}, { retention: 600_000, workTtl: 600_000, isSpread: true }, more)

let count = 0
/** What a test does with an inbox of its own. */
function work (service: TestApp, name = `work-${++count}`) {
  const { call } = service
  const pass = async (members: object = {}) => {
    const answer = await call('alice', 'POST', '/api/pass', { task: 't', to: name, ...members })
    if (answer.statusCode !== 201) throw new Error(answer.body)
    return answer.json().handoff_id as string
  }
  const approved = async () => {
    const id = await pass({ require_human: true })
    await call('approver', 'POST', `/api/approve/${id}`)
    return id
  }
  const take = async (max = 100, wait = 0, headers?: Record<string, string>) => {
    const answer = await call('bob', 'POST', `/api/catch?wait=${wait}`, { inbox: name, max }, headers)
    if (answer.statusCode !== 200) throw new Error(answer.body)
    return (answer.json().items as Array<{ handoff_id: string }>).map(({ handoff_id: id }) => id)
  }
  const byId = (id: string) => call('bob', 'GET', `/api/catch/${id}`)
  const look = async () => (await call('alice', 'GET', `/api/inboxes/${name}`)).json()
  const set = async (settings: object) => {
    const answer = await call('operator', 'PUT', `/api/inboxes/${name}`, settings)
    if (answer.statusCode !== 200) throw new Error(answer.body)
    return answer.json()
  }
  const post = (who: 'alice' | 'bob' | 'operator', path: string, body: object = {}) => call(who, 'POST', path, body)
  const done = (id: string) => post('bob', `/api/done/${id}`)
  const sweep = () => Promise.all([inboxTag('default', name), homeTag('default')].map(tag => service.store.handoffs.sweep(tag, 100, false)))
  return { name, call, pass, approved, take, byId, look, set, post, done, sweep }
}

const looks = async ({ app }: TestApp) => (await scrape(app)).get('handoff_redis_call_duration_seconds_count{script="take"}') ?? 0

const zeros = { pending: 0, oldest_at: null, waiting_approval: 0, delayed: 0, blocked: 0, caught: 0, failed: 0, groups: 0, listening: 0, paused: false, max_caught: null, max_pending: null, max_caught_per_group: null }

for (const [where, service] of [['one Redis', one], ['spread', spread]] as const) {
  t.test(`an inbox counts what it has, wherever it is: ${where}`, async t => {
    const { name, pass, approved, take, byId, look, post, done, sweep, call } = work(service)
    const is = async (expected: object, message = '') => t.match(await look(), expected, message)
    t.strictSame(await look(), { inbox: name, ...zeros })
    const [first, second] = [await pass(), await pass()]
    const human = await pass({ require_human: true, delay: 30 })
    const [fromHome, delayed] = [await approved(), await pass({ delay: 60 })]
    await is({ pending: 3, waiting_approval: 1, delayed: 1, caught: 0, failed: 0 })
    await call('approver', 'POST', `/api/approve/${human}`)
    await is({ waiting_approval: 0, delayed: 2 }, 'approved, and not yet')
    await post('alice', `/api/cancel/${delayed}`)
    await post('alice', `/api/cancel/${human}`)
    await is({ pending: 3, delayed: 0, caught: 0 })
    await byId(fromHome)
    t.strictSame(await take(), [first, second])
    await is({ pending: 0, caught: 3 })
    await done(first)
    await post('bob', `/api/fail/${second}`, { error: { message: 'm' } })
    await is({ caught: 1, failed: 1 })
    await post('bob', `/api/decline/${fromHome}`, { reason: 'no' })
    await is({ caught: 0, failed: 2 })
    const next = (await post('alice', `/api/reissue/${second}`)).json().handoff_id
    await is({ pending: 1, failed: 1 })
    await byId(next)
    await post('alice', `/api/reissue/${next}`)
    await is({ pending: 1, caught: 0 }, 'taken from its catcher')
    const [third] = await take()
    await post('alice', `/api/cancel/${third}`, { force: true })
    await is({ pending: 0, caught: 0 })
    const again = await pass({ max_attempts: 2, retry_delay: 60 })
    await take()
    await post('bob', `/api/fail/${again}`, { error: { message: 'm' } })
    await is({ pending: 0, delayed: 1, caught: 0, failed: 1 }, 'it is tried again later')
    await sweep()
    await is({ delayed: 1 })
  })

  t.test(`what was delayed enters its inbox, and what is overdue leaves it: ${where}`, async t => {
    const { pass, take, byId, look, sweep, call } = work(service)
    const start = Date.now()
    t.teardown(() => service.redis.del(`clock-${service.prefix}`))
    await service.setClock(start)
    const [delayed, short] = [await pass({ delay: 5, expires_in: 60 }), await pass({ work_within: 5, expires_in: 60 })]
    const human = await pass({ require_human: true, delay: 5 })
    await call('approver', 'POST', `/api/approve/${human}`)
    await byId(short)
    t.match(await look(), { pending: 0, delayed: 2, caught: 1, oldest_at: null })
    await service.setClock(start + 6000)
    await sweep()
    t.match(await look(), { pending: 2, delayed: 0, caught: 0, failed: 1, oldest_at: new Date(start + 5000).toISOString() })
    t.same(new Set(await take()), new Set([delayed, human]))
    const early = await pass({ delay: 5, expires_in: 30 })
    await service.setClock(start + 12_000)
    t.equal((await byId(early)).statusCode, 200, 'caught before the sweep came')
    t.match(await look(), { pending: 0, delayed: 0, caught: 3 })
    await pass({ delay: 5, expires_in: 6 })
    await service.setClock(start + 20_000)
    await sweep()
    t.match(await look(), { pending: 0, delayed: 0 }, 'the sweep came so late that it has expired')
  })

  t.test(`a paused inbox gives nothing until it is resumed: ${where}`, async t => {
    const { name, pass, approved, take, byId, look, set, done } = work(service)
    const [first, second, third] = [await pass(), await approved(), await pass()]
    const key = { 'idempotency-key': `paused-${name}` }
    t.strictSame(await take(1, 0, key), [first])
    t.match(await set({ paused: true }), { inbox: name, pending: 2, caught: 1, paused: true })
    const before = await looks(service)
    t.strictSame(await take(), [])
    t.ok(await looks(service) - before <= 3, 'Redis is asked once')
    t.strictSame(await take(1, 0, key), [first], 'what this key took before')
    t.strictSame(await take(1, 0, { 'idempotency-key': `other-${name}` }), [])
    t.equal((await byId(third)).statusCode, 200, 'by its id')
    t.match(await look(), { pending: 1, caught: 2, paused: true })
    const ids = [second, await pass(), await pass()]
    const served: string[] = []
    for (let waiting = 1; waiting <= 3; waiting++) {
      take(1, 60).then(([id]) => served.push(id!)).catch(t.threw)
      await until(async () => await inboxWaiters(service.app) === waiting)
    }
    await set({ paused: false })
    await until(() => served.length === 3)
    t.strictSame(served.sort(), ids.sort(), 'who gets one hands on to the next, however few messages came')
    await done(first)
  })

  t.test(`max_caught is never exceeded, and who waits goes on when one ends: ${where}`, async t => {
    const { pass, approved, take, byId, look, set, done, post } = work(service)
    const ids: string[] = []
    for (let n = 0; n < 6; n++) ids.push(n % 2 === 0 ? await pass() : await approved())
    await set({ max_caught: 2 })
    t.strictSame(await take(), ids.slice(0, 2), 'as many as that allows, of both lists')
    t.strictSame(await take(), [])
    t.equal((await byId(ids[2]!)).statusCode, 200, 'by its id it goes on')
    t.match(await look(), { pending: 3, caught: 3, max_caught: 2 })
    // Who isn't woken would look after 5 s.
    const waiting = take(1, 4)
    await until(async () => await inboxWaiters(service.app) === 1)
    await done(ids[1]!)
    t.match(await look(), { caught: 2, pending: 3 })
    await post('bob', `/api/fail/${ids[2]}`, { error: { message: 'm' } })
    t.strictSame(await waiting, [ids[3]])
    const all = [take(1, 30), take(1, 30)]
    await until(async () => await inboxWaiters(service.app) === 2)
    await set({ max_caught: null })
    t.strictSame((await Promise.all(all)).flat().sort(), ids.slice(4).sort(), 'both are woken')
    t.match(await look(), { caught: 4, max_caught: null })
  })

  t.test(`a limit costs a take no second call: ${where}`, async t => {
    const { pass, take, set } = work(service)
    await set({ max_caught: 100 })
    for (let n = 0; n < 8; n++) await pass()
    for (let n = 0; n < 3; n++) await take(1)
    const before = await looks(service)
    const begun = performance.now()
    let times = 0
    while (times < 5 && performance.now() - begun < 800) times += (await take(1)).length
    t.equal(await looks(service) - before, times)
  })

  t.test(`many that take at once don’t exceed max_caught: ${where}`, where === 'spread' ? {} : skipInQuick, async t => {
    const { pass, approved, take, look, set, done, name } = work(service)
    const all = await Promise.all(Array.from({ length: 24 }, (_, n) => n % 2 === 0 ? pass() : approved()))
    await set({ max_caught: 3 })
    let most = 0
    const taken: string[] = []
    const worker = async (n: number) => {
      for (let round = 0; taken.length < all.length; round++) {
        const ids = await take(n % 3 + 1, n % 2 * 5, n % 4 === 0 ? { 'idempotency-key': `${name}-${n}-${round}` } : undefined)
        taken.push(...ids)
        const { caught } = await look()
        most = Math.max(most, caught)
        await Promise.all(ids.map(done))
        if (ids.length === 0) await sleep(20)
      }
    }
    await Promise.all([0, 1, 2, 3, 4, 5, 6, 7].map(worker))
    t.strictSame(taken.sort(), all.sort())
    t.ok(most >= 1 && most <= 3, `${most} at once`)
    t.match(await look(), { pending: 0, caught: 0 })
  })

  t.test(`max_pending refuses what would be too many: ${where}`, async t => {
    const { name, call, pass, take, look, set, post } = work(service)
    const key = { 'idempotency-key': `full-${name}` }
    const keyed = () => call('alice', 'POST', '/api/pass', { task: 't', to: name }, key)
    // As in a Cluster, what waits for a person counts a little late.
    await pass({ require_human: true })
    await set({ max_pending: 4 })
    const first = await keyed()
    const retried = await pass({ max_attempts: 2, retry_delay: 60 })
    await pass({ delay: 60 })
    const refused = await call('alice', 'POST', '/api/pass', { task: 't', to: name })
    isProblem(t, refused, 429, 'inbox_full')
    t.match(refused, { headers: { 'retry-after': '1' } })
    t.equal(refused.json().retryable, true)
    isProblem(t, await call('alice', 'POST', '/api/pass', { task: 't', to: name, require_human: true }), 429, 'inbox_full')
    t.equal((await keyed()).json().handoff_id, first.json().handoff_id, 'a retry gets its answer')
    t.match((await post('alice', '/api/batch', { operations: [{ op: 'pass', body: { task: 't', to: name } }] })).json(), { results: [{ status: 429, body: { code: 'inbox_full' } }] })
    t.match(await look(), { pending: 2, delayed: 1, waiting_approval: 1 })
    t.equal((await take(1)).length, 1)
    await pass()
    t.equal((await call('bob', 'GET', `/api/catch/${retried}`)).statusCode, 200)
    await pass()
    t.equal((await post('bob', `/api/fail/${retried}`, { error: { message: 'm' } })).statusCode, 200, 'a successor is never refused')
    t.match(await look(), { pending: 2, delayed: 2, waiting_approval: 1 })
    await set({ max_pending: null })
    await pass()
  })

  t.test(`what doesn’t wait for a person counts at once against max_pending: ${where}`, async t => {
    const { name, call, pass, look, set } = work(service)
    await set({ max_pending: 3 })
    await pass({ require_human: true })
    for (let n = 0; n < 2; n++) await pass()
    isProblem(t, await call('alice', 'POST', '/api/pass', { task: 't', to: name, require_human: true }), 429, 'inbox_full')
    t.match(await look(), { pending: 2, waiting_approval: 1 })
  })

  t.test(`inboxes are listed by name: ${where}`, async t => {
    const ask = async (path: string) => await service.app.inject({ method: 'GET', url: path, headers: { authorization: `Bearer ${secretOf('names')}` } })
    const put = (name: string, settings: object) => service.app.inject({ method: 'PUT', url: `/api/inboxes/${name}`, headers: { authorization: `Bearer ${secretOf('names')}` }, body: settings })
    const pass = (to: string, members: object = {}) => service.app.inject({ method: 'POST', url: '/api/pass', headers: { authorization: `Bearer ${secretOf('names')}` }, body: { task: 't', to, ...members } })
    t.strictSame((await ask('/api/inboxes')).json(), { items: [], next_cursor: null })
    for (const name of ['b', 'B', 'a', 'a.b', 'a-', '_', '10', '9']) await pass(name)
    await pass('b', { require_human: true })
    await pass('c', { require_human: true })
    await put('set', { max_caught: 5 })
    const sorted = ['10', '9', 'B', '_', 'a', 'a-', 'a.b', 'b', 'c', 'set']
    const { items, next_cursor: next } = (await ask('/api/inboxes')).json()
    t.strictSame(items.map(({ inbox }: { inbox: string }) => inbox), sorted)
    t.equal(next, null)
    t.strictSame(items[9], { inbox: 'set', ...zeros, max_caught: 5 })
    t.match(items[7], { inbox: 'b', pending: 1, waiting_approval: 1 })
    t.strictSame(Object.keys(items[0]), ['inbox', ...Object.keys(zeros)])
    const found: string[] = []
    for (let cursor = ''; ;) {
      const page = (await ask(`/api/inboxes?limit=3${cursor}`)).json()
      t.ok(page.items.length <= 3)
      found.push(...page.items.map(({ inbox }: { inbox: string }) => inbox))
      if (page.next_cursor === null) break
      cursor = `&cursor=${page.next_cursor}`
    }
    t.strictSame(found, sorted)
    await put('set', { max_caught: null })
    t.strictSame((await ask('/api/inboxes')).json().items.length, 9, 'it has nothing any more')
    for (const query of ['cursor=%20', 'cursor=YSBi', 'limit=0', 'limit=101', 'state=live']) isProblem(t, await ask(`/api/inboxes?${query}`), 400, 'invalid_request')
  })
}

t.test('a hundred inboxes are listed whole, each once', skipInQuick, async t => {
  const ask = (method: 'GET' | 'POST', url: string, body?: object) => one.app.inject({ method, url, headers: { authorization: `Bearer ${secretOf('many')}` }, ...body && { body } })
  const names = Array.from({ length: 150 }, (_, n) => `inbox-${n}`)
  await Promise.all(names.map(to => ask('POST', '/api/pass', { task: 't', to })))
  for (const limit of [7, 100]) {
    const found: string[] = []
    for (let cursor = ''; ;) {
      const page = (await ask('GET', `/api/inboxes?limit=${limit}${cursor}`)).json()
      found.push(...page.items.map(({ inbox }: { inbox: string }) => inbox))
      if (page.next_cursor === null) break
      cursor = `&cursor=${page.next_cursor}`
    }
    t.strictSame(found, [...names].sort(), `${limit} a page`)
  }
})

t.test('settings stay until they are taken away, and each change is logged', async t => {
  const { name, set, call } = work(one)
  t.strictSame(await set({}), { inbox: name, ...zeros })
  t.strictSame(await set({ paused: true, max_caught: 7 }), { inbox: name, ...zeros, paused: true, max_caught: 7 })
  t.strictSame(await set({ max_pending: 10_000_000 }), { inbox: name, ...zeros, paused: true, max_caught: 7, max_pending: 10_000_000 })
  t.match(await set({ paused: true }), { paused: true }, 'again')
  t.strictSame(await set({ paused: false, max_caught: null, max_pending: null }), { inbox: name, ...zeros })
  const logged = one.lines.map(line => JSON.parse(line)).filter(line => line.msg === 'operated' && line.inbox === name)
  t.match(logged, [
    { operator: 'olga', tenant: 'default', action: 'inbox', paused: true, max_caught: 7, changed: 1 },
    { max_pending: 10_000_000 }, { paused: false, max_caught: null, max_pending: null }
  ])
  t.equal(logged.length, 3, 'what changes nothing isn’t logged')
  for (const body of [{ paused: null }, { paused: 'true' }, { paused: 1 }, { max_caught: 0 }, { max_caught: 100_001 }, { max_caught: 1.5 }, { max_caught: '5' }, { max_pending: 10_000_001 }, { max_pending: 0 }, { limit: 3 }, []]) {
    isProblem(t, await call('operator', 'PUT', `/api/inboxes/${name}`, body), 400, 'invalid_request')
  }
  isProblem(t, await call('operator', 'PUT', '/api/inboxes/not a name', {}), 404, 'not_found')
  isProblem(t, await call('operator', 'PUT', `/api/inboxes/${'n'.repeat(65)}`, {}), 404, 'not_found')
  isProblem(t, await call('alice', 'PUT', `/api/inboxes/${name}`, {}), 403, 'insufficient_scope')
  isProblem(t, await call('operator', 'PUT', `/api/inboxes/${name}?x=1`, {}), 400, 'invalid_request')
  t.strictSame(await set({}), { inbox: name, ...zeros })
  t.equal((await call('operator', 'PUT', `/api/inboxes/${name}`)).statusCode, 200, 'no body is an empty one')
  isProblem(t, await call('operator', 'POST', `/api/inboxes/${name}`, {}), 405, 'method_not_allowed')
  const { name: other } = work(one)
  t.match((await call('foreignOperator', 'PUT', `/api/inboxes/${other}`, { paused: true })).json(), { paused: true })
  t.match((await call('operator', 'GET', `/api/inboxes/${other}`)).json(), { paused: false }, 'another tenant’s')
})

t.test('an earlier change that comes late to the other partition changes nothing there', async t => {
  const { name, set } = work(one)
  await set({ max_caught: 7 })
  const home = { tenant: 'default', inbox: name, tag: homeTag('default') }
  const [late, { version }] = [await one.store.inboxes.set(home, { maxCaught: 3 }, '1'), await one.store.inboxes.set(home, {})]
  t.match(late, { isChanged: false, version, settings: { maxCaught: 7 } })
  t.match(await one.store.inboxes.set(home, { maxCaught: 3 }, `${Number(version) + 1}`), { isChanged: true, settings: { maxCaught: 3 } })
})

t.test('a take that stops at max_caught has no other request look', async t => {
  const { name, pass, set } = work(one)
  for (let n = 0; n < 3; n++) await pass()
  await set({ max_caught: 2 })
  const place = { tenant: 'default', inbox: name, tag: inboxTag('default', name) }
  const take = (max: number) => one.store.inboxes.take(place, { token: randomToken(), agent: 'bob', max, lifetime: null, request: '-' })
  t.match(await take(1), { isMore: true, items: { length: 1 } })
  t.match(await take(5), { isMore: false, items: { length: 1 } })
})

t.test('names that have nothing any more are forgotten, and others aren’t', async t => {
  const { name, pass, look, set, post } = work(one)
  const named = async () => {
    const found: string[] = []
    for await (const part of one.store.inboxes.allNamed()) found.push(...part.filter(({ inbox }) => inbox === name).map(({ tenant }) => tenant))
    return found
  }
  const id = await pass()
  t.strictSame(await named(), ['default'])
  const place = { tenant: 'default', inbox: name, tag: inboxTag('default', name) }
  await one.store.inboxes.tidy(place)
  t.strictSame(await named(), ['default'], 'it has something')
  await post('alice', `/api/cancel/${id}`)
  t.match(await look(), zeros)
  await set({ paused: true })
  const places = [place, { ...place, tag: homeTag('default') }]
  for (const its of places) await one.store.inboxes.tidy(its)
  t.strictSame(await named(), ['default'], 'it has settings')
  await set({ paused: false })
  for (const its of places) {
    const settings = `${one.prefix}:{${its.tag}}:i:default:${name}:settings`
    const left = await one.redis.pttl(settings)
    t.ok(left > 50_000 && left <= 60_000, `${left}: for as long as an earlier change may be under way`)
    await one.redis.del(settings)
    await one.store.inboxes.tidy(its)
  }
  t.strictSame(await named(), [])
})

t.test('what an older version’s replica ended no longer counts as caught', async t => {
  const { name, pass, take, look, done } = work(one)
  const ids = [await pass(), await pass(), await pass()]
  await take()
  const [ended, gone] = ids
  await done(ended!)
  await one.redis.del(`${one.prefix}:{${inboxTag('default', name)}}:h:default:${gone}`)
  await one.redis.sadd(`${one.prefix}:{${inboxTag('default', name)}}:i:default:${name}:caught`, `default:${ended}`)
  t.match(await look(), { caught: 3 })
  await one.store.inboxes.tidy({ tenant: 'default', inbox: name, tag: inboxTag('default', name) })
  t.match(await look(), { caught: 1 })
})

t.test('what an older version’s replica ended or moved no longer counts as delayed', async t => {
  const { name, pass, look, post } = work(one)
  const [ended, moved, gone] = [await pass({ delay: 60 }), await pass(), await pass({ delay: 60 })]
  await pass({ delay: 60 })
  const list = `${one.prefix}:{${inboxTag('default', name)}}:i:default:${name}:delayed`
  await post('alice', `/api/cancel/${ended}`)
  await one.redis.zadd(list, Date.now() + 60_000, `default:${ended}`, Date.now() - 1000, `default:${moved}`)
  await one.redis.del(`${one.prefix}:{${inboxTag('default', name)}}:h:default:${gone}`)
  t.match(await look(), { pending: 1, delayed: 4 })
  await one.store.inboxes.tidy({ tenant: 'default', inbox: name, tag: inboxTag('default', name) })
  t.match(await look(), { pending: 1, delayed: 1 })
})

t.test('what was gone before anybody could end it leaves room in its inbox', async t => {
  const { name, set } = work(one)
  const others = [{ after: [await one.pass()] }, { require_human: true }]
  await set({ max_pending: 1 })
  for (const more of others) {
    const passed = () => one.call('alice', 'POST', '/api/pass', { task: 't', to: name, ...more })
    const first = await passed()
    t.equal(first.statusCode, 201)
    isProblem(t, await passed(), 429, 'inbox_full')
    const { handoff_id: id } = first.json()
    const [partition, member] = [`${one.prefix}:{${tagOf(id)}}`, `default:${id}`]
    for (const list of ['blocked', 'waiting']) await one.redis.zadd(`${partition}:i:default:${name}:${list}`, 'XX', Date.now() - 1000, member)
    await one.redis.del(`${partition}:h:${member}`)
    const second = await passed()
    t.equal(second.statusCode, 201, JSON.stringify(more))
    await one.call('alice', 'POST', `/api/cancel/${second.json().handoff_id}`)
  }
})
