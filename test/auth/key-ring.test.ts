import { setImmediate as turn, setTimeout as sleep } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import t from 'tap'
import { Unavailable } from '../../src/core/errors.ts'
import { tags } from '../../src/core/ids.ts'
import { digest, newKeyId, newSecret } from '../../src/store/api-keys.ts'
import type { KeyRecords } from '../../src/store/api-keys.ts'
import { KeyNames } from '../../src/store/key-names.ts'
import { KeyRing } from '../../src/auth/key-ring.ts'
import { timeRun } from '../helpers/clock.ts'
import { isWhole } from '../helpers/extent.ts'
import { ownRedis } from '../helpers/own-redis.ts'
import { quiet } from '../helpers/redis.ts'
import { blocked, callerBy, callsOf, free, newKey, noStoredKeys, rotated, testKeys, untilKnown } from '../helpers/stored-keys.ts'
import { until } from '../helpers/until.ts'

t.test('a key is looked up once and then remembered', async t => {
  const redis = await ownRedis(t)
  const { keys, records, redis: all, prefix } = await testKeys(t, { url: redis.url })
  const { id, key } = await newKey(records, { tenant: 'acme', scopes: ['pass'], ratePerMinute: 5 })
  t.equal(keys.recall(key), undefined)
  const before = await callsOf(redis.admin, 'hgetall')
  const found = await Promise.all(Array.from({ length: 50 }, () => callerBy(keys, key)))
  for (const caller of found) t.strictSame(caller, { tenant: 'acme', agent: 'alice', scopes: new Set(['pass']), keyId: id, ratePerMinute: 5, inboxes: null })
  t.equal(await callsOf(redis.admin, 'hgetall'), before + 1, 'many at once are one call')
  t.equal(keys.recall(key)?.caller, found[0])
  t.equal(await callerBy(keys, key), found[0], 'at once')
  const wrong = newSecret(id)
  t.equal(await callerBy(keys, wrong), undefined, 'it may have got this secret just now')
  t.equal(await callerBy(keys, wrong), undefined, 'and it has not')
  t.equal(await callsOf(redis.admin, 'hgetall'), before + 2)
  t.match(keys.counts, { hits: 2, misses: 2, refused: 2, shed: 0 })
  // No message has reached this replica.
  const { key: next } = await records.rotate(id, 60_000, 'me') as { key: string }
  t.ok(await callerBy(keys, next), 'a new secret opens it at once')
  await all.hset(new KeyNames(prefix).apiKey(tags[0]!, id), 'digest', digest(wrong))
  t.equal(await callerBy(keys, wrong), undefined, 'as it was refused')
  keys.forget(id)
  await all.hset(new KeyNames(prefix).apiKey(tags[0]!, id), 'digest', digest(next))
  t.ok(await callerBy(keys, next))
  await all.hset(new KeyNames(prefix).apiKey(tags[0]!, id), 'digest', digest(wrong))
  t.ok(await callerBy(keys, wrong), 'refused before the key’s last change: that doesn’t count')
})

t.test('a secret whose time was over at the look-up costs no other one, nor does any of a revoked key', async t => {
  const { keys, records, setClock } = await testKeys(t)
  const start = 1_900_000_000_000
  await setClock(start)
  const { id, key } = await newKey(records)
  const next = await rotated(records, id, 5000)
  await setClock(start + 5000)
  t.ok(await callerBy(keys, next.key))
  t.equal(await callerBy(keys, key), undefined)
  t.match(keys.counts, { misses: 1, refused: 1 })
  await records.revoke(id, 'me')
  keys.forget(id)
  for (const secret of [next.key, key, newSecret(id)]) t.equal(await callerBy(keys, secret), undefined)
  t.match(keys.counts, { misses: 2, refused: 4 })
})

t.test('a key is held to its inboxes', async t => {
  const { keys, records } = await testKeys(t)
  const { key } = await newKey(records, { inboxes: ['a', 'b'] })
  t.strictSame((await callerBy(keys, key))?.inboxes, new Set(['a', 'b']))
})

t.test('a key that was not there is accepted once the log tells of it', async t => {
  const { keys, records, redis } = await testKeys(t)
  keys.start()
  await untilKnown(keys, (await newKey(records)).key)
  const { id, key } = await newKey(records)
  const [stored] = await redis.keys(`*:k:${id}`)
  await redis.rename(stored!, `${stored!}:away`)
  t.equal(await callerBy(keys, key), undefined)
  await redis.rename(`${stored!}:away`, stored!)
  await records.update(id, { ratePerMinute: 7 }, 'me@here')
  t.match(await until(() => callerBy(keys, key)), { keyId: id })
})

t.test('a key that was not there is looked up again once any key may have changed', async t => {
  const { keys, records, redis } = await testKeys(t)
  const { id, key } = await newKey(records)
  const [stored] = await redis.keys(`*:k:${id}`)
  await redis.rename(stored!, `${stored!}:away`)
  for (let n = 0; n < 2; n++) t.equal(await callerBy(keys, key), undefined)
  t.equal(keys.counts.misses, 1)
  await redis.rename(`${stored!}:away`, stored!)
  keys.forget()
  t.match(await callerBy(keys, key), { keyId: id })
})

t.test('a refused secret is accepted once the key has been given it', async t => {
  const redis = await ownRedis(t)
  const { keys, records, store, prefix, redis: admin } = await testKeys(t, { url: redis.url })
  keys.start()
  const { id, key } = await newKey(records)
  await untilKnown(keys, key)
  const next = newSecret(id)
  t.equal(await callerBy(keys, next), undefined, 'it is not yet')
  t.equal(await callerBy(keys, next), undefined, 'remembered')
  const wrong = newSecret(id)
  t.equal(await callerBy(keys, wrong), undefined)
  const before = await callsOf(redis.admin, 'hgetall')
  await sleep(1600) // longer than the cache is trusted without reading the log
  for (const one of [next, wrong]) t.equal(await callerBy(keys, one), undefined, 'still remembered, whatever else was looked up')
  t.equal(await callsOf(redis.admin, 'hgetall'), before)
  // What rotate does, with this secret.
  const record = new KeyNames(prefix).apiKey(tags[0]!, id)
  await admin.multi().hset(record, 'digest', digest(next)).xadd(store.keyRecords.channel, '*', 'action', 'rotated', 'id', id, 'tenant', 't', 'agent', 'a', 'by', 'me').exec()
  await until(async () => await callerBy(keys, next) !== undefined)
  t.ok(await callerBy(keys, next))
  t.equal(await callerBy(keys, key), undefined)
  t.equal(await callerBy(keys, wrong), undefined)
})

/** Records whose look-ups are held back until the test releases them; `read` resolves with the first reply of Redis. */
function heldBack (records: KeyRecords): { slow: KeyRecords, read: Promise<void>, release: () => void } {
  let [release, tell] = [() => {}, () => {}]
  const released = new Promise<void>(resolve => { release = resolve })
  const read = new Promise<void>(resolve => { tell = resolve })
  const lookUp = async (id: string) => {
    const answer = await records.lookUp(id)
    tell()
    await released
    return answer
  }
  const slow = { channel: records.channel, lookUp, changes: (after: string) => records.changes(after) } as KeyRecords
  return { slow, read, release }
}

t.test('a new secret is not judged by a look-up from before it existed', async t => {
  const { store, store: { keyRecords: records } } = await testKeys(t)
  const { slow, read, release } = heldBack(records)
  const keys = new KeyRing([], { keyRecords: slow, subscriptions: store.subscriptions }, quiet)
  const { id, key } = await newKey(records)
  const first = callerBy(keys, key)
  await read
  const next = await rotated(records, id, 60_000)
  const [fresh, former] = [callerBy(keys, next.key), callerBy(keys, key)]
  await turn() // they ask meanwhile
  release()
  t.ok(await first)
  t.ok(await fresh, 'the new one')
  t.ok(await former, 'the former one, which has its grace')
  t.equal(keys.counts.misses, 2)
  keys.forget(id)
  t.ok(await callerBy(keys, next.key))
})

t.test('a secret refused by a stale look-up is accepted once the change is announced', async t => {
  const { store, store: { keyRecords: records }, prefix, redis } = await testKeys(t)
  const { slow, read, release } = heldBack(records)
  const keys = new KeyRing([], { keyRecords: slow, subscriptions: store.subscriptions }, quiet)
  const { id, key } = await newKey(records)
  const next = newSecret(id)
  const early = callerBy(keys, next)
  await read
  await redis.hset(new KeyNames(prefix).apiKey(tags[0]!, id), 'digest', digest(next))
  keys.forget(id)
  const meanwhile = callerBy(keys, key)
  await turn() // they ask meanwhile
  release()
  t.equal(await early, undefined, 'it came before')
  t.equal(await meanwhile, undefined)
  t.ok(await callerBy(keys, next))
})

t.test('an open grant is told once that its key has ended, and costs one look-up', async t => {
  const redis = await ownRedis(t)
  const { keys, records } = await testKeys(t, { url: redis.url })
  keys.start()
  const [{ id, key }, other] = [await newKey(records), await newKey(records)]
  await Promise.all([untilKnown(keys, key), untilKnown(keys, other.key)])
  const told: string[] = []
  const listen = async (name: string, secret: string) => {
    const grant = keys.recall(secret) ?? await keys.find(secret, free)
    return await grant!.onEnd({ ended: () => { told.push(name) }, changed: () => { told.push(`${name} changed`) } })
  }
  for (const name of ['a', 'b']) await listen(name, key)
  await listen('other', other.key)
  const leave = await listen('gone', key)
  leave()
  const next = await rotated(records, id, 60_000)
  const before = await callsOf(redis.admin, 'hgetall')
  await until(async () => await callsOf(redis.admin, 'hgetall') === before + 1)
  await listen('fresh', next.key)
  await sleep(1500)
  t.strictSame(told, [], 'the former secret has its grace')
  t.equal(await callsOf(redis.admin, 'hgetall'), before + 1, 'and no look at the log asks for what is known')
  await rotated(records, id, 0)
  await until(() => told.length === 3)
  t.strictSame(told, ['a', 'b', 'fresh'], 'without grace')
  await records.revoke(other.id, 'me')
  await until(() => told.length === 4)
  await sleep(700)
  t.strictSame(told, ['a', 'b', 'fresh', 'other'], 'once each')
})

t.test('an open grant is told of each change of what its key may do, and of nothing else', async t => {
  const redis = await ownRedis(t)
  const { keys, records } = await testKeys(t, { url: redis.url })
  keys.start()
  const [{ id, key }, other] = [await newKey(records), await newKey(records)]
  await Promise.all([untilKnown(keys, key), untilKnown(keys, other.key)])
  const told: string[] = []
  for (const [name, secret] of [['a', key], ['other', other.key]] as const) {
    await keys.recall(secret)!.onEnd({ ended: () => { told.push(`${name} ended`) }, changed: () => { told.push(name) } })
  }
  for (const [count, update] of [{ scopes: ['status'] as const }, { inboxes: ['w'] }, { ratePerMinute: 7 }, { inboxes: null }].entries()) {
    await records.update(id, update, 'me')
    await until(() => told.length === count + 1)
  }
  t.match(await callerBy(keys, key), { scopes: new Set(['status']), inboxes: null, ratePerMinute: 7 })
  // The same again, a later end and another secret change nothing that it may do.
  const before = await callsOf(redis.admin, 'hgetall')
  await records.update(id, { scopes: ['status'], expiresIn: 60_000 }, 'me')
  await rotated(records, id, 60_000)
  await until(async () => await callsOf(redis.admin, 'hgetall') > before + 2)
  t.strictSame(told, ['a', 'a', 'a', 'a'])
  await records.update(id, { expiresIn: 1 }, 'me')
  await until(() => told.length === 5)
  t.strictSame(told.slice(4), ['a ended'])
})

t.test('an open grant is told when the log was replaced and its key is gone', async t => {
  const { keys, records, redis, prefix } = await testKeys(t)
  keys.start()
  const { id, key } = await newKey(records)
  await untilKnown(keys, key)
  let told = 0
  await keys.recall(key)!.onEnd({ ended: () => { told++ }, changed () {} })
  const names = new KeyNames(prefix)
  await redis.del(names.apiKeysLog(tags[0]!), names.apiKey(tags[0]!, id))
  await until(() => told === 1)
  t.equal(told, 1)
})

t.test('a malformed key causes no look-up, an unknown one causes one', async t => {
  const redis = await ownRedis(t)
  const { keys, records } = await testKeys(t, { url: redis.url })
  const { key } = await newKey(records)
  const before = await callsOf(redis.admin, 'evalsha')
  for (const wrong of [`${key}x`, key.slice(1), key.slice(0, -1) + (key.endsWith('a') ? 'b' : 'a'), '', 'handoff_', key.toLowerCase(), 'x'.repeat(59)]) {
    t.equal(keys.recall(wrong), undefined)
    t.equal(await callerBy(keys, wrong), undefined, wrong)
    await t.rejects(keys.find(wrong, blocked), { code: 'rate_limited' })
  }
  t.equal(await callsOf(redis.admin, 'evalsha'), before)
  const nobodys = newKeyId()
  t.equal(await callerBy(keys, newSecret(nobodys)), undefined)
  t.equal(await callerBy(keys, newSecret(nobodys)), undefined, 'at once, whatever its secret')
  t.equal(await callsOf(redis.admin, 'evalsha'), before + 1)
})

t.test('a key ends at its millisecond, by Redis’s clock', async t => {
  const { keys, records, setClock } = await testKeys(t)
  const start = 1_900_000_000_000
  await setClock(start)
  const { id, key } = await newKey(records, { expiresIn: 10_000 })
  t.ok(await callerBy(keys, key))
  await setClock(start + 9_999)
  // Looked up again, as after a log entry about the key.
  keys.forget(id)
  t.ok(await callerBy(keys, key))
  await setClock(start + 10_000)
  keys.forget(id)
  t.equal(await callerBy(keys, key), undefined)
  t.equal(await callerBy(keys, key), undefined, 'known by now')
})

t.test('a remembered key ends without any message', async t => {
  const { keys, records } = await testKeys(t)
  keys.start()
  const { key, record } = await newKey(records, { expiresIn: 400 })
  let refused: number | undefined
  while (refused === undefined) {
    const before = Date.now()
    if (keys.recall(key) === undefined && await callerBy(keys, key) === undefined) refused = Date.now()
    else t.ok(before < record.endsAt! + 5, 'never let in later')
    await sleep(5)
  }
  t.ok(refused >= record.endsAt!, 'nor refused sooner')
  t.equal(keys.counts.misses < 20, true, `${keys.counts.misses} look-ups`)
})

t.test('the old secret is valid until its grace is over; the one before that is not', async t => {
  const { keys, records, setClock } = await testKeys(t)
  const start = 1_900_000_000_000
  await setClock(start)
  const { id, key: first } = await newKey(records)
  const second = await rotated(records, id, 5000)
  t.ok(await callerBy(keys, first))
  t.ok(await callerBy(keys, second.key))
  await setClock(start + 5000)
  keys.forget(id)
  t.equal(await callerBy(keys, first), undefined)
  t.ok(await callerBy(keys, second.key))
  const third = await rotated(records, id, 5000)
  keys.forget(id)
  t.equal(await callerBy(keys, first), undefined)
  t.ok(await callerBy(keys, second.key))
  t.ok(await callerBy(keys, third.key))
  const fourth = await rotated(records, id, 0)
  keys.forget(id)
  for (const former of [first, second.key, third.key]) t.equal(await callerBy(keys, former), undefined)
  t.ok(await callerBy(keys, fourth.key))
})

t.test('a mark is valid as long as its secret is', async t => {
  const { keys, records } = await testKeys(t)
  const { id, key } = await newKey(records)
  const mark = keys.mark(key)
  t.notMatch(mark, key.slice(21))
  t.match((await keys.findByMark(mark))?.caller, { agent: 'alice', keyId: id })
  const { key: next } = await records.rotate(id, 0, 'me') as { key: string }
  keys.forget(id)
  t.equal(await keys.findByMark(mark), undefined)
  t.equal((await keys.findByMark(keys.mark(next)))?.mark, keys.mark(next))
  for (const wrong of ['', '.', 'x', `${id}.`, `${id}.x`, `.${mark}`, '__proto__']) t.equal(await keys.findByMark(wrong), undefined)
  t.equal(await keys.findByMark(keys.mark('no-key-of-this-kind')), undefined)
})

t.test('a message alone tells all replicas of a change', async t => {
  const { store, records } = await testKeys(t)
  const told: string[] = []
  // They look at the log twice a second as well: not here.
  const { setInterval } = globalThis
  globalThis.setInterval = (() => ({ unref () {} })) as never
  t.teardown(() => { globalThis.setInterval = setInterval })
  for (const name of ['one', 'two']) {
    const keys = new KeyRing([], store, { ...quiet, info: (_, message) => { told.push(`${name}: ${message}`) } })
    keys.start()
    t.teardown(() => keys.stop())
  }
  globalThis.setInterval = setInterval
  const { id } = await newKey(records)
  for (let round = 1; round <= 3; round++) {
    await records.rotate(id, 60_000, 'me')
    await until(() => told.filter(line => line.endsWith('key rotated')).length >= 2 * round)
  }
  t.strictSame(told.slice(-2).sort(), ['one: key rotated', 'two: key rotated'])
})

t.test('what a replica reads of the log once it has stopped goes unsaid', async t => {
  const told: unknown[] = []
  const say = (...line: unknown[]) => { told.push(line) }
  let answer = () => {}
  const change = { id: newKeyId(), tenant: 't', agent: 'a', action: 'revoked', by: 'me' }
  const changes = () => new Promise(resolve => {
    answer = () => resolve({ now: 0, lost: false, last: '1-0', entries: [change], more: false })
  })
  const { keyRecords, subscriptions } = noStoredKeys
  const keys = new KeyRing([], { keyRecords: { ...keyRecords, changes } as never, subscriptions }, { info: say, error: say })
  keys.start()
  keys.stop()
  answer()
  await turn()
  t.strictSame(told, [])
})

t.test('the log says once why the changes of keys can’t be read, unless Redis is away', async t => {
  const away = new Unavailable('away')
  const wrong = new Error('a wrong reply')
  for (const [faults, lines] of [[[away, away], 0], [[wrong, wrong], 1], [[away, wrong, wrong], 1], [[wrong, away, wrong], 1], [[wrong, null, wrong], 2]] as const) {
    const { keyRecords, subscriptions } = noStoredKeys
    const told: unknown[] = []
    const output = { ...quiet, error: (...line: unknown[]) => { told.push(line) } }
    const reads = [...faults]
    const changes = async () => {
      const fault = reads.shift()
      if (fault != null) throw fault
      return { now: 0, lost: false, last: '', entries: [], more: false }
    }
    let announce = () => {}
    const listen = async (_: string, listener: () => void) => {
      announce = listener
      return () => {}
    }
    const keys = new KeyRing([], { keyRecords: { ...keyRecords, changes } as never, subscriptions: { ...subscriptions, listen } as never }, output)
    keys.start()
    for (await turn(); reads.length > 0; await turn()) announce()
    keys.stop()
    t.equal(told.length, lines, faults.map(fault => fault?.message ?? 'read').join(', '))
  }
})

t.test('a part of the log counts as no read, and the rest is read at once', async t => {
  const answers: Array<(more: boolean) => void> = []
  const changes = (last: string) => new Promise(resolve => {
    answers.push(more => resolve({ now: 0, lost: false, last, entries: [], more }))
  })
  const { keyRecords, subscriptions } = noStoredKeys
  const keys = new KeyRing([], { keyRecords: { ...keyRecords, changes } as never, subscriptions }, quiet)
  keys.start()
  t.teardown(() => keys.stop())
  answers[0]!(true)
  await turn()
  t.strictSame([answers.length, keys.log.begunAt], [2, -Infinity])
  answers[1]!(false)
  await turn()
  t.ok(keys.log.begunAt > 0)
})

t.test('of a log that was empty at the last read, the limits are read too: not all need be in it', async t => {
  const limit = (agent: string, ratePerMinute: number) => ({ tenant: 'acme', agent, ratePerMinute, maxLive: null })
  const [replies, lists] = [[
    { lost: true, last: '0-0', entries: [] },
    { last: '2-0', entries: [{ tenant: 'acme', agent: 'b', action: 'limit set', limit: '2', by: 'me' }] }
  ], [[], [limit('a', 1), limit('b', 2)]]]
  const keyRecords = {
    limits: { list: async () => lists.shift() },
    blocks: { list: async () => [] },
    changes: async (last: string) => ({ now: 0, lost: false, last, entries: [], more: false, ...replies.shift() })
  }
  let read = () => {}
  const listen = async (_: string, wake: () => void) => {
    read = wake
    return () => {}
  }
  const keys = new KeyRing([], { keyRecords, subscriptions: { listen } } as never, quiet)
  keys.start()
  t.teardown(() => keys.stop())
  await until(() => keys.log.begunAt > 0)
  read()
  await until(() => keys.limits.of('acme'))
  t.strictSame([...keys.limits.of('acme')!.agents], [['a', 1], ['b', 2]])
})

t.test('a lost message is made up for by reading the log', async t => {
  const redis = await ownRedis(t)
  const { keys, records } = await testKeys(t, { url: redis.url })
  keys.start()
  const { id, key } = await newKey(records)
  await untilKnown(keys, key)
  // Subscriptions are refused for good: nobody gets a message.
  await redis.admin.call('ACL', 'SETUSER', 'default', '-ssubscribe')
  await redis.admin.call('CLIENT', 'KILL', 'TYPE', 'pubsub')
  await records.revoke(id, 'me')
  const revoked = timeRun()
  await until(async () => await callerBy(keys, key) === undefined)
  const after = timeRun() - revoked
  t.ok(after < 2000, `after ${Math.round(after)} ms`)
  t.strictSame(await redis.admin.call('PUBSUB', 'SHARDCHANNELS'), [], 'nobody was listening')
})

t.test('with Redis away, memory is trusted for at most 2 s, and no key is called wrong', async t => {
  const redis = await ownRedis(t)
  const { keys, records } = await testKeys(t, { url: redis.url })
  keys.start()
  const [{ key }, nobodys] = [await newKey(records), newSecret(newKeyId())]
  await untilKnown(keys, key)
  t.equal(await callerBy(keys, nobodys), undefined)
  const { misses } = keys.counts
  await sleep(2000)
  t.ok(keys.recall(key), 'with Redis there it is known all along')
  t.equal(await callerBy(keys, nobodys), undefined)
  t.equal(keys.counts.misses, misses)
  process.kill(redis.pid(), 'SIGSTOP')
  const stopped = timeRun()
  await until(() => keys.recall(key) === undefined)
  t.ok(timeRun() - stopped < 2000)
  await t.rejects(keys.find(key, blocked), Unavailable, 'it is no guess')
  await t.rejects(callerBy(keys, key), Unavailable)
  await t.rejects(callerBy(keys, nobodys), Unavailable)
  process.kill(redis.pid(), 'SIGCONT')
  await until(() => callerBy(keys, key).catch(() => undefined))
  await untilKnown(keys, key)
})

t.test('a replaced or truncated log makes the replica look up all keys again', async t => {
  const { keys, records, redis, prefix } = await testKeys(t)
  keys.start()
  const { id, key } = await newKey(records)
  await untilKnown(keys, key)
  const names = new KeyNames(prefix)
  // As on a promoted master: another log, and the key was revoked in a part that this replica never read.
  const log = names.apiKeysLog(tags[0]!)
  await redis.multi().del(log).hset(names.apiKey(tags[0]!, id), 'revoked', '1').exec()
  await until(async () => await callerBy(keys, key) === undefined)
  // Of a log that was empty at the last read, the first entry now need not be the first that there was.
  const other = await newKey(records)
  const changes = records.changes.bind(records)
  let last = ''
  t.intercept(records, 'changes', {
    value: async (after: string) => {
      const found = await changes(after)
      last = found.last
      return found
    }
  })
  await redis.del(log)
  await until(() => last === '0-0')
  await untilKnown(keys, other.key)
  await redis.multi().xadd(log, '*', 'action', 'rotated', 'id', id, 'tenant', 't', 'agent', 'a', 'by', 'me').hset(names.apiKey(tags[0]!, other.id), 'revoked', '1').exec()
  await until(async () => await callerBy(keys, other.key) === undefined)
})

t.test('a look-up during a change is not remembered', async t => {
  const { keys, records } = await testKeys(t)
  const { id, key } = await newKey(records)
  const finding = callerBy(keys, key)
  await turn()
  keys.forget(id)
  t.ok(await finding)
  t.equal(keys.recall(key), undefined)
  const all = callerBy(keys, key)
  await turn()
  keys.forget()
  t.ok(await all)
  t.equal(keys.recall(key), undefined)
})

t.test('unknown keys neither fill the memory nor reach Redis each time', async t => {
  const redis = await ownRedis(t)
  const { keys, records } = await testKeys(t, { url: redis.url })
  keys.start()
  const { key } = await newKey(records)
  t.ok(await callerBy(keys, key))
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const heap = () => {
    collect()
    return process.memoryUsage().heapUsed
  }
  const [before, lookups, began] = [heap(), await callsOf(redis.admin, 'hgetall'), performance.now()]
  const outcomes = { refused: 0, shed: 0 }
  const count = isWhole ? 100_000 : 10_000
  for (let n = 0; n < count; n++) {
    callerBy(keys, newSecret(newKeyId())).then(() => { outcomes.refused++ }, () => { outcomes.shed++ })
    if (n % 100 === 0) await turn()
    if (n % 1000 === 0) t.ok(await callerBy(keys, key))
  }
  const seconds = (performance.now() - began) / 1000
  const asked = await callsOf(redis.admin, 'hgetall') - lookups
  await until(() => outcomes.refused + outcomes.shed === count)
  t.ok(asked <= 500 * (seconds + 2), `${asked} look-ups in ${seconds.toFixed(1)} s`)
  t.ok(outcomes.shed > 0)
  t.equal(keys.counts.shed, outcomes.shed)
  const grown = heap() - before
  t.comment(`${asked} look-ups in ${seconds.toFixed(1)} s, ${outcomes.shed} shed, heap ${Math.round(grown / 1024)} KB more`)
  t.ok(grown < 10 * 1024 * 1024, `heap ${grown} more`)
})
