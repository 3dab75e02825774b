import { randomBytes } from 'node:crypto'
import t from 'tap'
import type { Test } from 'tap'
import type { LightMyRequestResponse } from 'fastify'
import { callerOf } from '../../src/core/model.ts'
import type { ApiKey } from '../../src/core/model.ts'
import { callBudget } from '../../src/redis/lanes.ts'
import { testApp } from '../helpers/app.ts'
import type { TestApp, Who } from '../helpers/app.ts'
import { timeRun } from '../helpers/clock.ts'
import { ownRedis } from '../helpers/own-redis.ts'
import { isProblem } from '../helpers/problems.ts'
import { until } from '../helpers/until.ts'

const ask = (service: TestApp, who: Who = 'alice') => service.call(who, 'GET', '/api/status/nowhere')

/** The two fields as in the IETF draft: lists with one item, a string with integer parameters. */
function limitOf (t: Test, { headers }: LightMyRequestResponse): { q: number, w: number, r: number, t: number } {
  const [, q, w] = /^"default";q=(\d{1,15});w=(\d{1,15})$/.exec(String(headers['ratelimit-policy'])) ?? []
  const [, r, resets] = /^"default";r=(\d{1,15});t=(\d{1,15})$/.exec(String(headers.ratelimit)) ?? []
  t.ok(q && w && r && resets, `${headers['ratelimit-policy']} ${headers.ratelimit}`)
  return { q: Number(q), w: Number(w), r: Number(r), t: Number(resets) }
}

/** Sends requests until one is refused. @returns how many were accepted */
async function exhaust (service: TestApp, who: Who = 'alice'): Promise<number> {
  for (let count = 0; ; count++) if ((await ask(service, who)).statusCode === 429) return count
}

t.test('without a limit there is no header field and no key in Redis', async t => {
  const service = await testApp(t)
  const { headers } = await ask(service)
  t.notOk('ratelimit' in headers || 'ratelimit-policy' in headers)
  t.strictSame(await service.dump(), {})
})

t.test('every answer says how many requests are left; beyond the limit it is 429 until the next minute', async t => {
  const service = await testApp(t, { RATE_LIMIT_PER_MINUTE: '5' })
  const began = Date.now()
  await service.setClock(began)
  const { call } = service
  const passed = await call('alice', 'POST', '/api/pass', { task: 't' })
  t.equal(passed.statusCode, 201)
  t.match(limitOf(t, passed), { q: 5, w: 60, r: 4 })
  for (const r of [3, 2, 1, 0]) {
    const answer = await call('alice', 'GET', r % 2 ? '/api/status/nowhere' : '/api/approvals/nowhere')
    t.equal(answer.statusCode, r % 2 ? 404 : 403)
    if (r % 2) t.match(limitOf(t, answer), { q: 5, w: 60, r })
    else await ask(service)
  }
  const refused = await call('alice', 'POST', '/api/pass', '{"task": what is this?')
  t.equal(isProblem(t, refused, 429, 'rate_limited').retryable, true, 'before the body')
  const { r, t: resets } = limitOf(t, refused)
  t.equal(r, 0)
  t.ok(resets > 50 && resets <= 60, `${resets} s`)
  t.equal(refused.headers['retry-after'], String(resets))
  t.equal(service.app.refused.limited, 1)

  t.match(limitOf(t, await ask(service, 'bob')), { r: 4 }, 'another agent')
  t.match(limitOf(t, await ask(service, 'foreignAlice')), { r: 4 }, 'another tenant’s agent of that name')
  t.equal((await ask(service, 'alice2')).statusCode, 429, 'another key of the same agent')
  t.equal((await call(null, 'GET', '/api/status/nowhere')).statusCode, 401, 'nobody')
  t.equal((await service.app.inject('/healthz')).statusCode, 200)

  await service.setClock(began + 60_000)
  const anew = await until(async () => {
    const answer = await ask(service)
    return answer.statusCode === 429 ? undefined : answer
  })
  t.match(limitOf(t, anew), { r: 4 })
})

t.test('the limit holds over all replicas together, and for 200 requests at once', async t => {
  const prefix = `t-${randomBytes(6).toString('hex')}`
  const services = await Promise.all([1, 2, 3].map(() => testApp(t, { RATE_LIMIT_PER_MINUTE: '100' }, { prefix })))
  await services[0]!.setClock(Date.now())
  const answers = await Promise.all(Array.from({ length: 200 }, (_, n) => ask(services[n % 3]!)))
  const allowed = answers.filter(({ statusCode }) => statusCode === 404).length
  const refused = answers.filter(({ statusCode }) => statusCode === 429)
  t.equal(allowed + refused.length, 200)
  let later = 0
  for (const service of services) later += await exhaust(service)
  t.equal(allowed + later, 100, `${allowed} at once, then what was held`)
  for (const answer of refused) t.ok(limitOf(t, answer).t > 0)
  t.equal(services.reduce((sum, { app }) => sum + app.refused.limited, 0), refused.length + 3)
  await services[0]!.redis.del(...await services[0]!.redis.keys(`${prefix}:*`), `clock-${prefix}`)
})

t.test('a key may have a limit of its own, even if the setting is 0', async t => {
  const key = (agent: string, secret: string, ratePerMinute: number | null): ApiKey =>
    ({ secret, caller: { ...callerOf('default', agent, ['status']), ratePerMinute } })
  const more = [key('erin', 'erin-secret-0123456789', 2), key('erin', 'erin-second-0123456789', 4), key('frank', 'frank-secret-0123456789', null)]
  const asking = async ({ app }: TestApp, secret: string) => (await app.inject({ url: '/api/status/nowhere', headers: { authorization: `Bearer ${secret}` } }))
  for (const setting of ['0', '3']) {
    const service = await testApp(t, { RATE_LIMIT_PER_MINUTE: setting }, {}, more)
    const told = async (secret: string) => (await asking(service, secret)).statusCode
    t.match(limitOf(t, await asking(service, 'erin-secret-0123456789')), { q: 2, r: 1 })
    t.equal(await told('erin-secret-0123456789'), 404)
    t.equal(await told('erin-secret-0123456789'), 429)
    const upToFour = [await told('erin-second-0123456789'), await told('erin-second-0123456789'), await told('erin-second-0123456789')]
    t.strictSame(upToFour, [404, 404, 429], 'the agent’s own count, up to another limit')
    const frank = await asking(service, 'frank-secret-0123456789')
    if (setting === '0') t.notOk('ratelimit' in frank.headers, 'null: what the setting says')
    else t.match(limitOf(t, frank), { q: 3, r: 2 })
  }
})

t.test('while Redis is silent a limited request is 503 in time', async t => {
  const redis = await ownRedis(t)
  const service = await testApp(t, { RATE_LIMIT_PER_MINUTE: '100' }, { url: redis.url })
  t.equal((await ask(service)).statusCode, 404)
  process.kill(redis.pid(), 'SIGSTOP')
  const began = timeRun()
  const answers = await Promise.all(Array.from({ length: 5 }, () => service.call('bob', 'POST', '/api/pass', { task: 't' })))
  t.ok(timeRun() - began < 2 * callBudget)
  for (const answer of answers) {
    isProblem(t, answer, 503, 'unavailable')
    t.match(answer.headers['retry-after'], /^[1-9]\d*$/)
  }
  t.equal((await ask(service)).statusCode, 404, 'what was counted before needs no Redis')
  process.kill(redis.pid(), 'SIGCONT')
  await until(async () => (await service.call('bob', 'POST', '/api/pass', { task: 't' })).statusCode === 201)
})
