import t from 'tap'
import { testApp } from '../helpers/app.ts'
import type { TestApp } from '../helpers/app.ts'
import { timeRun } from '../helpers/clock.ts'
import { ownRedis } from '../helpers/own-redis.ts'
import { isProblem } from '../helpers/problems.ts'
import { until } from '../helpers/until.ts'

const unready = async ({ app }: TestApp) => {
  const answer = await app.inject('/readyz')
  return answer.statusCode === 503 ? answer : undefined
}

t.test('while Redis is silent every operation is 503 in time, and nothing happens afterwards', async t => {
  const redis = await ownRedis(t)
  const service = await testApp(t, {}, { url: redis.url })
  const { app, call, dump } = service
  const { handoff_id: id } = (await call('alice', 'POST', '/api/pass', { task: 't' })).json()
  const handoffs = async () => Object.keys(await dump()).filter(key => key.includes(':h:'))
  const before = await handoffs()
  t.equal((await app.inject('/readyz')).statusCode, 200)
  process.kill(redis.pid(), 'SIGSTOP')
  const began = timeRun()
  const answers = await Promise.all([
    call('alice', 'POST', '/api/pass', { task: 'late' }),
    call('alice', 'POST', '/api/pass', { task: 'late' }, { 'idempotency-key': 'k' }),
    call('bob', 'GET', `/api/catch/${id}`),
    call('bob', 'POST', `/api/done/${id}`),
    call('bob', 'GET', `/api/status/${id}`),
  ])
  const after = timeRun() - began
  t.ok(after < 4000, `after ${Math.round(after)} ms`)
  for (const answer of answers) {
    isProblem(t, answer, 503, 'unavailable')
    t.match(answer.headers['retry-after'], /^[1-9]\d*$/)
  }
  const began404 = timeRun()
  isProblem(t, await call('bob', 'GET', '/api/catch/no-such-id'), 404, 'not_found', 'what can’t be an id never reaches Redis')
  isProblem(t, await call(null, 'GET', `/api/catch/${id}`), 401, 'unauthorized')
  isProblem(t, await call('alice', 'POST', '/api/pass', { task: 5 }), 400, 'invalid_request')
  t.ok(timeRun() - began404 < 1900, 'nor do refusals wait for it')
  const notReady = await app.inject('/readyz')
  t.ok(isProblem(t, notReady, 503, 'unavailable').detail.length > 10)
  t.match(notReady.headers['retry-after'], /^[1-9]\d*$/)
  t.equal((await app.inject('/healthz')).statusCode, 200, 'the process is alive')

  process.kill(redis.pid(), 'SIGCONT')
  t.ok(await until(async () => (await app.inject('/readyz')).statusCode === 200), 'ready again by itself')
  t.strictSame(await handoffs(), before, 'what was answered 503 has not happened later')
  t.equal((await call('bob', 'GET', `/api/catch/${id}`)).statusCode, 200)
})

t.test('an eviction policy in Redis makes the service not ready, with the reason', async t => {
  const redis = await ownRedis(t, ['--maxmemory-policy', 'allkeys-lru'])
  const service = await testApp(t, {}, { url: redis.url })
  const answer = await until(async () => {
    const answer = await unready(service)
    return answer?.json().detail.includes('maxmemory-policy') ? answer : undefined
  })
  t.match(isProblem(t, answer, 503, 'unavailable').detail, /maxmemory-policy is allkeys-lru.*noeviction/)
  await redis.admin.config('SET', 'maxmemory-policy', 'noeviction')
  const ready = await service.app.inject('/readyz')
  t.equal(ready.statusCode, 200)
  t.strictSame(ready.json(), { status: 'ready' })
})
