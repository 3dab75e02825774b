import { setImmediate } from 'node:timers/promises'
import t from 'tap'
import { Problem, Unavailable } from '../../src/core/errors.ts'
import { homeTag, inboxTag } from '../../src/core/ids.ts'
import { membersOf } from '../../src/core/nested.ts'
import { callerOf } from '../../src/core/model.ts'
import type { Caller, Scope } from '../../src/core/model.ts'
import { OperateService } from '../../src/handoffs/lifecycle/operate.ts'
import { Reads } from '../../src/store/reads.ts'
import { KeyNames } from '../../src/store/key-names.ts'
import type { Requester } from '../../src/store/requester.ts'
import { testApp } from '../helpers/app.ts'
import { fewAtATime } from '../helpers/few.ts'
import { grown, scrape } from '../helpers/metrics.ts'
import { patiently } from '../helpers/patiently.ts'
import { isProblem } from '../helpers/problems.ts'
import { grantOf } from '../helpers/stored-keys.ts'
import { until } from '../helpers/until.ts'

/** What operators do to many handoffs at once. Each subtest has a tenant of its own, with an agent and an operator. */

const tenants = ['redrive', 'filters', 'many', 'twice', 'skips', 'back', 'purge', 'bad', 'race', 'away', 'ended', 'late', 'timed', 'wide', 'narrow']
const agents: Array<[string, Scope[]]> = [['ann', ['pass', 'catch', 'status']], ['olga', ['operate']]]
const secretOf = (tenant: string, agent: string) => `${tenant}-${agent}-secret-0123456789`
const more = tenants.flatMap(tenant => agents.map(([agent, scopes]) => ({ caller: callerOf(tenant, agent, scopes), secret: secretOf(tenant, agent) })))
const { app, store, setClock, lines, redis, prefix } = await testApp(t, {}, { retention: 3_600_000 }, more)

interface Item { handoff_id: string, [name: string]: unknown }

function as (tenant: string, agent = 'ann') {
  const ask = (method: 'GET' | 'POST', url: string, body?: object, headers: Record<string, string> = {}) => app.inject({
    method, url, headers: { authorization: `Bearer ${secretOf(tenant, agent)}`, ...headers }, ...body && { body }
  })
  const post = async (path: string, body: object = {}): Promise<Item> => {
    const answer = await ask('POST', path, body)
    if (answer.statusCode >= 300) throw new Error(answer.body)
    return answer.json()
  }
  const pass = async (members: object = {}) => (await post('/api/pass', { task: 't', ...members })).handoff_id
  const fail = async (members: object = {}, error: object = {}) => {
    const id = await pass(members)
    await ask('GET', `/api/catch/${id}`)
    await post(`/api/fail/${id}`, { error: { message: 'm', ...error } })
    return id
  }
  const status = async (id: string) => (await ask('GET', `/api/status/${id}`)).json() as Item
  const failed = async () => ((await ask('GET', '/api/handoffs?state=failed&limit=100')).json().items as Item[]).map(({ handoff_id: id }) => id)
  return { ask, post, pass, fail, status, failed }
}

const start = Date.now()
t.beforeEach(() => setClock(start))
const at = (seconds: number) => setClock(start + 1000 * seconds)
const logged = (action: string) => lines.map(line => JSON.parse(line)).filter(line => line.msg === 'operated' && line.action === action)

t.test('redrive reissues as the passer would, the earliest end first', async t => {
  const { fail, status, failed, pass } = as('redrive')
  const operator = as('redrive', 'olga')
  const ids: string[] = []
  for (let n = 0; n < 3; n++) { await at(n); ids.push(await fail({ to: 'work', labels: { n: String(n) } })) }
  await pass({ to: 'work', expires_in: 5 })
  const before = await scrape(app)
  t.strictSame(await operator.post('/api/redrive', { limit: 2 }), { reissued: 2, skipped: 0, more: true })
  t.strictSame(await failed(), [ids[2]])
  const next = await status((await status(ids[0]!)).reissued_as as string)
  t.match(next, { status: 'pending', to: 'work', labels: { n: '0' }, attempt: 2, reissue_of: ids[0] })
  t.match((await as('redrive').ask('GET', '/api/handoffs?passed_by=ann&inbox=work')).json().items.length, 3, 'by the same passer')
  t.strictSame(await operator.post('/api/redrive'), { reissued: 1, skipped: 0, more: false })
  t.strictSame(await operator.post('/api/redrive'), { reissued: 0, skipped: 0, more: false }, 'again, nothing is left')
  t.strictSame(grown(before, await scrape(app), /^handoff_(transitions|reissued)/), {
    'handoff_transitions_total{to="pending"}': 3, 'handoff_reissued_total{because="requested"}': 3
  })
  t.match(logged('redrive'), [{ operator: 'olga', tenant: 'redrive', limit: 2, changed: 2 }, { operator: 'olga', changed: 1 }])
  t.equal(logged('redrive').length, 2, 'a call that changed nothing isn’t logged')
})

t.test('redrive takes what its filters say', async t => {
  const { fail, failed, ask, post, pass } = as('filters')
  const operator = as('filters', 'olga')
  const [plain, coded, labelled] = [await fail(), await fail({ to: 'work' }, { code: 'timeout' }), await fail({ labels: { run: '1', team: 'a' } })]
  await at(10)
  const declined = await pass()
  await ask('GET', `/api/catch/${declined}`)
  await post(`/api/decline/${declined}`, { reason: 'no' })
  const none = { reissued: 0, skipped: 0, more: false }
  const time = (seconds: number) => new Date(start + 1000 * seconds).toISOString()
  for (const body of [
    { inbox: 'other' }, { error_code: 'time' }, { labels: { run: '1', team: 'b' } }, { passed_by: 'olga' }, { since: time(11) }, { until: time(0) }, { status: ['expired'] }, { status: ['declined'], until: time(10) },
  ]) t.strictSame(await operator.post('/api/redrive', body), none, JSON.stringify(body))
  for (const [body, id] of [
    [{ error_code: 'timeout', inbox: 'work', passed_by: 'ann' }, coded], [{ labels: { team: 'a' }, status: ['failed', 'expired'], error_code: null }, labelled], [{ since: time(10), status: null }, declined], [{ until: time(1) }, plain],
  ] as const) {
    const before = await failed()
    t.strictSame(await operator.post('/api/redrive', body), { ...none, reissued: 1 }, JSON.stringify(body))
    t.strictSame(before.filter(one => one !== id), await failed())
  }
})

t.test('more than one part of the list', async t => {
  const { fail, failed } = as('many')
  await fewAtATime(130, n => fail({ to: `inbox-${n % 3}` }))
  const operator = as('many', 'olga')
  type Redriven = { reissued: number, more: boolean }
  const redrive = async (limit: number) => await operator.post('/api/redrive', { limit }) as unknown as Redriven
  const first = await redrive(120)
  // On a busy machine a call ends before its limit.
  t.ok(first.more && first.reissued > 0 && first.reissued <= 120, `${first.reissued} at once`)
  for (let left = 130 - first.reissued, more = true; more;) {
    const next = await redrive(left)
    left -= next.reissued
    t.equal(next.more, left > 0)
    more = next.more && next.reissued > 0
  }
  t.strictSame(await failed(), [])
})

t.test('two redrives and their passer at once: one successor each', async t => {
  const { fail, post, ask } = as('twice')
  const ids = await fewAtATime(40, () => fail({ to: 'work' }))
  const operator = as('twice', 'olga')
  const [one, other, ...own] = await Promise.all([
    operator.post('/api/redrive'), operator.post('/api/redrive'), ...ids.map(id => post(`/api/reissue/${id}`)),
  ])
  t.ok(Number(one.reissued) + Number(other.reissued) <= 40)
  t.strictSame([one.more, other.more], [false, false])
  t.equal(new Set(own.map(({ handoff_id: id }) => id)).size, 40)
  t.equal((await ask('GET', '/api/handoffs?limit=100')).json().items.length, 40)
})

t.test('what its passer reissues meanwhile is skipped, and not counted as reissued', async t => {
  const { fail, post } = as('skips')
  const [own] = [await fail(), await fail()]
  const { page } = store.lists
  t.intercept(store.lists, 'page', {
    value: async (...args: Parameters<typeof page>) => {
      const found = await page.apply(store.lists, args)
      await post(`/api/reissue/${own}`)
      return found
    }
  })
  t.strictSame(await as('skips', 'olga').post('/api/redrive'), { reissued: 1, skipped: 1, more: false })
})

t.test('an id that came back: what somebody is at work on isn’t taken away', async t => {
  const { fail, ask, status } = as('back')
  const id = await fail()
  const key = `${prefix}:{${id.slice(0, 3)}}:h:back:${id}`
  const other = await as('back').pass()
  await ask('GET', `/api/catch/${other}`)
  // Another handoff has its id now, and is caught.
  await redis.rename(`${prefix}:{${other.slice(0, 3)}}:h:back:${other}`, key)
  t.strictSame(await as('back', 'olga').post('/api/redrive'), { reissued: 0, skipped: 0, more: false })
  t.match(await status(id), { status: 'caught' })
  t.equal((await store.attempts.reissue({ tenant: 'back', id, tag: id.slice(0, 3) }, 'olga', 'ended')).outcome, 'not_found')
  t.equal((await store.attempts.cancel({ tenant: 'back', id, tag: id.slice(0, 3) }, 'olga', 'pending', true, Buffer.alloc(0))).outcome, 'not_found')
  t.match(await status(id), { status: 'caught', cancel_requested_at: undefined })
})

t.test('purge cancels what is pending in the inbox, and nothing else', async t => {
  const { pass, ask, status } = as('purge')
  const operator = as('purge', 'olga')
  const wanted = [await pass({ to: 'work' }), await pass({ to: 'work', delay: 10 }), await pass({ to: 'work', require_human: true }), await pass({ to: 'work', labels: { run: '1' } })]
  const [caught, other, none] = [await pass({ to: 'work' }), await pass({ to: 'other' }), await pass()]
  await ask('GET', `/api/catch/${caught}`)
  t.strictSame(await operator.post('/api/purge', { inbox: 'work', labels: { run: '1' }, reason: 'Wrong "run".' }), { cancelled: 1, more: false })
  t.match(await status(wanted[3]!), { status: 'cancelled', ended_by: 'olga', cancel_reason: 'Wrong "run".' })
  t.strictSame(await operator.post('/api/purge', { inbox: 'work', limit: 2 }), { cancelled: 2, more: true })
  t.strictSame(await operator.post('/api/purge', { inbox: 'work', limit: 1 }), { cancelled: 1, more: false })
  for (const id of wanted) t.match(await status(id), { status: 'cancelled', ended_by: 'olga' })
  for (const id of [other, none]) t.match(await status(id), { status: 'pending' })
  t.match(await status(caught), { status: 'caught', cancel_requested_at: undefined })
  t.match((await ask('GET', '/api/inboxes/work')).json(), { pending: 0, waiting_approval: 0 })
  t.match(logged('purge'), [{ operator: 'olga', inbox: 'work', changed: 1 }, { changed: 2 }, { changed: 1 }])
  t.notMatch(lines.join(''), /Wrong/, 'a reason may say anything')
})

t.test('a purge beside agents who catch: each handoff has one fate', async t => {
  const { ask } = as('race')
  let keys = 0
  const post = async (agent: string, path: string, body: object): Promise<Item> => {
    const key = `race-${keys++}`
    return (await patiently(() => as('race', agent).ask('POST', path, body, { 'idempotency-key': key }))).json()
  }
  const ids = await fewAtATime(60, async () => (await post('ann', '/api/pass', { task: 't', to: 'work' })).handoff_id)
  const purge = async (): Promise<number> => {
    const { cancelled, more } = await post('olga', '/api/purge', { inbox: 'work' })
    // Redis went away meanwhile.
    return Number(cancelled) + (more ? await purge() : 0)
  }
  const take = () => Promise.all(Array.from({ length: 3 }, () => post('ann', '/api/catch', { inbox: 'work', max: 5 }) as Promise<unknown> as Promise<{ items: Item[] }>))
  const taken: Array<ReturnType<typeof take>> = []
  const { page } = store.lists
  t.intercept(store.lists, 'page', {
    value: async (...args: Parameters<typeof page>) => {
      const found = await page.apply(store.lists, args)
      // Some catch what was just found, and others beside its cancels.
      if (taken.length === 0) {
        taken.push(take())
        await taken[0]
        taken.push(take())
      }
      return found
    }
  })
  const purged = await purge()
  const caught = (await Promise.all(taken)).flat().flatMap(({ items }) => items.map(({ handoff_id: id }) => id))
  const ends = await fewAtATime(60, async n => (await patiently(() => ask('GET', `/api/status/${ids[n]}`))).json().status)
  t.strictSame(ids.filter((_, n) => ends[n] === 'caught').sort(), caught.sort())
  const cancelled = ends.filter(status => status === 'cancelled').length
  t.equal(cancelled + caught.length, 60)
  // Fewer, if Redis's answer to a cancel was lost on a busy machine.
  t.ok(purged > 0 && purged <= cancelled, `${purged} of ${cancelled}`)
})

t.test('Redis goes away meanwhile: what was changed until then is told and logged', async t => {
  const { pass } = as('away')
  const operator = as('away', 'olga')
  const ids: string[] = []
  for (let n = 0; n < 4; n++) ids.push(await pass({ to: 'work' }))
  const { cancel } = store.attempts
  let left = 3
  t.intercept(store.attempts, 'cancel', {
    value: async (...args: Parameters<typeof cancel>) => {
      if (--left < 0) throw new Unavailable('away')
      return await cancel.apply(store.attempts, args)
    }
  })
  const before = logged('purge').length
  t.strictSame(await operator.post('/api/purge', { inbox: 'work' }), { cancelled: 3, more: true })
  t.match(logged('purge').slice(before), [{ tenant: 'away', changed: 3 }])
  isProblem(t, await operator.ask('POST', '/api/purge', { inbox: 'work' }), 503, 'unavailable')
})

t.test('however many calls a tenant makes, few changes are under way, and another tenant’s call has the next turn', async t => {
  const [wide, narrow] = [as('wide'), as('narrow')]
  const inboxes = ['a', 'b', 'c']
  for (const to of inboxes) for (let n = 0; n < 40; n++) await wide.pass({ to })
  await narrow.pass({ to: 'work' })
  const { cancel } = store.attempts
  const order: string[] = []
  let [open, most] = [0, 0]
  let release = () => {}
  const released = new Promise<void>(resolve => { release = resolve })
  t.teardown(() => release())
  t.intercept(store.attempts, 'cancel', {
    value: async (...args: Parameters<typeof cancel>) => {
      order.push(args[0].tenant)
      most = Math.max(most, ++open)
      await released
      return await cancel.apply(store.attempts, args).finally(() => { open-- })
    }
  })
  const { searchedTo } = store.lists
  let calls = 0
  t.intercept(store.lists, 'searchedTo', {
    value: async (...args: Parameters<typeof searchedTo>) => await searchedTo.apply(store.lists, args).finally(() => { calls++ })
  })
  const purged = inboxes.map(inbox => as('wide', 'olga').post('/api/purge', { inbox }))
  await until(() => order.length >= 16)
  const other = as('narrow', 'olga').post('/api/purge', { inbox: 'work' })
  await until(() => calls === inboxes.length + 1)
  await setImmediate()
  release()
  t.match(await other, { cancelled: 1 })
  t.match(await Promise.all(purged), inboxes.map(() => ({ cancelled: 40, more: false })))
  t.equal(most, 16)
  // Its page has the next turn, and its change one soon after.
  t.ok(order.indexOf('narrow') < 80, `${order.indexOf('narrow')} before it`)
})

t.test('a search that is over goes on where it ended, for the same that searches for the same', async t => {
  const [tenant, inbox] = ['late', 'work']
  const { pass, fail, failed, status } = as(tenant)
  await at(50)
  const [reissued, cancelled] = [await fail({ to: inbox, labels: { only: 'this' } }), await pass({ to: inbox, labels: { only: 'this' } })]
  // Entries of what is gone, as many as two pages look at.
  const names = new KeyNames(prefix)
  const tag = inboxTag(tenant, inbox)
  for (const [list, score] of [[names.failedIn(tag, tenant, inbox), start], [names.due(tag, tenant), start + 60_000]] as const) {
    await redis.zadd(list, ...Array.from({ length: 2500 }, (_, n) => [score + n % 9, `${tenant}:${tag}${String(n).padStart(22, 'x')}`]).flat())
  }
  const operate = new OperateService(store.lists, store.attempts, new Reads(), [], { change: -1, search: -1 })
  const members = membersOf(Buffer.from('{"labels":{"only":"this"}}'), ['labels'])
  const requester = { isGone: () => false, grant: () => { throw new Error('a call has one round here') } }
  const calls = (agent: string) => {
    const caller = callerOf(tenant, agent, ['operate'])
    return [() => operate.redrive(caller, { inbox, labels: { only: 'this' } }, members, requester), () => operate.purge(caller, { inbox, labels: { only: 'this' } }, members, requester)]
  }
  for (const [n, call] of calls('olga').entries()) {
    const nothing = { changed: [], requested: 0, skipped: 0, more: true }
    t.strictSame(await call(), nothing)
    t.strictSame(await call(), nothing)
    t.strictSame(await calls('oscar')[n]!(), nothing, 'another begins at the start')
    const found = [await call()]
    for (let more = 0; found.at(-1)!.more && more < 9; more++) found.push(await call())
    t.equal(found.flatMap(({ changed }) => changed).length, [1, 2][n], 'and the successor')
    t.equal(found.at(-1)!.more, false)
    t.strictSame(await call(), nothing, 'the next begins at the start')
  }
  t.match(await status(reissued), { status: 'failed', reissued_as: /./ })
  t.strictSame(await failed(), [])
  t.match(await status(cancelled), { status: 'cancelled' })
  const kept = (await redis.keys(`${prefix}:{${homeTag(tenant)}}:search:*`))
  t.equal(kept.length, 4)
  for (const key of kept) t.ok(await redis.pttl(key) > 0)
})

t.test('a call ends soon after it has found something, whatever its limit, and looks on before that', async t => {
  const { fail, failed } = as('timed')
  for (let n = 0; n < 4; n++) { await at(n); await fail() }
  const { page } = store.lists
  t.intercept(store.lists, 'page', { value: (...[wanted, from, , ...asked]: Parameters<typeof page>) => page.call(store.lists, wanted, from, 1, ...asked) })
  const caller = callerOf('timed', 'olga', ['operate'])
  const requester = { isGone: () => false, grant: () => grantOf(() => caller) }
  const redrive = (times: { change: number, search: number }, limit: number) =>
    new OperateService(store.lists, store.attempts, new Reads(), [], times).redrive(caller, { limit }, membersOf(Buffer.from('{}')), requester)
  const [long, over] = [60_000, -1]
  t.match(await redrive({ change: over, search: long }, 1000), { changed: { length: 1 }, more: true })
  t.match(await redrive({ change: long, search: over }, 2), { changed: { length: 2 }, more: true }, 'it had found something')
  t.equal((await failed()).length, 1)
})

t.test('a key that ends meanwhile: what was changed until then is told and logged, and nothing else changed', async t => {
  const { fail, failed } = as('ended')
  const ids = []
  for (let n = 0; n < 4; n++) { await at(n); ids.push(await fail()) }
  const { page } = store.lists
  t.intercept(store.lists, 'page', { value: (...[wanted, from, , ...asked]: Parameters<typeof page>) => page.call(store.lists, wanted, from, 1, ...asked) })
  let rounds = 0
  const caller = callerOf('ended', 'olga', ['operate'])
  const goneAfter = (last: number, then: () => Caller) => ({ isGone: () => false, grant: () => grantOf(() => ++rounds > last ? then() : caller) })
  const operate = new OperateService(store.lists, store.attempts, new Reads(), [])
  const redrive = (requester: Requester) => operate.redrive(caller, {}, membersOf(Buffer.from('{}')), requester)
  const ended = () => { throw new Problem('unauthorized') }
  t.match(await redrive(goneAfter(0, ended)), { changed: { length: 1 }, skipped: 0, more: true })
  t.match(await redrive(goneAfter(rounds, () => callerOf('ended', 'olga', ['status']))), { changed: { length: 1 }, more: true }, 'it may no longer')
  let looks = 0
  t.match(await redrive({ ...goneAfter(9, ended), isGone: () => ++looks > 2 }), { changed: { length: 1 }, more: true }, 'its client has gone')
  t.strictSame(await failed(), [ids[3]])
})

t.test('bad requests', async t => {
  const { ask } = as('bad', 'olga')
  for (const [path, body, pointer] of [
    ['redrive', { limit: 0 }, '/limit'], ['redrive', { limit: 1001 }, '/limit'], ['redrive', { limit: '1' }, '/limit'], ['redrive', { since: 'yesterday' }, '/since'], ['redrive', { until: 1 }, '/until'],
    ['redrive', { status: ['cancelled'] }, '/status/0'], ['redrive', { status: [] }, '/status'], ['redrive', { labels: {} }, '/labels'], ['redrive', { labels: { a: 1 } }, '/labels/a'], ['redrive', { inbox: 'a b' }, '/inbox'],
    ['redrive', { what: 1 }, '/what'], ['purge', {}, '/inbox'], ['purge', { inbox: null }, '/inbox'], ['purge', { inbox: 'a', reason: '' }, '/reason'], ['purge', { inbox: 'a', status: ['failed'] }, '/status'],
  ] as const) {
    const answer = await ask('POST', `/api/${path}`, body)
    isProblem(t, answer, 400, 'invalid_request')
    t.match(answer.json().errors, [{ pointer }], JSON.stringify(body))
  }
  for (const path of ['redrive', 'purge']) {
    isProblem(t, await as('bad').ask('POST', `/api/${path}`, { inbox: 'a' }), 403, 'insufficient_scope')
    t.equal((await ask('GET', `/api/${path}`)).statusCode, 405)
  }
})
