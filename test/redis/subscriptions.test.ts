import { EventEmitter } from 'node:events'
import t from 'tap'
import type { Test } from 'tap'
import type { OwnCommand } from '../../src/redis/call.ts'
import { callBudget } from '../../src/redis/lanes.ts'
import { Subscriptions } from '../../src/redis/subscriptions.ts'
import { startRedisServer } from '../faults/fleet/redis.ts'
import type { RedisServer } from '../faults/fleet/redis.ts'
import { timeRun } from '../helpers/clock.ts'
import { skipInQuick } from '../helpers/extent.ts'
import { ownRedis } from '../helpers/own-redis.ts'
import { fleetStore, testStore } from '../helpers/redis.ts'
import type { TestStore, TestStoreOptions } from '../helpers/redis.ts'
import { until } from '../helpers/until.ts'

const ignore = () => {}

/** A listener whose next message can be awaited. */
function bell () {
  let rung = 0
  return { ring: () => { rung++ }, count: () => rung, rings: (times: number) => until(() => rung >= times) }
}

async function subscriberCounts ({ redis }: TestStore, ...names: string[]): Promise<unknown[]> {
  const pairs = await redis.call('PUBSUB', 'SHARDNUMSUB', ...names) as unknown[]
  return pairs.filter((_, index) => index % 2 === 1)
}

/** A store with an established connection: before, listeners would be woken when it is. */
async function connected (t: Test, options: TestStoreOptions = {}): Promise<TestStore> {
  const test = await testStore(t, options)
  const name = `${test.prefix}:{x}:first`
  const leave = await test.store.subscriptions.listen(name, ignore)
  await until(async () => String(await subscriberCounts(test, name)) === '1')
  leave()
  return test
}

t.test('each listener hears its own channel, through one subscription per channel', async t => {
  const test = await connected(t)
  const { subscriptions } = test.store
  const [a, b] = [`${test.prefix}:{x}:a`, `${test.prefix}:{y}:b`]
  const [one, two, other] = [bell(), bell(), bell()]
  const leaveOne = await subscriptions.listen(a, one.ring)
  const [leaveTwo, leaveOther] = await Promise.all([subscriptions.listen(a, two.ring), subscriptions.listen(b, other.ring)])
  t.strictSame(await subscriberCounts(test, a, b), [1, 1])

  // Once it has resolved, no change is missed.
  t.equal(await test.redis.spublish(a, 'x'), 1)
  await Promise.all([one.rings(1), two.rings(1)])
  t.equal(other.count(), 0)

  leaveOne()
  t.strictSame(await subscriberCounts(test, a, b), [1, 1], 'another one listens still')
  await test.redis.spublish(a, 'x')
  await two.rings(2)
  t.equal(one.count(), 1, 'who left is told no more')

  leaveTwo()
  t.ok(await until(async () => String(await subscriberCounts(test, a, b)) === '0,1'))
  leaveOther()
  t.ok(await until(async () => String(await subscriberCounts(test, a, b)) === '0,0'))
})

t.test('a listener that comes while the last one leaves hears messages', async t => {
  const test = await connected(t)
  const { subscriptions } = test.store
  const name = `${test.prefix}:{x}:a`
  for (let round = 0; round < 50; round++) {
    const leave = await subscriptions.listen(name, ignore)
    const one = bell()
    leave()
    const leaveOne = await subscriptions.listen(name, one.ring)
    t.equal(await test.redis.spublish(name, 'x'), 1)
    await one.rings(1)
    leaveOne()
    leaveOne()
  }
  t.ok(await until(async () => String(await subscriberCounts(test, name)) === '0'))
})

t.test('after a broken connection all listeners are told, and are subscribed again', async t => {
  const redis = await ownRedis(t)
  const test = await connected(t, { url: redis.url })
  const { subscriptions } = test.store
  const names = Array.from({ length: 20 }, (_, i) => `${test.prefix}:{x}:${i}`)
  const bells = names.map(bell)
  await Promise.all(names.map((name, i) => subscriptions.listen(name, bells[i]!.ring)))
  await redis.admin.call('CLIENT', 'KILL', 'TYPE', 'pubsub')
  await Promise.all(bells.map(({ rings }) => rings(1)))
  t.strictSame(await subscriberCounts(test, ...names), names.map(() => 1))
  await test.redis.spublish(names[7]!, 'x')
  await bells[7]!.rings(2)
  t.strictSame(bells.map(({ count }) => count()), names.map((_, i) => i === 7 ? 2 : 1))
})

/** How many rang in each turn of the event loop. */
function turns () {
  const counts: number[] = []
  let isOpen = false
  const ring = () => {
    if (!isOpen) {
      isOpen = true
      counts.push(0)
      setImmediate(() => { isOpen = false })
    }
    counts.push(counts.pop()! + 1)
  }
  return { counts, ring }
}

t.test('after a broken connection many are subscribed again, and told, in slices', async t => {
  const redis = await ownRedis(t)
  const test = await connected(t, { url: redis.url })
  const { subscriptions } = test.store
  const names = Array.from({ length: 2000 }, (_, i) => `${test.prefix}:{x}:${i}`)
  const [last, left] = [names.at(-1)!, names.at(-2)!]
  const bells = names.map(bell)
  const { counts, ring } = turns()
  const early = bell()
  let whileFirst: Promise<void> | undefined
  /** When the first are told, the last are still to be subscribed. */
  const first = async () => {
    t.same([subscriptions.isConnected(names[0]!), subscriptions.isConnected(last)], [true, false])
    t.equal(bells.at(-1)!.count(), 0)
    leaves.at(-2)!()
    await subscriptions.listen(last, early.ring)
    t.ok(subscriptions.isConnected(last))
    const before = early.count()
    t.equal(await test.redis.spublish(last, 'x'), 1, 'who listens meanwhile misses nothing')
    await early.rings(before + 1)
  }
  const leaves = await Promise.all(names.map((name, i) => subscriptions.listen(name, () => {
    bells[i]!.ring()
    ring()
    whileFirst ??= first()
  })))
  await redis.admin.call('CLIENT', 'KILL', 'TYPE', 'pubsub')
  await Promise.all(bells.map(({ rings }, i) => names[i] === left ? undefined : rings(1)))
  await whileFirst
  t.ok(Math.max(...counts) <= 256 + 1, `${counts.join()} in a turn`)
  t.strictSame(await subscriberCounts(test, ...names), names.map(name => name === left ? 0 : 1))
  t.equal(bells.at(-2)!.count(), 0, 'who left is told no more')
  t.strictSame(bells.slice(0, -2).map(({ count }) => count()), names.slice(2).map(() => 1), 'each is told once')
})

t.test('many listeners of a few channels are told in slices as well', async t => {
  const redis = await ownRedis(t)
  const test = await connected(t, { url: redis.url })
  const names = Array.from({ length: 20 }, (_, i) => `${test.prefix}:{x}:${i}`)
  const { counts, ring } = turns()
  await Promise.all(names.flatMap(name => Array.from({ length: 100 }, () => test.store.subscriptions.listen(name, () => ring()))))
  await redis.admin.call('CLIENT', 'KILL', 'TYPE', 'pubsub')
  const told = () => counts.reduce((sum, count) => sum + count, 0)
  await until(() => told() === 2000)
  t.ok(Math.max(...counts) <= 256, `${counts.join()} in a turn`)
})

t.test('a connection that breaks again meanwhile leaves none without a subscription', async t => {
  const redis = await ownRedis(t)
  const test = await connected(t, { url: redis.url })
  const { subscriptions } = test.store
  const names = Array.from({ length: 3000 }, (_, i) => `${test.prefix}:{x}:${i}`)
  const bells = names.map(bell)
  const again: Array<Promise<unknown>> = []
  const breaks = () => { if (again.length < 3) again.push(redis.admin.call('CLIENT', 'KILL', 'TYPE', 'pubsub')) }
  await Promise.all(names.map((name, i) => subscriptions.listen(name, () => {
    bells[i]!.ring()
    // In the first slice, and twice later.
    if (i % 700 === 0) breaks()
  })))
  breaks()
  await Promise.all(bells.map(({ rings }) => rings(1)))
  await Promise.all(again)
  await until(async () => (await subscriberCounts(test, ...names)).every(count => count === 1))
  const before = bells.map(({ count }) => count())
  await Promise.all(names.map(name => test.redis.spublish(name, 'x')))
  await Promise.all(bells.map(({ rings }, i) => rings(before[i]! + 1)))
})

t.test('a listener that comes during an outage is not held up, and is told when the connection is back', async t => {
  const redis = await ownRedis(t)
  const test = await connected(t, { url: redis.url })
  const { subscriptions } = test.store
  process.kill(redis.pid(), 'SIGSTOP')
  const name = `${test.prefix}:{x}:1`
  const one = bell()
  const began = timeRun()
  await subscriptions.listen(name, one.ring)
  const after = timeRun() - began
  t.ok(after < callBudget, `after ${Math.round(after)} ms`)
  process.kill(redis.pid(), 'SIGCONT')
  await one.rings(1)
  await test.redis.spublish(name, 'x')
  await one.rings(2)
})

t.test('keep-alive notices a connection that was cut silently', { timeout: 20_000, ...skipInQuick }, async t => {
  const redis = await ownRedis(t)
  const test = await connected(t, { url: redis.url })
  const name = `${test.prefix}:{x}:a`
  const one = bell()
  await test.store.subscriptions.listen(name, one.ring)
  process.kill(redis.pid(), 'SIGSTOP')
  // There are no calls: the next ping comes within five seconds, and its time-out is one second.
  await new Promise(resolve => setTimeout(resolve, 6500))
  process.kill(redis.pid(), 'SIGCONT')
  await one.rings(1)
  t.pass('told, since it may have missed something')
})

t.test('a waiter is told when its subscription has moved to a new master', async t => {
  const [old, next] = await Promise.all([startRedisServer(t), startRedisServer(t)])
  const sentinel = await startRedisServer(t, { sentinel: true, options: ['--sentinel', `monitor handoffs 127.0.0.1 ${old.port} 1`] })
  const { subscriptions } = fleetStore(t, `redis+sentinel://${sentinel.at}/handoffs`)
  const one = bell()
  await subscriptions.listen('handoff:{x}:a', one.ring)
  const subscribed = async ({ admin }: RedisServer) => String(await admin.call('PUBSUB', 'SHARDNUMSUB', 'handoff:{x}:a')) === 'handoff:{x}:a,1'
  await until(() => subscribed(old))
  const before = one.count()
  await sentinel.admin.call('SENTINEL', 'REMOVE', 'handoffs')
  await sentinel.admin.call('SENTINEL', 'MONITOR', 'handoffs', '127.0.0.1', next.port, 1)
  await old.kill()
  await until(() => subscribed(next))
  await until(() => one.count() > before)
  const told = one.count()
  await next.admin.spublish('handoff:{x}:a', 'x')
  await one.rings(told + 1)
})

t.test('a subscription that Redis refused is made once Redis takes it', async t => {
  const redis = await ownRedis(t)
  const test = await connected(t, { url: redis.url })
  const name = `${test.prefix}:{x}:a`
  await test.redis.call('ACL', 'SETUSER', 'default', 'resetchannels')
  const one = bell()
  await test.store.subscriptions.listen(name, one.ring)
  await test.redis.call('ACL', 'SETUSER', 'default', 'allchannels')
  t.ok(await until(async () => String(await subscriberCounts(test, name)) === '1'))
  await one.rings(1)
})

/** Two masters in whose place the test answers: each is a node of a Cluster. */
function twoMasters (t: Test) {
  const node = () => {
    const sent: OwnCommand[] = []
    const subscriber = Object.assign(new EventEmitter(), {
      status: 'ready', ping: async () => '', sendCommand: (command: OwnCommand) => sent.push(command)
    })
    /** Answers what was sent since. */
    const answer = async () => {
      const words = sent.splice(0).map(command => {
        command.resolve([])
        return [command.name, ...command.args].join(' ')
      })
      await new Promise(resolve => setImmediate(resolve))
      return words
    }
    return { subscriber, calls: { status: 'ready' }, sent, answer }
  }
  const [one, other] = [node(), node()]
  const has = { slot: one, change: () => {} }
  const subscriptions = new Subscriptions({
    of: () => has.slot,
    all: () => [one, other],
    each: (seen: (master: unknown) => void) => [one, other].forEach(seen),
    onChange: (changed: () => void) => { has.change = changed },
    doubt () {}
  } as never)
  t.teardown(() => subscriptions.close())
  return { one, other, has, subscriptions }
}

t.test('when a slot gets another master, its channels are subscribed there, and their listeners are woken', async t => {
  const { one, other, has, subscriptions } = twoMasters(t)
  const [first, second] = [bell(), bell()]
  const listening = [subscriptions.listen('{x}:a', first.ring), subscriptions.listen('{x}:b', second.ring)]
  t.strictSame(await one.answer(), ['ssubscribe {x}:a', 'ssubscribe {x}:b'])
  const [leave] = await Promise.all(listening)
  has.change()
  t.strictSame([await one.answer(), first.count()], [[], 0], 'another slot’s')
  has.slot = other
  has.change()
  t.strictSame(await other.answer(), ['ssubscribe {x}:a', 'ssubscribe {x}:b'])
  t.strictSame([first.count(), second.count()], [1, 1])
  leave!()
  t.strictSame([await one.answer(), await other.answer()], [[], ['sunsubscribe {x}:a']])
})

t.test('between two slices others have their turn', async t => {
  const { one, other, has, subscriptions } = twoMasters(t)
  const listening = Array.from({ length: 300 }, (_, n) => subscriptions.listen(`{x}:${n}`, ignore))
  await one.answer()
  await Promise.all(listening)
  has.slot = other
  has.change()
  t.equal((await other.answer()).length, 256)
  t.equal(other.sent.length, 0)
  await until(() => other.sent.length === 44)
})

t.test('messages count as coming only where both connections to the master are there', t => {
  const { one, subscriptions } = twoMasters(t)
  t.ok(subscriptions.isConnected('{x}:a'))
  for (const connection of [one.calls, one.subscriber]) {
    connection.status = 'connecting'
    t.notOk(subscriptions.isConnected('{x}:a'))
    connection.status = 'ready'
  }
  t.end()
})
