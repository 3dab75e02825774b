import t from 'tap'
import { homeTag, inboxTag, tagOfDigest } from '../../src/core/ids.ts'
import { TooLarge } from '../../src/core/errors.ts'
import { callerOf } from '../../src/core/model.ts'
import { InboxTaker } from '../../src/handoffs/inbox/take.ts'
import { Inboxes } from '../../src/store/inboxes.ts'
import { KeyNames } from '../../src/store/key-names.ts'
import { Reads } from '../../src/store/reads.ts'
import { testApp, testKeys } from '../helpers/app.ts'
import type { TestApp, Who } from '../helpers/app.ts'
import { personWith, textOf } from '../helpers/forms.ts'
import { isProblem } from '../helpers/problems.ts'

/** Inboxes: passing to one, catching what comes next, counting. */

const start = Date.now() + 3600_000
const iso = (milliseconds: number) => new Date(milliseconds).toISOString()

const service = await testApp(t)
const eventsOn = { EVENTS_RETENTION: '60' }
/** Each test has an inbox of its own, and the real time until it sets another. */
let work = ''
let count = 0
t.beforeEach(async () => {
  work = `work-${++count}`
  await service.redis.del(`clock-${service.prefix}`)
})

const pass = async ({ call }: TestApp, more: object = {}, who: Who = 'alice', headers?: Record<string, string>): Promise<string> =>
  (await call(who, 'POST', '/api/pass', { task: 't', to: work, ...more }, headers)).json().handoff_id
const next = ({ call }: TestApp, body: unknown = { inbox: work }, headers?: Record<string, string>, who: Who = 'bob') =>
  call(who, 'POST', '/api/catch', body, headers)
const taken = async (service: TestApp, body: unknown = { inbox: work, max: 100 }, headers?: Record<string, string>, who?: Who): Promise<string[]> =>
  (await next(service, body, headers, who)).json().items.map(({ handoff_id: id }: { handoff_id: string }) => id)
const inbox = async ({ call }: TestApp, name = work, who: Who = 'alice') => (await call(who, 'GET', `/api/inboxes/${name}`)).json()
const status = async ({ call }: TestApp, id: string) => (await call('alice', 'GET', `/api/status/${id}`)).json()
const sweep = ({ store }: TestApp) => Promise.all([inboxTag('default', work), homeTag('default')].map(tag => store.handoffs.sweep(tag, 100, false)))
const approve = ({ call }: TestApp, id: string) => call('approver', 'POST', `/api/approve/${id}`)

t.test('what was taken is noted for a retry, for long only where the client has a key for it', async t => {
  const lasts = async (headers?: Record<string, string>) => {
    await pass(service)
    const before = await service.redis.keys(`${service.prefix}:*}:n:*`)
    t.equal((await taken(service, { inbox: work }, headers)).length, 1)
    const [note] = (await service.redis.keys(`${service.prefix}:*}:n:*`)).filter(name => !before.includes(name))
    return await service.redis.pttl(note!)
  }
  t.ok(await lasts() <= 10_000)
  t.ok(await lasts({ 'idempotency-key': '"take"' }) > 10_000)
})

t.test('a take of several is a command of its own', async t => {
  const alone: unknown[] = []
  const lanes = { async call ({ isAlone }: { isAlone?: boolean }) { alone.push(isAlone) } }
  const settings = { tags: [], isOneRedis: true, retention: 1 }
  const inboxes = new Inboxes(lanes as never, {} as never, new KeyNames('p'), settings)
  const place = { tag: 'aaa', tenant: 'acme', inbox: 'x' }
  for (const max of [1, 2]) await inboxes.take(place, { token: 't', agent: 'bob', max, lifetime: null, request: '-' } as never)
  t.strictSame(alone, [false, true])
})

t.test('what is passed to an inbox is caught there once, as by its id and literally', async t => {
  const output = '{"n":9007199254740993,"f":1.0,"a":1,"a":2,"__proto__":{"x":1},"s":"\\ud800 é 🙂"}'
  const text = `{"task":"one","to":"${work}","priority":0,"output":${output}}`
  const first = (await service.call('alice', 'POST', '/api/pass', text)).json().handoff_id
  const second = await pass(service, { task: 'two' })
  const answer = await next(service)
  t.equal(answer.statusCode, 200)
  t.equal(answer.headers['cache-control'], 'no-store')
  t.ok(answer.body.includes(`"output":${output}`))
  const { items } = answer.json()
  t.strictSame(Object.keys(items[0]), ['handoff_id', 'status', 'task', 'output', 'context', 'constraints', 'created_at', 'to'])
  t.match(items, [{ handoff_id: first, status: 'caught', task: 'one', to: work, constraints: null }])
  t.match(await status(service, first), { status: 'caught', caught_by: 'bob', to: work, priority: 0 })
  t.match(await status(service, second), { status: 'pending', to: work, priority: 0 })
  t.strictSame(await taken(service), [second])
  t.equal((await next(service)).body, '{"items":[]}')
  isProblem(t, await service.call('bob', 'GET', `/api/catch/${first}`), 409, 'already_caught')
  t.equal((await service.call('bob', 'POST', `/api/done/${first}`)).statusCode, 200)
})

t.test('no inbox is named . or .., which a path can’t end in', async t => {
  const dotty = await testApp(t, { ...eventsOn, API_KEYS: `${testKeys.API_KEYS},..:dotty-secret-0123456789` })
  for (const name of ['.', '..']) {
    const refused: Array<[Who, 'GET' | 'POST' | 'PUT', string, object | undefined, string]> = [
      ['alice', 'POST', '/api/pass', { task: 't', to: name }, '/to'],
      ['bob', 'POST', '/api/catch', { inbox: name }, '/inbox'],
      ['bob', 'POST', '/api/catch', { inboxes: ['a', name] }, '/inboxes/1'],
      ['alice', 'GET', `/api/handoffs?inbox=${name}`, undefined, '/inbox'],
      ['alice', 'GET', `/api/events?inbox=${name}`, undefined, '/inbox'],
      ['approver', 'GET', `/api/approvals?inbox=${name}`, undefined, '/inbox'],
      ['approver', 'GET', `/api/asks?inbox=${name}`, undefined, '/inbox'],
      ['operator', 'POST', '/api/redrive', { inbox: name }, '/inbox'],
      ['operator', 'POST', '/api/purge', { inbox: name }, '/inbox'],
    ]
    for (const [who, method, path, body, pointer] of refused) {
      const answer = await dotty.call(who, method, path, body)
      isProblem(t, answer, 400, 'invalid_request')
      t.equal(answer.json().errors[0].pointer, pointer, path)
    }
    const escaped = name.replaceAll('.', '%2E')
    isProblem(t, await dotty.call('alice', 'GET', `/api/inboxes/${escaped}`), 404, 'not_found')
    isProblem(t, await dotty.call('operator', 'PUT', `/api/inboxes/${escaped}`, { paused: true }), 404, 'not_found')
  }
  // Others that begin with dots are names as any, and an agent may have any name.
  for (const to of ['...', '.a', '..a', 'a.', '..' + 'a'.repeat(62)]) t.equal((await dotty.call('alice', 'POST', '/api/pass', { task: 't', to })).statusCode, 201, to)
  isProblem(t, await dotty.call('alice', 'POST', '/api/pass', { task: 't', to: '..' + 'a'.repeat(63) }), 400, 'invalid_request')
  const headers = { authorization: 'Bearer dotty-secret-0123456789' }
  const own = await dotty.app.inject({ method: 'POST', url: '/api/catch', headers })
  isProblem(t, own, 400, 'invalid_request')
  t.match(own.json().errors, [{ pointer: '/inbox', message: /needed/ }])
  t.equal((await dotty.app.inject({ method: 'POST', url: '/api/catch', headers, payload: { inbox: '...' } })).json().items.length, 1)
})

t.test('the earliest come first, and a step of priority outweighs a minute', async t => {
  const at = async (seconds: number, more: object) => {
    await service.setClock(start + seconds * 1000)
    return await pass(service, more)
  }
  const a = await at(0, { priority: 0 })
  const b = await at(59, { priority: 1 })
  const c = await at(61, { priority: 1 })
  const d = await at(541, { priority: 9 })
  const e = await at(539, { priority: 9 })
  t.match(await inbox(service), { pending: 5, oldest_at: iso(start) })
  t.strictSame(await taken(service), [b, e, a, c, d])
})

t.test('with mixed priorities oldest_at is that of the first 1,000 in the order in which they are caught', async t => {
  const key = new KeyNames(service.prefix).inbox(inboxTag('default', work), 'default', work)
  const score = (at: number, priority: number) => at * 1000 + priority - priority * 60_000_000
  // The first that are looked at are 10, then 90, then 900.
  await service.redis.zadd(key, score(start - 480_000, 0), 'old', ...Array.from({ length: 999 }, (_, n) => [score(start, 9), `m${n}`]).flat())
  t.match(await inbox(service), { pending: 1000, oldest_at: iso(start - 480_000) })
  await service.redis.zadd(key, score(start, 9), 'm999')
  t.match(await inbox(service), { pending: 1001, oldest_at: iso(start) })
})

t.test('names, and what else can’t be', async t => {
  const { call } = service
  for (const to of ['', 'a b', 'ä', 'x'.repeat(65), 'a/b', 'a:b', 7, {}]) {
    isProblem(t, await service.call('alice', 'POST', '/api/pass', { task: 't', to }), 400, 'invalid_request', `to ${JSON.stringify(to)}`)
    isProblem(t, await next(service, { inbox: to }), 400, 'invalid_request', `inbox ${JSON.stringify(to)}`)
  }
  t.match((await service.call('alice', 'POST', '/api/pass', { task: 't', priority: 3 })).json(), { code: 'invalid_request', errors: [{ pointer: '/priority' }] })
  for (const priority of [-1, 10, 1.5, '5', true]) isProblem(t, await service.call('alice', 'POST', '/api/pass', { task: 't', to: work, priority }), 400, 'invalid_request')
  for (const max of [0, 101, '5', 1.5, -1]) isProblem(t, await next(service, { inbox: work, max }), 400, 'invalid_request', `max ${max}`)
  isProblem(t, await next(service, { inbox: work, more: 1 }), 400, 'invalid_request')
  isProblem(t, await next(service, '{"inbox":"a","inbox":"b"}'), 400, 'invalid_request')
  for (const wait of ['61', '-1', '1.5', 'x', '']) isProblem(t, await service.call('bob', 'POST', `/api/catch?wait=${wait}`), 400, 'invalid_request', `wait ${wait}`)
  isProblem(t, await service.call('bob', 'POST', '/api/catch?limit=1'), 400, 'invalid_request')
  isProblem(t, await service.call('approver', 'POST', '/api/catch'), 403, 'insufficient_scope')
  isProblem(t, await call(null, 'POST', '/api/catch'), 401, 'unauthorized')
  const get = await service.app.inject({ method: 'GET', url: '/api/catch' })
  isProblem(t, get, 405, 'method_not_allowed')
  t.equal(get.headers.allow, 'POST')
  for (const name of ['a%20b', 'x'.repeat(65), '%C3%A4']) isProblem(t, await service.call('alice', 'GET', `/api/inboxes/${name}`), 404, 'not_found', name)
  isProblem(t, await service.call('alice', 'GET', '/api/inboxes/work?x=1'), 400, 'invalid_request')
  t.match(await service.call('approver', 'GET', '/api/inboxes/work'), { statusCode: 200 }, 'whoever may see a status')
})

t.test('approved after its delay, it keeps its turn when the sweep comes', async t => {
  await service.setClock(start)
  const asked = await pass(service, { delay: 1, require_human: true })
  await service.setClock(start + 2000)
  const before = await pass(service)
  await service.setClock(start + 3000)
  await approve(service, asked)
  await sweep(service)
  t.match(await inbox(service), { pending: 2, oldest_at: iso(start + 2000) })
  t.strictSame(await taken(service, { inbox: work, max: 2 }), [before, asked])
})

t.test('what has expired takes nobody’s turn, in either list', async t => {
  await service.setClock(start)
  for (let i = 0; i < 2; i++) {
    await approve(service, await pass(service, { require_human: true, expires_in: 1 }))
    await pass(service, { expires_in: 1 })
  }
  await service.setClock(start + 1000)
  const one = await pass(service)
  await service.setClock(start + 1001)
  const two = await pass(service)
  await service.setClock(start + 2000)
  const approved = await pass(service, { require_human: true })
  await approve(service, approved)
  t.strictSame(await taken(service, { inbox: work, max: 2 }), [one, two])
  t.strictSame(await taken(service), [approved])
})

t.test('the same key catches the same again, while it is caught', async t => {
  const key = { 'idempotency-key': work }
  const body = { inbox: work, max: 2 }
  const empty = await next(service, body, key)
  t.match(empty, { statusCode: 200, body: '{"items":[]}' })
  t.notOk(empty.headers['idempotency-replayed'])
  t.equal((await next(service, { inbox: work, max: 3 }, key)).statusCode, 200, 'an answer without items isn’t kept')
  const ids = [await pass(service), await pass(service), await pass(service)]
  const first = await next(service, body, key)
  t.notOk(first.headers['idempotency-replayed'])
  const again = await next(service, body, key)
  t.equal(again.headers['idempotency-replayed'], 'true')
  t.equal(again.body, first.body)
  t.strictSame(first.json().items.map((item: { handoff_id: string }) => item.handoff_id), ids.slice(0, 2))
  isProblem(t, await next(service, { inbox: work, max: 1 }, key), 422, 'idempotency_key_reused')
  isProblem(t, await next(service, { inbox: 'other', max: 2 }, key), 422, 'idempotency_key_reused', 'another inbox is another request')
  isProblem(t, await next(service, JSON.stringify(body) + ' ', key), 422, 'idempotency_key_reused')
  isProblem(t, await service.call('bob', 'GET', `/api/catch/${ids[0]}`, undefined, key), 409, 'already_caught')
  t.strictSame(await taken(service, body, key, 'alice'), [ids[2]], 'another agent’s key is another')
  await service.call('bob', 'POST', `/api/done/${ids[0]}`)
  t.strictSame((await next(service, body, key)).json().items.map((item: { handoff_id: string }) => item.handoff_id), [ids[1]])
  await service.call('bob', 'POST', `/api/done/${ids[1]}`)
  const none = await next(service, body, key)
  t.match(none, { statusCode: 200, body: '{"items":[]}', headers: { 'idempotency-replayed': 'true' } })
  isProblem(t, await next(service, body, { 'idempotency-key': 'ä' }), 400, 'invalid_request')
})

t.test('a key whose claim Redis has lost still stands for what it took, and for no other request', async t => {
  const key = { 'idempotency-key': work }
  const [id] = [await pass(service), await pass(service)]
  t.strictSame(await taken(service, { inbox: work }, key), [id])
  await service.redis.del(...await service.redis.keys(`${service.prefix}:*:q:*`))
  isProblem(t, await next(service, { inbox: work, max: 2 }, key), 422, 'idempotency_key_reused')
  t.strictSame(await taken(service, { inbox: work }, key), [id])
})

t.test('what a key took is not given again once the time for its work is over, though the sweep has not come', async t => {
  const key = { 'idempotency-key': work }
  await service.setClock(start)
  const ids = [await pass(service, { work_within: 5 }), await pass(service, { heartbeat_within: 6 }), await pass(service, { work_within: 7 })]
  for (const left of [ids, ids.slice(1), ids.slice(2), []]) {
    await service.setClock(start + (left.length === 3 ? 0 : (8 - left.length) * 1000 - 1))
    t.strictSame((await taken(service, undefined, key)).sort(), left.toSorted())
  }
})

t.test('a replay has the order of the answer, whichever list each comes from', async t => {
  const approved = async (more: object) => {
    const id = await pass(service, { require_human: true, ...more })
    await approve(service, id)
    return id
  }
  const ids = [await approved({}), await pass(service), await approved({}), await pass(service), await approved({ priority: 1 }), await pass(service, { priority: 2 })]
  const inTurn = [5, 4, 0, 1, 2, 3].map(at => ids[at])
  const key = { 'idempotency-key': work }
  const body = { inbox: work, max: 6 }
  t.strictSame(await taken(service, body, key), inTurn)
  t.strictSame(await taken(service, body, key), inTurn)
})

t.test('a key whose own partition is that of the inbox, or of its tenant', async t => {
  for (const tag of [inboxTag('default', work), homeTag('default')]) {
    let n = 0
    while (tagOfDigest(`key default bob ${tag}${n}`) !== tag) n++
    const headers = { 'idempotency-key': `${tag}${n}` }
    const ids = [await pass(service), await pass(service, { require_human: true })]
    await approve(service, ids[1]!)
    t.strictSame(await taken(service, undefined, headers), ids)
    const again = await next(service, { inbox: work, max: 100 }, headers)
    t.equal(again.headers['idempotency-replayed'], 'true')
    t.strictSame(again.json().items.map(({ handoff_id: id }: { handoff_id: string }) => id), ids)
    isProblem(t, await next(service, { inbox: 'other' }, headers), 422, 'idempotency_key_reused')
  }
})

t.test('a key lives as long as the longest work on what it took', async t => {
  const service = await testApp(t, { WORK_TTL: '60' })
  for (const members of [{ work_within: 3600 }, {}]) await pass(service, members)
  t.equal((await next(service, { inbox: work, max: 2 }, { 'idempotency-key': work })).json().items.length, 2)
  const keys = [...await service.redis.keys(`${service.prefix}:*:n:*`), ...await service.redis.keys(`${service.prefix}:*:q:*`)]
  t.equal(keys.length, 2)
  for (const name of keys) {
    const left = await service.redis.pttl(name)
    t.ok(left > 3590_000 && left <= 3600_000, `${left}`)
  }
})

t.test('together they are 4 MiB at most, and one always', async t => {
  const output = { text: 'x'.repeat(1_000_000) }
  for (let i = 0; i < 3; i++) {
    await pass(service, { output })
    await approve(service, await pass(service, { output, require_human: true }))
  }
  const sizes = []
  for (let left = 6; left > 0;) {
    const answer = await next(service, { inbox: work, max: 100 })
    sizes.push(answer.json().items.length)
    left -= sizes.at(-1)!
    t.ok(answer.rawPayload.length <= 4 * 1024 * 1024, `${answer.rawPayload.length} bytes`)
  }
  t.strictSame(sizes, [4, 2])

  const larger = await testApp(t, { BODY_LIMIT: '8000000' })
  for (let i = 0; i < 2; i++) await pass(larger, { output: { text: 'x'.repeat(5_000_000) } })
  for (const count of [1, 1, 0]) t.equal((await next(larger, { inbox: work, max: 2 })).json().items.length, count)
})

t.test('a key that is held to inboxes catches from those alone', async t => {
  const held = { caller: { ...callerOf('default', 'worker', ['catch', 'status', 'pass']), inboxes: new Set([work, 'a.b']) }, secret: 'worker-secret-0123456789' }
  const service = await testApp(t, {}, {}, [held])
  const ask = (method: 'GET' | 'POST', url: string, body?: object) =>
    service.app.inject({ method, url, headers: { authorization: `Bearer ${held.secret}` }, ...body !== undefined && { payload: body } })
  isProblem(t, await ask('POST', '/api/catch'), 403, 'not_addressee', 'its own name is another inbox')
  isProblem(t, await ask('POST', '/api/catch', { inbox: 'other' }), 403, 'not_addressee')
  isProblem(t, await ask('POST', '/api/catch', { inbox: 'aXb' }), 403, 'not_addressee')
  const id = await pass(service)
  t.equal((await ask('POST', '/api/catch', { inbox: work })).json().items[0].handoff_id, id)
  const other = await pass(service, { to: 'aXb' })
  t.match(isProblem(t, await ask('GET', `/api/catch/${other}`), 403, 'not_addressee'), { handoff_status: 'pending' })
  t.equal((await status(service, other)).status, 'pending')
  const plain = await pass(service, { to: undefined })
  t.equal((await ask('GET', `/api/catch/${plain}`)).statusCode, 200, 'what has no inbox')
  await service.call('bob', 'GET', `/api/catch/${other}`)
  await service.call('bob', 'POST', `/api/done/${other}`)
  const ended = isProblem(t, await ask('GET', `/api/catch/${other}`), 403, 'not_addressee') as { completed_at?: string, handoff_status?: string }
  t.equal(ended.handoff_status, 'done')
  t.ok(ended.completed_at)
  const mine = await pass(service, { to: 'a.b' })
  t.equal((await ask('GET', `/api/catch/${mine}`)).statusCode, 200)
  t.equal((await ask('GET', '/api/inboxes/other')).statusCode, 200, 'it bears on catching alone')
  isProblem(t, await ask('GET', '/api/catch/AAAAAAAAAAAAAAAAAAAAAAAAA'), 404, 'not_found')
})

t.test('a key that is held to inboxes reads nothing of what is for others', async t => {
  const scopes = ['pass', 'catch', 'status', 'approve', 'operate'] as const
  const held = { caller: { ...callerOf('default', 'held', scopes), inboxes: new Set(['mine']) }, secret: 'held-secret-0123456789' }
  const service = await testApp(t, {}, {}, [held])
  const { call } = service
  const ask = (method: 'GET' | 'POST', url: string, body?: object) =>
    service.app.inject({ method, url, headers: { authorization: `Bearer ${held.secret}` }, ...body !== undefined && { payload: body } })
  /** Everything that was written of a handoff: what it was passed with, and what its catcher asks. */
  const written = (to: string | undefined) => `content ${to}`
  const all = async (to: string | undefined) => {
    const body = { task: written(to), output: { a: written(to) }, context: { a: written(to) }, constraints: written(to), to }
    const [waiting, decided, failed, asking, live, done] = await Promise.all([{ require_human: true }, { require_human: true }, {}, {}, {}, {}].map(more => pass(service, { ...body, ...more })))
    await call('approver', 'POST', `/api/approve/${decided}`, { note: written(to) })
    for (const id of [failed, asking, done]) t.equal((await call('bob', 'GET', `/api/catch/${id}`)).statusCode, 200)
    await call('bob', 'POST', `/api/fail/${failed}`, { error: { message: written(to) } })
    await call('bob', 'POST', `/api/done/${done}`, { output: { a: written(to) } })
    await call('bob', 'POST', `/api/heartbeat/${asking}`, { progress: { message: written(to) } })
    t.equal((await call('bob', 'POST', `/api/ask/${asking}`, { question: written(to), details: { a: written(to) } })).statusCode, 201)
    return { waiting: waiting!, decided: decided!, failed: failed!, asking: asking!, live: live!, done: done! }
  }
  const [mine, theirs, anyones] = [await all('mine'), await all('theirs'), await all(undefined)]
  const open = await personWith(service, held.secret)
  const mcp = (name: string, args: object) => service.app.inject({
    method: 'POST',
    url: '/mcp',
    headers: { authorization: `Bearer ${held.secret}`, accept: 'application/json, text/event-stream', 'mcp-protocol-version': '2025-11-25' },
    payload: { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } }
  })

  const shared: Record<string, () => ReturnType<typeof ask>> = {
    lists: () => ask('GET', '/api/handoffs?limit=100'),
    'the failed list': () => ask('GET', '/api/handoffs?state=failed&limit=100'),
    approvals: () => ask('GET', '/api/approvals?limit=100'),
    questions: () => ask('GET', '/api/asks?limit=100'),
    'the people’s list': () => open('/approvals'),
    'the same as it changes': () => open('/approvals/list?seen=x'),
    'the console’s failures': () => open('/console/failed'),
    'MCP’s list': () => mcp('handoff_list', { limit: 100 }),
  }
  for (const [name, read] of Object.entries(shared)) {
    const { statusCode, body } = await read()
    t.equal(statusCode, 200, name)
    t.match(body, written('mine'), name)
    // What is for no inbox is for every key.
    t.match(body, written(undefined), name)
    t.notMatch(body, written('theirs'), name)
  }
  for (const one of ['decided', 'failed', 'asking', 'done'] as const) {
    for (const [of, isRead] of [[mine, true], [anyones, true], [theirs, false]] as const) {
      const answers = [await ask('GET', `/api/status/${of[one]}`), await ask('POST', '/api/wait', { ids: [of[one]] })]
      for (const { statusCode, body } of answers) {
        t.equal(statusCode, 200)
        t.equal(body.includes('content'), isRead, `${one} ${body}`)
      }
    }
  }
  t.match((await ask('GET', `/api/status/${theirs.done}`)).json(), { status: 'done', result: null, completed_at: String })
  t.match((await call('bob', 'GET', `/api/status/${theirs.done}`)).json(), { result: { a: 'content theirs' } })
  // How it stands is there as it was.
  const { items } = (await ask('GET', '/api/handoffs?limit=100&inbox=theirs')).json()
  t.strictSame(items.map(({ handoff_id: id }: { handoff_id: string }) => id).sort(), [theirs.waiting, theirs.decided, theirs.asking, theirs.live].sort())
  t.notOk(items.some((item: object) => 'task' in item))

  const refused: Array<[string, (of: typeof mine) => string]> = [
    ['GET', ({ live }) => `/api/catch/${live}`], ['GET', ({ waiting }) => `/api/approvals/${waiting}`], ['GET', ({ decided }) => `/api/approvals/${decided}`],
    ['GET', ({ asking }) => `/api/ask/${asking}`]
  ]
  for (const [, path] of refused) {
    isProblem(t, await ask('GET', path(theirs)), 403, 'not_addressee')
    for (const own of [mine, anyones]) t.equal((await ask('GET', path(own))).statusCode, 200)
  }
  isProblem(t, await ask('GET', `/api/approvals/${theirs.asking}`), 403, 'not_addressee')
  for (const [path, of] of [['', 'waiting'], ['/whole', 'waiting'], ['', 'asking']] as const) {
    const page = await open(`/approvals/${theirs[of]}${path}`)
    t.equal(page.statusCode, 403)
    t.notMatch(page.body, /content theirs/)
    t.match(textOf(page.body), /This key can’t be used for this.*its own inboxes/)
    t.match((await open(`/approvals/${mine[of]}${path}`)).body, /content mine/)
  }
  t.notMatch((await open(`/console/handoffs/${theirs.asking}`)).body, /content theirs/)
  t.notMatch((await open('/console/inboxes/theirs')).body, /content theirs/)
  t.notMatch((await mcp('handoff_asked', { id: theirs.asking })).body, /content theirs/)

  // Who passes to another inbox is asked as the passer, and sees how it ended.
  const { handoff_id: passed } = (await ask('POST', '/api/pass', { task: 't', to: 'theirs' })).json()
  await call('bob', 'GET', `/api/catch/${passed}`)
  await call('bob', 'POST', `/api/ask/${passed}`, { question: 'which?', of: 'passer' })
  t.match((await ask('GET', `/api/ask/${passed}`)).json(), { question: 'which?' })
  t.match((await ask('GET', '/api/asks?of=passer')).json(), { items: [{ handoff_id: passed, question: 'which?' }] })
  await call('bob', 'POST', `/api/done/${passed}`, { output: { a: 1 } })
  t.match((await ask('GET', `/api/status/${passed}`)).json(), { status: 'done', result: { a: 1 } })
})

t.test('an entry alone gives no agent what waits for a person, or for its time', async t => {
  await service.setClock(start)
  const [asked, delayed] = [await pass(service, { require_human: true }), await pass(service, { delay: 60 })]
  const list = new KeyNames(service.prefix).inbox(inboxTag('default', work), 'default', work)
  await service.redis.zadd(list, 1, `default:${asked}`, 2, `default:${delayed}`)
  t.strictSame(await taken(service), [])
  t.strictSame(await service.redis.zrange(list, '0', '-1'), [`default:${delayed}`], 'it stays for when Redis’s clock, set back, has come there')
  await service.setClock(start + 60_000)
  t.strictSame(await taken(service), [delayed])
})

t.test('what waits for a person counts until it expires, and what has failed as long as it is kept', async t => {
  await service.setClock(start)
  await pass(service, { require_human: true, expires_in: 5 })
  const failed = await pass(service)
  t.strictSame(await taken(service), [failed])
  await service.call('bob', 'POST', `/api/fail/${failed}`, { error: { message: 'm' } })
  const counts: object[] = []
  for (const at of [4999, 5000, 86_400_000, 86_400_001]) {
    await service.setClock(start + at)
    const { waiting_approval: waiting, failed } = await inbox(service)
    counts.push([waiting, failed])
  }
  t.strictSame(counts, [[1, 1], [0, 1], [0, 1], [0, 0]], 'before any sweep')
})

t.test('dead entries are passed over, however many there are', async t => {
  await service.setClock(start)
  for (let i = 0; i < 100; i++) await pass(service, { expires_in: 1 })
  await service.setClock(start + 1)
  const live = await pass(service)
  await service.setClock(start + 1000)
  t.strictSame(await taken(service, { inbox: work }), [live])
  t.match(await inbox(service), { pending: 0 })
})

t.test('who has waited for a slot passes dead entries over as long as who has not', async t => {
  const dead = { outcome: 'taken', items: [], isMore: true }
  const replies = [new TooLarge(), dead, { outcome: 'taken', items: [{ id: 'live' }], isMore: false }]
  const take = async () => {
    const reply = replies.shift()!
    if (reply instanceof Error) throw reply
    return reply
  }
  const taker = new InboxTaker({ take } as never, new Reads(), 60_000)
  const caller = callerOf('default', 'bob', ['catch'])
  const requester = { grant: () => ({ authorise: () => caller }), isGone: () => false }
  // By the time it has its slot, its look would be over.
  const asked = { caller, max: 1, worker: undefined, requester, waiting: null, keyed: null, end: 0, until: Infinity }
  const own = { tenant: 'default', inbox: 'work', tag: inboxTag('default', 'work') }
  t.match(await taker.take({ places: { own, home: null }, queue: {} as never }, asked), { items: [{ id: 'live' }] })
})
