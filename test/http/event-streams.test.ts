import { once } from 'node:events'
import { request as ask } from 'node:http'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { EventSource } from 'eventsource'
import t from 'tap'
import type { Test } from 'tap'
import { callerOf } from '../../src/core/model.ts'
import { EventService, EventStreams } from '../../src/handoffs/feed/events.ts'
import { placeAfter } from '../../src/handoffs/feed/feed.ts'
import { Waiter } from '../../src/handoffs/wait/waiter.ts'
import { scriptCalls } from '../../src/redis/call.ts'
import type { ScriptCallMessage } from '../../src/redis/call.ts'
import { KeyNames } from '../../src/store/key-names.ts'
import { secrets, testApp } from '../helpers/app.ts'
import type { TestApp } from '../helpers/app.ts'
import { serve } from '../helpers/client.ts'
import { idsIn, openStream } from '../helpers/event-stream.ts'
import { skipInQuick } from '../helpers/extent.ts'
import { ownRedis } from '../helpers/own-redis.ts'
import { isProblem } from '../helpers/problems.ts'
import { grantOf, newKey } from '../helpers/stored-keys.ts'
import { until } from '../helpers/until.ts'
import { inVirtualTime } from '../helpers/virtual-time.ts'
import { timed } from '../helpers/waits.ts'
import { connectionsOf, listen } from '../helpers/wire.ts'

/** The tenant's events as a stream of server-sent events. */

const on = { EVENTS_RETENTION: '600' }

async function start (t: Test, env: Record<string, string> = {}) {
  const service = await testApp(t, { ...on, ...env })
  const port = await listen(service.app)
  const open = (query?: string, lastEventId?: string, secret: string = secrets.alice) => openStream(t, port, secret, query, lastEventId)
  return { ...service, port, open, feed: new KeyNames(service.prefix, true).feed('', 'default') }
}

/** Passes so many handoffs, and waits until the feed has their events. @returns the events' ids, all that are kept */
async function happen ({ call }: Pick<TestApp, 'call'>, count: number): Promise<string[]> {
  const ids = async (after = '0-0', found: string[] = []): Promise<string[]> => {
    const { items, next } = (await call('alice', 'GET', `/api/events?after=${after}`)).json() as { items: Array<{ id: string }>, next: string }
    return items.length === 0 ? found : await ids(next, [...found, ...items.map(({ id }) => id)])
  }
  const before = (await ids()).length
  for (let left = count; left > 0; left -= 100) {
    await call('alice', 'POST', '/api/batch', { operations: Array.from({ length: Math.min(100, left) }, () => ({ op: 'pass', body: { task: 't' } })) })
  }
  return await until(async () => {
    const all = await ids()
    return all.length === before + count ? all : null
  })
}

t.test('a client of others reads it, comes back after a cut in the middle of an event, and has each event once', { timeout: 120_000 }, async t => {
  const service = await start(t)
  const told: Array<string | undefined> = []
  const cuts = [1000, 2500, 777]
  const address = await serve(t, (request, response) => {
    const cut = cuts[told.push(request.headers['last-event-id'] as string | undefined) - 1] ?? Infinity
    const onward = ask({ host: '127.0.0.1', port: service.port, path: request.url, headers: request.headers }).on('error', () => {}).on('response', answer => {
      let sent = 0
      response.writeHead(answer.statusCode!, answer.headers)
      answer.on('error', () => {}).on('data', (some: Buffer) => {
        const part = some.subarray(0, Math.max(0, cut - sent))
        sent += part.length
        response.write(part, () => { if (sent >= cut) response.destroy() })
      })
    }).end()
    response.on('close', () => onward.destroy())
  })
  const seen: Array<{ id: string, type: string, data: any }> = []
  const source = new EventSource(`${address}/api/events?after=0-0&types=handoff.passed,handoff.caught`, {
    fetch: (url, init) => fetch(url, { ...init, headers: { ...init.headers, authorization: `Bearer ${secrets.alice}` } }),
  })
  t.teardown(() => source.close())
  for (const type of ['handoff.passed', 'handoff.caught']) {
    source.addEventListener(type, ({ lastEventId: id, data }) => { seen.push({ id, type, data: JSON.parse(data) }) })
  }
  const ids = await happen(service, 20)
  await until(() => seen.length >= 20)
  t.ok(told.length >= 3, `${told.length} connections`)
  t.equal(told[0], undefined)
  t.ok(told.slice(1).every(id => ids.includes(id!)), 'it came back with the id of its last event')
  t.strictSame(seen.map(({ id }) => id), ids)
  const { items } = (await service.call('alice', 'GET', '/api/events?after=0-0')).json()
  t.strictSame(seen.map(({ data }) => data), items, 'the data are the events as in the pages')
})

t.test('where it begins: now, behind after, or behind Last-Event-ID, which counts more', async t => {
  const service = await start(t)
  const ids = await happen(service, 3)
  const [now, behind, last, none, reset] = await Promise.all([
    service.open(), service.open(`?after=${ids[0]}`), service.open('?after=0-0', ids[1]), service.open(`?after=${ids[0]}`, ''), service.open('?after=0-0', '1-0'),
  ])
  for (const { response } of [now, behind, last, none, reset]) {
    t.match(response, { statusCode: 200, headers: { 'content-type': 'text/event-stream', 'cache-control': 'no-store', vary: 'accept', 'x-accel-buffering': 'no' } })
  }
  const all = await happen(service, 1)
  for (const [stream, expected] of [[now, all.slice(3)], [behind, all.slice(1)], [last, all.slice(2)], [none, all.slice(1)], [reset, all]] as const) {
    await until(() => idsIn(stream.frames).length === expected.length)
    t.strictSame(idsIn(stream.frames), expected)
    t.strictSame(stream.frames[0], { retry: '2000' })
  }
  t.strictSame(reset.frames[1], { event: 'reset', data: '{}' }, 'a reset comes first, without an id')
  t.notOk([now, behind, last, none].some(({ frames }) => frames.some(({ event }) => event === 'reset')))
})

t.test('ten streams a key; one that has ended, or whose client left before it began, counts no more', async t => {
  const { open, call, port } = await start(t)
  for (let round = 0; round < 40; round++) {
    const socket = connect({ port, host: '127.0.0.1' }).on('error', () => {})
    await once(socket, 'connect')
    socket.write(`GET /api/events HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\nAuthorization: Bearer ${secrets.alice}\r\n\r\n`, () => socket.destroy())
    await once(socket, 'close')
  }
  // A busy service may come to those requests only now: then they count until it has noticed that their clients left.
  const streams: Array<Awaited<ReturnType<typeof open>>> = []
  await until(async () => {
    const stream = await open()
    if (stream.response.statusCode === 200) streams.push(stream)
    return streams.length === 10
  })
  t.equal((await open()).response.statusCode, 429, 'an eleventh is refused')
  const refused = await call('alice', 'GET', '/api/events', undefined, { accept: 'text/event-stream' })
  isProblem(t, refused, 429, 'rate_limited')
  t.equal(refused.headers['retry-after'], '2')
  t.equal((await open('', undefined, secrets.alice2)).response.statusCode, 200, 'another key of hers')
  t.equal((await call('alice', 'GET', '/api/events')).statusCode, 200, 'pages are no streams')
  streams[0]!.close()
  await until(async () => (await open()).response.statusCode === 200)
})

t.test('it ends at once when the service drains', async t => {
  const { open, app } = await start(t)
  const streams = await Promise.all([open(), open('?types=handoff.done')])
  await until(() => streams.every(({ frames }) => frames.length > 0))
  const [, after] = await timed(() => {
    app.draining.start()
    return until(() => streams.every(({ response }) => response.closed))
  })
  t.ok(streams.every(({ response }) => response.complete), 'in good order')
  t.ok(after < 5000, `after ${Math.round(after)} ms`)
})

t.test('it ends within 2 s when its key is revoked or loses the scope, and tells nothing more', async t => {
  const { open, store } = await start(t)
  const [kept, lost, weaker] = await Promise.all([newKey(store.keyRecords), newKey(store.keyRecords), newKey(store.keyRecords)])
  const [other, ...streams] = await Promise.all([kept, lost, weaker].map(({ key }) => open('', undefined, key)))
  await until(() => [other!, ...streams].every(({ frames }) => frames.length > 0))
  const [, after] = await timed(async () => {
    await store.keyRecords.update(kept.id, { scopes: ['status'] }, 'me')
    await store.keyRecords.update(weaker.id, { scopes: ['pass'] }, 'me')
    await store.keyRecords.revoke(lost.id, 'me')
    await until(() => streams.every(({ response }) => response.closed))
  })
  t.ok(after < 2000, `after ${Math.round(after)} ms`)
  t.notOk(other!.response.closed)
})

t.test('while Redis is away it waits, and goes on', { timeout: 60_000 }, async t => {
  const redis = await ownRedis(t)
  const service = await testApp(t, on, { url: redis.url })
  const stream = await openStream(t, await listen(service.app), secrets.alice, '?after=0-0')
  await happen(service, 2)
  await until(() => idsIn(stream.frames).length === 2)
  process.kill(redis.pid(), 'SIGSTOP')
  isProblem(t, await service.call('alice', 'POST', '/api/pass', { task: 't' }), 503, 'unavailable')
  process.kill(redis.pid(), 'SIGCONT')
  await until(async () => (await service.call('alice', 'GET', '/api/events')).statusCode === 200)
  const { length } = await happen(service, 2)
  await until(() => idsIn(stream.frames).length === length)
  t.notOk(stream.frames.some(({ event }) => event === 'reset'))
})

t.test('a Redis that comes back empty is a reset for an open stream, and an empty feed is none', async t => {
  const { open, redis, feed, call } = await start(t)
  const stream = await open()
  const pass = () => call('alice', 'POST', '/api/pass', { task: 't' })
  const isReset = () => stream.frames.some(({ event }) => event === 'reset')
  await pass()
  await until(() => idsIn(stream.frames).length === 1)
  t.notOk(isReset(), 'nothing was there before, and nothing is missing')
  await redis.del(feed, `${feed}:since`)
  await pass()
  await until(() => idsIn(stream.frames).length === 2)
  t.strictSame(stream.frames.slice(-2).map(({ event }) => event), ['reset', 'handoff.passed'])
})

t.test('a stream that falls behind what is kept has its reset as well', async t => {
  const service = await testApp(t, { EVENTS_RETENTION: '1' })
  const events = new EventService(service.store.events, new Waiter(service.store.subscriptions), () => '')
  const streams = new EventStreams(events)
  const grant = grantOf(() => callerOf('default', 'alice', []))
  const anything = { types: null, handoffId: null, inbox: null, labels: null }
  const { text, close } = streams.open('default', 'key', anything, await events.start('default', '0-0'), { grant: () => grant, isGone: () => false, onGone: () => () => {} })
  t.teardown(close)
  t.match((await text.next()).value, /^retry/)
  const pass = () => service.call('alice', 'POST', '/api/pass', { task: 't' })
  await pass()
  const idOf = (frame: string | void) => /^id: (\S+)/m.exec(frame!)![1]!
  const { value: first } = await text.next()
  // It sleeps for longer than anything is kept, and is told of what comes then: nothing is missing.
  const quiet = text.next()
  await sleep(1500)
  await pass()
  t.notMatch((await quiet).value, /reset/)
  // Its client takes nothing, so it doesn't read: what happens meanwhile is removed.
  await pass()
  await until(async () => (await events.feed.read('default', null, 1)).oldest === null)
  const { value } = await text.next()
  t.equal(value, 'event: reset\ndata: {}\n\n')
  const next = text.next()
  await pass()
  t.match((await next).value, /^id: \S+\nevent: handoff.passed\n/)
  t.ok(idOf(first))
  t.equal(streams.count, 1)
  close()
  t.equal((await text.next()).done, true)
  t.equal(streams.count, 0)
})

t.test('a silent stream says how far it has read, and leaves nothing behind when it is over', async t => {
  const place = placeAfter('5-0')
  let [looks, left] = [0, 0]
  const leave = () => { left++ }
  const next = async () => {
    if (++looks > 9) throw new Error('too many looks')
    return { events: [], isReset: false, isMore: false, place }
  }
  const events = { feed: { retention: 600_000, listen: async () => leave }, reader: { changed () {}, next } }
  const grant = grantOf(() => callerOf('default', 'alice', []), async () => leave)
  const anything = { types: null, handoffId: null, inbox: null, labels: null }
  const { said, at } = await inVirtualTime(async () => {
    const { text, close } = new EventStreams(events as unknown as EventService)
      .open('default', 'key', anything, place, { grant: () => grant, isGone: () => false, onGone: () => leave })
    const said = [(await text.next()).value, (await text.next()).value]
    const at = performance.now()
    close()
    await text.next()
    return { said, at }
  })
  t.strictSame([said, at], [['retry: 2000\n\n', ': keep-alive\nid: 5-0\n\n'], 15_000])
  t.equal(left, 3)
})

t.test('every 15 s a comment says how far was read; a client that takes a byte a second lives', { timeout: 120_000, ...skipInQuick }, async t => {
  const service = await start(t)
  const filtered = await service.open('?types=handoff.done')
  let taken = 0
  const slow = connect({
    port: service.port,
    host: '127.0.0.1',
    onread: { buffer: Buffer.alloc(1), callback: () => { taken++; return false } },
  })
  t.teardown(() => slow.destroy())
  let isCut = false
  slow.on('close', () => { isCut = true }).on('error', () => {})
  slow.write(`GET /api/events?after=0-0 HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\nAuthorization: Bearer ${secrets.alice}\r\n\r\n`)
  const timer = setInterval(() => slow.resume(), 1000)
  t.teardown(() => clearInterval(timer))
  const ids = await happen(service, 50)
  await until(() => filtered.frames.length > 1)
  t.strictSame(filtered.frames.slice(1), [{ comment: 'keep-alive', id: ids.at(-1) }], 'past what the filter left out')
  const before = taken
  t.ok(before > 5, `${before} bytes taken`)
  await until(() => taken > before + 2)
  t.notOk(isCut)
})

t.test('a client that stops reading is cut', { timeout: 120_000, ...skipInQuick }, async t => {
  const { redis, feed, port, app } = await start(t)
  // More than the system keeps for both ends of a connection.
  const text = `passed pending ${'A'.repeat(25)} ${'a'.repeat(1000)} -`
  for (let round = 0; round < 30; round++) {
    const pipeline = redis.pipeline()
    for (let count = 0; count < 1000; count++) pipeline.xadd(feed, '*', 'e', text)
    await pipeline.exec()
  }
  const deaf = connect({ port, host: '127.0.0.1' }).on('error', () => {}).pause()
  t.teardown(() => deaf.destroy())
  deaf.write(`GET /api/events?after=0-0 HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\nAuthorization: Bearer ${secrets.alice}\r\n\r\n`)
  await until(async () => await connectionsOf(app) === 1)
  const [, after, within] = await timed(() => until(async () => await connectionsOf(app) === 0))
  t.ok(within > 3000 && after < 20_000, `after ${Math.round(after)} ms`)
})

t.test('twenty streams of one tenant share what is read', async t => {
  const { open, call } = await start(t)
  const streams = await Promise.all(Array.from({ length: 20 }, (_, at) => open('', undefined, at < 10 ? secrets.alice : secrets.alice2)))
  await until(() => streams.every(({ frames }) => frames.length > 0))
  let reads = 0
  const count = (told: unknown) => { if ((told as ScriptCallMessage).script === 'feed') reads++ }
  scriptCalls.subscribe(count)
  t.teardown(() => scriptCalls.unsubscribe(count))
  await call('alice', 'POST', '/api/pass', { task: 't' })
  await until(() => streams.every(({ frames }) => idsIn(frames).length === 1))
  t.ok(reads < 15, `${reads} reads`)
})
