import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { QueuePool } from '../../src/handoffs/inbox/queue-pool.ts'
import { placesOf } from '../../src/handoffs/inbox/take.ts'
import { testApp } from '../helpers/app.ts'
import type { TestApp } from '../helpers/app.ts'
import { skipInQuick } from '../helpers/extent.ts'
import { inboxWaiters, scrape } from '../helpers/metrics.ts'
import { ownRedis } from '../helpers/own-redis.ts'
import { until } from '../helpers/until.ts'
import { timed } from '../helpers/waits.ts'

/** Of all that needs no service of its own. */
const service = await testApp(t)

/** Workers that wait for an inbox at two replicas: who is woken, in which order, and how often Redis is asked. */

const looks = async ({ app }: TestApp) => (await scrape(app)).get('handoff_redis_call_duration_seconds_count{script="take"}') ?? 0
const areWaiting = (service: TestApp, count: number) => until(async () => await inboxWaiters(service.app) === count)
const pass = async ({ call }: TestApp, more: object = {}): Promise<string> => (await call('alice', 'POST', '/api/pass', { task: 't', to: 'work', ...more })).json().handoff_id
/** The ids that a catch which waits gets. */
const next = async ({ call }: TestApp, max = 1): Promise<string[]> =>
  (await call('bob', 'POST', '/api/catch?wait=60', { inbox: 'work', max })).json().items.map(({ handoff_id: id }: { handoff_id: string }) => id)

const numbers = (count: number) => Array.from({ length: count }, (_, index) => index)

t.test('who has waited longest is served first', async t => {
  const served: number[] = []
  const all: Array<Promise<unknown>> = []
  for (const turn of numbers(5)) {
    all.push(next(service).then(() => served.push(turn)))
    await areWaiting(service, turn + 1)
  }
  for (const turn of numbers(5)) {
    await pass(service)
    await all[turn]
    t.strictSame(served, numbers(turn + 1))
  }
})

t.test('a handoff wakes one waiter of each replica, and nobody asks while nothing comes', async t => {
  const one = await testApp(t)
  const other = await testApp(t, {}, { prefix: one.prefix })
  const passed: string[] = []
  const caught: string[] = []
  const all = [one, other].flatMap(service => numbers(30).map(async () => { caught.push(...await next(service)) }))
  await Promise.all([areWaiting(one, 30), areWaiting(other, 30)])
  const before = await looks(one) + await looks(other)
  for (const turn of numbers(20)) {
    passed.push(await pass(one))
    await until(() => caught.length === turn + 1)
  }
  const oneByOne = await looks(one) + await looks(other) - before
  // Two for each, and on a busy machine some that come by themselves; if each waiter looked, over a thousand.
  t.ok(oneByOne >= 20 && oneByOne <= 200, `${oneByOne} looks for 20 handoffs`)
  // All at once: each message has its own turn, so that nothing stays behind.
  passed.push(...await Promise.all(numbers(40).map(() => pass(other))))
  await Promise.all(all)
  t.strictSame(caught.sort(), passed.sort())
})

t.test('bursts onto few workers that come back leave nothing behind', async t => {
  const one = await testApp(t)
  const other = await testApp(t, {}, { prefix: one.prefix })
  const caught = new Set<string>()
  const isDone = new AbortController()
  const work = async (service: TestApp, max: number) => {
    while (!isDone.signal.aborted) {
      for (const id of await next(service, max)) {
        t.notOk(caught.has(id), 'caught once')
        caught.add(id)
      }
    }
  }
  const working = [work(one, 1), work(one, 3), work(other, 1), work(other, 2), work(other, 1)]
  for (const burst of numbers(8)) {
    const ids = await Promise.all(numbers(15).map(index => pass(index % 2 === 0 ? one : other, index % 5 === 0 ? { require_human: true } : {})))
    await Promise.all(ids.filter((_, index) => index % 5 === 0).map(id => one.call('approver', 'POST', `/api/approve/${id}`)))
    await until(() => ids.every(id => caught.has(id)))
    t.equal(caught.size, 15 * (burst + 1))
  }
  isDone.abort()
  one.app.draining.start()
  other.app.draining.start()
  await Promise.all(working)
})

t.test('a drain answers 200 that wait, with nothing', async t => {
  const service = await testApp(t)
  const all = numbers(200).map(() => next(service))
  await areWaiting(service, 200)
  service.app.draining.start()
  t.strictSame((await Promise.all(all)).flat(), [])
})

t.test('of inboxes that requests named, a bounded number stays subscribed', async t => {
  const service = await testApp(t)
  const channels = async () => (await service.redis.call('PUBSUB', 'SHARDCHANNELS', `${service.prefix}:*:i:*`) as string[]).map(name => /[^:]*$/.exec(name)![0])
  const names = (request: number) => numbers(10).map(n => `inbox-${request}-${n}`)
  for (const some of numbers(26)) {
    await Promise.all(numbers(20).map(n => service.call('bob', 'POST', '/api/catch', { inboxes: names(20 * some + n) })))
  }
  // Confirmed after whatever was asked before.
  await service.store.subscriptions.listen(`${service.prefix}:{x}:last`, () => {})
  const kept = new Set(await channels())
  t.ok(kept.size <= 5000, `${kept.size} of 5200`)
  t.notOk(kept.has('inbox-0-0'), 'the one that was unused longest ended first')
  t.ok(kept.has('inbox-519-9'))
})

t.test('what requests name at once is bounded, in each tenant; what is named already, anybody may name', async t => {
  const { store } = service
  const queues = new QueuePool(store.subscriptions, place => store.inboxes.channelOf(place), { used: 3, unused: 2 })
  t.teardown(() => queues.end())
  const subscribed = async () => {
    const channels = await service.redis.call('PUBSUB', 'SHARDCHANNELS', `${service.prefix}:*:i:bounded:*`) as string[]
    return [...new Set(channels.map(name => name.slice(-1)))].sort().join('')
  }
  const use = (inbox: string, tenant = 'bounded') => {
    const places = placesOf(tenant, inbox)
    return { places, queue: queues.use(places) }
  }
  const [a, b, c] = [use('a'), use('b'), use('c')]
  const refused = { code: 'rate_limited', more: { headers: { 'retry-after': '2' } } }
  t.throws(() => use('d'), refused)
  const again = use('a')
  t.equal(again.queue, a.queue)
  queues.leave(use('d', 'another'))
  queues.leave(a)
  t.throws(() => use('d'), refused, 'another one names it still')
  queues.leave(again)
  const d = use('d')
  t.throws(() => use('a'), refused, 'it was given up')
  await until(async () => await subscribed() === 'abcd')
  queues.leave(b)
  queues.leave(c)
  await until(async () => await subscribed() === 'bcd')
  t.equal(use('c').queue, c.queue, 'what was used last is kept')
  queues.leave(d)
  queues.leave(c)
  await until(async () => await subscribed() === 'cd')
})

t.test('whoever waits for an inbox while Redis is away is told so, not that the inbox is empty', skipInQuick, async t => {
  const redis = await ownRedis(t)
  const service = await testApp(t, {}, { url: redis.url })
  const ask = (wait: number) => service.call('bob', 'POST', `/api/catch?wait=${wait}`)
  const unavailable = { statusCode: 503, code: 'unavailable' }
  const told = async (answer: ReturnType<typeof ask>) => {
    const { statusCode, json } = await answer
    return { statusCode, code: json().code }
  }
  t.strictSame((await ask(1)).json(), { items: [] })
  const [first, second] = [ask(5), ask(5)]
  await areWaiting(service, 2)
  process.kill(redis.pid(), 'SIGSTOP')
  t.strictSame(await told(service.call('bob', 'POST', '/api/catch')), unavailable, 'without a wait')
  t.strictSame(await Promise.all([first, second].map(told)), [unavailable, unavailable], 'who waited before')
  t.strictSame(await Promise.all([ask(1), ask(1)].map(told)), [unavailable, unavailable], 'who comes now')
  process.kill(redis.pid(), 'SIGCONT')
  await until(async () => (await service.app.inject('/readyz')).statusCode === 200)
  t.strictSame((await ask(1)).json(), { items: [] }, 'and then it waits as ever')
})

// As while a slot moves: a script that runs at the node that is to get it tells nobody who listens here.
t.test('what no message told of is found when the waiting is over', async t => {
  const service = await testApp(t)
  const { redis, prefix } = service
  const id = await pass(service)
  const [list] = (await redis.keys(`${prefix}:*:i:default:work`))
  const kept = await redis.dumpBuffer(list!)
  await redis.del(list!)
  const all = numbers(2).map(async () => (await service.call('bob', 'POST', '/api/catch?wait=6', { inbox: 'work' })).json().items)
  await areWaiting(service, 2)
  await redis.restore(list!, 0, kept!)
  t.match((await Promise.all(all)).flat(), [{ handoff_id: id }])
})

t.test('a message during a last look that needs no turn is for the next one who waits', async t => {
  const { inboxes } = service.store
  const ask = async (wait: number) => (await service.call('bob', 'POST', `/api/catch?wait=${wait}`, { inbox: 'work' })).json().items
  const first = ask(6)
  await areWaiting(service, 1)
  const second = ask(60)
  await areWaiting(service, 2)
  const take = inboxes.take.bind(inboxes)
  let passed: Promise<string> | undefined
  inboxes.take = async (...asked) => {
    const found = await take(...asked)
    // Passed after the script ran, and told before its reply is read.
    await (passed ??= pass(service).then(async id => {
      await sleep(50)
      return id
    }))
    return found
  }
  t.strictSame(await first, [])
  const [items, after] = await timed(() => second)
  t.match(items, [{ handoff_id: await passed }])
  t.ok(after < 5000, `after ${Math.round(after)} ms`)
})

t.test('what a failed look would have found is found by the next one', async t => {
  const redis = await ownRedis(t)
  const service = await testApp(t, {}, { url: redis.url })
  const ask = (wait: number) => service.call('bob', 'POST', `/api/catch?wait=${wait}`, { inbox: 'work' })
  t.strictSame((await ask(1)).json(), { items: [] })
  const id = await pass(service)
  // Redis refuses writes, and no connection breaks.
  await redis.admin.config('SET', 'min-replicas-to-write', 1)
  t.equal((await ask(60)).statusCode, 503)
  await redis.admin.config('SET', 'min-replicas-to-write', 0)
  const [answer, after] = await timed(() => ask(60))
  t.match(answer.json().items, [{ handoff_id: id }])
  t.ok(after < 5000, `after ${Math.round(after)} ms`)
})
