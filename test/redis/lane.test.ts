import { execFile } from 'node:child_process'
import { EventEmitter } from 'node:events'
import { PassThrough } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import t from 'tap'
import type { Test } from 'tap'
import { Unavailable } from '../../src/core/errors.ts'
import { randomToken } from '../../src/core/ids.ts'
import type { ScriptCall } from '../../src/redis/call.ts'
import { Group, OpenCalls, ownBarrier } from '../../src/redis/lane.ts'
import type { Durability } from '../../src/redis/lane.ts'
import { Lanes, askHolds, callBudget } from '../../src/redis/lanes.ts'
import { loadScripts } from '../../src/redis/scripts.ts'
import { Together } from '../../src/redis/together.ts'
import { KeyNames } from '../../src/store/key-names.ts'
import { isWhole } from '../helpers/extent.ts'
import { newPlace, pass, payload, untilServing } from '../helpers/handoffs.ts'
import { ownRedis } from '../helpers/own-redis.ts'
import { typed, withoutTap } from '../helpers/processes.ts'
import { callsOf, testStore } from '../helpers/redis.ts'
import { until } from '../helpers/until.ts'

async function handoffCount (dump: () => Promise<Record<string, unknown>>): Promise<number> {
  return Object.keys(await dump()).filter(key => key.includes(':h:')).length
}

/** For the tests that leave it as it was. */
const { url, pid, admin } = await ownRedis(t)

t.test('all calls of a tick leave in one write', async t => {
  const { store } = await testStore(t, { url })
  await untilServing(store.handoffs)
  await pass(store.handoffs) // loads the script: otherwise each call would send its text
  const reads = async () => Number(/total_reads_processed:(\d+)/.exec(await admin.info('stats'))![1])
  const before = await reads()
  await Promise.all(Array.from({ length: 100 }, () => pass(store.handoffs)))
  const used = await reads() - before
  t.ok(used < 20, `100 calls took the server ${used} reads`)
})

t.test('statuses that are asked for before they are sent share a call, and none joins one that was sent', async t => {
  const { store: { handoffs } } = await testStore(t, { url })
  await untilServing(handoffs)
  const place = newPlace()
  await pass(handoffs, place)
  const first = handoffs.status(place)
  t.equal(handoffs.status(place), first)
  t.not(handoffs.status({ ...place, tenant: 'other' }), first)
  t.not(handoffs.status(place, 10, 10), first)
  await first
  const second = handoffs.status(place)
  t.not(second, first)
  await second
  // Asked in the turn's last phase, in front of what is sent there: so it is sent long before the next such phase.
  const [early, late] = await new Promise<[unknown, unknown]>(resolve => {
    let early: unknown
    setImmediate(() => {
      early = handoffs.status(place)
      setTimeout(() => resolve([early, handoffs.status(place)]), 0)
      for (const end = performance.now() + 5; performance.now() < end;);
    })
    handoffs.lineage(newPlace()).catch(() => {})
  })
  t.not(late, early)
  await Promise.all([early, late])
})

t.test('each call gets its own reply, even among other commands on the connection', async t => {
  const { store } = await testStore(t, { url })
  await untilServing(store.handoffs)
  await pass(store.handoffs) // loads both scripts, so that the server runs the calls in order
  // Readiness uses the same connection for a script and INFO, and the lane for TIME.
  const mixed = await Promise.all(Array.from({ length: 300 }, async (_, n) => {
    if (n % 3 === 0) return await store.whyNotReady() === null
    const place = newPlace()
    const [passed, status] = [await pass(store.handoffs, place), await store.handoffs.status(place)]
    return passed.outcome === 'passed' && status.outcome === 'found' && status.record.createdAt === passed.createdAt
  }))
  t.ok(mixed.every(right => right), `${mixed.filter(right => !right).length} were wrong`)
})

t.test('a tick’s calls of one script are one command, in their order, each with its own reply', async t => {
  const { store, prefix, redis } = await testStore(t, { url })
  await untilServing(store.handoffs)
  const commands = async () => Number(/cmdstat_evalsha:calls=(\d+)/.exec(await admin.info('commandstats'))![1])
  const names = new KeyNames(prefix)
  await Promise.all([pass(store.handoffs), pass(store.handoffs)]) // loads the script
  const places = Array.from({ length: 100 }, () => newPlace())
  const wrong = names.handoff(places[50]!.tag, `default:${places[50]!.id}`)
  await redis.set(wrong, 'no hash')
  const before = await commands()
  const passed = await Promise.allSettled(places.map(place => pass(store.handoffs, place)))
  const used = await commands() - before
  t.ok(used <= 4, `100 calls were ${used} commands`)
  t.strictSame(passed.flatMap(({ status }, at) => status === 'rejected' ? [at] : []), [50], 'one call’s error is its own')
  t.match(passed[50], { reason: { message: /^WRONGTYPE/ } })
  await redis.del(wrong)

  await admin.script('FLUSH')
  const others = [...places.slice(48, 53), newPlace()]
  const caught = await Promise.all(others.map(place => store.handoffs.catch(place, randomToken(), 'bob')))
  t.strictSame(caught.map(({ outcome }) => outcome), ['caught', 'caught', 'not_found', 'caught', 'caught', 'not_found'], 'also where Redis has lost the scripts')

  const inbox = 'in-order'
  const queued = await Promise.all(Array.from({ length: 30 }, () => {
    const place = newPlace()
    const body = { ...place, token: '-', passedBy: 'alice', requireHuman: false, to: inbox, options: ` t${inbox}`, expiresIn: 60_000, payload }
    return store.handoffs.pass(body).then(() => place.id)
  }))
  const ids = (await Promise.all((await redis.keys(`${prefix}:*:i:default:${inbox}`)).map(key => redis.zrange(key, '0', '-1', 'WITHSCORES'))))
    .flatMap(all => all.flatMap((member, at) => at % 2 === 0 ? [{ id: member.split(':')[1]!, turn: Number(all[at + 1]) }] : []))
  t.strictSame(ids.sort((one, other) => one.turn - other.turn).map(({ id }) => id), queued, 'what enters an inbox has its turns in the order in which it was sent')
})

t.test('what a tick sent goes with the next collection of young objects', async t => {
  const probe = typed(new URL('../helpers/young-objects.ts', import.meta.url))
  // Else V8 sometimes makes whole kinds of objects in the old generation, by what survived of the first ones. It is about what we hold.
  const heap = ['--no-allocation-site-pretenuring']
  const { stdout } = await promisify(execFile)(process.execPath, [...heap, ...probe, url, 'young'], { env: withoutTap() })
  const kept = JSON.parse(stdout) as Record<string, number>
  for (const [name, kilobytes] of Object.entries(kept)) t.ok(kilobytes < 1000, `of 3,840 ${name}, ${kilobytes} KB are in the old generation`)
  t.same(Object.keys(kept), ['catches', 'statuses'])
})

t.test('calls that return much are several commands', async t => {
  const { store } = await testStore(t, { url })
  await untilServing(store.handoffs)
  const large = Buffer.from(`"task":"t","output":${JSON.stringify('x'.repeat(100_000))},"context":{},"constraints":null`)
  const places = Array.from({ length: 12 }, () => newPlace())
  await Promise.all(places.map(place => store.handoffs.pass({ ...place, token: '-', passedBy: 'alice', requireHuman: false, options: '', expiresIn: 60_000, payload: large })))
  await Promise.all(Array.from({ length: 2 }, () => store.handoffs.catch(newPlace(), randomToken(), 'bob')))
  const stats = async () => Number(/cmdstat_evalsha:calls=(\d+)/.exec(await admin.info('commandstats'))![1])
  const before = await stats()
  const caught = await Promise.all(places.map(place => store.handoffs.catch(place, randomToken(), 'bob')))
  t.ok(caught.every(reply => 'payload' in reply && reply.payload.equals(large)))
  t.equal(await stats() - before, 4, 'three at a time')
})

t.test('when replies are cut off, nothing is lost, nothing happens twice and there is no false conflict', async t => {
  const { store, dump } = await testStore(t, { url })
  await untilServing(store.handoffs)
  const work = { over: false, passed: 0 }
  const agent = async () => {
    while (!work.over) {
      const place = newPlace()
      await pass(store.handoffs, place)
      const caught = await store.handoffs.catch(place, randomToken(), 'bob')
      if (!('payload' in caught)) t.fail(`the only catch was told ${caught.outcome}`)
      const done = await store.handoffs.done(place, randomToken(), 'bob', Buffer.alloc(0), '')
      if (done.outcome !== 'done' && done.outcome !== 'replayed') t.fail(`the only done was told ${done.outcome}`)
      work.passed++
    }
  }
  const agents = Array.from({ length: 16 }, agent)
  for (let cut = 0; cut < (isWhole ? 20 : 5); cut++) {
    // The next cut waits for new work on the connection, so that calls are in flight.
    for (const until = work.passed + 40; work.passed < until;) await sleep(1)
    await admin.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
  }
  work.over = true
  await Promise.all(agents)
  t.equal(await handoffCount(dump), work.passed, `${work.passed} handoffs`)
})

t.test('a call that was given up while Redis paused does not happen later', async t => {
  const { store, dump } = await testStore(t, { url })
  await pass(store.handoffs) // so that the server knows the script
  process.kill(pid(), 'SIGSTOP')
  const asked = await Promise.allSettled(Array.from({ length: 50 }, () => pass(store.handoffs)))
  t.ok(asked.every(result => result.status === 'rejected' && result.reason instanceof Unavailable))
  process.kill(pid(), 'SIGCONT')
  await untilServing(store.handoffs)
  await admin.ping()
  t.equal(await handoffCount(dump), 1, 'nothing came of them')
})

t.test('a restart of Redis within the budget goes unnoticed', async t => {
  const { url, pid, admin } = await ownRedis(t, ['--appendfsync', 'always'])
  const { store, dump } = await testStore(t, { url })
  await pass(store.handoffs)
  process.kill(pid(), 'SIGKILL')
  const replies = await Promise.all(Array.from({ length: 20 }, () => pass(store.handoffs)))
  t.ok(replies.every(({ outcome }) => outcome === 'passed' || outcome === 'replayed'))
  await admin.ping()
  t.equal(await handoffCount(dump), 21)
})

t.test('a full Redis refuses writes that need memory and serves the rest', async t => {
  const { store } = await testStore(t, { url })
  const place = newPlace()
  await pass(store.handoffs, place)
  await admin.config('SET', 'maxmemory', 1)
  await t.rejects(pass(store.handoffs), { name: 'Unavailable', message: /^OOM/ }, 'told at once, by Redis’s own word')
  t.strictSame(store.fullRefusals(), [['redis', 1]])
  t.match(await store.handoffs.catch(place, randomToken(), 'bob'), { outcome: 'caught' })
  t.match(await store.handoffs.done(place, randomToken(), 'bob', Buffer.alloc(0), ''), { outcome: 'done' })
  t.match(await store.handoffs.sweep(place.tag, 10), { lookedAt: 0 })
  await admin.config('SET', 'maxmemory', 0)
})

t.test('calls to a replica are retried until it is a master', async t => {
  const { store } = await testStore(t, { url })
  await untilServing(store.handoffs)
  await admin.replicaof('127.0.0.1', '1')
  const asked = pass(store.handoffs)
  await sleep(200)
  await admin.replicaof('NO', 'ONE')
  t.match(await asked, { outcome: 'passed' })
})

t.test('closing the store refuses open calls', async t => {
  const { store } = await testStore(t, { url })
  await untilServing(store.handoffs)
  process.kill(pid(), 'SIGSTOP')
  const asked = pass(store.handoffs)
  asked.catch(() => {}) // awaited below
  await store.close()
  await t.rejects(asked, { name: 'Unavailable' })
  process.kill(pid(), 'SIGCONT')
})

t.test('calls wait for a Redis that is loading, and are refused when the budget is over', async t => {
  const { url, admin } = await ownRedis(t, ['--enable-debug-command', 'yes', '--loading-process-events-interval-bytes', '1024'])
  const { store, redis } = await testStore(t, { url })
  const place = newPlace()
  await pass(store.handoffs, place)
  // Enough data that loading takes this long; meanwhile Redis answers only LOADING.
  await admin.call('DEBUG', 'POPULATE', 1000, 'other', 1000)
  for (const [microsecondsPerKey, outcome] of [[300, 'found'], [3500, 'refused']] as const) {
    await admin.config('SET', 'key-load-delay', microsecondsPerKey)
    const loaded = admin.call('DEBUG', 'RELOAD')
    await until(async () => (await redis.info('persistence')).includes('loading:1'))
    const answer = await store.handoffs.status(place).catch((error: Error) => error)
    t.match(answer, outcome === 'found' ? { outcome } : { name: 'Unavailable' })
    await loaded
  }
})

const idle = [{ master: 'redis', underWay: 0, parked: 0 }, { master: 'unknown', underWay: 0, parked: 0 }]

t.test('calls count as under way while Redis is silent, as parked while it is away, and not at all afterwards', async t => {
  const { url, pid } = await ownRedis(t)
  const { store } = await testStore(t, { url })
  await untilServing(store.handoffs)
  t.strictSame(store.laneSizes(), idle)
  process.kill(pid(), 'SIGSTOP')
  const calls = Promise.allSettled(Array.from({ length: 3 }, () => store.handoffs.status(newPlace())))
  t.strictSame(store.laneSizes()[0], { master: 'redis', underWay: 3, parked: 0 })
  process.kill(pid(), 'SIGKILL')
  t.ok(await until(() => store.laneSizes()[0]!.parked === 3))
  t.strictSame(store.laneSizes()[0], { master: 'redis', underWay: 0, parked: 3 })
  await calls
  t.ok(await until(() => store.laneSizes()[0]!.parked === 0), 'given up')
})

t.test('durations are recorded by script, those of given-up calls included', async t => {
  const { url, pid } = await ownRedis(t)
  const { store } = await testStore(t, { url })
  await untilServing(store.handoffs)
  const { took } = store.scripts.find(({ name }) => name === 'inspect')!
  await store.approvals.inspect(newPlace())
  t.equal(callsOf(store, 'inspect'), 1)
  t.ok(took.sum > 0)
  process.kill(pid(), 'SIGSTOP')
  await t.rejects(store.approvals.inspect(newPlace()), { name: 'Unavailable' })
  process.kill(pid(), 'SIGCONT')
  t.equal(took.counts.at(-1), 1, 'above every bound')
  t.ok(took.sum >= callBudget, String(took.sum))
})

const { lease } = loadScripts()

/** Two masters in whose place the test answers. Of both it notes what is asked besides scripts, and keeps each WAIT. */
async function twoMasters (t: Test, durability: Durability | null = null) {
  const node = (name: string) => {
    const sent: ScriptCall[] = []
    const asked: string[] = []
    const acknowledge: Array<(count: number) => void> = []
    const calls = Object.assign(new EventEmitter(), {
      status: 'ready',
      stream: new PassThrough(),
      call: async () => '',
      eval: async () => null,
      wait: () => new Promise<number>(resolve => { acknowledge.push(resolve) }),
      asking: async () => { asked.push('ASKING') },
      disconnect: () => { asked.push('disconnect') },
      time: async () => ['1000000000', String(performance.now() * 1000)],
      sendCommand: (call: ScriptCall) => sent.push(call)
    })
    return { name, tags: [], calls, sent, asked, acknowledge, refused: new Map<unknown, string>() }
  }
  const [one, other] = [node('one'), node('other')]
  const has = { slot: other, all: [one, other], doubts: 0, change: () => {} }
  const lanes = new Lanes({
    of: () => has.slot,
    all: () => has.all,
    each: (seen: (master: unknown) => void) => [one, other].forEach(seen),
    onChange: (changed: () => void) => { has.change = changed },
    doubt: () => { has.doubts++ },
    redirected: () => other
  } as never, durability, false)
  t.teardown(() => lanes.close())
  for (const node of [other, one]) {
    has.slot = node
    node.calls.emit('ready')
    await until(() => lanes.reaches('aaa'))
  }
  const ask = () => lanes.call({ script: lease, tag: 'aaa', keys: [], texts: [], decode: () => {} })
  ask().catch(() => {})
  const parked = () => lanes.sizes().map(({ parked }) => parked)
  return { one, other, has, lanes, ask, parked, call: one.sent[0]! }
}

const replyError = (message: string) => Object.assign(new Error(message), { name: 'ReplyError' })

t.test('what ASK redirects may run at the other node only for half a second after it was sent, however late ASK came', async t => {
  const { other, call } = await twoMasters(t)
  const { sentAt, deadline } = call
  await sleep(5)
  call.reject(replyError('ASK 1 other'))
  t.strictSame([other.sent.length, call.askingUntil], [1, sentAt + askHolds])
  t.ok(deadline - call.deadline > (callBudget - askHolds) / 2, 'and its deadline says so')
})

t.test('a call whose connection broke goes to the master that has its slot by now, and else waits for its own', async t => {
  for (const hasMoved of [true, false]) {
    const { one, other, has, lanes, parked, call } = await twoMasters(t)
    if (hasMoved) has.slot = other
    call.reject(new Error('Connection is closed.'))
    t.strictSame([one.sent.length, other.sent.length, parked()], [1, hasMoved ? 1 : 0, [hasMoved ? 0 : 1, 0, 0]])
    has.slot = one
    t.notOk(lanes.reaches('aaa'))
  }
})

t.test('a call that ASK redirects waits for a connection to that node, and each time comes after ASKING', async t => {
  const { one, other, parked, call } = await twoMasters(t)
  other.calls.emit('close')
  call.reject(replyError('ASK 1 other'))
  t.strictSame([other.sent, parked()], [[], [0, 1, 0]])
  other.calls.emit('ready')
  await until(() => other.sent.length === 1)
  call.reject(replyError('NOSCRIPT No matching script'))
  t.strictSame([one.sent, other.sent, other.asked], [[call], [call, call], ['ASKING', 'ASKING']])
})

t.test('a call that is redirected twice in a row is sent again only after a pause', async t => {
  const { one, other, call } = await twoMasters(t)
  call.reject(replyError('MOVED 1 other'))
  call.reject(replyError('MOVED 1 one'))
  t.strictSame([one.sent, other.sent, call.lastError], [[call], [call], 'sent to and fro: MOVED 1 one'])
  await until(() => one.sent.length === 2)
})

t.test('a master that takes no writes is asked for anew; of a Cluster that is down the map is in doubt', async t => {
  for (const [message, asked, doubts] of [['READONLY', ['disconnect'], 0], ['CLUSTERDOWN', [], 1]] as const) {
    const { one, has, call } = await twoMasters(t)
    call.reject(replyError(`${message} of itself`))
    t.strictSame([one.asked, has.doubts], [asked, doubts], message)
  }
})

t.test('what waits for a master goes with its slot, and once; a master that has left has no lane', async t => {
  const { other, has, lanes, parked, call } = await twoMasters(t)
  call.reject(new Error('Connection is closed.'))
  has.slot = other
  has.change()
  t.strictSame([other.sent, parked()], [[call], [0, 0, 0]])
  has.all = [other]
  has.change()
  t.strictSame(lanes.sizes().map(({ master }) => master), ['other', 'unknown'])
})

t.test('a call that was given up waits nowhere any more', async t => {
  const { parked, call } = await twoMasters(t)
  call.reject(new Error('Connection is closed.'))
  t.strictSame(parked(), [1, 0, 0])
  call.refuse(new Unavailable('given up'))
  await until(() => parked()[0] === 0)
})

t.test('a script that the user may not run is not sent', async t => {
  const { one, ask } = await twoMasters(t)
  one.refused.set(lease, 'NOPERM it lacks SET')
  await t.rejects(ask(), { name: 'Unavailable', message: 'NOPERM it lacks SET' })
  t.equal(one.sent.length, 1)
})

t.test('while a group is under way calls wait for the next one, also after a group of redirected calls', async t => {
  const { other, has, ask, call } = await twoMasters(t, { replicas: 1, barrierKey: tag => tag })
  const turns = async () => { for (let n = 0; n < 5; n++) await new Promise(resolve => setImmediate(resolve)) }
  has.slot = other
  ask().catch(() => {})
  await turns()
  call.reject(replyError('ASK 1 other'))
  ask().catch(() => {})
  await turns()
  t.equal(other.sent.length, 2)
  for (const [at, sent] of [2, 3].entries()) {
    other.acknowledge[at]!(1)
    await turns()
    t.equal(other.sent.length, sent)
  }
})

t.test('whatever is written in a tick arrives whole', async t => {
  const { one: { calls: { stream } } } = await twoMasters(t)
  const text = 'é'.repeat(40_000)
  stream.write(text)
  stream.write(Buffer.from(text))
  await new Promise(resolve => stream.once('readable', resolve))
  t.ok(String(stream.read()) === text + text)
})

t.test('a settled call’s place is the next one’s', t => {
  const calls = new OpenCalls()
  const [first, second, third] = [{}, {}, {}] as [ScriptCall, ScriptCall, ScriptCall]
  calls.add(first)
  calls.add(second)
  calls.remove(first)
  t.strictSame([calls.size, [...calls]], [1, [second]])
  calls.add(third)
  t.strictSame([calls.size, third.place], [2, 0])
  t.end()
})

t.test('what a server had a reason to refuse is sent alone, and so is what is large', t => {
  const call = (wasRefused: boolean, bytes: number) => ({ request: { script: loadScripts().catch, tag: 'aaa', bytes: Buffer.alloc(bytes) }, wasRefused }) as ScriptCall
  t.strictSame([call(false, 0), call(false, 16_384), call(false, 16_385), call(true, 0)].map(call => new Together(true).take(call)), [true, true, false, false])
  t.end()
})

t.test('a command has calls of several partitions only where one Redis has them all', t => {
  for (const [isOneRedis, sizes] of [[true, [3]], [false, [2, 1]]] as const) {
    const together = new Together(isOneRedis)
    for (const tag of ['aaa', 'bbb', 'aaa']) together.take({ request: { script: loadScripts().catch, tag, keys: [], texts: [] } } as never)
    const sent: number[] = []
    together.send(command => sent.push('calls' in command ? command.calls.length : 1))
    t.strictSame(sent, sizes)
  }
  t.end()
})

t.test('a barrier at one of the group’s own keys leaves what it has, and until when', async t => {
  const names = ['hash', 'index', 'text', 'feed', 'list', 'set'].map(name => `{barrier}:${name}`) as [string, string, string, string, string, string]
  const [hash, index, text, feed, list, set] = names
  await Promise.all([admin.hset(hash, 'a', 1), admin.zadd(index, 1, 'a'), admin.set(text, 'a'), admin.xadd(feed, '1-0', 'a', '1'), admin.rpush(list, 'a'), admin.sadd(set, 'a')])
  await Promise.all(names.map(name => admin.pexpireat(name, 9_000_000_000_000)))
  const looks = () => Promise.all(names.map(async name => [await admin.dump(name), await admin.call('PEXPIRETIME', name)]))
  const before = await looks()
  for (const name of [...names, '{barrier}:missing']) await admin.eval(ownBarrier, 1, name)
  t.strictSame(await looks(), before)
  t.equal(await admin.exists('{barrier}:missing'), 0)
})

t.test('a group is acknowledged by as many replicas as it must be, and by no fewer', async t => {
  for (const [count, expected] of [[0, '0 of 2 replicas acknowledged in time'], [1, '1 of 2 replicas acknowledged in time'], [2, 'answered'], [3, 'answered']] as const) {
    const group = new Group()
    let told: unknown
    group.hold({ answer: (reply: unknown) => { told = reply }, again: (reason: string) => { told = reason } } as never, 'answered')
    const settle = await group.commit({} as never, Promise.resolve(count), 2)
    settle()
    t.equal(told, expected)
  }
})

t.test('where a node has no place for the barrier, one of the group’s own keys has it, after ASKING', async t => {
  const asked: string[] = []
  const redis = {
    asking: async () => { asked.push('ASKING') },
    eval: async (_: string, __: number, key: string) => { asked.push(`EVAL ${key}`) },
    wait: async () => asked.push('WAIT')
  }
  const group = new Group()
  group.hold({ request: { keys: ['key'] } } as never, 'answered')
  await group.commit(redis as never, Promise.reject(new Error('ASK 1 other')), 1)
  t.strictSame(asked, ['ASKING', 'EVAL key', 'WAIT'])
})
