import { once } from 'node:events'
import { setTimeout } from 'node:timers/promises'
import t from 'tap'
import { inboxTag } from '../../src/core/ids.ts'
import { callerOf } from '../../src/core/model.ts'
import { longAgo } from '../../src/store/requester.ts'
import { testApp } from '../helpers/app.ts'
import { skipInQuick } from '../helpers/extent.ts'
import { fewAtATime } from '../helpers/few.ts'
import { isProblem } from '../helpers/problems.ts'
import { callsOf } from '../helpers/redis.ts'
import { ofOneReplica } from '../helpers/through.ts'
import { listen, wire } from '../helpers/wire.ts'

/** GET /api/handoffs. Each subtest has a tenant of its own, with a worker and an operator. */

const tenants = ['plain', 'order', 'filters', 'failed', 'paging', 'ties', 'tied', 'apart', 'texts', 'large', 'last', 'succeeded', 'gone', 'undecided', 'again', 'rare', 'far', 'aaa', 'walk', 'zzz']
const agents = [['ann', ['pass', 'catch', 'status']], ['ben', ['pass', 'catch', 'status']], ['olga', ['operate', 'status', 'approve']]] as const
const secretOf = (tenant: string, agent: string) => `${tenant}-${agent}-secret-0123456789`
const more = tenants.flatMap(tenant => agents.map(([agent, scopes]) => ({ caller: callerOf(tenant, agent, scopes), secret: secretOf(tenant, agent) })))
const service = await testApp(t, {}, { retention: 3_600_000 }, more)
const { app, store, redis, prefix, setClock } = service

interface Item { handoff_id: string, [name: string]: unknown }
interface Page { items: Item[], next_cursor: string | null }

function as (tenant: string, agent = 'ann') {
  const ask = async (method: 'GET' | 'POST', url: string, body?: object) => await app.inject({
    method, url, headers: { authorization: `Bearer ${secretOf(tenant, agent)}` }, ...body && { body }
  })
  const post = async (path: string, body: object = {}): Promise<Item> => {
    const answer = await ask('POST', path, body)
    if (answer.statusCode >= 300) throw new Error(answer.body)
    return answer.json()
  }
  return {
    ask,
    post,
    pass: async (members: object = {}) => (await post('/api/pass', { task: 't', ...members })).handoff_id,
    catch: async (id: string) => (await ask('GET', `/api/catch/${id}`)).json() as Item,
    status: async (id: string) => (await ask('GET', `/api/status/${id}`)).json() as Item,
    list: async (query = ''): Promise<Page> => (await ask('GET', `/api/handoffs?${query}`)).json(),
    /** Goes through all pages. */
    async all (query = ''): Promise<Item[]> {
      const items: Item[] = []
      for (let cursor: string | null = '', pages = 0; cursor !== null && pages < 500; pages++) {
        const page: Page = (await ask('GET', `/api/handoffs?${query}${cursor === '' ? '' : `&cursor=${cursor}`}`)).json()
        items.push(...page.items)
        cursor = page.next_cursor
      }
      return items
    },
  }
}

const ids = (items: Item[]) => items.map(({ handoff_id: id }) => id)
const sweep = (...all: string[]) => Promise.all([...new Set(all.map(id => id.slice(0, 3)))].map(tag => store.handoffs.sweep(tag, 100)))
// The lists of what ended see to those that are gone when a time's last digits are 00.
const start = Math.floor(Date.now() / 100) * 100
t.beforeEach(() => setClock(start))

t.test('a plain handoff, and what others have besides', async t => {
  const { pass, post, list, catch: take, status } = as('plain')
  const plain = await pass()
  const created = (await status(plain)).created_at
  t.strictSame(await list(), {
    items: [{
      handoff_id: plain, status: 'pending', require_human: false, passed_by: 'ann', created_at: created, expires_at: new Date(start + 86_400_000).toISOString(),
    }],
    next_cursor: null,
  })
  const full = await pass({
    to: 'work', priority: 2, labels: { run: '42' }, parent: (await take(plain)).handoff_id, max_attempts: 3, require_human: true, heartbeat_within: 60, work_within: 600, delay: 1,
  })
  await as('plain', 'olga').post(`/api/approve/${full}`)
  await setClock(start + 1000)
  await take(full)
  await setClock(start + 2000)
  await post(`/api/heartbeat/${full}`, { progress: { percent: 50 } })
  await post(`/api/cancel/${full}`)
  const its = await status(full)
  t.equal(its.heartbeat_at, new Date(start + 2000).toISOString())
  const item = (await list()).items.find(({ handoff_id: id }) => id === full)!
  t.equal(JSON.stringify(Object.keys(item)), JSON.stringify([
    'handoff_id', 'status', 'require_human', 'passed_by', 'created_at', 'expires_at', 'to', 'priority', 'labels', 'parent', 'max_attempts', 'available_at', 'approval',
    'caught_by', 'caught_at', 'work_expires_at', 'heartbeat_expires_at', 'heartbeat_at', 'progress', 'cancel_requested_at',
  ]))
  for (const [name, value] of Object.entries(item)) if (name in its) t.strictSame(value, its[name], `${name}, as on status`)
  t.match(item, { passed_by: 'ann', max_attempts: 3 })
  t.equal((await status(plain)).heartbeat_at, undefined)
})

t.test('live: by when the service looks at it next', async t => {
  const { pass, post, all, catch: take } = as('order')
  const late = await pass({ expires_in: 5000 })
  const delayed = await pass({ expires_in: 6000, delay: 100 })
  const inWork = await pass({ expires_in: 9000, work_within: 50 })
  const heard = await pass({ expires_in: 9000, work_within: 900, heartbeat_within: 200 })
  for (const id of [inWork, heard]) await take(id)
  const overdue = await pass({ expires_in: 1 })
  const done = await pass()
  await take(done)
  await post(`/api/done/${done}`)
  await setClock(start + 1000)
  t.strictSame(ids(await all()), [inWork, delayed, heard, late], 'what has expired isn’t live, whether or not the sweep has been there')
  await sweep(overdue)
  await setClock(start + 100_000)
  await sweep(delayed)
  t.strictSame(ids(await all()), [heard, late, delayed], 'the delay is over, and so is the work')
})

t.test('filters want all that they say', async t => {
  const { pass, all, catch: take } = as('filters')
  const ben = as('filters', 'ben')
  const [none, work, other, red] = [
    await pass(), await pass({ to: 'work', labels: { run: '42', team: 'red' } }), await ben.pass({ to: 'other', labels: { run: '42' } }), await ben.pass({ labels: { run: '4', team: 'red' } }),
  ]
  await take(red)
  for (const [query, wanted] of [
    ['', [none, work, other, red]], ['inbox=work', [work]], ['inbox=wor', []], ['passed_by=ben', [other, red]], ['caught_by=ann', [red]], ['caught_by=ann&passed_by=ann', []],
    ['labels=run:42', [work, other]], ['labels=run:42,team:red', [work]], ['labels=run:4', [red]], ['labels=run:42&inbox=other', [other]], ['labels=run:42,run:4', []],
  ] as const) t.same(ids(await all(query)).sort(), [...wanted].sort(), query)
})

t.test('failed: what ended undone and gets no successor, the latest first', async t => {
  const { pass, post, all, catch: take, list } = as('failed')
  const taken = async (members: object = {}) => { const id = await pass(members); await take(id); return id }
  const at = (seconds: number) => setClock(start + seconds * 1000)
  const failed = await taken({ to: 'work' })
  const declined = await taken()
  const stalled = await taken({ to: 'work', work_within: 10 })
  const uncaught = await pass({ to: 'work', expires_in: 20 })
  const undecided = await pass({ to: 'work', expires_in: 21, require_human: true, delay: 20, after: [uncaught], after_need: 'ended' })
  const others = { uncaught: await pass({ expires_in: 20 }), done: await taken(), cancelled: await pass(), forced: await taken(), tried: await taken({ max_attempts: 2 }), taken: await taken() }
  await at(5)
  await post(`/api/fail/${failed}`, { error: { message: 'It broke.', code: 'broken', data: { secret: 1 } } })
  await at(6)
  await post(`/api/decline/${declined}`, { reason: 'No.' })
  await post(`/api/done/${others.done}`)
  for (const id of [others.cancelled, others.forced]) await post(`/api/cancel/${id}`, { force: true })
  await post(`/api/fail/${others.tried}`, { error: { message: 'Again.' } })
  await post(`/api/reissue/${others.taken}`)
  await at(30)
  t.match(await as('failed').status(undecided), { expired_because: 'not_decided' }, 'whatever else hindered it, and before the sweep has been there')
  await sweep(stalled, uncaught, others.uncaught, undecided)
  const items = await all('state=failed')
  t.strictSame(ids(items), [undecided, uncaught, stalled, declined, failed])
  t.strictSame(items.map(({ status, ended_at: ended, ended_by: by, expired_because: because, error, reason }) => [status, ended, by, because, error, reason]), [
    ['expired', new Date(start + 21_000).toISOString(), null, 'not_decided', undefined, undefined],
    ['expired', new Date(start + 20_000).toISOString(), null, 'not_caught', undefined, undefined],
    ['expired', new Date(start + 10_000).toISOString(), null, 'not_done', undefined, undefined],
    ['declined', new Date(start + 6000).toISOString(), 'ann', undefined, undefined, 'No.'],
    ['failed', new Date(start + 5000).toISOString(), 'ann', undefined, { message: 'It broke.', code: 'broken' }, undefined],
  ])
  const time = (seconds: number) => encodeURIComponent(new Date(start + seconds * 1000).toISOString())
  for (const [query, wanted] of [
    ['inbox=work', [undecided, uncaught, stalled, failed]], ['status=failed', [failed]], ['status=expired,declined', [undecided, uncaught, stalled, declined]], ['error_code=broken', [failed]], ['error_code=broke', []],
    [`since=${time(6)}`, [undecided, uncaught, stalled, declined]], [`until=${time(6)}`, [failed]], [`since=${time(5)}&until=${time(20)}`, [stalled, declined, failed]], ['caught_by=ann', [stalled, declined, failed]],
  ] as const) t.same(ids(await all(`state=failed&${query}`)), wanted, query)
  t.strictSame(ids(await all()).filter(id => [failed, declined, stalled, uncaught].includes(id)), [], 'none of them is live')
  for (const id of [failed, uncaught, undecided]) await post(`/api/reissue/${id}`)
  t.strictSame(ids((await list('state=failed')).items), [stalled, declined], 'what was reissued is no longer there')
  t.strictSame(ids((await list('state=failed&inbox=work')).items), [stalled])
})

t.test('who pages sees each once, whatever comes and goes', async t => {
  const { pass, post, ask, catch: take } = as('paging')
  const there = await fewAtATime(25, n => pass({ expires_in: 1000 + n }))
  const seen: string[] = []
  let cursor = ''
  do {
    const page: Page = (await ask('GET', `/api/handoffs?limit=4${cursor}`)).json()
    t.ok(page.items.length <= 4)
    seen.push(...ids(page.items))
    await post('/api/pass', { task: 't', expires_in: 500 })
    // Cancelled ones leave the list: here the last one that was shown.
    const last = page.items.at(-1)
    if (last !== undefined) await post(`/api/cancel/${last.handoff_id}`)
    cursor = page.next_cursor === null ? '' : `&cursor=${page.next_cursor}`
  } while (cursor !== '')
  t.strictSame(seen.filter(id => there.includes(id)), there)
  const failed = await fewAtATime(9, async () => { const id = await pass(); await take(id); return id })
  for (const [n, id] of failed.entries()) { await setClock(start + 1000 * n); await post(`/api/fail/${id}`, { error: { message: 'm' } }) }
  const first: Page = (await ask('GET', '/api/handoffs?state=failed&limit=4')).json()
  await post(`/api/reissue/${first.items[3]!.handoff_id}`)
  const second: Page = (await ask('GET', `/api/handoffs?state=failed&limit=100&cursor=${first.next_cursor}`)).json()
  t.strictSame([...ids(first.items), ...ids(second.items)], failed.toReversed())
  t.equal(second.next_cursor, null)
})

t.test('a page of some with one time is full', async t => {
  const { pass, list } = as('ties')
  await fewAtATime(12, () => pass())
  t.equal((await list('limit=5')).items.length, 5)
})

t.test('many with one time, in one partition and in all', skipInQuick, async t => {
  const { pass, all } = as('tied')
  const wanted = await fewAtATime(150, n => pass(n % 2 === 0 ? { to: 'work' } : {}))
  for (const limit of [1, 7, 100]) t.strictSame(ids(await all(`limit=${limit}`)), [...wanted].sort(), `limit=${limit}`)
  t.equal((await all('inbox=work&limit=7')).length, 75)
})

t.test('another tenant’s are not there, nor named in a cursor', async t => {
  const mine = as('apart')
  const theirs = Array.from({ length: 30 }, (_, n) => `${start + 5000 + n}`)
  const tag = inboxTag('apart', 'work')
  // Before, at and behind its own in the order of names, in the partition of its inbox.
  for (const tenant of ['aaa', 'apart.', 'zzz']) await redis.zadd(`${prefix}:{${tag}}:due:${tenant}`, ...theirs.flatMap((score, n) => [score, `${tenant}:${tag}${String(n).padStart(21, '0')}A`]))
  const own = await fewAtATime(12, n => mine.pass({ to: 'work', expires_in: 5 + n }))
  for (const query of ['limit=1', 'limit=5', 'inbox=work&limit=2']) {
    const seen: string[] = []
    let cursor: string | null = ''
    while (cursor !== null) {
      const page: Page = (await mine.ask('GET', `/api/handoffs?${query}${cursor === '' ? '' : `&cursor=${cursor}`}`)).json()
      seen.push(...ids(page.items))
      cursor = page.next_cursor
      t.notMatch(Buffer.from(cursor ?? '', 'base64url').toString(), /aaa|apart|zzz/)
    }
    t.strictSame(seen, own, query)
  }
  const cursor = (await mine.list('limit=1')).next_cursor
  t.strictSame((await as('texts').list(`cursor=${cursor}`)).items, [], 'their cursor is but a place')
})

t.test('what other tenants have costs a list nothing', async t => {
  const far = as('far')
  const last = await far.pass({ expires_in: 200, labels: { only: 'this' } })
  const queries = ['limit=100', 'labels=only:this', 'passed_by=ann', 'passed_by=ben', 'limit=1']
  /** What each list finds, and how many calls it takes. */
  const listed = async () => {
    const all: Array<{ found: string[], next: string | null, calls: number }> = []
    for (const query of queries) {
      const before = callsOf(store, 'list')
      const { items, next_cursor: next } = await far.list(query)
      all.push({ found: ids(items), next, calls: callsOf(store, 'list') - before })
    }
    return all
  }
  const alone = await listed()
  t.strictSame(alone.map(({ found, next }) => [found, next]), queries.map(query => [query === 'passed_by=ben' ? [] : [last], null]))
  // In batches, so that many have one time; by their names before and behind this tenant.
  for (const tenant of ['aaa', 'walk', 'zzz']) {
    for (let n = 0; n < 7; n++) await as(tenant).post('/api/batch', { operations: Array.from({ length: 100 }, () => ({ op: 'pass', body: { task: 'x', to: `d${n}`, expires_in: 100 } })) })
  }
  t.strictSame(await listed(), alone, 'as without them')
})

t.test('tasks are shown to operators, cut; errors and reasons are cut for all', async t => {
  const { pass, post, list, catch: take } = as('texts')
  const operator = as('texts', 'olga')
  const face = '\u{1f600}'
  const [short, long] = [await pass({ task: face.repeat(200), expires_in: 10 }), await pass({ task: `"${face.repeat(200)}`, expires_in: 20 })]
  const items = (await operator.list()).items
  t.strictSame(items.map(({ handoff_id: id, task, task_truncated: isCut }) => [id, task, isCut]), [[short, face.repeat(200), undefined], [long, `"${face.repeat(199)}`, true]])
  t.notOk((await list()).items.some(item => 'task' in item))
  for (const id of [short, long]) await take(id)
  await post(`/api/fail/${short}`, { error: { data: { message: 'no' }, message: `\u2028"${face.repeat(1000)}` } })
  await setClock(start + 1)
  await post(`/api/decline/${long}`, { reason: 'x'.repeat(4000) })
  const [declined, failed] = (await list('state=failed')).items
  t.equal(declined!.reason, 'x'.repeat(1000))
  t.strictSame(failed!.error, { message: `\u2028"${face.repeat(998)}` })
  t.equal((await operator.list('state=failed')).items[0]!.task_truncated, true, 'the payload is still there')
})

t.test('payloads and errors of a megabyte', skipInQuick, async t => {
  const { pass, post, all, catch: take } = as('large')
  const operator = as('large', 'olga')
  const big = 'x'.repeat(900_000)
  const all10: string[] = []
  for (let n = 0; n < 10; n++) all10.push(await pass({ task: big, to: 'work', expires_in: 100 + n }))
  t.strictSame(ids(await operator.all('limit=100')), all10)
  t.equal((await operator.all('inbox=work&limit=100')).length, 10)
  for (const [n, id] of all10.entries()) {
    await take(id)
    await setClock(start + n)
    await post(`/api/fail/${id}`, { error: { data: { big }, message: 'm', code: 'c' } })
  }
  t.strictSame(ids(await all('state=failed&limit=100')), all10.toReversed())
})

t.test('one list has large errors, and another the one that comes first', async t => {
  const { pass, post, all, list, catch: take } = as('last')
  const operator = as('last', 'olga')
  const fail = async (id: string, at: number, data: string) => {
    await take(id)
    await setClock(start + at)
    await post(`/api/fail/${id}`, { error: { data: { data }, message: 'm' } })
  }
  // What a person approved lies in another partition than the rest of its inbox.
  const [first, last] = [await pass({ to: 'work', require_human: true }), await pass({ to: 'work', require_human: true })]
  for (const id of [first, last]) await operator.post(`/api/approve/${id}`)
  const large: string[] = []
  for (let n = 0; n < 10; n++) large.push(await pass({ to: 'work' }))
  await fail(first, 0, '')
  for (const [n, id] of large.entries()) await fail(id, n + 1, 'x'.repeat(600_000))
  await fail(last, 20, '')
  const latestFirst = [first, ...large, last].toReversed()
  t.strictSame(ids(await all('state=failed&inbox=work')), latestFirst)
  t.strictSame(ids(await all('state=failed')), latestFirst)
  const page = await list('state=failed&inbox=work')
  t.ok(page.items.length > 0 && page.items.length < 6, 'a page reads so much of errors')
  t.match(await operator.post('/api/redrive', { inbox: 'work', limit: 1 }), { reissued: 1 })
  t.match(await as('last').status(first), { reissued_as: /./ })
})

t.test('a replica of an older version made a successor, and left the failed list as it was', async t => {
  const { pass, post, list, catch: take } = as('succeeded')
  const id = await pass()
  await take(id)
  await post(`/api/fail/${id}`, { error: { message: 'm' } })
  const key = `${prefix}:{${id.slice(0, 3)}}:f:succeeded`
  const [, score] = await redis.zrange(key, '0', '-1', 'WITHSCORES')
  await post(`/api/reissue/${id}`)
  await redis.zadd(key, score!, `succeeded:${id}`)
  t.strictSame((await list('state=failed')).items, [])
  t.match(await as('succeeded', 'olga').post('/api/redrive'), { reissued: 0, skipped: 0, more: false })
})

t.test('what is gone leaves the failed list without a sweep', async t => {
  const { pass, post, list, catch: take } = as('gone')
  const [first, second] = [await pass({ to: 'work' }), await pass({ to: 'work' })]
  for (const id of [first, second]) await take(id)
  await post(`/api/fail/${first}`, { error: { message: 'm' } })
  const [failed, inWork] = [`${prefix}:{${first.slice(0, 3)}}:f:gone`, `${prefix}:{${first.slice(0, 3)}}:i:gone:work:failed`]
  const ends = start + 3_600_000 + 600_000
  for (const key of [failed, inWork]) t.equal(await redis.pexpiretime(key), ends, 'the lists have an end, later than they need')
  await redis.del(`${prefix}:{${first.slice(0, 3)}}:h:gone:${first}`)
  t.strictSame((await list('state=failed')).items, [])
  await setClock(start + 600_000)
  await post(`/api/fail/${second}`, { error: { message: 'm' } })
  for (const key of [failed, inWork]) t.equal(await redis.pexpiretime(key), ends, 'so not every end sees to it')
  await setClock(start + 3_601_099)
  const rest = async () => {
    const id = await pass({ to: 'work' })
    await take(id)
    await post(`/api/fail/${id}`, { error: { message: 'm' } })
    return `gone:${id}`
  }
  const third = await rest()
  for (const key of [failed, inWork]) t.strictSame(await redis.zrange(key, '0', '-1'), [`gone:${first}`, `gone:${second}`, third])
  await setClock(start + 3_601_100)
  const fourth = await rest()
  for (const key of [failed, inWork]) t.strictSame(await redis.zrange(key, '0', '-1'), [`gone:${second}`, third, fourth], 'its place is cleared, by each hundredth that comes')
  for (const key of [failed, inWork]) t.equal(await redis.pexpiretime(key), start + 3_601_099 + 3_600_000 + 600_000)
})

t.test('nobody decided before it expired in an inbox: a person decides on its successor', async t => {
  const { pass, post, list, status } = as('undecided')
  const operator = as('undecided', 'olga')
  const id = await pass({ require_human: true, to: 'work', expires_in: 10, task: 'Ask me.' })
  for (const isSwept of [true, false]) {
    const last = (await list(isSwept ? '' : '')).items[0]!.handoff_id
    await setClock(start + 20_000 + (isSwept ? 0 : 20_000))
    if (isSwept) await sweep(last)
    t.strictSame((await operator.ask('GET', '/api/approvals')).json().items, [])
    const next = await post(`/api/reissue/${last}`)
    t.match(next, { status: 'pending', approval_url: /./ })
    t.match((await operator.ask('GET', '/api/approvals')).json().items, [{ handoff_id: next.handoff_id, task: 'Ask me.' }])
    t.match((await as('undecided').ask('GET', '/api/inboxes/work')).json(), { pending: 0, waiting_approval: 1 })
    t.match(await status(last), { status: 'expired', reissued_as: next.handoff_id })
    t.strictSame((await list('state=failed')).items, [])
  }
  const last = (await list()).items[0]!.handoff_id
  t.match(await status(last), { attempt: 3 })
  t.not(last, id)
  await operator.post(`/api/approve/${last}`)
  t.match(await post('/api/catch', { inbox: 'work' }), { items: [{ handoff_id: last, task: 'Ask me.', attempt: 3 }] })
})

t.test('what matches is found among many that don’t', async t => {
  const { pass, list } = as('rare')
  await fewAtATime(300, () => pass({ to: 'work', expires_in: 100 }))
  const wanted = await pass({ to: 'work', expires_in: 200, labels: { only: 'this' } })
  const pages: Page[] = []
  for (let cursor = ''; cursor !== 'null';) {
    const page = await list(`labels=only:this&inbox=work${cursor}`)
    pages.push(page)
    cursor = page.next_cursor === null ? 'null' : `&cursor=${page.next_cursor}`
  }
  t.strictSame(pages.flatMap(({ items }) => ids(items)), [wanted])
})

t.test('nothing is read for who has gone while others were read', { skip: ofOneReplica }, async t => {
  const { list } = as('again')
  const port = await listen(app)
  const reads: string[] = []
  let release = () => {}
  const released = new Promise<void>(resolve => { release = resolve })
  for (const [from, name] of [[store.lists, 'page'], [store.inboxes, 'names'], [store.approvals, 'list']] as const) {
    const read = (from as unknown as Record<string, (...asked: unknown[]) => unknown>)[name]!
    t.intercept(from as never, name as never, {
      value: async (...asked: unknown[]) => {
        reads.push(name)
        await released
        return await read.apply(from, asked)
      }
    } as never)
  }
  const held = [list(), list()]
  const requests = [['GET', 'handoffs'], ['GET', 'inboxes'], ['GET', 'approvals?inbox=box'], ['POST', 'redrive', '{}'], ['POST', 'purge', '{"inbox":"box"}']]
  const gone = await Promise.all(requests.map(async ([method, path, body = '']) => {
    const { socket, send } = await wire(t, port)
    const head = `${method} /api/${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${secretOf('again', 'olga')}\r\n`
    send(`${head}${body && `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n`}\r\n${body}`)
    await once(app.server, 'request')
    return socket
  }))
  // They wait for longer than a request relies on what it knew when it came.
  await setTimeout(longAgo + 200)
  for (const socket of gone) socket.destroy()
  release()
  await Promise.all(held)
  await list()
  t.strictSame(reads, ['page', 'page', 'page'])
})

t.test('bad requests', async t => {
  const { ask, list, pass } = as('again')
  await pass()
  await pass()
  const cursor = (await list('limit=1')).next_cursor!
  for (const [query, pointer] of [
    ['state=gone', '/state'], ['limit=0', '/limit'], ['limit=101', '/limit'], ['inbox=a%20b', '/inbox'], ['passed_by=', '/passed_by'], ['labels=run', '/labels'], ['labels=', '/labels'],
    ['cursor=', '/cursor'], ['cursor=x', '/cursor'], [`state=failed&cursor=${cursor}`, '/cursor'], [`cursor=${cursor}x`, '/cursor'], ['since=2026-11-20T09:00:00Z', '/since'],
    ['status=failed', '/status'], ['error_code=a', '/error_code'], ['state=failed&status=cancelled', '/status'], ['state=failed&status=', '/status'], ['state=failed&since=yesterday', '/since'],
    ['state=failed&until=2026-02-30T00:00:00Z', '/until'], ['state=failed&error_code=a%20b', '/error_code'], ['what=1', ''], ['limit=1&limit=2', ''],
  ] as const) {
    const answer = await ask('GET', `/api/handoffs?${query}`)
    isProblem(t, answer, 400, 'invalid_request')
    if (pointer !== '') t.match(answer.json().errors, [{ pointer }], query)
  }
  const forged = Buffer.from('live 1 ~~ from').toString('base64url')
  isProblem(t, await ask('GET', `/api/handoffs?cursor=${forged}`), 400, 'invalid_request')
  t.equal((await app.inject('/api/handoffs')).statusCode, 401)
  t.equal((await ask('POST', '/api/handoffs', {})).statusCode, 405)
})
