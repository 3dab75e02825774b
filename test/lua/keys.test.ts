import t from 'tap'
import type { Test } from 'tap'
import type { TestRedis } from '../helpers/redis.ts'
import { testRedis } from '../helpers/redis.ts'
import { raw, run, tag } from '../helpers/scripts.ts'
import type { Raw } from '../helpers/scripts.ts'
import { T } from '../helpers/states.ts'

const id = 'abcdefghijkl'

function create (on: Raw, now: number, digest: string, { deadline = now, lasts = '' as number | '' } = {}) {
  const { keys } = on
  return run(on, 'key-create', now, [keys.apiKey(tag, id), keys.apiKeys(tag), keys.apiKeysOver(tag), keys.apiKeysLog(tag)],
    [deadline, id, digest, 'acme', 'bob', 'pass,catch', lasts, '', '', 5000, 'me'])
}

function rotate (on: Raw, now: number, digest: string, { deadline = now, grace = 1000 } = {}) {
  return change(on, now, 'rotated', digest, [grace, '', '', ''], deadline)
}

function revoke (on: Raw, now: number, token: string, deadline = now) {
  return change(on, now, 'revoked', token, ['', '', '', ''], deadline)
}

/** @param to scopes, how long it lasts, rate and inboxes */
function update (on: Raw, now: number, token: string, to: string[], deadline = now) {
  return change(on, now, 'updated', token, to, deadline)
}

function change (on: Raw, now: number, action: string, token: string, to: ReadonlyArray<string | number>, deadline: number) {
  const { keys } = on
  return run(on, 'key-change', now, [keys.apiKey(tag, id), keys.apiKeysOver(tag), keys.apiKeysLog(tag)],
    [deadline, id, action, token, 5000, ...to, 'me'])
}

/** What is in Redis stays as it is, whatever is asked. */
async function unchanged (t: Test, test: TestRedis, ask: () => Promise<unknown>): Promise<unknown> {
  const before = await test.dump()
  const answer = await ask()
  t.strictSame(await test.dump(), before, 'nothing changed')
  return answer
}

t.test('asking twice does what asking once does, and is answered alike', async t => {
  const test = testRedis(t)
  const on = raw(test)
  const created = await create(on, T, 'd1', { lasts: 60_000 })
  t.match(created, ['created', ['tenant', 'acme', 'agent', 'bob']])
  t.strictSame(await unchanged(t, test, () => create(on, T + 5, 'd1', { lasts: 60_000 })), created)
  t.strictSame(await unchanged(t, test, () => create(on, T + 5, 'other')), ['taken'])

  const rotated = await rotate(on, T + 10, 'd2') as unknown[]
  t.strictSame(await unchanged(t, test, () => rotate(on, T + 15, 'd2')), ['rotated', T + 15, rotated[2]])
  // Another’s rotation came between.
  const again = await rotate(on, T + 20, 'd3') as unknown[]
  t.strictSame(await unchanged(t, test, () => rotate(on, T + 25, 'd2')), ['rotated', T + 25, again[2]])

  const change = ['status', '70000', '7', 'a,b']
  const updated = await update(on, T + 30, 'u1', change) as unknown[]
  t.strictSame(updated.slice(0, 2), ['updated', T + 30])
  t.strictSame((await unchanged(t, test, () => update(on, T + 35, 'u1', change)) as unknown[])[2], updated[2])
  t.strictSame(await unchanged(t, test, () => update(on, T + 35, 'u2', change, T)), ['late'])

  t.strictSame(await revoke(on, T + 30, 'one'), ['revoked', T + 30])
  t.strictSame(await unchanged(t, test, () => update(on, T + 35, 'u2', ['', '*', '*', '*'])), ['already_revoked', T + 30])
  t.strictSame(await unchanged(t, test, () => revoke(on, T + 35, 'one')), ['revoked', T + 30])
  t.strictSame(await unchanged(t, test, () => revoke(on, T + 35, 'two')), ['already_revoked', T + 30])
  t.strictSame(await unchanged(t, test, () => rotate(on, T + 35, 'd4')), ['already_revoked', T + 30])
  t.equal(await test.redis.xlen(on.keys.apiKeysLog(tag)), 5)
})

t.test('beyond its deadline a call changes nothing', async t => {
  const test = testRedis(t)
  const on = raw(test)
  t.strictSame(await unchanged(t, test, () => create(on, T, 'd1', { deadline: T - 1 })), ['late'])
  await create(on, T, 'd1', { deadline: T })
  t.strictSame(await unchanged(t, test, () => create(on, T, 'd1', { deadline: T - 1 })), ['late'])
  t.strictSame(await unchanged(t, test, () => rotate(on, T, 'd2', { deadline: T - 1 })), ['late'])
  t.strictSame(await unchanged(t, test, () => revoke(on, T, 'one', T - 1)), ['late'])
})

t.test('a rotation ends at its time, the key at its own', async t => {
  const test = testRedis(t)
  const on = raw(test)
  await create(on, T, 'd1', { lasts: 100 })
  await rotate(on, T + 99, 'd2', { grace: 0 })
  t.strictSame(await test.redis.hmget(on.keys.apiKey(tag, id), 'digest', 'previous', 'previous_ends', 'rotated'), ['d2', 'd1', String(T + 99), String(T + 99)])
  t.strictSame(await unchanged(t, test, () => rotate(on, T + 100, 'd3')), ['ended'])
  t.strictSame(await revoke(on, T + 200, 'one'), ['revoked', T + 200], 'also when it has ended')
})

t.test('an update changes what is given, and what isn’t stays', async t => {
  const test = testRedis(t)
  const on = raw(test)
  t.strictSame(await update(on, T, 'u0', ['', '', '7', '']), ['not_found'])
  await create(on, T, 'd1', { lasts: 60_000 })
  const [key, over] = [on.keys.apiKey(tag, id), on.keys.apiKeysOver(tag)]
  const now = async () => [...await test.redis.hmget(key, 'scopes', 'ends', 'rate', 'inboxes'), await test.redis.pexpiretime(key), await test.redis.zscore(over, id)]
  t.strictSame(await now(), ['pass,catch', String(T + 60_000), null, null, T + 65_000, String(T + 65_000)])
  await update(on, T + 1, 'u1', ['', '', '7', ''])
  await update(on, T + 2, 'u2', ['', '', '', 'a,b'])
  t.strictSame(await now(), ['pass,catch', String(T + 60_000), '7', 'a,b', T + 65_000, String(T + 65_000)])
  await update(on, T + 3, 'u3', ['status', '1000', '', ''])
  t.strictSame(await now(), ['status', String(T + 1003), '7', 'a,b', T + 6003, String(T + 6003)])
  await update(on, T + 4, 'u4', ['', '*', '*', '*'])
  t.strictSame(await now(), ['status', null, null, null, Date.UTC(9999, 11, 31, 23, 59, 59), null])
  await rotate(on, T + 5, 'd2')
  await update(on, T + 6, 'u5', ['', '1', '', ''])
  t.strictSame(await unchanged(t, test, () => update(on, T + 7, 'u6', ['', '*', '', ''])), ['ended'], 'what has ended stays so')
  t.equal(await test.redis.hget(key, 'digest'), 'd2')
})

t.test('a key without an end is forgotten once it was revoked long enough ago', async t => {
  const on = raw(testRedis(t))
  await create(on, T, 'd1')
  t.equal(await on.redis.zscore(on.keys.apiKeysOver(tag), id), null)
  await revoke(on, T + 10, 'one')
  t.equal(await on.redis.zscore(on.keys.apiKeysOver(tag), id), String(T + 5010))
  t.equal(await on.redis.pexpiretime(on.keys.apiKey(tag, id)), T + 5010)
})

t.test('each change is told on the log’s channel', async t => {
  const test = testRedis(t)
  const on = raw(test)
  const listener = test.redis.duplicate()
  t.teardown(() => listener.disconnect())
  const heard: string[] = []
  await listener.ssubscribe(on.keys.apiKeysLog(tag))
  listener.on('smessage', (channel: string, message: string) => heard.push(message))
  await create(on, T, 'd1')
  await create(on, T, 'd1')
  await rotate(on, T, 'd2')
  await update(on, T, 'u1', ['', '', '7', ''])
  await revoke(on, T, 'one')
  await revoke(on, T, 'two')
  await listener.ping()
  t.strictSame(heard, ['created', 'rotated', 'updated', 'revoked'])
})

t.test('behind a change are those that came after it; behind one that isn’t there nothing can be said', async t => {
  const on = raw(testRedis(t))
  await create(on, T, 'd1')
  await revoke(on, T + 10, 'one')
  const log = on.keys.apiKeysLog(tag)
  const [first, second] = (await on.redis.xrange(log, '-', '+')).map(([id]) => id) as [string, string]
  const after = (place: string) => run(on, 'key-changes', T, [log], [place])
  t.match(await after('0-0'), ['changed', T, [[first], [second]]])
  t.match(await after(first), ['changed', T, [[second]]])
  t.strictSame(await after(second), ['changed', T, []])
  for (const unknown of ['', '1-1']) t.strictSame(await after(unknown), ['lost', T, second])
})

t.test('of one millisecond the list stands by the ids’ bytes, in whatever locale the server is', async t => {
  const on = raw(testRedis(t))
  const ids = ['0', '1A', '1a', 'A', 'AB', 'Aa', 'B', 'Z', 'a', 'aB', 'aa', 'b', 'z']
  // What is forgotten stays in the index until the next key is made.
  for (const gone of ['00', '01', '1B', 'C', 'ab', 'c', 'd']) await on.redis.zadd(on.keys.apiKeys(tag), T, gone)
  for (const one of ids) {
    await on.redis.zadd(on.keys.apiKeys(tag), T, one)
    await on.redis.hset(on.keys.apiKey(tag, one), { digest: one })
  }
  for (const limit of [1, 3, 12, 13]) {
    const seen: string[] = []
    for (let more: unknown = 1; more === 1 && seen.length < 100;) {
      const [, goesOn, ...parts] = await run(on, 'key-list', T, [on.keys.apiKeys(tag)],
        [seen.length === 0 ? 0 : T, seen.at(-1) ?? '', limit, on.keys.partition(tag)]) as unknown[]
      seen.push(...parts.filter((_, index) => index % 2 === 0) as string[])
      t.ok(parts.length <= 2 * limit, `${limit} at the most`)
      more = goesOn
    }
    t.strictSame(seen, ids, `${limit} at a time`)
  }
})
