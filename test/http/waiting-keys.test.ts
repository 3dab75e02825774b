import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import type { Test } from 'tap'
import { testApp } from '../helpers/app.ts'
import type { TestApp } from '../helpers/app.ts'
import { isWhole, skipInQuick } from '../helpers/extent.ts'
import { callText, told } from '../helpers/mcp.ts'
import { ownRedis } from '../helpers/own-redis.ts'
import type { OwnRedis } from '../helpers/own-redis.ts'
import { isProblem } from '../helpers/problems.ts'
import { bearer, callerBy, callsOf, newKey, rotated, untilKnown } from '../helpers/stored-keys.ts'
import { until } from '../helpers/until.ts'
import { asleep, nobody, passed, timed } from '../helpers/waits.ts'

/** Waiting requests whose key ends meanwhile. */

/** How soon an ended key must stop working everywhere, in milliseconds. */
const limit = 2000

type Answer = Awaited<ReturnType<TestApp['call']>>

const ask = ({ app }: TestApp, key: string, path: string) => app.inject({ url: `/api/${path}`, headers: bearer(key) })
const askMany = ({ app }: TestApp, key: string, ids: string[]) =>
  app.inject({ method: 'POST', url: '/api/wait?wait=30', headers: { ...bearer(key), 'content-type': 'application/json' }, payload: { ids } })
const approve = (service: TestApp, id: string) => service.call('approver', 'POST', `/api/approve/${id}`)
const status = async (service: TestApp, id: string) => (await service.call('alice', 'GET', `/api/status/${id}`)).json().status

async function replicas (t: Test, env: Record<string, string> = {}): Promise<{ redis: OwnRedis, one: TestApp, other: TestApp }> {
  const redis = await ownRedis(t)
  const options = { url: redis.url, prefix: 'fleet' }
  return { redis, one: await testApp(t, env, options), other: await testApp(t, env, options) }
}

/** For all that breaks nothing and counts nothing. */
const shared = await replicas(t)

/** Checks that the answer equals that for an unknown key. */
function isRefused (t: Test, answer: Answer, name: string): void {
  isProblem(t, answer, 401, 'unauthorized', name)
  t.equal(answer.headers['www-authenticate'], 'Bearer error="invalid_token"', name)
}

t.test('a waiting catch with a revoked key gets nothing, on any replica', async t => {
  const { one, other } = shared
  const [id, second] = [await passed(one), await passed(one)]
  const { id: keyId, key } = await newKey(one.store.keyRecords)
  const waits = [ask(one, key, `catch/${id}?wait=30`), ask(other, key, `catch/${id}?wait=30`), ask(other, key, `status/${id}?wait=30`), askMany(one, key, [second, id])]
  await asleep(one, id, 2)
  await asleep(one, second)
  const [answers, after] = await timed(async () => {
    await one.store.keyRecords.revoke(keyId, 'me')
    return await Promise.all(waits)
  })
  for (const answer of answers) isRefused(t, answer, 'a wait')
  t.ok(after < limit, `after ${Math.round(after)} ms`)
  for (const each of [id, second]) t.ok(await nobody(one, each), 'and nobody listens any more')
  t.equal((await approve(one, id)).statusCode, 200)
  t.equal(await status(one, id), 'pending', 'nothing was caught')
  t.equal((await one.call('bob', 'GET', `/api/catch/${id}`)).statusCode, 200, 'somebody else can have it')
})

t.test('what a changed key no longer allows ends, on any replica, and the rest goes on', async t => {
  const { one, other } = shared
  const [id, addressed] = [await passed(one), await one.pass({ require_human: true, to: 'a' })]
  const { id: keyId, key } = await newKey(one.store.keyRecords)
  const take = (service: TestApp, inbox: string) =>
    service.app.inject({ method: 'POST', url: '/api/catch?wait=30', headers: { ...bearer(key), 'content-type': 'application/json' }, payload: { inbox } })
  const update = (change: Parameters<typeof one.store.keyRecords.update>[1]) => one.store.keyRecords.update(keyId, change, 'me')

  const [fromA, fromB, byId] = [take(one, 'a'), take(other, 'b'), ask(other, key, `catch/${addressed}?wait=30`)]
  const [status1, plain] = [ask(one, key, `status/${addressed}?wait=30&until=caught`), ask(one, key, `catch/${id}?wait=30`)]
  await asleep(one, addressed, 2)
  await asleep(one, id)
  const [gone, after] = await timed(async () => {
    await update({ inboxes: ['b'] })
    return await Promise.all([fromA, byId])
  })
  for (const answer of gone) isProblem(t, answer, 403, 'not_addressee')
  t.ok(after < limit, `after ${Math.round(after)} ms`)
  isProblem(t, await take(one, 'a'), 403, 'not_addressee')
  await one.call('alice', 'POST', '/api/pass', { task: 't', to: 'b' })
  t.equal((await fromB).json().items.length, 1, 'what is allowed goes on')
  await approve(one, id)
  t.equal((await plain).statusCode, 200, 'that one is for no inbox')

  const [later, caughtLater] = [await passed(one), await passed(one)]
  const tool = one.app.inject({
    method: 'POST', url: '/mcp', headers: { ...bearer(key), 'content-type': 'application/json' }, payload: callText('handoff_catch', `{"id":"${later}","wait":30}`),
  })
  const [waits, goes] = [ask(other, key, `catch/${later}?wait=30`), ask(other, key, `status/${caughtLater}?wait=30&until=caught`)]
  await asleep(one, later, 2)
  await asleep(one, caughtLater)
  const [refused, then] = await timed(async () => {
    await update({ scopes: ['status'] })
    return await waits
  })
  isProblem(t, refused, 403, 'insufficient_scope')
  t.match(told((await tool).json().result), { code: 'insufficient_scope' }, 'a tool needs its own scope')
  t.ok(then < limit)
  await approve(one, later)
  t.equal(await status(one, later), 'pending', 'nothing was caught')
  await approve(one, caughtLater)
  t.equal((await one.call('bob', 'GET', `/api/catch/${caughtLater}`)).statusCode, 200)
  t.equal((await goes).json().status, 'caught')
  await one.call('approver', 'POST', `/api/approve/${addressed}`)
  t.equal((await one.call('bob', 'GET', `/api/catch/${addressed}`)).statusCode, 200)
  t.equal((await status1).json().status, 'caught')
})

t.test('a key that is held to inboxes while its requests wait reads no text of others in their answers', async t => {
  const { one } = shared
  const { id: keyId, key } = await newKey(one.store.keyRecords, { agent: 'watcher', scopes: ['status'] })
  const forA = async (more: object) => {
    const id = await one.pass({ to: 'a', ...more })
    await one.call('bob', 'GET', `/api/catch/${id}`)
    return id
  }
  const [small, large, named] = [await forA({}), await forA({}), await forA({})]
  const waits = [ask(one, key, `status/${small}?wait=30`), ask(one, key, `status/${large}?wait=30`)]
  const many = askMany(one, key, [named])
  for (const id of [small, large, named]) await asleep(one, id)
  await one.store.keyRecords.update(keyId, { inboxes: ['b'] }, 'me')
  await until(async () => (await callerBy(one.keys, key))?.inboxes?.has('b'))
  const output = (length: number) => ({ output: { secret: 'x'.repeat(length) } })
  for (const [id, length] of [[small, 1], [large, 200_000], [named, 1]] as const) await one.call('bob', 'POST', `/api/done/${id}`, output(length))
  for (const answer of await Promise.all(waits)) t.match(answer.json(), { status: 'done', result: null })
  t.match((await many).json(), { items: [{ status: 'done', result: null }], complete: true })
})

t.test('each look is authorised again, whatever is announced about keys', async t => {
  const { redis, one } = await replicas(t)
  const id = await passed(one)
  const { id: keyId, key } = await newKey(one.store.keyRecords)
  const waits = ask(one, key, `catch/${id}?wait=30`)
  await asleep(one, id)
  // This replica gets no more messages about keys, but still those about handoffs.
  one.keys.stop()
  await one.store.keyRecords.revoke(keyId, 'me')
  await sleep(1600) // longer than it may trust its cache
  const { misses } = one.keys.counts
  await approve(one, id)
  isRefused(t, await waits, 'its catch')
  t.equal(one.keys.counts.misses, misses + 1, 'by a look-up')
  t.equal(await status(one, id), 'pending')
  t.ok(await callsOf(redis.admin, 'hgetall') > 0)
})

t.test('a key that expires ends its waits, on time', async t => {
  const { one } = shared
  const id = await passed(one)
  const { key, record } = await newKey(one.store.keyRecords, { expiresIn: 1500 })
  const waits = [ask(one, key, `catch/${id}?wait=30`), ask(one, key, `status/${id}?wait=30`)]
  const answers = await Promise.all(waits)
  const late = Date.now() - record.endsAt!
  for (const answer of answers) isRefused(t, answer, 'a wait')
  t.ok(late >= 0 && late < limit, `${late} ms after its end`)
})

t.test('after a rotation, the old secret’s waits end with its grace, the new one’s go on', async t => {
  const { one, other } = shared
  const id = await passed(one)
  const { id: keyId, key } = await newKey(one.store.keyRecords)
  const former = ask(one, key, `status/${id}?wait=30`)
  await asleep(one, id)
  const next = await rotated(one.store.keyRecords, keyId, 1500)
  const fresh = ask(other, next.key, `catch/${id}?wait=30`)
  const second = await newKey(one.store.keyRecords)
  const another = ask(one, second.key, `status/${id}?wait=30&until=caught`)
  isRefused(t, await former, 'the former secret')
  const late = Date.now() - next.record.previousEndsAt!
  t.ok(late >= 0 && late < limit, `${late} ms after its grace`)
  await approve(one, id)
  t.equal((await fresh).statusCode, 200, 'the new one’s catch')
  t.equal((await another).json().status, 'caught', 'another key of this agent')
  const again = await rotated(one.store.keyRecords, keyId, 0)
  const later = await passed(one)
  const last = ask(other, again.key, `status/${later}?wait=30`)
  await asleep(one, later)
  const [, after] = await timed(() => one.store.keyRecords.rotate(keyId, 0, 'me'))
  isRefused(t, await last, 'without grace')
  t.ok(after < limit)
})

t.test('while Redis is away no waiter is refused, since nobody knows', skipInQuick, async t => {
  const { redis, one } = await replicas(t)
  const id = await passed(one)
  const { id: keyId, key } = await newKey(one.store.keyRecords)
  await untilKnown(one.keys, key)
  const waits = ask(one, key, `catch/${id}?wait=30`)
  const briefly = ask(one, key, `catch/${id}?wait=3`)
  await asleep(one, id)
  let answered = false
  waits.then(() => { answered = true })
  process.kill(redis.pid(), 'SIGSTOP')
  isProblem(t, await briefly, 503, 'unavailable', 'at its next look')
  await sleep(500)
  t.notOk(answered, 'who needn’t look waits on')
  process.kill(redis.pid(), 'SIGCONT')
  await until(async () => (await ask(one, key, `status/${id}`)).statusCode === 200)
  t.notOk(answered, 'and on, when it is back and says that the key is good')
  await one.store.keyRecords.revoke(keyId, 'me')
  isRefused(t, await waits, 'until it has ended')
  await approve(one, id)
  t.equal(await status(one, id), 'pending')
})

t.test('many waits with one key end with one look-up, and cost nothing before', async t => {
  const { redis, one } = await replicas(t)
  const id = await passed(one)
  const { id: keyId, key } = await newKey(one.store.keyRecords)
  await untilKnown(one.keys, key)
  const waits: Array<ReturnType<typeof ask>> = []
  // Not all at once: on a busy machine some would be refused with 503.
  while (waits.length < (isWhole ? 1000 : 200)) {
    for (let count = 0; count < 50; count++) waits.push(ask(one, key, `status/${id}?wait=60`))
    await until(async () => (await one.app.inject('/metrics')).body.includes(`handoff_waiters ${waits.length}\n`))
  }
  await sleep(500)
  const calls = async () => [await callsOf(redis.admin, 'hmget'), await callsOf(redis.admin, 'hgetall')]
  const before = await calls()
  await sleep(2000)
  t.strictSame(await calls(), before, 'no key was looked up, no handoff looked at')
  await one.store.keyRecords.revoke(keyId, 'me')
  // How soon they end is asked with few of them: to read a thousand answers takes a busy machine longer.
  const answers = await Promise.all(waits)
  t.strictSame([...new Set(answers.map(({ statusCode }) => statusCode))], [401])
  const [looks, lookups] = await calls() as [number, number]
  // Revoking reads the key once itself.
  t.strictSame([looks - before[0]!, lookups - before[1]!], [1, 1], 'one look-up for all of them, and no look')
})

t.test('a waiting request counts once, for its limit and in the metrics', async t => {
  const { one } = await replicas(t)
  const [id, another] = [await passed(one), await passed(one)]
  const { id: keyId, key } = await newKey(one.store.keyRecords, { ratePerMinute: 10 })
  const left = async () => /r=(\d+)/.exec(String((await ask(one, key, `status/${id}`)).headers.ratelimit))![1]
  t.equal(await left(), '9')
  const waits = ask(one, key, `catch/${id}?wait=30`)
  await asleep(one, id)
  t.equal(await left(), '7', 'its looks are not counted')
  const many = askMany(one, key, [id, another])
  await asleep(one, another)
  t.equal(await left(), '5', 'nor how many it waits for')
  await one.store.keyRecords.revoke(keyId, 'me')
  isRefused(t, await waits, 'it')
  isRefused(t, await many, 'the one for many')
  const { body } = await one.app.inject('/metrics')
  t.match(body, /http_request_duration_seconds_count\{method="GET",route="\/api\/catch\/:id",status_code="401"\} 1\n/)
  t.match(body, /handoff_transitions_total\{to="caught"\} 0\n/)
  t.match(body, /handoff_waiters 0\n/)
  t.notMatch(one.lines.join(), key.slice(21))
})
