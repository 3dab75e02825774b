import type { ChannelListener } from 'node:diagnostics_channel'
import t from 'tap'
import type { Test } from 'tap'
import { Unavailable } from '../../src/core/errors.ts'
import { EventService } from '../../src/handoffs/feed/events.ts'
import { homeTag } from '../../src/core/ids.ts'
import { FeedReader, placeAfter } from '../../src/handoffs/feed/feed.ts'
import type { Reads } from '../../src/store/reads.ts'
import { Waiter } from '../../src/handoffs/wait/waiter.ts'
import { scriptCalls } from '../../src/redis/call.ts'
import type { ScriptCallMessage } from '../../src/redis/call.ts'
import { secrets, testApp } from '../helpers/app.ts'
import type { Who } from '../helpers/app.ts'
import type { TestStoreOptions } from '../helpers/redis.ts'
import { skipInQuick } from '../helpers/extent.ts'
import { isProblem } from '../helpers/problems.ts'
import { until } from '../helpers/until.ts'
import { timed } from '../helpers/waits.ts'

const settings = { EVENTS_RETENTION: '60' }

interface Event { id: string, type: string, time: string, data: Record<string, unknown> }

async function withEvents (t: Test, env: Record<string, string> = {}, options: TestStoreOptions = {}) {
  const service = await testApp(t, { ...settings, ...env }, options)
  const pass = async (body: object = { task: 't' }, who: Who = 'alice') => (await service.call(who, 'POST', '/api/pass', body)).json().handoff_id as string
  const read = async (query = 'after=0-0', who: Who = 'alice') => {
    const answer = await service.call(who, 'GET', `/api/events?${query}`)
    if (answer.statusCode !== 200) throw new Error(answer.body)
    return answer.json() as { items: Event[], next: string, reset?: boolean }
  }
  /** The types of a handoff's events, once there are so many. */
  const typesOf = (id: string, count: number) => until(async () => {
    const { items } = await read(`after=0-0&handoff_id=${id}`)
    return items.length >= count ? items.map(({ type }) => type.slice('handoff.'.length)) : null
  })
  return { ...service, pass, read, typesOf }
}

t.test('events are off unless EVENTS_RETENTION is set, and then nothing of them is in Redis', async t => {
  const { call, dump } = await testApp(t, { EVENTS_RETENTION: '0' })
  await call('alice', 'POST', '/api/pass', { task: 't' })
  isProblem(t, await call('alice', 'GET', '/api/events'), 404, 'events_off')
  for (const accept of ['application/json', 'text/event-stream']) {
    isProblem(t, await call('alice', 'GET', '/api/events?after=0-0', undefined, { accept }), 404, 'events_off', accept)
  }
  t.strictSame(Object.keys(await dump()).filter(key => /:[oe]:|:o$/.test(key)), [])
})

t.test('an event says what became of a handoff, and nothing of its contents', async t => {
  const { call, pass, read, typesOf } = await withEvents(t)
  const id = await pass({ task: 'secret task', output: { secret: 1 } })
  await call('bob', 'GET', `/api/catch/${id}`)
  await call('bob', 'POST', `/api/done/${id}`, { output: { secret: 2 } })
  t.strictSame(await typesOf(id, 3), ['passed', 'caught', 'done'])
  const { items, next } = await read(`after=0-0&handoff_id=${id}`)
  t.equal(next, items.at(-1)!.id)
  t.strictSame(items.map(({ data }) => data), [
    { handoff_id: id, status: 'pending', passed_by: 'alice' },
    { handoff_id: id, status: 'caught', passed_by: 'alice', caught_by: 'bob' },
    { handoff_id: id, status: 'done', passed_by: 'alice', caught_by: 'bob' },
  ])
  for (const { id: event, time } of items) t.equal(time, new Date(Number(event.split('-')[0])).toISOString())
  t.notMatch(JSON.stringify(items), /secret/)
  t.strictSame((await read('after=0-0', 'foreignAlice')).items, [], 'of another tenant nothing')
})

t.test('every transition has its event', async t => {
  const { call, pass, typesOf, read } = await withEvents(t)
  const approved = await pass({ task: 't', require_human: true, to: 'work' })
  await call('approver', 'POST', `/api/approve/${approved}`, {})
  t.strictSame(await typesOf(approved, 3), ['passed', 'approval_requested', 'approved'])
  const rejected = await pass({ task: 't', require_human: true })
  await call('approver', 'POST', `/api/reject/${rejected}`, { note: 'no' })
  t.strictSame(await typesOf(rejected, 3), ['passed', 'approval_requested', 'rejected'])
  const cancelled = await pass()
  await call('alice', 'POST', `/api/cancel/${cancelled}`, {})
  t.strictSame(await typesOf(cancelled, 2), ['passed', 'cancelled'])
  const requested = await pass()
  await call('bob', 'GET', `/api/catch/${requested}`)
  await call('alice', 'POST', `/api/cancel/${requested}`, {})
  await call('alice', 'POST', `/api/cancel/${requested}`, {})
  await call('alice', 'POST', `/api/cancel/${requested}`, { force: true })
  t.strictSame(await typesOf(requested, 4), ['passed', 'caught', 'cancel_requested', 'cancelled'])
  const fromInbox = await pass({ task: 't', to: 'box' })
  await call('bob', 'POST', '/api/catch', { inbox: 'box' })
  await call('bob', 'POST', `/api/decline/${fromInbox}`, { reason: 'no' })
  t.strictSame(await typesOf(fromInbox, 3), ['passed', 'caught', 'declined'])
  t.strictSame((await read('after=0-0&inbox=box')).items.map(({ data }) => data.to), ['box', 'box', 'box'])
  const child = await pass({ task: 't', parent: fromInbox }, 'bob')
  await typesOf(child, 1)
  t.equal((await read(`after=0-0&handoff_id=${child}`)).items[0]!.data.parent, fromInbox)
})

for (const isSpread of [false, true]) {
  t.test(`who must approve is asked once, with where and until when; the next attempt asks again only if nobody had decided${isSpread ? ', as in a Cluster' : ''}`, isSpread ? skipInQuick : {}, async t => {
    const { call, read, typesOf, store } = await withEvents(t, { BASE_URL: 'https://handoff.example/base' }, { isSpread })
    const pass = async (more: object) => (await call('alice', 'POST', '/api/pass', { task: 't', require_human: true, to: 'box', ...more }, { 'idempotency-key': JSON.stringify(more) })).json()
    const { handoff_id: id, approval_url: link, expires_at: end } = await pass({ expires_in: 1, labels: { run: '1' } })
    t.equal((await pass({ expires_in: 1, labels: { run: '1' } })).handoff_id, id)
    t.equal(link, `https://handoff.example/base/approvals/${id}`)
    store.sweeper.start()
    t.strictSame(await typesOf(id, 3), ['passed', 'approval_requested', 'expired'])
    t.strictSame((await read(`after=0-0&types=handoff.expired&handoff_id=${id}`)).items.map(({ data }) => data.expired_because), ['not_decided'])
    const asked = async (of: string) => (await read(`after=0-0&types=handoff.approval_requested&handoff_id=${of}`)).items.map(({ data }) => data)
    const common = { status: 'pending', to: 'box', passed_by: 'alice' }
    t.strictSame(await asked(id), [{ handoff_id: id, ...common, labels: { run: '1' }, approval_url: link, expires_at: end }])
    const { handoff_id: again, expires_at: later } = (await call('alice', 'POST', `/api/reissue/${id}`)).json()
    t.strictSame(await typesOf(again, 2), ['passed', 'approval_requested'])
    t.strictSame(await asked(again), [{ handoff_id: again, ...common, attempt: 2, reissue_of: id, labels: { run: '1' }, approval_url: `https://handoff.example/base/approvals/${again}`, expires_at: later }])
    const { handoff_id: decided } = await pass({ delay: 1 })
    await call('approver', 'POST', `/api/approve/${decided}`)
    await until(async () => (await call('bob', 'GET', `/api/catch/${decided}`)).statusCode === 200)
    const { handoff_id: third } = (await call('alice', 'POST', `/api/reissue/${decided}`)).json()
    await typesOf(third, 1)
    t.strictSame(await typesOf(decided, 6), ['passed', 'approval_requested', 'approved', 'caught', 'cancelled', 'reissued'])
    t.strictSame(await typesOf(third, 1), ['passed'], 'what was approved stays approved')
  })
}

t.test('a reissue is its predecessor’s end, its reissue and the successor’s pass, in this order', async t => {
  const { call, pass, read, store } = await withEvents(t)
  const last = async (count: number) => (await until(async () => {
    const { items } = await read()
    return items.length >= count ? items : null
  })).slice(-3).map(({ type, data }) => [type.slice('handoff.'.length), data] as const)
  const taken = await pass()
  await call('bob', 'GET', `/api/catch/${taken}`)
  const second = (await call('alice', 'POST', `/api/reissue/${taken}`)).json().handoff_id
  const common = { status: 'cancelled', passed_by: 'alice', caught_by: 'bob' }
  t.strictSame(await last(5), [
    ['cancelled', { handoff_id: taken, ...common }],
    ['reissued', { handoff_id: taken, ...common, reissued_as: second }],
    ['passed', { handoff_id: second, status: 'pending', passed_by: 'alice', attempt: 2, reissue_of: taken }],
  ])
  const stalled = await pass({ task: 't', work_within: 1, max_attempts: 2, retry_delay: 0 })
  await call('bob', 'GET', `/api/catch/${stalled}`)
  store.sweeper.start()
  const [ended, reissued, passed] = await last(10)
  t.match([ended![0], reissued![0], passed![0]], ['expired', 'reissued', 'passed'])
  t.match(ended![1], { handoff_id: stalled, status: 'expired', expired_because: 'not_done', reissued_as: passed![1].handoff_id! })
  t.match(passed![1], { attempt: 2, reissue_of: stalled })
})

/** As where one Redis has all keys, and as in a Cluster. */
for (const isRelayed of [false, true]) {
  t.test(`an end that is tried again names the next attempt, and the last end doesn’t${isRelayed ? ', relayed' : ''}`, isRelayed ? skipInQuick : {}, async t => {
    const { call, pass, read } = await withEvents(t, {}, { isSpread: isRelayed })
    /** The events of one type, once there are so many. */
    const ofType = (type: string, count: number) => until(async () => {
      const { items } = await read(`after=0-0&types=handoff.${type}`)
      return items.length >= count ? items.map(({ data }) => data) : null
    })
    for (const [type, body] of [['failed', { error: { message: 'm' } }], ['declined', { reason: 'r' }]] as const) {
      const operation = type === 'failed' ? 'fail' : 'decline'
      const first = await pass({ task: 't', max_attempts: 2, retry_delay: 0 })
      await call('bob', 'GET', `/api/catch/${first}`)
      const second = (await call('bob', 'POST', `/api/${operation}/${first}`, body)).json().reissued_as
      await call('bob', 'GET', `/api/catch/${second}`)
      await call('bob', 'POST', `/api/${operation}/${second}`, body)
      t.strictSame((await ofType(type, 2)).map(({ handoff_id: id, reissued_as: next }) => [id, next]), [[first, second], [second, undefined]], type)
    }
    // Reissued by hand, it had ended before: that event stays as it was, and the one of the reissue names the next attempt.
    const byHand = await pass()
    await call('bob', 'GET', `/api/catch/${byHand}`)
    await call('bob', 'POST', `/api/fail/${byHand}`, { error: { message: 'm' } })
    const next = (await call('alice', 'POST', `/api/reissue/${byHand}`)).json().handoff_id
    const ended = (await ofType('failed', 3)).at(-1)!
    t.match(ended, { handoff_id: byHand })
    t.notOk('reissued_as' in ended)
    t.match((await ofType('reissued', 3)).at(-1), { handoff_id: byHand, status: 'failed', reissued_as: next })
  })
}

t.test('a reader goes on where it was', async t => {
  const { pass, read, call } = await withEvents(t)
  const start = await read('')
  t.strictSame(start.items, [], 'from now on')
  const ids = [await pass(), await pass(), await pass()]
  const seen: Event[] = []
  await until(async () => {
    const { items, next, reset } = await read(`after=${seen.at(-1)?.id ?? start.next}&limit=1`)
    t.notOk(reset)
    t.ok(items.length <= 1, 'no more than was asked for')
    t.equal(next, items.at(-1)?.id ?? seen.at(-1)?.id ?? start.next)
    seen.push(...items)
    return seen.length === 3
  })
  t.strictSame(seen.map(({ data }) => data.handoff_id), ids)
  const filtered = await read('after=0-0&types=handoff.done')
  t.strictSame(filtered, { items: [], next: seen.at(-1)!.id }, 'next is past what the filter left out')
  const waiting = read(`after=${seen.at(-1)!.id}&types=handoff.caught&wait=30`)
  await call('bob', 'GET', `/api/catch/${ids[0]}`)
  t.match((await waiting).items, [{ type: 'handoff.caught', data: { handoff_id: ids[0] } }])
})

t.test('what is older than what is kept, or was never given, is a reset', async t => {
  const { pass, read, typesOf } = await withEvents(t, { EVENTS_RETENTION: '1' })
  await typesOf(await pass(), 1)
  const { items: [first] } = await read()
  for (const after of ['1-0', '99999999999999-0']) {
    const { reset, items } = await read(`after=${after}`)
    t.equal(reset, true, after)
    t.strictSame(items, [first])
  }
  await until(async () => (await read()).items.length === 0)
  const isTime = /^\d{13}-0$/
  const none = await read()
  t.match(none, { items: [], next: isTime })
  t.notOk(none.reset, '0-0 is never a reset')
  const gone = await read(`after=${first!.id}`)
  t.match(gone, { items: [], next: isTime, reset: true }, 'also where nothing is kept')
  t.match(await read(''), { items: [], next: isTime })
})

/** As where one Redis has all keys, and as in a Cluster. */
for (const isRelayed of [false, true]) {
  const where = isRelayed ? ', relayed' : ''
  t.test(`where nothing is kept, next is a time, and whoever goes on from it misses nothing${where}`, isRelayed ? skipInQuick : {}, async t => {
    const { pass, read, redis } = await withEvents(t, {}, { isSpread: isRelayed })
    const [seconds, micros] = await redis.time()
    const before = Number(seconds) * 1000 + Math.floor(Number(micros) / 1000)
    const empty = await read('')
    t.strictSame(empty.items, [])
    const [time, count] = empty.next.split('-')
    t.ok(Number(time) >= before - 1 && count === '0', empty.next)
    t.strictSame(await read(`after=${empty.next}`), empty, 'and it is no reset')
    t.notOk((await read('after=0-0')).reset)
    const ids = [await pass(), await pass()]
    const seen = await until(async () => {
      const page = await read(`after=${empty.next}`)
      return page.items.length === 2 ? page : null
    })
    t.notOk(seen.reset)
    t.strictSame(seen.items.map(({ data }) => data.handoff_id), ids)
    const later = `${Number(seen.next.split('-')[0]) + 1}-0`
    await until(async () => Number((await redis.time())[0]) * 1000 > Number(later.split('-')[0]))
    t.strictSame(await read(`after=${later}`), { items: [], next: later }, 'behind the newest event, and not beyond the clock')
  })

  t.test(`a Redis that comes back empty is a reset, for pages, for one that waits, and for times${where}`, isRelayed ? skipInQuick : {}, async t => {
    const service = await withEvents(t, {}, { isSpread: isRelayed })
    const { pass, read, redis, prefix, typesOf } = service
    const empty = await read('')
    await typesOf(await pass(), 1)
    const { next } = await read()
    const feed = isRelayed ? `${prefix}:{${homeTag('default')}}:e:default` : `${prefix}:e:default`
    const lose = async () => redis.del(feed, `${feed}:since`, `${feed}:moved`)
    const waiting = read(`after=${next}&wait=30`)
    // It shares the first look of the one that waits, so that this look is over.
    await read(`after=${next}`)
    await lose()
    for (const after of [next, empty.next]) {
      const lost = await read(`after=${after}`)
      t.match(lost, { items: [], reset: true, next: /^\d{13}-0$/ }, after)
      await lose()
    }
    await typesOf(await pass(), 1)
    const told = await waiting
    t.equal(told.reset, true, 'one that waited')
    for (const after of [next, empty.next]) t.equal((await read(`after=${after}`)).reset, true, 'also once there is something again')
  })
}

t.test('who has read an empty feed to its end is told where something came and was lost since, and only there', async t => {
  const begun = 10_000_000
  const empty = { newest: null, oldest: null, clock: begun, since: null, isNoted: true, entries: [] }
  const id = `${begun + 500}-0`
  for (const [since, isReset] of [[begun - 1, false], [begun + 400, true]] as const) {
    const pages = [empty, { newest: id, oldest: id, clock: begun + 600, since, isNoted: false, entries: [{ id, text: 'passed pending some-id alice -' }] }]
    const reader = new FeedReader({ retention: 60_000, read: async () => pages.shift() } as never, () => '')
    const { place } = await reader.next('default', placeAfter('0-0'))
    t.match(place, { after: '0-0', next: `${begun - 1}-0`, seen: begun })
    t.match(await reader.next('default', place), { isReset, events: [{ id }] })
  }
})

t.test('what was lost behind a full page is a reset, and so is a place beyond the clock', async t => {
  const clock = 10_000_000
  const text = 'passed pending some-id alice -'
  const full = Array.from({ length: 50 }, (_, at) => ({ id: `${clock - 1000}-${at}`, text }))
  const empty = { newest: null, oldest: null, isNoted: true, entries: [] }
  const pages = [
    { ...empty, newest: `${clock - 900}-0`, oldest: full[0]!.id, clock, since: 0, entries: full }, { ...empty, clock: clock + 100, since: clock - 500 }, { ...empty, clock, since: 0 }
  ]
  const reader = new FeedReader({ retention: 60_000, read: async () => pages.shift() } as never, () => '')
  const { place, isMore } = await reader.next('default', placeAfter('0-0'))
  t.ok(isMore)
  t.match(await reader.next('default', place), { isReset: true, events: [] })
  t.match(await reader.next('default', placeAfter(`${clock + 5000}-0`)), { isReset: true })
})

t.test('who stays away from an empty feed for longer than events are kept learns it', async t => {
  const { read, pass, typesOf } = await withEvents(t, { EVENTS_RETENTION: '1' })
  const { next } = await read('')
  await until(async () => (await read(`after=${next}`)).reset)
  await typesOf(await pass(), 1)
  t.equal((await read(`after=${next}`)).reset, true)
})

t.test('searches read much in a slot at the master of their feed, and news little without one', async t => {
  const reads: number[] = []
  const read = async (_: string, after: string, max: number) => {
    reads.push(max)
    return { newest: '9-0', oldest: '1-0', clock: Date.now(), since: 0, isNoted: true, entries: [] }
  }
  const turns: string[] = []
  const page: Reads['page'] = (tenant, tags, read) => {
    turns.push(`${tenant} ${tags?.join()}`)
    return read()
  }
  const reader = new FeedReader({ retention: 60_000, read } as never, () => '', { page } as Reads)
  for (const isSearch of [false, true]) await reader.next('acme', placeAfter('1-0'), isSearch)
  t.strictSame([reads, turns], [[50, 500], [`acme ${homeTag('acme')}`]])
})

t.test('one look reads 4,550 events; waiting goes on; a handoff’s own events are not searched for from the beginning', async t => {
  const { read, redis, prefix, pass, call } = await withEvents(t, { EVENTS_RETENTION: '3600' })
  const feed = `${prefix}:e:default`
  for (let round = 0; round < 6; round++) {
    const pipeline = redis.pipeline()
    // Long enough ago for the clocks of masters to be apart.
    for (let count = 0; count < 1000; count++) pipeline.xadd(feed, `${Date.now() - 600_000 + round}-${count}`, 'e', `caught caught ${'A'.repeat(25)} alice bob`)
    await pipeline.exec()
  }
  let reads = 0
  const count: ChannelListener = told => { if ((told as ScriptCallMessage).script === 'feed') reads++ }
  scriptCalls.subscribe(count)
  t.teardown(() => scriptCalls.unsubscribe(count))
  const id = await pass()
  const first = await read('after=0-0&types=handoff.passed')
  t.strictSame(first.items, [])
  t.equal(reads, 10)
  t.match((await read(`after=${first.next}&types=handoff.passed`)).items, [{ data: { handoff_id: id } }])
  t.match((await read('after=0-0&types=handoff.passed&wait=30')).items, [{ data: { handoff_id: id } }])
  t.equal((await read('after=1-0&types=handoff.passed')).reset, true, 'a reset that its first page has found')
  reads = 0
  t.match((await read(`after=0-0&handoff_id=${id}`)).items, [{ data: { handoff_id: id } }])
  t.equal(reads, 2, 'the first page, and its own')
  reads = 0
  const foreign = (await call('foreignAlice', 'POST', '/api/pass', { task: 't' })).json().handoff_id
  t.match(await read(`after=0-0&handoff_id=${foreign}`), { items: [] })
  t.ok(reads <= 4, `${reads} reads for another tenant’s`)
  reads = 0
  const waiting = Array.from({ length: 40 }, () => read('after=0-0&types=handoff.done&wait=30'))
  await until(() => reads > 0)
  await call('bob', 'GET', `/api/catch/${id}`)
  await call('bob', 'POST', `/api/done/${id}`, {})
  for (const { items } of await Promise.all(waiting)) t.match(items, [{ type: 'handoff.done' }])
  t.ok(reads < 100, `${reads} reads for 40 that wait at one place`)
})

t.test('who waits shares no read that began before the event', async t => {
  const { store, pass, read, typesOf } = await withEvents(t)
  await typesOf(await pass(), 1)
  const { next } = await read()
  const events = store.events!
  const own = events.read.bind(events)
  let looks = 0
  events.read = async (...asked) => {
    const found = await own(...asked)
    looks++
    return found
  }
  const waiting = timed(() => read(`after=${next}&wait=20`))
  // The first, and the one behind its subscription.
  await until(() => looks === 2)
  let answer: (() => void) | undefined
  events.read = async (...asked) => {
    const found = await own(...asked)
    await new Promise<void>(resolve => { answer = resolve })
    return found
  }
  const other = read(`after=${next}`)
  const release = await until(() => answer)
  events.read = own
  // What listens since before hears of it first.
  const heard = new Promise<void>(resolve => { events.listen('default', resolve).catch(() => {}) })
  const id = await pass()
  await heard
  release()
  const [{ items }, after] = await waiting
  t.match(items, [{ data: { handoff_id: id } }])
  t.ok(after < 10_000, `after ${Math.round(after)} ms, and not by its last look`)
  await other
})

t.test('a look asks once about the handoff whose events it searches for, also where its master is away', async t => {
  const { redis, prefix, store } = await withEvents(t, { EVENTS_RETENTION: '3600' })
  const pipeline = redis.pipeline()
  for (let count = 0; count < 3000; count++) pipeline.xadd(`${prefix}:e:default`, '*', 'e', `caught caught ${'A'.repeat(25)} alice bob`)
  await pipeline.exec()
  let asked = 0
  const status = async () => {
    asked++
    throw new Unavailable('Redis did not answer in time')
  }
  const events = new EventService(store.events, new Waiter(store.subscriptions), () => '', { handoffs: { status }, retention: 3_600_000 })
  t.match(await events.page('default', { types: null, handoffId: 'B'.repeat(25), inbox: null, labels: null }, '0-0', 10, null), { items: [], isReset: false })
  t.equal(asked, 1)
})

t.test('a stream comes only where Accept names its type', async t => {
  const { app } = await withEvents(t)
  for (const accept of ['text/event-stream;q=0', 'text/event-streams', 'text/event-stream, application/json', '*/*', '']) {
    const answer = await app.inject({ url: '/api/events?limit=1', headers: { accept, authorization: `Bearer ${secrets.alice}` } })
    t.match(answer.headers['content-type'], /^application\/json/, accept)
  }
  for (const accept of ['text/event-stream', 'Text/Event-Stream;q=0.5, text/html', 'text/html,text/event-stream']) {
    // Of a stream that did begin there would be no end to wait for.
    const headers = { accept, authorization: `Bearer ${secrets.alice}` }
    const begun = await app.inject({ url: '/api/events?limit=1', headers, payloadAsStream: true })
    begun.stream().destroy()
    t.equal(begun.statusCode, 400, accept)
    const answer = await app.inject({ url: '/api/events?limit=1', headers })
    t.equal(isProblem(t, answer, 400, 'invalid_request').errors[0].pointer, '/limit', accept)
  }
})

t.test('what can’t be asked is refused', async t => {
  const { app, call } = await withEvents(t)
  const wrong: Array<[query: string, pointer: string]> = [
    ['after=1', '/after'], ['after=', '/after'], ['after=-', '/after'], ['after=1-0x', '/after'], ['after=18446744073709551616-0', '/after'],
    ['types=handoff.gone', '/types'], ['types=', '/types'], ['types=handoff.done,', '/types'], ['handoff_id=x', '/handoff_id'], ['inbox=a b', '/inbox'],
    ['limit=0', '/limit'], ['limit=101', '/limit'], ['wait=61', '/wait'], ['since=1', '/since'],
  ]
  for (const [query, pointer] of wrong) t.equal(isProblem(t, await call('alice', 'GET', `/api/events?${query}`), 400, 'invalid_request').errors[0].pointer, pointer, query)
  for (const query of ['limit=5', 'wait=5']) {
    const begun = await app.inject({ url: `/api/events?${query}`, headers: { accept: 'text/event-stream', authorization: `Bearer ${secrets.alice}` }, payloadAsStream: true })
    begun.stream().destroy()
    t.equal(begun.statusCode, 400, query)
    isProblem(t, await call('alice', 'GET', `/api/events?${query}`, undefined, { accept: 'text/event-stream' }), 400, 'invalid_request')
    t.equal((await call('alice', 'GET', `/api/events?${query.replace('wait=5', 'wait=0')}`, undefined, { accept: 'text/event-stream, application/json' })).statusCode, 200)
  }
})
