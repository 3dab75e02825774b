import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import type { Test } from 'tap'
import type { KeyRecord } from '../../src/store/api-keys.ts'
import { testApp } from '../helpers/app.ts'
import type { TestApp } from '../helpers/app.ts'
import { timeRun } from '../helpers/clock.ts'
import { skipInQuick } from '../helpers/extent.ts'
import { own, form } from '../helpers/forms.ts'
import { ownRedis } from '../helpers/own-redis.ts'
import type { OwnRedis } from '../helpers/own-redis.ts'
import { isProblem } from '../helpers/problems.ts'
import { bearer, newKey, untilKnown } from '../helpers/stored-keys.ts'
import { until } from '../helpers/until.ts'
import { passed } from '../helpers/waits.ts'
import { listen, wire } from '../helpers/wire.ts'

const pass = ({ app }: Pick<TestApp, 'app'>, key: string) => app.inject({ method: 'POST', url: '/api/pass', headers: { ...bearer(key), 'content-type': 'application/json' }, payload: { task: 't' } })

/** Two replicas on one Redis, which both have cached a key. */
async function twoReplicas (t: Test): Promise<{ redis: OwnRedis, both: [TestApp, TestApp], key: string, record: KeyRecord }> {
  const redis = await ownRedis(t)
  const options = { url: redis.url, prefix: 'fleet' }
  const both: [TestApp, TestApp] = [await testApp(t, {}, options), await testApp(t, {}, options)]
  for (const { app } of both) await app.ready()
  const { key, record } = await newKey(both[0].store.keyRecords)
  await Promise.all(both.map(({ keys }) => untilKnown(keys, key)))
  for (const one of both) t.equal((await pass(one, key)).statusCode, 201)
  return { redis, both, key, record }
}

/** How long until both answer this status, which must be within 2 s. */
async function untilBoth (t: Test, both: [TestApp, TestApp], key: string, code: string, status: number): Promise<number> {
  const began = timeRun()
  await Promise.all(both.map(one => until(async () => (await pass(one, key)).statusCode === status, 4500)))
  const after = timeRun() - began
  for (const one of both) isProblem(t, await pass(one, key), status, code, `${code} after ${Math.round(after)} ms`)
  return after
}

t.test('a key allows what its scopes say, for its tenant', async t => {
  const service = await testApp(t)
  const { store: { keyRecords }, app } = service
  const agent = await newKey(keyRecords, { tenant: 'other' })
  const passer = await newKey(keyRecords, { scopes: ['pass'] })
  const { handoff_id: id } = (await pass(service, agent.key)).json()
  t.equal((await service.call('foreignAlice', 'GET', `/api/status/${id}`)).statusCode, 200, 'of one tenant with a key from the environment')
  isProblem(t, await service.call('alice', 'GET', `/api/status/${id}`), 404, 'not_found')
  t.equal((await pass(service, passer.key)).statusCode, 201)
  const refused = await app.inject({ url: `/api/status/${id}`, headers: bearer(passer.key) })
  isProblem(t, refused, 403, 'insufficient_scope')
  t.equal(refused.headers['www-authenticate'], 'Bearer error="insufficient_scope", scope="status"')
  const wrong = await pass(service, agent.key.slice(0, -1))
  isProblem(t, wrong, 401, 'unauthorized')
  t.equal(wrong.headers['www-authenticate'], 'Bearer error="invalid_token"')
})

t.test('a revoked key stops working everywhere within 2 s', async t => {
  const { both, key, record } = await twoReplicas(t)
  await both[0].store.keyRecords.revoke(record.id, 'me')
  t.ok(await untilBoth(t, both, key, 'unauthorized', 401) < 2000)
})

t.test('with Redis stopped nobody is let in with such a key after 2 s, nor told that it is wrong', skipInQuick, async t => {
  const { redis, both, key } = await twoReplicas(t)
  process.kill(redis.pid(), 'SIGSTOP')
  const stopped = performance.now()
  // An invalid body, which is refused before Redis is needed for anything but the key.
  const bad = ({ app }: TestApp) => app.inject({ method: 'POST', url: '/api/pass', headers: { ...bearer(key), 'content-type': 'application/json' }, payload: {} })
  await until(async () => (await bad(both[0])).statusCode === 503, 4500)
  while (performance.now() - stopped < 2000) await new Promise(resolve => setImmediate(resolve))
  for (const one of both) {
    const answer = await bad(one)
    isProblem(t, answer, 503, 'unavailable')
    t.ok(Number(answer.headers['retry-after']) > 0)
    isProblem(t, await one.call('alice', 'POST', '/api/pass', {}), 400, 'invalid_request', 'keys from the environment are known all along')
  }
  process.kill(redis.pid(), 'SIGCONT')
  for (const one of both) await until(async () => (await pass(one, key)).statusCode === 201)
})

t.test('a session ends when its key does, and lasts through its grace', async t => {
  const service = await testApp(t)
  const { keyRecords } = service.store
  const { id, key } = await newKey(keyRecords, { agent: 'carla', scopes: ['approve', 'status'] })
  const signIn = async (secret: string) => {
    const answer = await service.app.inject(form('/approvals/sign-in', { key: secret }))
    return { status: answer.statusCode, cookie: String(answer.headers['set-cookie']).split(';')[0]! }
  }
  const list = async (cookie: string) => (await service.app.inject({ url: '/approvals', headers: { ...own, cookie } })).statusCode
  const { status, cookie } = await signIn(key)
  t.strictSame([status, await list(cookie)], [303, 200])
  t.notMatch(JSON.stringify(await service.dump()), key.slice(21))
  const rotated = await keyRecords.rotate(id, 1500, 'me') as { key: string }
  await until(async () => (await signIn(rotated.key)).status === 303)
  const fresh = await signIn(rotated.key)
  t.strictSame([await list(cookie), await list(fresh.cookie)], [200, 200])
  await until(async () => await list(cookie) === 303, 4000)
  t.equal(await list(fresh.cookie), 200)
  await keyRecords.revoke(id, 'me')
  await until(async () => await list(fresh.cookie) === 303)
  t.equal((await signIn(rotated.key)).status, 401)
  const agent = await newKey(keyRecords)
  t.equal((await signIn(agent.key)).status, 401, 'no approver')
})

t.test('changes of keys are logged once, without the secret', async t => {
  const { app, lines, store: { keyRecords } } = await testApp(t)
  await app.ready()
  const told = (by = /./) => lines.map(line => JSON.parse(line)).filter(one => /^key /.test(one.msg) && by.test(one.by))
  // The log is reported from the first read on.
  const first = await newKey(keyRecords, { by: 'someone@here' })
  const { id, key } = first
  await until(() => told().length > 0 || keyRecords.rotate(id, 0, 'first@look').then(() => false))
  const { key: next } = await keyRecords.rotate(id, 60_000, 'me@here') as { key: string }
  await pass({ app }, next)
  await keyRecords.revoke(id, 'you@there')
  // Other entries of the first read may come late.
  const since = () => told(/^(me@here|you@there)$/)
  await until(() => since().length >= 2)
  const seen = since()
  t.match(seen, [
    { level: 30, msg: 'key rotated', key_id: id, tenant: 'default', agent: 'alice', by: 'me@here' },
    { level: 30, msg: 'key revoked', key_id: id, tenant: 'default', agent: 'alice', by: 'you@there' },
  ])
  t.equal(seen.length, 2)
  for (const secret of [key, next]) t.notMatch(lines.join(), secret.slice(21))
})

t.test('with keys only in Redis, a service that starts without Redis accepts them once it is there', async t => {
  const redis = await ownRedis(t)
  process.kill(redis.pid(), 'SIGSTOP')
  const service = await testApp(t, { API_KEYS: '', APPROVER_KEYS: '' }, { url: redis.url, prefix: 'late' })
  await service.app.ready()
  process.kill(redis.pid(), 'SIGCONT')
  await until(async () => (await service.app.inject('/readyz')).statusCode === 200)
  const { key } = await newKey(service.store.keyRecords)
  t.equal((await pass(service, key)).statusCode, 201)
})

t.test('a request that arrives completely only after its key has ended is refused, and nothing is done', async t => {
  const service = await testApp(t)
  const { app, call, store } = service
  const port = await listen(app)
  const { id: keyId, key } = await newKey(store.keyRecords, { agent: 'eve', scopes: ['pass', 'catch', 'status', 'approve'] })
  const waiting = await passed(service)
  const caught = await passed(service, { require_human: false })
  await app.inject({ url: `/api/catch/${caught}`, headers: { authorization: `Bearer ${key}` } })
  const bodies: Array<[path: string, body: string]> =
    [['/api/pass', '{"task":"t"}'], [`/api/done/${caught}`, '{}'], [`/api/approve/${waiting}`, '{}'], [`/api/reject/${waiting}`, '{"note":"no"}']]
  const requests = await Promise.all(bodies.map(async ([path, body]) => {
    const { send, answer } = await wire(t, port)
    send(`POST ${path} HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n{`)
    return { path, answer, finish: () => send(body.slice(1)) }
  }))
  await sleep(200)
  await store.keyRecords.revoke(keyId, 'me')
  await sleep(2000)
  for (const { path, answer, finish } of requests) {
    finish()
    const { statusCode, headers } = await answer()
    t.equal(statusCode, 401, path)
    t.equal(headers['www-authenticate'], 'Bearer error="invalid_token"')
  }
  t.equal((await call('alice', 'GET', `/api/status/${waiting}`)).json().approval.state, 'waiting')
  t.equal((await call('alice', 'GET', `/api/status/${caught}`)).json().status, 'caught')
})
