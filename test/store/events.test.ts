import type { ChannelListener } from 'node:diagnostics_channel'
import t from 'tap'
import type { Test } from 'tap'
import { randomId, randomToken, tagOf, tags } from '../../src/core/ids.ts'
import { scriptCalls } from '../../src/redis/call.ts'
import type { ScriptCallMessage } from '../../src/redis/call.ts'
import type { Store } from '../../src/store/store.ts'
import { homeTagOf } from '../../src/store/partitions.ts'
import { skipInQuick } from '../helpers/extent.ts'
import { ownRedis } from '../helpers/own-redis.ts'
import { testRedis, testStore } from '../helpers/redis.ts'
import type { TestStore } from '../helpers/redis.ts'
import { raw, run } from '../helpers/scripts.ts'
import { until } from '../helpers/until.ts'

const tenant = 'acme'

function newPlace () {
  const id = randomId()
  return { tenant, id, tag: tagOf(id) }
}
type Place = ReturnType<typeof newPlace>

const withEvents = (t: Test, prefix?: string, isRelayed = true) => testStore(t, { eventsRetention: 60_000, isSpread: isRelayed, ...prefix !== undefined && { prefix } })

async function pass ({ handoffs }: Store, place: Place): Promise<void> {
  await handoffs.pass({ ...place, token: randomToken(), passedBy: 'alice', requireHuman: false, expiresIn: 60_000, options: '', payload: Buffer.from('"task":"t"') })
}

const lifeOf = ({ id }: Place) => [`passed pending ${id} alice -`, `caught caught ${id} alice bob`, `done done ${id} alice bob`]

/** The feed's texts, once there are so many. */
async function feedOf ({ events }: Store, count: number): Promise<string[]> {
  const texts = async () => (await events!.read(tenant, '0-0', 1000)).entries.map(({ text }) => text)
  await until(async () => (await texts()).length >= count)
  return texts()
}

/** As a replica that dies before it moves anything: what its calls appended stays in the outboxes. */
async function passUnmoved (t: Test, { prefix, url }: TestStore, places: Place[]): Promise<void> {
  const { store } = await testStore(t, { eventsRetention: 60_000, isSpread: true, prefix, url })
  store.relay.move = async () => {}
  for (const place of places) await pass(store, place)
}

t.test('what is moved at once from several partitions is noted for each, heard of once, and ends with its feed', async t => {
  const test = testRedis(t)
  const on = raw(test)
  const feed = on.keys.feed(tags[0]!, tenant)
  const moved = `${feed}:moved`
  const listener = test.redis.duplicate()
  t.teardown(() => listener.disconnect())
  const heard: string[] = []
  await listener.ssubscribe(feed)
  listener.on('smessage', (_, message: string) => heard.push(message))
  const now = Date.now()
  const relay = (counts: string, events: string) => run(on, 'relay', now, [feed, moved], [now, 60_000, counts, events]) as Promise<unknown[]>
  const move = () => relay('aaa 0 2 bbb 0 1', '10 one\n20 two\n5 three\n')
  const [outcome, newest] = await move()
  t.equal(outcome, 'relayed')
  t.strictSame(await test.redis.hgetall(moved), { aaa: '20', bbb: '5' })
  t.strictSame([await test.redis.pexpiretime(feed), await test.redis.pexpiretime(moved)], [now + 3_660_000, now + 86_460_000])
  t.strictSame(await move(), ['relayed', null], 'again')
  t.strictSame(await relay('aaa 21 1 ccc 7 1', '22 four\n8 five\n'), ['relayed', null, 'aaa', '20', 'ccc', '0'], 'none goes before one that is missing')
  t.equal(await test.redis.xlen(feed), 3)
  await listener.ping()
  t.strictSame(heard, [newest])
})

t.test('an event is in the feed although the reply that tells of it comes after that of a later one, as over two connections', async t => {
  const service = await withEvents(t)
  const { store, prefix, url } = service
  const place = newPlace()
  const { store: other } = await testStore(t, { eventsRetention: 60_000, isSpread: true, prefix, url })
  other.relay.move = async () => {}
  await pass(other, place)
  await other.handoffs.catch(place, randomToken(), 'bob')
  const [passed, caught] = await store.events!.outbox(place.tag, tenant, '0', 10) as [string, string]
  const told = (from: string, event: string) => store.relay.take(place.tag, Buffer.from(`${tenant} ${from} ${event}\n1`))
  told(passed.split(' ')[0]!, caught)
  told('0', passed)
  await store.relay.move()
  t.strictSame(await feedOf(store, 2), lifeOf(place).slice(0, 2))
})

/** As in a Cluster, and as where one Redis has all keys. */
for (const isRelayed of [true, false]) {
  t.test(`each transition is in the feed once, in the order of its handoff, whichever replica made it${isRelayed ? ', relayed' : ''}`, async t => {
    const first = await withEvents(t, undefined, isRelayed)
    const second = await withEvents(t, first.prefix, isRelayed)
    first.store.relayRound?.start()
    const stores = [first.store, second.store]
    // All of one partition, so that the replicas' events are mixed there.
    const tag = tags[5]!
    const places = Array.from({ length: 40 }, () => {
      const id = tag + randomId().slice(3)
      return { tenant, id, tag }
    })
    await Promise.all(places.map(async (place, at) => {
      await pass(stores[at % 2]!, place)
      await stores[(at + 1) % 2]!.handoffs.catch(place, randomToken(), 'bob')
      await stores[at % 3 % 2]!.handoffs.done(place, randomToken(), 'bob', Buffer.from('{}'), '')
    }))
    const texts = await feedOf(first.store, 120)
    t.equal(texts.length, 120)
    for (const place of places) t.strictSame(texts.filter(text => text.includes(place.id)), lifeOf(place))
  })
}

t.test('a clock that is set back loses no event', async t => {
  const { store, setClock } = await withEvents(t)
  const place = newPlace()
  await setClock(Date.now() + 3_600_000)
  await pass(store, place)
  await setClock(Date.now())
  await store.handoffs.catch(place, randomToken(), 'bob')
  await store.handoffs.done(place, randomToken(), 'bob', Buffer.from('{}'), '')
  t.strictSame(await feedOf(store, 3), lifeOf(place))
})

t.test('a clock that is set back loses no event where one Redis has all keys', async t => {
  const { store, redis, prefix } = await withEvents(t, undefined, false)
  // Redis numbers a stream's entries by its clock.
  const before = `${Date.now() + 3_600_000}-0`
  await redis.xadd(`${prefix}:e:${tenant}`, before, 'e', 'done done x a b')
  const place = newPlace()
  await pass(store, place)
  await store.handoffs.catch(place, randomToken(), 'bob')
  await store.handoffs.done(place, randomToken(), 'bob', Buffer.from('{}'), '')
  const { entries } = await store.events!.read(tenant, before, 100)
  t.strictSame(entries.map(({ text }) => text), lifeOf(place))
})

t.test('what a replica told and did not move is moved by another, and what is moved again is there once', async t => {
  const service = await withEvents(t)
  const places = Array.from({ length: 30 }, newPlace)
  await passUnmoved(t, service, places)
  t.strictSame((await service.store.events!.read(tenant, '0-0', 100)).entries, [])
  service.store.relayRound!.start()
  t.equal((await feedOf(service.store, 30)).length, 30)
  // A relay that was paused with what it had read.
  await Promise.all(places.map(({ tag }) => service.store.relay.catchUp(tag, tenant, '0')))
  await pass(service.store, newPlace())
  t.equal((await feedOf(service.store, 31)).length, 31)
})

t.test('thousands that one partition told at once are moved, each once', skipInQuick, async t => {
  const { store } = await withEvents(t)
  const tag = tags[5]!
  store.relay.move = async () => {}
  const count = 4200
  for (let left = count; left > 0; left -= 300) {
    await Promise.all(Array.from({ length: 300 }, () => pass(store, { tenant, id: tag + randomId().slice(3), tag })))
  }
  Reflect.deleteProperty(store.relay, 'move')
  await store.relay.move()
  // The round would move again what isn't noted as moved.
  await store.relay.catchUp(tag, tenant, '0')
  t.equal((await store.events!.read(tenant, '0-0', 10_000)).entries.length, count)
})

t.test('an event behind one that nobody moved waits for it', async t => {
  const service = await withEvents(t)
  const [lost, next] = [newPlace(), newPlace()]
  next.tag = lost.tag
  next.id = lost.tag + next.id.slice(3)
  await passUnmoved(t, service, [lost])
  await pass(service.store, next)
  t.strictSame((await feedOf(service.store, 2)).map(text => text.split(' ')[2]), [lost.id, next.id])
})

t.test('what a failover took from the feed is moved again', async t => {
  const { store, redis, prefix } = await withEvents(t)
  const places = Array.from({ length: 10 }, newPlace)
  for (const place of places) await pass(store, place)
  await feedOf(store, 10)
  const feed = `${prefix}:{${homeTagOf(tenant, tags)}}:e:${tenant}`
  await redis.del(feed, `${feed}:moved`)
  store.relayRound!.start()
  const texts = await feedOf(store, 10)
  t.strictSame(texts.map(text => text.split(' ')[2]).sort(), places.map(({ id }) => id).sort())
})

t.test('an outbox loses what is in the feed, and nothing else', async t => {
  const service = await withEvents(t)
  const { store, redis, prefix } = service
  const place = newPlace()
  await pass(store, place)
  await feedOf(store, 1)
  const index = `${prefix}:{${place.tag}}:o`
  const last = (await redis.zscore(index, tenant))!
  await store.handoffs.catch(place, randomToken(), 'bob')
  await feedOf(store, 2)
  t.equal(await store.events!.trim(place.tag, tenant, last), 1)
  t.equal(await redis.llen(`${index}:${tenant}`), 1)
  t.equal(await store.events!.trim(place.tag, tenant, last), 0)
  t.equal(await redis.zscore(index, tenant) === null, false, 'the index keeps the last number')
  for (const [count, upto] of [[100, 100], [101, 101], [250, 200], [250, 220], [250, 250]] as const) {
    await redis.del(`${index}:${tenant}`)
    await redis.rpush(`${index}:${tenant}`, ...Array.from({ length: count }, (_, at) => `${at + 1} event`))
    t.equal(await store.events!.trim(place.tag, tenant, String(upto)), upto, `${upto} of ${count}`)
    t.equal(await redis.llen(`${index}:${tenant}`), count - upto)
  }
  const longAgo = (Date.now() - 90_000_000) * 1000
  for (const [number, kept] of [[longAgo + 1, String(longAgo + 1)], [longAgo, null]] as const) {
    await redis.zadd(index, number, tenant)
    await store.events!.trim(place.tag, tenant, String(longAgo))
    t.equal(await redis.zscore(index, tenant), kept, 'a tenant leaves with its last number, a day later')
  }
})

t.test('what an outbox has is found, and removed, in steps that do not grow with it', async t => {
  const { url, admin } = await ownRedis(t)
  const { store, prefix } = await testStore(t, { url, limitedUrl: url, eventsRetention: 60_000, isSpread: true })
  const tag = tags[0]!
  const outbox = `${prefix}:{${tag}}:o:${tenant}`
  const numbers = Array.from({ length: 20_000 }, (_, at) => 2 * at + 1)
  await admin.rpush(outbox, ...numbers.map(number => `${number} event`))
  await admin.config('RESETSTAT')
  for (const [after, first] of [[39_989, 39_991], [39_990, 39_991], [0, 1], [1, 3]]) {
    t.equal((await store.events!.outbox(tag, tenant, String(after), 4)).join(), [0, 2, 4, 6].map(more => `${first! + more} event`).join())
  }
  t.strictSame(await store.events!.outbox(tag, tenant, '39999', 4), [])
  const reads = [...(await admin.info('commandstats')).matchAll(/^cmdstat_lrange:calls=(\d+)/gm)].reduce((sum, [, count]) => sum + Number(count), 0)
  t.ok(reads <= 5 * 34, `${reads} reads for five calls`)
  let calls = 0
  const count: ChannelListener = call => { if ((call as ScriptCallMessage).script === 'trim') calls++ }
  scriptCalls.subscribe(count)
  t.teardown(() => scriptCalls.unsubscribe(count))
  t.equal(await store.events!.trim(tag, tenant, '5001'), 2501)
  t.equal(calls, 3)
  t.equal(await admin.lindex(outbox, 0), '5003 event')
})

t.test('where one Redis has all keys there is no outbox, and a feed ends by itself', async t => {
  const { store, redis, prefix } = await withEvents(t, undefined, false)
  await pass(store, newPlace())
  await feedOf(store, 1)
  t.strictSame(await redis.keys(`${prefix}:*:o*`), [])
  const left = await redis.pttl(`${prefix}:e:${tenant}`)
  t.ok(left > 60_000 + 3_600_000 && left <= 60_000 + 7_200_000, `${left} ms`)

  const { tenant: _, ...place } = newPlace()
  const first = { ...place, tenant: 'labels-alone', token: randomToken(), passedBy: 'alice', requireHuman: false, expiresIn: 60_000, payload: Buffer.from('"task":"t"') }
  await store.handoffs.pass({ ...first, options: ' jrun:1' })
  t.ok(await redis.pttl(`${prefix}:e:labels-alone`) > 60_000 + 3_600_000, 'also where the first event is of one that isn’t plain')
})

t.test('what is older than is kept is not read, though it is there', async t => {
  const on = raw(testRedis(t))
  const [feed, now] = [on.keys.feed(tags[0]!, tenant), Date.now()]
  for (const place of ['1-1', `${now}-1`]) await on.redis.xadd(feed, place, 'e', place)
  const reply = await run(on, 'feed', now, [feed], ['0-0', 10, 60_000, `${feed}:since`]) as unknown[]
  t.strictSame(reply.slice(1, 3), [`${now}-1`, `${now}-1`])
  t.strictSame(reply.slice(7), [`${now}-1`, `${now}-1`])
})

t.test('a feed keeps little more than what is not too old', async t => {
  const { store, redis, prefix, setClock } = await withEvents(t, undefined, false)
  const feed = `${prefix}:e:${tenant}`
  for (let count = 0; count < 300; count++) await redis.xadd(feed, '1-*', 'e', 'done done x a b')
  // Not each event removes what is too old: one in sixteen microseconds does.
  await setClock(Math.ceil(Date.now() / 16) * 16)
  await pass(store, newPlace())
  t.equal((await feedOf(store, 1)).length, 1, 'what is too old is not read')
  const length = await redis.xlen(feed)
  t.ok(length <= 101, `${length}: whole nodes of the stream are removed`)
})

t.test('what happens later than an hour after its pass puts the end of its feed off', async t => {
  const { store, redis, prefix, setClock } = await withEvents(t, undefined, false)
  const feed = `${prefix}:e:${tenant}`
  const [soon, late] = [newPlace(), newPlace()]
  const start = Date.now()
  for (const place of [soon, late]) await store.handoffs.pass({ ...place, token: randomToken(), passedBy: 'alice', requireHuman: false, expiresIn: 7_200_000, options: '', payload: Buffer.from('"task":"t"') })
  await redis.pexpire(feed, 100_000)
  await setClock(start + 3_500_000)
  await store.handoffs.catch(soon, randomToken(), 'bob')
  t.ok(await redis.pttl(feed) <= 100_000, 'its pass had put it off by more')
  await setClock(start + 3_700_000)
  await store.handoffs.catch(late, randomToken(), 'bob')
  t.ok(await redis.pttl(feed) > 3_600_000)
})

t.test('what is old is removed from many outboxes with few calls', skipInQuick, async t => {
  const { store, redis, prefix } = await withEvents(t)
  const places = tags.slice(0, 300).map(tag => ({ tenant, id: tag + randomId().slice(3), tag }))
  for (const place of places) await pass(store, place)
  await feedOf(store, places.length)
  let calls = 0
  const count: ChannelListener = call => { if ((call as ScriptCallMessage).script === 'relay') calls++ }
  scriptCalls.subscribe(count)
  t.teardown(() => scriptCalls.unsubscribe(count))
  store.relayRound!.start()
  const outboxes = places.map(({ tag }) => `${prefix}:{${tag}}:o:${tenant}`)
  await until(async () => await redis.exists(...outboxes) === 0)
  t.ok(calls < 20, `asked ${calls} times whether they are in the feed`)
})

t.test('a tenant that was quiet for so long that its feed is gone is forgotten, and not asked about in each round', skipInQuick, async t => {
  const { store, redis, prefix } = await withEvents(t)
  const indexes = tags.slice(0, 20).map(tag => `${prefix}:{${tag}}:o`)
  const longAgo = (Date.now() - 100_000_000) * 1000
  for (const index of indexes) await redis.zadd(index, longAgo, tenant)
  let calls = 0
  const count: ChannelListener = call => { if ((call as ScriptCallMessage).script === 'outbox') calls++ }
  scriptCalls.subscribe(count)
  t.teardown(() => scriptCalls.unsubscribe(count))
  store.relayRound!.start()
  await until(async () => await redis.exists(...indexes) === 0)
  // Read when it was seen, and before it was forgotten; on a busy machine a round may come between.
  t.ok(calls >= 2 * indexes.length && calls <= 5 * indexes.length, `read ${calls} times`)
  t.equal(store.relayRound!.lag, 0)
})

t.test('the length of a feed that was read is forgotten in time, though nobody asks for it', async t => {
  const { store: { events } } = await withEvents(t)
  const { now } = performance
  t.teardown(() => { performance.now = now })
  await events!.read('lately', '0-0', 1)
  performance.now = () => now.call(performance) + 61_000
  const deleted = t.capture(Map.prototype, 'delete', Map.prototype.delete)
  await events!.read(tenant, '0-0', 1)
  t.ok(deleted().some(({ args: [key] }) => key === 'lately'))
})
