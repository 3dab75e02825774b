import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { Unavailable } from '../../src/core/errors.ts'
import { homeTag, tagOf } from '../../src/core/ids.ts'
import { callerOf } from '../../src/core/model.ts'
import type { Scope } from '../../src/core/model.ts'
import { readSays, timingOf } from '../../src/handoffs/schedules/definition.ts'
import { remember } from '../../src/handoffs/schedules/memory.ts'
import { noteOfRuns } from '../../src/store/schedules.ts'
import { testApp } from '../helpers/app.ts'
import { arrangements, isWhole } from '../helpers/extent.ts'
import { isProblem } from '../helpers/problems.ts'
import { until } from '../helpers/until.ts'

/** Schedules over HTTP. Each subtest has a tenant of its own. The clock is moved, and the ticker is asked to look. */

const tenants = ['makes', 'bad', 'owns', 'ticks', 'late', 'skips', 'allows', 'cancels', 'pauses', 'changes', 'runs', 'fills', 'refuses', 'text', 'many', 'ends', 'jitters', 'shows', 'remade', 'deletes', 'tells', 'meets', 'asks', 'returns', 'leaves', 'keyed', 'gaps', 'stalls', 'ends-begun', 'unnoted', 'keeps', 'halves', 'lists', 'moves'] as const
type Tenant = typeof tenants[number]
const agents: Array<[string, Scope[]]> = [['ann', ['pass', 'catch', 'status']], ['ben', ['pass', 'catch', 'status']], ['olga', ['operate', 'status', 'approve']], ['sam', ['status']], ['rita', ['read', 'status']]]
const secretOf = (tenant: string, agent: string) => `${tenant}-${agent}-secret-0123456789`
const more = tenants.flatMap(tenant => agents.map(([agent, scopes]) => ({ caller: callerOf(tenant, agent, scopes), secret: secretOf(tenant, agent) })))
const handoff = { task: 'Report for {{scheduled_for}}', to: 'reporter' }
/** Redis itself ends keys by its own clock, so what is kept must end after now. */
const start = (Math.floor(Date.now() / 86_400_000) + 1) * 86_400_000 + Date.parse('1970-01-01T08:59:30.000Z')
const at = (seconds: number) => new Date(start + seconds * 1000).toISOString()

for (const isSpread of arrangements) {
  t.comment(isSpread ? 'as in a Cluster' : 'on one Redis')
  const { app, setClock, prefix, redis, store } = await testApp(t, { RETENTION: '3600', EVENTS_RETENTION: '3600', WEBHOOK_SECRET: 'a-webhook-secret-0123456789', WEBHOOK_ALLOW: '127.0.0.1' }, { isSpread }, more)

  function as (tenant: Tenant, agent = 'ann') {
    const ask = async (method: 'GET' | 'POST' | 'PUT' | 'DELETE', path: string, body?: unknown, headers: Record<string, string> = {}) => await app.inject({
      method, url: path, headers: { authorization: `Bearer ${secretOf(tenant, agent)}`, ...body !== undefined && { 'content-type': 'application/json' }, ...headers }, ...body !== undefined && { payload: typeof body === 'string' ? body : JSON.stringify(body) }
    })
    const put = async (name: string, body: object) => await ask('PUT', `/api/schedules/${name}`, { handoff, ...body })
    return {
      ask,
      put,
      get: async (name: string) => (await ask('GET', `/api/schedules/${name}`)).json(),
      runs: async (name: string) => (await ask('GET', `/api/schedules/${name}/runs`)).json().items,
      status: async (id: string) => (await ask('GET', `/api/status/${id}`)).json(),
      post: async (path: string, body?: unknown) => await ask('POST', path, body),
    }
  }
  const tickAt = async (seconds: number) => {
    await setClock(start + seconds * 1000)
    await app.ticker.go(true)
  }
  t.beforeEach(() => setClock(start))

  t.test('a schedule is made, replaced, read, listed and deleted', async t => {
    const { put, ask, get } = as('makes')
    const made = await put('nightly', { cron: '0 18 * * *', timezone: 'Asia/Tokyo' })
    t.equal(made.statusCode, 201)
    t.strictSame(Object.keys(made.json()), ['name', 'cron', 'every', 'timezone', 'handoff', 'overlap', 'catch_up', 'jitter', 'starts_at', 'ends_at', 'paused', 'passed_by', 'created_at', 'updated_at', 'next', 'last'])
    t.strictSame(made.json(), {
      name: 'nightly',
      cron: '0 18 * * *',
      every: null,
      timezone: 'Asia/Tokyo',
      handoff,
      overlap: 'skip',
      catch_up: 300,
      jitter: 0,
      starts_at: null,
      ends_at: null,
      paused: false,
      passed_by: 'ann',
      created_at: at(0),
      updated_at: at(0),
      next: [0, 1, 2, 3, 4].map(day => at(30 + day * 86_400)),
      last: null
    })
    t.strictSame(await get('nightly'), made.json())
    await setClock(start + 1000)
    const replaced = await put('nightly', { every: 60, handoff: { task: 'x' }, overlap: 'allow', catch_up: 5, jitter: 30, starts_at: at(30).replace('09:00:00.000Z', '10:00:00+01:00'), ends_at: at(3600), paused: true })
    t.equal(replaced.statusCode, 200)
    t.match(replaced.json(), { cron: null, every: 60, timezone: null, handoff: { task: 'x' }, overlap: 'allow', catch_up: 5, jitter: 30, starts_at: at(30), ends_at: at(3600), paused: true, created_at: at(0), updated_at: at(1), next: [] })
    t.equal((await put('Another.one-2_', { cron: '@hourly' })).json().timezone, 'UTC')
    const list = (await ask('GET', '/api/schedules')).json()
    t.strictSame(list.items.map(({ name }: { name: string }) => name), ['Another.one-2_', 'nightly'])
    t.notOk('handoff' in list.items[0])
    t.equal(list.next_cursor, null)
    const { items, next_cursor: cursor } = (await ask('GET', '/api/schedules?limit=1')).json()
    t.equal(items.length, 1)
    t.strictSame((await ask('GET', `/api/schedules?limit=1&cursor=${cursor}`)).json().items.map(({ name }: { name: string }) => name), ['nightly'])
    isProblem(t, await ask('GET', '/api/schedules?cursor=abc'), 400, 'invalid_request')
    const gone = await ask('DELETE', '/api/schedules/nightly')
    t.equal(gone.statusCode, 204)
    t.equal(gone.body, '')
    for (const [method, path] of [['GET', 'nightly'], ['DELETE', 'nightly'], ['GET', 'nightly/runs'], ['POST', 'nightly/pause'], ['POST', 'nightly/resume'], ['POST', 'nightly/run'], ['GET', 'not%20one']] as const) {
      isProblem(t, await ask(method, `/api/schedules/${path}`), 404, 'not_found')
    }
    isProblem(t, await ask('POST', '/api/schedules/nightly/backfill', { since: at(-60), until: at(0) }), 404, 'not_found')
  })

  t.test('a callback is checked like pass’s, its token is kept for its url, and never shown', async t => {
    const { put, get, post, status, ask } = as('tells')
    const url = 'https://example.com/hook?secret=query'
    const with_ = (callback: unknown) => put('told', { every: 60, handoff: { ...handoff, callback } })
    for (const [callback, pointer] of [[{ url: 'http://10.0.0.1/' }, '/handoff/callback/url'], [{ url, types: ['handoff.passed'] }, '/handoff/callback/types/0'], [{}, '/handoff/callback/url'], [{ url, more: 1 }, '/handoff/callback/more']] as const) {
      t.match(isProblem(t, await with_(callback), 400, 'invalid_request'), { errors: [{ pointer }] }, JSON.stringify(callback))
    }
    const repeated = await ask('PUT', '/api/schedules/told', '{"every":60,"handoff":{"task":"a","task":"b"}}')
    t.match(isProblem(t, repeated, 400, 'invalid_request'), { errors: [{ pointer: '/handoff/task' }] })
    const made = await with_({ url, token: 'a-token' })
    t.equal(made.statusCode, 201)
    t.notMatch(made.body, 'a-token')
    t.match(made.json(), { handoff: { callback: { url } } })
    const tokenOf = async () => {
      const { handoff_id: id } = (await post('/api/schedules/told/run')).json()
      t.match(await status(id), { callback: { url: 'https://example.com/hook', pending: 0 } })
      const { tag } = { tag: id.slice(0, 3) as string }
      return String(await redis.hget(`${prefix}:{${tag}}:h:tells:${id}`, 'o')).split(' ')[1]
    }
    t.equal(await tokenOf(), 'a-token')
    t.equal((await with_({ url })).statusCode, 200)
    t.equal(await tokenOf(), 'a-token', 'without a word it stays')
    t.equal((await with_({ url: `${url}2` })).statusCode, 200)
    t.equal(await tokenOf(), undefined, 'for that url alone')
    await with_({ url, token: 'b-token' })
    await with_({ url, token: '' })
    t.equal(await tokenOf(), undefined, 'or until it is taken away')
    t.notMatch(JSON.stringify(await get('told')) + (await ask('GET', '/api/schedules')).body, 'token":"')
  })

  t.test('while no Redis is reached, nothing looks again at once; a failed look is soon repeated', async t => {
    const { app: { ticker }, store, call, setClock } = await testApp(t, {}, { isSpread })
    const { reachedTags, takeTicking } = store
    store.reachedTags = () => []
    t.ok(await ticker.go(true) >= 100)
    store.reachedTags = reachedTags

    await setClock(start)
    t.equal((await call('alice', 'PUT', '/api/schedules/soon', { every: 60, handoff })).statusCode, 201)
    await setClock(start + 60_000)
    let isAway = true
    store.takeTicking = async lease => {
      if (!isAway) return await takeTicking(lease)
      isAway = false
      throw new Unavailable('away for a moment')
    }
    ticker.start()
    const runs = async () => (await call('alice', 'GET', '/api/schedules/soon/runs')).json().items
    await until(async () => (await runs()).length === 1, 10_000)
    t.match(await runs(), [{ outcome: 'passed' }])
    t.equal(isAway, false)
  })

  t.test('what can’t be one is refused, with a pointer', async t => {
    const { put, ask } = as('bad')
    const cases: Array<[body: object, ...pointers: string[]]> = [
      [{}, '/cron'], [{ cron: '* * * * *', every: 60 }, '/every'], [{ cron: '0 0 31 2 *' }, '/cron'], [{ cron: '* * * * * *' }, '/cron'], [{ cron: '@reboot' }, '/cron'], [{ every: 9 }, '/every'], [{ every: 31_536_001 }, '/every'], [{ every: 10.5 }, '/every'], [{ every: '60' }, '/every'],
      [{ cron: '* * * * *', timezone: 'Europe/Atlantis' }, '/timezone'], [{ every: 60, timezone: 'UTC' }, '/timezone'], [{ every: 60, overlap: 'wait' }, '/overlap'], [{ every: 60, catch_up: 4 }, '/catch_up'], [{ every: 60, catch_up: 2_592_001 }, '/catch_up'],
      [{ every: 60, jitter: 31 }, '/jitter'], [{ cron: '*/5 * * * *', jitter: 151 }, '/jitter'], [{ every: 60, jitter: 3601 }, '/jitter'], [{ every: 60, starts_at: 'soon' }, '/starts_at'], [{ every: 60, starts_at: at(10), ends_at: at(10) }, '/ends_at'], [{ every: 60, paused: 'no' }, '/paused'], [{ every: 60, name: 'x' }, '/name'],
      [{ every: 60, handoff: undefined }, '/handoff'], [{ every: 60, handoff: {} }, '/handoff/task'], [{ every: 60, handoff: { ...handoff, parent: 'x' } }, '/handoff/parent'], [{ every: 60, handoff: { ...handoff, after: ['x'] } }, '/handoff/after'], [{ every: 60, handoff: { ...handoff, delay: 1 } }, '/handoff/delay'],
      [{ every: 60, handoff: { task: 't', priority: 1 } }, '/handoff/priority'], [{ every: 60, handoff: { task: 't', labels: { a: 'b c' } } }, '/handoff/labels/a'], [{ every: 60, handoff: { task: 't', result_schema: { type: 'thing' } } }, '/handoff/result_schema/type'], [{ every: 60, handoff: { task: 1 } }, '/handoff/task'], [{ every: 60, handoff: { task: 't', constructor: 1 } }, '/handoff/constructor'], [{ every: 60, jitter: 'x', handoff: 'y' }, '/handoff', '/jitter'],
    ]
    for (const [body, ...pointers] of cases) {
      const refused = await put('one', body)
      isProblem(t, refused, 400, 'invalid_request')
      t.strictSame(refused.json().errors.map(({ pointer }: { pointer: string }) => pointer).sort(), pointers, JSON.stringify(body))
    }
    isProblem(t, await ask('PUT', '/api/schedules/one', '{"every":60,"handoff":{"task":"x","task":"y"}}'), 400, 'invalid_request')
    isProblem(t, await put('x'.repeat(65), { every: 60 }), 404, 'not_found')
    isProblem(t, await ask('GET', '/api/schedules/one'), 404, 'not_found')
    t.equal((await put('ok', { every: 60, jitter: 30, cron: null, timezone: null, starts_at: null, handoff: { task: 't', labels: { day: '{{scheduled_for}}' } } })).statusCode, 201, 'null is absent')
    t.equal((await put('ok', { cron: '0 0 29 2 *', jitter: 3600 })).statusCode, 200)
    for (const path of ['pause', 'resume', 'run']) isProblem(t, await ask('POST', `/api/schedules/ok/${path}`, { x: 1 }), 400, 'invalid_request')
  })

  t.test('it belongs to who made it, and operators may change it', async t => {
    const ann = as('owns')
    const [ben, olga, sam] = [as('owns', 'ben'), as('owns', 'olga'), as('owns', 'sam')]
    isProblem(t, await olga.put('one', { every: 60 }), 403, 'insufficient_scope')
    isProblem(t, await sam.put('one', { every: 60 }), 403, 'insufficient_scope')
    t.equal((await ann.put('one', { every: 60 })).statusCode, 201)
    for (const [method, path, body] of [['PUT', '', { every: 60, handoff }], ['DELETE', ''], ['POST', '/pause'], ['POST', '/resume'], ['POST', '/run'], ['POST', '/backfill', { since: at(-60), until: at(0) }]] as const) {
      isProblem(t, await ben.ask(method, `/api/schedules/one${path}`, body), 403, 'not_the_passer')
      isProblem(t, await sam.ask(method, `/api/schedules/one${path}`, body), 403, 'insufficient_scope')
    }
    t.equal((await sam.ask('GET', '/api/schedules/one/runs')).statusCode, 200)
    t.equal((await olga.put('one', { every: 70 })).json().passed_by, 'ann', 'it stays its agent’s')
    t.equal((await olga.post('/api/schedules/one/pause')).json().paused, true)
    t.equal((await olga.post('/api/schedules/one/resume', {})).json().paused, false)
    const run = await olga.post('/api/schedules/one/run')
    t.equal(run.statusCode, 201)
    t.match((await ann.ask('GET', '/api/handoffs')).json().items, [{ handoff_id: run.json().handoff_id, passed_by: 'ann' }])
    isProblem(t, await as('makes').ask('GET', '/api/schedules/one'), 404, 'not_found')
    t.equal((await olga.ask('DELETE', '/api/schedules/one')).statusCode, 204)
  })

  t.test('each tick passes once, at its time, whoever looks', async t => {
    const { put, get, runs, status, ask } = as('ticks')
    await put('five', { cron: '*/5 * * * *', handoff: { ...handoff, constraints: 'Before {{scheduled_for}}', labels: { day: '{{scheduled_for}}' }, output: { keep: '{{scheduled_for}}' }, max_attempts: 2 } })
    await tickAt(29)
    t.strictSame(await runs('five'), [], 'never before')
    await tickAt(30)
    await Promise.all([1, 2, 3, 4].map(() => app.ticker.go(true)))
    const [run, ...others] = await runs('five')
    t.strictSame(others, [])
    t.match(run, { scheduled_for: at(30), at: at(30), by: 'tick', outcome: 'passed', code: undefined })
    t.strictSame(Object.keys(run), ['scheduled_for', 'at', 'by', 'outcome', 'handoff_id'])
    t.match(await status(run.handoff_id), { status: 'pending', to: 'reporter', schedule: 'five', scheduled_for: at(30), labels: { day: at(30).replace(':00.000Z', 'Z') } })
    const { last, next } = await get('five')
    t.strictSame(last, run)
    t.equal(next[0], at(330))
    t.match((await ask('GET', '/api/schedules')).json().items[0], { last: run, next })
    t.match((await ask('GET', '/api/handoffs?schedule=five')).json().items, [{ handoff_id: run.handoff_id, schedule: 'five', scheduled_for: at(30), passed_by: 'ann' }])
    t.strictSame((await ask('GET', '/api/handoffs?schedule=fiv')).json().items, [])
    const caught = (await ask('GET', `/api/catch/${run.handoff_id}`)).json()
    t.match(caught, { task: `Report for ${at(30)}`, constraints: `Before ${at(30)}`, output: { keep: '{{scheduled_for}}' }, schedule: 'five', scheduled_for: at(30) })
    const { reissued_as: second } = (await ask('POST', `/api/fail/${run.handoff_id}`, { error: { message: 'x' } })).json()
    t.match(await status(second), { attempt: 2, schedule: 'five', scheduled_for: at(30) })
    const events = (await ask('GET', '/api/events?after=0-0&wait=1')).json().items
    if (!isSpread) for (const { data } of events) t.match(data, { schedule: 'five', scheduled_for: at(30) })
    await ask('POST', `/api/cancel/${second}`)
    await tickAt(330)
    t.match((await runs('five')).map(({ scheduled_for: time }: { scheduled_for: string }) => time), [at(330), at(30)], 'the newest first')
    t.ok((await ask('GET', '/api/handoffs?schedule=five&limit=1')).json().items[0].handoff_id !== run.handoff_id)
  })

  t.test('approvals, decisions’ pages and all of a handoff name its schedule', async t => {
    const { put, runs } = as('asks')
    const [olga, rita] = [as('asks', 'olga'), as('asks', 'rita')]
    await put('asked', { every: 60, handoff: { ...handoff, require_human: true, max_attempts: 2 } })
    await tickAt(60)
    const [{ handoff_id: id }] = await runs('asked')
    const of = { schedule: 'asked', scheduled_for: at(60) }
    t.match((await olga.ask('GET', '/api/approvals')).json().items, [{ handoff_id: id, ...of }])
    t.match((await olga.ask('GET', `/api/approvals/${id}`)).json(), { handoff_id: id, ...of })
    t.match((await rita.ask('GET', `/api/handoffs/${id}`)).json(), { handoff_id: id, ...of })
    t.match((await as('asks').ask('POST', '/api/wait', { ids: [id] })).json().items, [of])
    await olga.ask('POST', `/api/approve/${id}`)
    await as('asks').ask('GET', `/api/catch/${id}`)
    await as('asks').ask('POST', `/api/fail/${id}`, { error: { message: 'x' } })
    const [next] = (await as('asks').ask('GET', '/api/handoffs?schedule=asked')).json().items
    t.match((await olga.ask('GET', `/api/approvals/${next.handoff_id}`)).json(), { ...of, reissue_of: undefined })
  })

  t.test('what comes too late is skipped, one run for a stretch', async t => {
    const { put, get, runs } = as('late')
    await put('late', { every: 60, catch_up: 90, overlap: 'allow' })
    await tickAt(60 * 40)
    const all = await runs('late')
    t.strictSame(all.map((run: object) => ({ ...run, handoff_id: undefined })), [
      { scheduled_for: at(2400), at: at(2400), by: 'tick', outcome: 'passed', handoff_id: undefined },
      { scheduled_for: at(2340), at: at(2400), by: 'tick', outcome: 'passed', handoff_id: undefined },
      { scheduled_for: at(60), at: at(2400), by: 'tick', outcome: 'skipped_late', count: 38, until: at(2280), handoff_id: undefined }
    ])
    t.equal((await get('late')).next[0], at(2460))
    await put('one', { every: 600, catch_up: 5 })
    await tickAt(2400 + 606)
    t.match(await runs('one'), [{ outcome: 'skipped_late', scheduled_for: at(3000), count: 1, until: at(3000) }])
  })

  t.test('what came too late is counted for one schedule after the other, so each is noted soon', async t => {
    const { app: { ticker }, store: { schedules }, call, setClock } = await testApp(t, {}, { isSpread })
    await setClock(start)
    for (const name of ['one', 'two', 'three', 'four']) t.equal((await call('alice', 'PUT', `/api/schedules/${name}`, { every: 10, jitter: 5, catch_up: 5, handoff })).statusCode, 201)
    const { note } = schedules
    let turns = 0
    const noted: number[] = []
    schedules.note = async (schedule, what) => {
      if (what.runs[0]?.includes('skipped_late') === true) noted.push(turns)
      return await note.call(schedules, schedule, what)
    }
    await setClock(start + 20 * 86_400_000)
    const turn = () => {
      turns++
      if (noted.length < 4) setImmediate(turn)
    }
    turn()
    await ticker.go(true)
    await until(() => noted.length >= 4)
    t.ok(noted.slice(1).every((at, before) => at - noted[before]! > 30), `after ${noted.join(', ')} turns`)
  })

  t.test('a long list lets others be served between', async t => {
    const { put, ask } = as('lists')
    for (let number = 0; number < 11; number++) await put(`leap-${number}`, { cron: '0 0 29 2 *' })
    const { schedules } = store
    const { list } = schedules
    const turns = new Set<number>()
    schedules.list = async (...asked) => {
      const { items, ...more } = await list.apply(schedules, asked)
      let turn = 0
      const next = () => { if (++turn < 100) setImmediate(next) }
      setImmediate(next)
      return { ...more, items: items.map(item => ({ ...item, get says () { turns.add(turn); return item.says } })) }
    }
    t.teardown(() => { schedules.list = list })
    t.equal((await ask('GET', '/api/schedules')).json().items.length, 11)
    t.equal(turns.size, 3)
  })

  t.test('overlap: skip', async t => {
    const { put, runs, ask, get, post } = as('skips')
    await put('one', { every: 60, handoff: { task: 't', max_attempts: 2, retry_delay: 0 } })
    await tickAt(60)
    const [first] = await runs('one')
    await post('/api/schedules/one/run')
    await tickAt(120)
    t.match((await runs('one'))[0], { scheduled_for: at(120), outcome: 'skipped_overlap', by: 'tick' })
    t.match((await get('one')).last, { outcome: 'skipped_overlap' })
    await ask('GET', `/api/catch/${first.handoff_id}`)
    const { reissued_as: second } = (await ask('POST', `/api/fail/${first.handoff_id}`, { error: { message: 'x' } })).json()
    await tickAt(180)
    t.match((await runs('one'))[0], { scheduled_for: at(180), outcome: 'skipped_overlap' }, 'over all its attempts')
    await ask('GET', `/api/catch/${second}`)
    await ask('POST', `/api/done/${second}`)
    await tickAt(240)
    t.match((await runs('one'))[0], { scheduled_for: at(240), outcome: 'passed' })
  })

  t.test('overlap: allow, and cancel', async t => {
    const allows = as('allows')
    await allows.put('one', { every: 60, overlap: 'allow' })
    await tickAt(60)
    await tickAt(120)
    t.match((await allows.runs('one')).map(({ outcome }: { outcome: string }) => outcome), ['passed', 'passed'])
    const { put, runs, status, ask } = as('cancels')
    await setClock(start)
    await put('one', { every: 60, overlap: 'cancel', handoff: { task: 't', to: 'w', max_attempts: 3, retry_delay: 0 } })
    await tickAt(60)
    const [first] = await runs('one')
    await ask('GET', `/api/catch/${first.handoff_id}`)
    const { reissued_as: second } = (await ask('POST', `/api/fail/${first.handoff_id}`, { error: { message: 'x' } })).json()
    await ask('GET', `/api/catch/${second}`)
    await tickAt(120)
    t.match(await status(second), { status: 'cancelled', ended_by: null, cancel_reason: 'overlap' })
    t.match((await runs('one'))[0], { outcome: 'passed', scheduled_for: at(120) })
    t.match(await status((await runs('one'))[0].handoff_id), { status: 'pending' })

    // The time of its attempt is over, and the sweep hasn't been there: what it makes of it is cancelled then.
    await setClock(start)
    await put('swept', { every: 60, overlap: 'cancel', handoff: { task: 't', to: 'w', max_attempts: 2, retry_delay: 0, work_within: 59 } })
    await tickAt(60)
    const [{ handoff_id: caught }] = await runs('swept')
    await ask('GET', `/api/catch/${caught}`)
    await tickAt(120)
    t.equal((await runs('swept')).length, 1, 'it isn’t noted before the one before is cancelled')
    await store.handoffs.sweep(tagOf(caught), 100)
    const { reissued_as: next } = await status(caught)
    await tickAt(122)
    t.match(await status(next), { status: 'cancelled', cancel_reason: 'overlap' })
    t.match((await runs('swept'))[0], { outcome: 'passed', scheduled_for: at(120) })
  })

  t.test('what was due while it was paused doesn’t run', async t => {
    const { put, runs, post, get } = as('pauses')
    await put('one', { every: 60, overlap: 'allow' })
    t.match((await post('/api/schedules/one/pause')).json(), { paused: true, next: [] })
    await tickAt(130)
    t.strictSame(await runs('one'), [])
    t.match((await post('/api/schedules/one/resume')).json(), { paused: false, next: [at(180), at(240)] })
    await tickAt(130)
    t.strictSame(await runs('one'), [])
    await tickAt(180)
    t.match(await runs('one'), [{ scheduled_for: at(180) }])
    const { updated_at: before } = await get('one')
    t.equal((await post('/api/schedules/one/resume')).json().updated_at, before, 'nothing changed')
  })

  t.test('what was due before a change of its times doesn’t run', async t => {
    const { put, runs, get } = as('changes')
    await put('one', { every: 60, overlap: 'allow' })
    await setClock(start + 65_000)
    await put('one', { every: 60, overlap: 'allow', catch_up: 200 })
    t.equal((await get('one')).next[0], at(60), 'its times are as before')
    await tickAt(66)
    t.match(await runs('one'), [{ scheduled_for: at(60) }])
    await setClock(start + 125_000)
    await put('one', { every: 30, overlap: 'allow' })
    t.strictSame((await get('one')).next.slice(0, 2), [at(155), at(185)], 'counted from the change')
    await tickAt(150)
    t.equal((await runs('one')).length, 1)
    await tickAt(155)
    t.equal((await runs('one')).length, 2)
    await put('one', { every: 30, overlap: 'allow', starts_at: at(0) })
    t.equal((await get('one')).next[0], at(180))
    await put('one', { cron: '0 * * * *', ends_at: at(40) })
    t.strictSame((await get('one')).next, [])
  })

  t.test('a change while it ticks: the tick is noted once, and what comes next is by the change', async t => {
    const { put, runs, get, ask } = as('meets')
    const { schedules } = store
    const note = schedules.note
    /** Has this happen between the pass and the note of the next tick. */
    const during = (change: () => Promise<unknown>) => {
      schedules.note = async (...given) => {
        schedules.note = note
        await change()
        return await note.apply(schedules, given)
      }
    }
    const outcomes = async () => (await runs('one')).map(({ outcome }: { outcome: string }) => outcome)
    await put('one', { every: 60 })
    during(() => put('one', { every: 60, catch_up: 200 }))
    await tickAt(60)
    t.strictSame(await outcomes(), ['passed'])
    t.strictSame((await get('one')).next[0], at(120), 'that tick is over')
    const { last } = await get('one')
    await tickAt(61)
    t.strictSame(await outcomes(), ['passed'], 'it is no other tick whose work hasn’t ended')
    await ask('POST', `/api/cancel/${last.handoff_id}`)
    during(() => put('one', { every: 30 }))
    await tickAt(120)
    t.strictSame((await get('one')).next[0], at(150), 'counted from the change')
    t.match((await get('one')).last, { scheduled_for: at(120), outcome: 'passed' })
    await ask('POST', `/api/cancel/${(await get('one')).last.handoff_id}`)
    during(() => ask('POST', '/api/schedules/one/pause'))
    await tickAt(150)
    t.match(await get('one'), { next: [], paused: true, last: { scheduled_for: at(150), outcome: 'passed' } })
    await tickAt(300)
    t.equal((await outcomes()).length, 3)
    await ask('POST', '/api/schedules/one/resume')
    await ask('POST', `/api/cancel/${(await get('one')).last.handoff_id}`)
    during(() => ask('DELETE', '/api/schedules/one'))
    await tickAt(330)
    isProblem(t, await ask('GET', '/api/schedules/one'), 404, 'not_found')
    t.equal((await ask('GET', '/api/handoffs?schedule=one')).json().items.length, 1, 'what it had passed stays')
    t.equal((await put('one', { every: 60 })).statusCode, 201)
    t.match(await get('one'), { last: null, next: [at(390)] })
    t.strictSame(await runs('one'), [])
  })

  t.test('starts_at and ends_at', async t => {
    const { put, runs, get } = as('ends')
    await put('one', { every: 60, starts_at: at(100), ends_at: at(220), overlap: 'allow' })
    t.strictSame((await get('one')).next, [at(100), at(160)])
    await tickAt(100)
    await tickAt(160)
    await tickAt(220)
    t.match((await runs('one')).map(({ scheduled_for: time }: { scheduled_for: string }) => time), [at(160), at(100)])
    t.strictSame((await get('one')).next, [])
  })

  t.test('jitter comes later, the same each time, and next is without it', async t => {
    const { put, runs, get } = as('jitters')
    const delays = new Set<number>()
    for (const name of ['a', 'b', 'c', 'd']) {
      await setClock(start)
      await put(name, { every: 600, jitter: 300 })
      t.equal((await get(name)).next[0], at(600))
    }
    for (let second = 600; second <= 900; second += 10) await tickAt(second)
    for (const name of ['a', 'b', 'c', 'd']) {
      const [run] = await runs(name)
      t.equal(run.scheduled_for, at(600))
      delays.add(Date.parse(run.at))
      t.ok(Date.parse(run.at) <= start + 900_000)
    }
    t.ok(delays.size > 1)
  })

  t.test('a PUT keeps what is due and comes later by its jitter, unless it changes the times', async t => {
    const { put, runs, get, post, ask } = as('keeps')
    const runsOf = async (name: string) => (await runs(name)).map(({ scheduled_for: time }: { scheduled_for: string }) => time)
    const says = { cron: '*/10 * * * *', jitter: 300, overlap: 'allow' }
    const changes: Record<string, () => Promise<unknown>> = {
      same: async () => await put('same', says),
      handoff: async () => await put('handoff', { ...says, handoff: { task: 'another', to: 'elsewhere' } }),
      jitter: async () => await put('jitter', { ...says, jitter: 290 }),
      ends: async () => await put('ends', { ...says, ends_at: at(100_000) }),
      zone: async () => await put('zone', { ...says, timezone: 'UTC' }),
      paused: async () => { await post('/api/schedules/paused/pause'); await post('/api/schedules/paused/resume') },
      replaced: async () => { await put('replaced', { ...says, paused: true }); await put('replaced', says) },
      times: async () => await put('times', { ...says, cron: '*/5 * * * *', jitter: 100 }),
    }
    for (const name of Object.keys(changes)) await put(name, says)
    // Before the first of them comes, by its jitter.
    await tickAt(30)
    t.strictSame((await get('same')).next[0], at(30))
    for (const change of Object.values(changes)) await change()
    for (let second = 40; second <= 330; second += 10) await tickAt(second)
    for (const name of Object.keys(changes)) t.strictSame((await runsOf(name)).filter((time: string) => time <= at(30)), name === 'times' ? [] : [at(30)], name)
    // Its end was before it, and is behind it again.
    await setClock(start)
    await put('again', says)
    await setClock(start + 30_000)
    await put('again', { ...says, ends_at: at(30) })
    t.strictSame((await get('again')).next, [])
    await put('again', says)
    t.equal((await get('again')).next[0], at(30))
    // What ran comes no second time, even if it would come later now.
    await setClock(start)
    await put('ran', { ...says, jitter: 0 })
    await tickAt(30)
    await put('ran', { ...says, jitter: 0, paused: true })
    await put('ran', says)
    t.equal((await get('ran')).next[0], at(630))
    await tickAt(330)
    t.strictSame(await runsOf('ran'), [at(30)])
    await ask('DELETE', '/api/schedules/ran')
  })

  t.test('run passes at once, and moves nothing', async t => {
    const { put, runs, get, ask, status } = as('runs')
    await put('one', { every: 60, paused: true })
    const one = await ask('POST', '/api/schedules/one/run', undefined, { 'idempotency-key': 'k' })
    t.equal(one.statusCode, 201)
    t.equal(one.headers.location, `/api/status/${one.json().handoff_id}`)
    await setClock(start + 5000)
    const again = await ask('POST', '/api/schedules/one/run', {}, { 'idempotency-key': 'k' })
    t.strictSame([again.statusCode, again.headers['idempotency-replayed'], again.json()], [201, 'true', one.json()])
    const other = await ask('POST', '/api/schedules/one/run', {})
    t.not(other.json().handoff_id, one.json().handoff_id)
    t.match(await status(one.json().handoff_id), { schedule: 'one', scheduled_for: at(0) })
    t.match(await runs('one'), [{ by: 'run', outcome: 'passed', scheduled_for: at(5), handoff_id: other.json().handoff_id }, { by: 'run', scheduled_for: at(0) }])
    t.match(await get('one'), { last: null, paused: true })
    isProblem(t, await ask('POST', '/api/schedules/one/run', undefined, { 'idempotency-key': 'x y' }), 400, 'invalid_request')
  })

  t.test('a run that couldn’t be noted is answered, and is among the runs', async t => {
    const { put, ask, runs } = as('unnoted')
    const { schedules } = store
    const { note } = schedules
    const run = async (headers = {}) => await ask('POST', '/api/schedules/one/run', undefined, headers)
    await put('one', { every: 3600 })
    const begun = prefix + `:{${homeTag('unnoted')}}:schedule:unnoted:one:begun`
    for (const headers of [{}, { 'idempotency-key': 'k' }]) {
      schedules.note = async () => { throw new Unavailable('a failover') }
      const made = await run(headers)
      schedules.note = note
      t.equal(made.statusCode, 201)
      const { handoff_id: id } = made.json()
      await setClock(start + 5000)
      if ('idempotency-key' in headers) t.equal((await run(headers)).headers['idempotency-replayed'], 'true')
      for (const look of ['first', 'second']) {
        t.match((await runs('one')).filter((one: { handoff_id: string }) => one.handoff_id === id), [{ scheduled_for: at(0), at: at(0), by: 'run', outcome: 'passed' }], `${look} look`)
      }
      t.equal(await redis.zcard(begun), 0)
      await setClock(start)
    }
    t.equal((await runs('one')).length, 2)
    // One that was never passed is forgotten, but not while it may be under way.
    const { pass } = store.handoffs
    store.handoffs.pass = async () => { throw new Unavailable('a failover') }
    t.equal((await run()).statusCode, 503)
    store.handoffs.pass = pass
    t.equal((await runs('one')).length, 2)
    t.equal(await redis.zcard(begun), 1)
    await setClock(start + 60_000)
    t.equal((await runs('one')).length, 2)
    t.equal(await redis.zcard(begun), 0)
  })

  t.test('a key finds its run also where the next one goes to another partition', async t => {
    const { put, ask, runs } = as('keyed')
    const run = async (key: string) => await ask('POST', '/api/schedules/one/run', undefined, { 'idempotency-key': key })
    const live = async () => (await ask('GET', '/api/handoffs?schedule=one')).json().items
    for (const [n, after] of [{ task: 't', to: 'elsewhere' }, { task: 't', require_human: true }, { task: 't', to: 'third' }].entries()) {
      await put('one', { every: 3600, handoff })
      const first = await run(`k${n}`)
      t.equal(first.statusCode, 201)
      await put('one', { every: 3600, handoff: after })
      const again = await run(`k${n}`)
      t.strictSame([again.statusCode, again.headers['idempotency-replayed'], again.json()], [201, 'true', first.json()])
      t.equal((await live()).length, n + 1)
      t.equal((await runs('one')).length, n + 1)
    }
    // One that stands still before it passes, while its retry passes elsewhere: only one of both does.
    await put('one', { every: 3600, handoff })
    const { handoffs } = store
    const pass = handoffs.pass
    const late: Array<() => ReturnType<typeof pass>> = []
    handoffs.pass = async handoff => {
      if (handoff.tenant === 'keyed') late.push(() => pass.call(handoffs, handoff))
      throw new Unavailable('it stands still')
    }
    t.equal((await run('late')).statusCode, 503)
    handoffs.pass = pass
    await put('one', { every: 3600, handoff: { task: 't', to: 'elsewhere' } })
    const second = await run('late')
    t.equal(second.statusCode, 201)
    t.match(await late[0]!(), { outcome: 'ticked' })
    await put('one', { every: 3600, handoff })
    t.strictSame((await run('late')).json(), second.json(), 'also once it is back')
    t.equal((await live()).length, 4)
  })

  t.test('backfill passes what didn’t run, once', async t => {
    const { put, runs, ask } = as('fills')
    const fill = async (since: number, until: number, name = 'one') => (await ask('POST', `/api/schedules/${name}/backfill`, { since: at(since), until: at(until) })).json()
    await put('one', { cron: '* * * * *', overlap: 'allow' })
    await tickAt(30)
    await tickAt(90)
    t.strictSame(await fill(-90, 90), { passed: 2, skipped: 1, refused: 0, more: false, next: null }, 'inclusive, exclusive, before its making too')
    t.match((await runs('one'))[0], { by: 'backfill', outcome: 'passed' })
    t.match((await runs('one')).slice(0, 2).map(({ scheduled_for: time }: { scheduled_for: string }) => time).sort(), [at(-90), at(-30)])
    t.strictSame(await fill(-90, 90), { passed: 0, skipped: 3, refused: 0, more: false, next: null })
    const first = await fill(-90 - 60 * 150, -90)
    t.strictSame(first, { passed: 100, skipped: 0, refused: 0, more: true, next: at(-90 - 60 * 50) })
    t.strictSame(await fill(-90 - 60 * 50, -90), { passed: 50, skipped: 0, refused: 0, more: false, next: null })
    await setClock(start + 86_400_000)
    t.strictSame(await fill(-90 - 60 * 150, 90), { passed: 0, skipped: 153, refused: 0, more: false, next: null }, 'also long after')
    for (const [since, until, pointer] of [[0, 0, '/until'], [0, 86_401, '/until']] as const) {
      const refused = await ask('POST', '/api/schedules/one/backfill', { since: at(since), until: at(until) })
      isProblem(t, refused, 400, 'invalid_request')
      t.equal(refused.json().errors[0].pointer, pointer)
    }
    isProblem(t, await ask('POST', '/api/schedules/one/backfill', { since: 'x', until: at(0) }), 400, 'invalid_request')
    isProblem(t, await ask('POST', '/api/schedules/one/backfill', {}), 400, 'invalid_request')
    await put('moved', { cron: '* * * * *', overlap: 'allow' })
    await tickAt(86_400 + 30)
    await put('moved', { cron: '* * * * *', overlap: 'allow', starts_at: at(86_400 + 270) })
    await tickAt(86_400 + 271)
    await put('moved', { cron: '* * * * *', overlap: 'allow' })
    t.strictSame(await fill(86_400 + 30, 86_400 + 271, 'moved'), { passed: 3, skipped: 2, refused: 0, more: false, next: null }, 'its start left some out')
    await put('bounded', { every: 60, starts_at: at(0), ends_at: at(300), paused: true })
    t.strictSame(await fill(-1000, 1000, 'bounded'), { passed: 5, skipped: 0, refused: 0, more: false, next: null })
  })

  t.test('what ran in 30 days is remembered where every second tick of the shortest interval was left out', async t => {
    const { put, ask } = as('gaps')
    const { schedules } = store
    await put('one', { every: 10, starts_at: at(0), overlap: 'allow', paused: true })
    const { schedule } = await schedules.read('gaps', 'one')
    const timing = timingOf(readSays(schedule!.says))
    // As its ticker notes them. 30 days have 129,600 of these.
    const count = isWhole ? 15_000 : 1500
    let newest: string | null = null
    let noted: Array<Promise<unknown>> = []
    for (let n = 0; n < count; n++) {
      const { member, replaces } = remember(timing, start + n * 20_000, newest)
      // Redis carries them out in this order.
      noted.push(schedules.note(schedule!, { ...noteOfRuns, ranges: [member], replaces, runs: [] }))
      newest = member
      if (noted.length < 50 && n < count - 1) continue
      await Promise.all(noted)
      noted = []
    }
    await setClock(start + count * 20_000)
    const fill = async (since: number, until: number) => (await ask('POST', '/api/schedules/one/backfill', { since: at(since), until: at(until) })).json()
    t.match(await fill(0, 400), { passed: 20, skipped: 20 })
    t.match(await fill(0, 400), { passed: 0, skipped: 40 }, 'also what was made up for')
    t.match(await fill((count - 10) * 20, count * 20), { passed: 10, skipped: 10 })
    const kept = prefix + `:{${homeTag('gaps')}}:schedule:gaps:one:ran`
    const bytes = Number(await redis.call('MEMORY', 'USAGE', kept, 'SAMPLES', '0'))
    t.ok(bytes * 129_600 / count < 1_000_000, `${bytes} bytes`)
  })

  t.test('a backfill of many calls is remembered as one stretch', async t => {
    const { put, ask } = as('gaps')
    await put('long', { every: 10, starts_at: at(0), overlap: 'allow', paused: true })
    await setClock(start + 10_000_000)
    let since: string | null = at(0)
    for (let calls = 0; calls < 5; calls++) {
      const { next }: { next: string | null } = (await ask('POST', '/api/schedules/long/backfill', { since, until: at(10_000) })).json()
      since = next
    }
    t.equal(await redis.zcard(prefix + `:{${homeTag('gaps')}}:schedule:gaps:long:ran`), 1)
    t.match((await ask('POST', '/api/schedules/long/backfill', { since: at(0), until: at(5000) })).json(), { passed: 0, skipped: 500 })
  })

  t.test('a backfill looks at so many ticks a call, whether they ran or not', async t => {
    const { put, ask } = as('gaps')
    await put('looks', { every: 10, starts_at: at(0), overlap: 'allow', paused: true })
    const { schedule } = await store.schedules.read('gaps', 'looks')
    let range: string | null = null
    for (let n = 0; n < 1002; n++) range = remember(timingOf(readSays(schedule!.says)), start + n * 10_000, range).member
    await store.schedules.note(schedule!, { ...noteOfRuns, ranges: [range!], replaces: null, runs: [] })
    await setClock(start + 10_050_000)
    const fill = async (since: string) => (await ask('POST', '/api/schedules/looks/backfill', { since, until: at(10_050) })).json()
    t.strictSame(await fill(at(0)), { passed: 0, skipped: 1000, refused: 0, more: true, next: at(10_000) })
    t.strictSame(await fill(at(10_000)), { passed: 3, skipped: 2, refused: 0, more: false, next: null })
  })

  t.test('two backfills at once, of which one dies: each tick has one handoff and one run, and is remembered', async t => {
    const { put, ask, runs } = as('halves')
    await put('one', { cron: '* * * * *', overlap: 'allow', starts_at: at(-3600), handoff: { task: 't', to: 'halves', expires_in: 60 } })
    const dead = await testApp(t, { RETENTION: '3600', EVENTS_RETENTION: '3600' }, { isSpread, prefix }, more)
    while (dead.store.reachedTags().length === 0) await sleep(10)
    const [span, key] = [{ since: at(-3570), until: at(-1770) }, { authorization: `Bearer ${secretOf('halves', 'ann')}` }]
    // It passes some, and is killed: it notes nothing any more.
    const { schedules, handoffs } = dead.store
    schedules.note = async () => { throw new Unavailable('killed') }
    const pass = handoffs.pass.bind(handoffs)
    let passes = 0
    let filling: ReturnType<typeof ask> | undefined
    handoffs.pass = async (...args) => {
      if (++passes > 15) throw new Unavailable('killed')
      const reply = await pass(...args)
      if (passes === 5) filling = ask('POST', '/api/schedules/one/backfill', span)
      return reply
    }
    const killed = await dead.app.inject({ method: 'POST', url: '/api/schedules/one/backfill', headers: key, payload: span })
    t.equal(killed.statusCode, 503)
    const { passed, skipped } = (await filling!).json()
    t.equal(passed + skipped, 30)
    t.ok(skipped >= 5)
    const live = (await ask('GET', '/api/handoffs?schedule=one&limit=100')).json().items
    t.equal(live.length, 30)
    const noted = await runs('one')
    t.strictSame(noted.map(({ handoff_id: id }: { handoff_id: string }) => id).sort(), live.map(({ handoff_id: id }: { handoff_id: string }) => id).sort())
    t.equal(new Set(noted.map(({ scheduled_for: time }: { scheduled_for: string }) => time)).size, 30)
    // Once their handoffs are gone, it is what is remembered that keeps them from running again.
    for (const { handoff_id: id } of live) await redis.del(`${prefix}:{${tagOf(id)}}:h:halves:${id}`)
    await redis.del(`${prefix}:{${tagOf(live[0].handoff_id)}}:ticked:halves:one`)
    t.match((await ask('POST', '/api/schedules/one/backfill', span)).json(), { passed: 0, skipped: 30 })
    t.equal(await redis.zcard(`${prefix}:{${homeTag('halves')}}:schedule:halves:one:begun`), 0, 'what is remembered is begun no more')
  })

  t.test('an inbox that changes with a backfill under way doesn’t make a tick run twice', async t => {
    const { put, runs, ask } = as('moves')
    const to = async (inbox: string) => await put('one', { cron: '* * * * *', overlap: 'allow', starts_at: at(-3600), handoff: { task: 't', to: inbox } })
    const fill = async (since: number, until: number) => (await ask('POST', '/api/schedules/one/backfill', { since: at(since), until: at(until) })).json()
    const live = async () => (await ask('GET', '/api/handoffs?schedule=one&limit=100')).json().items as Array<{ handoff_id: string, to: string, scheduled_for: string }>
    const dead = await testApp(t, { RETENTION: '3600', EVENTS_RETENTION: '3600' }, { isSpread, prefix }, more)
    while (dead.store.reachedTags().length === 0) await sleep(10)
    const { schedules, handoffs } = dead.store
    const [note, pass] = [schedules.note, handoffs.pass]
    const begun = `${prefix}:{${homeTag('moves')}}:schedule:moves:one:begun`
    const killed = async (since: number, until: number) => {
      const answer = await dead.app.inject({ method: 'POST', url: '/api/schedules/one/backfill', headers: { authorization: `Bearer ${secretOf('moves', 'ann')}` }, payload: { since: at(since), until: at(until) } })
      Object.assign(schedules, { note })
      Object.assign(handoffs, { pass })
      t.equal(answer.statusCode, 503)
    }
    await to('first')
    // It passes three ticks, and dies with the third one's reply, before it notes any.
    let passes = 0
    handoffs.pass = async (...args) => {
      const reply = await pass.apply(handoffs, args)
      if (++passes === 3) throw new Unavailable('killed')
      return reply
    }
    schedules.note = async () => { throw new Unavailable('killed') }
    await killed(-3600, -3000)
    t.equal((await live()).length, 3)
    t.strictSame(await runs('one'), [], 'it is no run that was asked for')
    await to('second')
    t.match(await fill(-3600, -3000), { passed: 7, skipped: 3, refused: 0 })
    const all = await live()
    t.strictSame(all.map(({ to }) => to).sort(), [...Array<string>(3).fill('first'), ...Array<string>(7).fill('second')])
    t.equal(new Set(all.map(({ scheduled_for: time }) => time)).size, 10)
    t.strictSame((await runs('one')).map(({ handoff_id: id }: { handoff_id: string }) => id).sort(), all.map(({ handoff_id: id }) => id).sort())
    t.equal(await redis.zcard(begun), 0)
    t.match(await fill(-3600, -3000), { passed: 0, skipped: 10 }, 'all are remembered')

    // One that stands still before it passes, until another one has passed that tick elsewhere, or couldn't.
    await as('moves', 'olga').ask('PUT', '/api/inboxes/third', { max_pending: 1 })
    for (const [since, passed, refused] of [[-2990, 1, 0], [-2930, 0, 1]] as const) {
      await to('second')
      let late: (() => ReturnType<typeof pass>) | undefined
      handoffs.pass = async handoff => {
        late = () => pass.call(handoffs, handoff)
        throw new Unavailable('it stands still')
      }
      await killed(since, since + 60)
      t.equal(await redis.zcard(begun), 1)
      await to('third')
      t.match(await fill(since, since + 60), { passed, refused })
      t.match(await late!(), { outcome: 'ticked' })
    }
    await setClock(start + 1)
    await to('second')
    t.match(await fill(-2930, -2870), { passed: 1 }, 'back again it may run there')
    t.equal((await live()).length, 12)
  })

  t.test('a backfill whose schedule changes passes no more by what it was', async t => {
    const { put, ask } = as('moves')
    await put('two', { cron: '* * * * *', overlap: 'allow', starts_at: at(-3600), handoff: { task: 't', to: 'first' } })
    const pass = store.handoffs.pass.bind(store.handoffs)
    let passes = 0
    const span = { since: at(-3600), until: at(-1800) }
    const fill = async (since: string = span.since) => (await ask('POST', '/api/schedules/two/backfill', { ...span, since })).json()
    let other: ReturnType<typeof fill> | undefined
    const passing = t.intercept(store.handoffs, 'pass', {
      value: async (...args: Parameters<typeof pass>) => {
        if (++passes !== 5) return await pass(...args)
        await put('two', { cron: '* * * * *', overlap: 'allow', starts_at: at(-3600), handoff: { task: 't', to: 'fourth' } })
        other = fill()
        await other
        return await pass(...args)
      }
    })
    const filled = await fill()
    passing.restore()
    t.match(filled, { passed: 4, skipped: 0, more: true, next: at(-3330) })
    t.match(await other, { passed: 26, skipped: 4, more: false })
    t.match(await fill(filled.next), { passed: 0, skipped: 26 })
    t.equal((await ask('GET', '/api/handoffs?schedule=two&limit=100')).json().items.length, 30)

    // Where the other one is refused, no tick counts as one that ran.
    const to = async (inbox: string) => await put('three', { cron: '* * * * *', overlap: 'allow', starts_at: at(-3600), handoff: { task: 't', to: inbox } })
    const [early, late] = [{ since: at(-3600), until: at(-3000) }, { since: at(-3300), until: at(-3000) }]
    const fillThree = async (span: object) => (await ask('POST', '/api/schedules/three/backfill', span)).json()
    await to('first')
    passes = 0
    const again = t.intercept(store.handoffs, 'pass', {
      value: async (...args: Parameters<typeof pass>) => {
        if (++passes === 5) {
          await to('third')
          t.match(await fillThree(early), { passed: 0, refused: 6, skipped: 4 })
        }
        return await pass(...args)
      }
    })
    t.match(await fillThree(early), { passed: 4, skipped: 0, more: true })
    again.restore()
    await to('fourth')
    t.match(await fillThree(late), { passed: 5, skipped: 0 })
  })

  t.test('a schedule that is deleted ends its backfill', async t => {
    const { put, ask } = as('fills')
    await put('gone', { cron: '* * * * *', overlap: 'allow', handoff: { task: 't', to: 'gone' } })
    const pass = store.handoffs.pass.bind(store.handoffs)
    let passes = 0
    const passing = t.intercept(store.handoffs, 'pass', {
      value: async (...args: Parameters<typeof pass>) => {
        if (++passes === 5) await ask('DELETE', '/api/schedules/gone')
        return await pass(...args)
      }
    })
    const filled = await ask('POST', '/api/schedules/gone/backfill', { since: at(-3600), until: at(0) })
    passing.restore()
    t.match(filled.json(), { passed: 10, more: true })
    isProblem(t, await ask('POST', '/api/schedules/gone/backfill', { since: filled.json().next, until: at(0) }), 404, 'not_found')
  })

  t.test('a refused tick isn’t tried again, but a backfill tries it', async t => {
    const { put, runs, ask, get } = as('refuses')
    await as('refuses', 'olga').ask('PUT', '/api/inboxes/full', { max_pending: 1 })
    await ask('POST', '/api/pass', { task: 't', to: 'full' })
    await put('one', { every: 60, overlap: 'skip', handoff: { task: 't', to: 'full' } })
    await tickAt(60)
    t.strictSame(await runs('one'), [{ scheduled_for: at(60), at: at(60), by: 'tick', outcome: 'refused', code: 'inbox_full' }])
    t.match(await get('one'), { last: { outcome: 'refused', code: 'inbox_full' }, next: [at(120)] })
    const asked = await ask('POST', '/api/schedules/one/run')
    isProblem(t, asked, 429, 'inbox_full')
    t.match((await runs('one'))[0], { by: 'run', outcome: 'refused', code: 'inbox_full' })
    await as('refuses', 'olga').ask('PUT', '/api/inboxes/full', { max_pending: null })
    await tickAt(61)
    t.equal((await runs('one')).length, 2)
    t.match((await ask('POST', '/api/schedules/one/backfill', { since: at(0), until: at(61) })).json(), { passed: 1, refused: 0 })
  })

  t.test('what is passed is literal', async t => {
    const { ask, put, get } = as('text')
    const literal = '{"task":"t\\u00e4","output":{"n":1.0,"big":9007199254740993},"context":{"a":1e400},"to":"w"}'
    const made = await ask('PUT', '/api/schedules/one', `{"every":60,"handoff":${literal}}`)
    t.equal(made.statusCode, 201)
    t.ok(made.body.includes(`"handoff":${literal},`))
    t.ok((await ask('GET', '/api/schedules/one')).body.includes(literal))
    const { handoff_id: id } = (await ask('POST', '/api/schedules/one/run')).json()
    t.ok((await ask('GET', `/api/catch/${id}`)).body.includes('"n":1.0,"big":9007199254740993'))
    await put('two', { every: 60 })
    t.match(await get('two'), { handoff })
  })

  t.test('made anew it is another schedule, which ticks for the same time again', async t => {
    const { put, runs, ask } = as('remade')
    await put('one', { cron: '* * * * *', overlap: 'allow' })
    await tickAt(30)
    const [first] = await runs('one')
    await ask('DELETE', '/api/schedules/one')
    await tickAt(90)
    t.equal((await ask('GET', `/api/status/${first.handoff_id}`)).statusCode, 200, 'what it has passed stays')
    await setClock(start + 25_000)
    await put('one', { cron: '* * * * *', overlap: 'allow' })
    t.strictSame(await runs('one'), [])
    await tickAt(30)
    const [second] = await runs('one')
    t.match(second, { scheduled_for: at(30), outcome: 'passed' })
    t.not(second.handoff_id, first.handoff_id)
  })

  t.test('an inbox that changes with a tick under way doesn’t make it run twice', async t => {
    const { put, runs, ask } = as('deletes')
    await put('one', { every: 60, overlap: 'allow' })
    await setClock(start + 60_000)
    // A replica takes the tick, passes, and dies before it notes that.
    const dead = await testApp(t, { RETENTION: '3600', EVENTS_RETENTION: '3600' }, { isSpread, prefix }, more)
    while (dead.store.reachedTags().length === 0) await sleep(10)
    const { schedules, handoffs } = dead.store
    const note = schedules.note
    schedules.note = async () => { throw new Error('killed') }
    await dead.app.ticker.go(true)
    schedules.note = note
    t.strictSame(await runs('one'), [])
    const live = async () => (await ask('GET', '/api/handoffs?schedule=one')).json().items
    t.equal((await live()).length, 1)
    await put('one', { every: 60, overlap: 'allow', handoff: { task: 't', to: 'elsewhere' } })
    await tickAt(70)
    t.match(await runs('one'), [{ scheduled_for: at(60), at: at(60), outcome: 'passed', handoff_id: (await live())[0].handoff_id }], 'and says when it was passed')
    t.equal((await live()).length, 1)
    // One that stands still before it passes. Once the schedule is deleted, or its inbox is another, it passes nothing any more.
    for (const [seconds, between] of [[120, async () => {
      await put('one', { every: 60, overlap: 'allow', handoff: { task: 't', to: 'third' } })
      await tickAt(125)
      t.match((await runs('one'))[0], { scheduled_for: at(120), outcome: 'passed' }, 'it runs where its inbox is now')
    }], [180, async () => {
      t.equal((await ask('DELETE', '/api/schedules/one')).statusCode, 204)
    }]] as const) {
      await setClock(start + seconds * 1000)
      const pass = handoffs.pass
      let late: (() => ReturnType<typeof pass>) | undefined
      handoffs.pass = async handoff => {
        if (handoff.options.includes(' Sone ') && handoff.tenant === 'deletes') late = () => pass.call(handoffs, handoff)
        throw new Unavailable('it stands still')
      }
      await setClock(start + seconds * 1000 + 2000)
      await dead.app.ticker.go(true)
      handoffs.pass = pass
      t.ok(late)
      await between()
      const count = (await live()).length
      t.match(await late!(), { outcome: 'ticked' })
      t.equal((await live()).length, count)
    }
  })

  t.test('an inbox that changes with a tick under way, and back again, doesn’t keep it from running', async t => {
    const { put, runs, ask } = as('returns')
    const live = async () => (await ask('GET', '/api/handoffs?schedule=one')).json().items
    await put('one', { every: 60, overlap: 'allow' })
    const stuck = await testApp(t, { RETENTION: '3600', EVENTS_RETENTION: '3600' }, { isSpread, prefix }, more)
    while (stuck.store.reachedTags().length === 0) await sleep(10)
    const { handoffs } = stuck.store
    const pass = handoffs.pass
    const late: Array<() => ReturnType<typeof pass>> = []
    const begunIn = new Set<string>()
    handoffs.pass = async handoff => {
      if (handoff.tenant === 'returns') {
        late.push(() => pass.call(handoffs, handoff))
        begunIn.add(handoff.tag)
      }
      throw new Unavailable('it stands still')
    }
    for (const [seconds, to] of [[60, 'third'], [62, 'reporter']] as const) {
      await setClock(start + seconds * 1000)
      await stuck.app.ticker.go(true)
      await put('one', { every: 60, overlap: 'allow', handoff: { ...handoff, to } })
    }
    t.equal(begunIn.size, 2, 'it was begun in both partitions')
    t.match(await late[0]!(), { outcome: 'ticked' })
    await tickAt(64)
    t.match(await runs('one'), [{ scheduled_for: at(60), outcome: 'passed', handoff_id: (await live())[0]?.handoff_id }])
    for (const one of late) t.match(await one(), { outcome: /ticked|replayed/ })
    t.equal((await live()).length, 1)
    await tickAt(120)
    t.equal((await live()).length, 2, 'and the next one')
  })

  t.test('a replica that stood still notes nothing of a tick that another one has taken since', async t => {
    const { put, runs, post, get } = as('stalls')
    await put('one', { every: 60, overlap: 'skip' })
    await tickAt(60)
    const [{ handoff_id: first }] = await runs('one')
    const stuck = await testApp(t, { RETENTION: '3600', EVENTS_RETENTION: '3600' }, { isSpread, prefix }, more)
    while (stuck.store.reachedTags().length === 0) await sleep(10)
    const { note } = stuck.store.schedules
    let late: (() => ReturnType<typeof note>) | undefined
    stuck.store.schedules.note = async (...args) => {
      if (args[0].tenant !== 'stalls') return await note.apply(stuck.store.schedules, args)
      late = () => note.apply(stuck.store.schedules, args)
      throw new Unavailable('it stands still')
    }
    await setClock(start + 120_000)
    await stuck.app.ticker.go(true)
    t.ok(late, 'it was to skip it')
    await post(`/api/cancel/${first}`)
    const itsNote = store.schedules.note
    store.schedules.note = async (...args) => {
      store.schedules.note = itsNote
      t.equal(await late!(), 'stale')
      return await itsNote.apply(store.schedules, args)
    }
    await tickAt(122)
    t.match((await runs('one'))[0], { scheduled_for: at(120), outcome: 'passed' })
    t.match((await get('one')).last, { scheduled_for: at(120), outcome: 'passed' })
  })

  t.test('a DELETE that can’t end what was begun deletes nothing, and its retry ends it', async t => {
    const { put, ask } = as('ends-begun')
    const { schedules, handoffs } = store
    await put('one', { every: 60, overlap: 'allow' })
    const { pass } = handoffs
    let late: (() => ReturnType<typeof pass>) | undefined
    handoffs.pass = async handoff => {
      if (handoff.tenant === 'ends-begun') late = () => pass.call(handoffs, handoff)
      throw new Unavailable('it stands still')
    }
    await tickAt(60)
    handoffs.pass = pass
    const { settle } = schedules
    schedules.settle = async () => { throw new Unavailable('a failover') }
    t.equal((await ask('DELETE', '/api/schedules/one')).statusCode, 503)
    schedules.settle = settle
    t.equal((await ask('DELETE', '/api/schedules/one')).statusCode, 204)
    t.match(await late!(), { outcome: 'ticked' })
    t.strictSame((await ask('GET', '/api/handoffs?schedule=one')).json().items, [])
  })

  t.test('what its ticker is still to come to is not backfilled, since its inbox may change between', async t => {
    const { put, ask } = as('leaves')
    const fill = async (name: string) => (await ask('POST', `/api/schedules/${name}/backfill`, { since: at(0), until: at(61) })).json()
    const live = async (name: string) => (await ask('GET', `/api/handoffs?schedule=${name}`)).json().items.length
    const elsewhere = { task: 't', to: 'elsewhere' }
    await put('late', { every: 60, overlap: 'allow' })
    await put('rests', { every: 60, jitter: 30, overlap: 'allow', paused: true })
    await setClock(start + 61_000)
    t.match(await fill('late'), { passed: 0, skipped: 1 })
    t.match(await fill('rests'), { passed: 0, skipped: 1 }, 'it comes later, by its jitter')
    await put('late', { every: 60, overlap: 'allow', handoff: elsewhere })
    await put('rests', { every: 60, jitter: 30, overlap: 'allow', handoff: elsewhere })
    await tickAt(95)
    t.strictSame([await live('late'), await live('rests')], [1, 1])
    await ask('POST', '/api/schedules/rests/pause')
    await setClock(start + 200_000)
    t.match((await ask('POST', '/api/schedules/rests/backfill', { since: at(0), until: at(150) })).json(), { passed: 1, skipped: 1 }, 'once that is over, it is')
  })
}
