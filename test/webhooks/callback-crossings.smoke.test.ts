import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { Webhook } from 'standardwebhooks'
import { tagOf } from '../../src/core/ids.ts'
import { startRedisServer } from '../faults/fleet/redis.ts'
import { secrets } from '../helpers/app.ts'
import { handoff } from '../helpers/command.ts'
import { personWith, textOf } from '../helpers/forms.ts'
import { keepSecret } from '../helpers/log-sink.ts'
import { agentOf } from '../helpers/mcp.ts'
import { scratchDir } from '../helpers/processes.ts'
import { receiver } from '../helpers/receiver.ts'
import type { Got } from '../helpers/receiver.ts'
import { bearer, newKey } from '../helpers/stored-keys.ts'
import { until } from '../helpers/until.ts'
import { webhookApp } from '../helpers/webhooks.ts'
import type { WebhookApp } from '../helpers/webhooks.ts'

/** Where callbacks meet something else: reissues, cancels, ids that come back, keys that end, names that move. */

const all = ['caught', 'done', 'failed', 'declined', 'cancelled', 'expired', 'rejected', 'asked', 'reissued'].map(type => `handoff.${type}`)
const told = ({ body }: Got) => {
  const { type, data } = JSON.parse(body)
  return `${type} ${data.handoff_id}`
}
const callbackOf = async ({ call }: WebhookApp, id: string) => (await call('alice', 'GET', `/api/status/${id}`)).json().callback
const untilQuiet = (service: WebhookApp, id: string) => until(async () => (await callbackOf(service, id)).pending === 0)
/** Redis's keys of callbacks. */
const kept = async ({ redis, prefix }: WebhookApp) => (await redis.keys(`${prefix}:*`)).filter(key => /\}:calls?\b/.test(key))

t.test('reissues and cancels', async t => {
  const service = await webhookApp(t)
  const { call } = service
  const to = await receiver(t)
  const other = await receiver(t)
  const callback = { url: to.url, types: all }
  const caught = async (more: object = {}) => {
    const id = await service.pass({ callback, ...more })
    await call('bob', 'GET', `/api/catch/${id}`)
    return id
  }
  const reissue = async (id: string) => (await call('alice', 'POST', `/api/reissue/${id}`)).json().handoff_id as string
  const happened = async (...expected: string[]) => {
    await until(() => to.got.length >= expected.length)
    t.strictSame(to.got.splice(0).map(told).sort(), expected.sort())
  }

  const taken = await caught()
  const next = await reissue(taken)
  t.equal(await reissue(taken), next, 'a replay tells nothing')
  await happened(`handoff.caught ${taken}`, `handoff.reissued ${taken}`)
  await call('alice', 'POST', `/api/cancel/${next}`, { force: true })
  await happened(`handoff.cancelled ${next}`)

  const failed = await caught()
  await call('bob', 'POST', `/api/fail/${failed}`, { error: { message: 'm' } })
  await happened(`handoff.caught ${failed}`, `handoff.failed ${failed}`)
  const byHand = await reissue(failed)
  await happened(`handoff.reissued ${failed}`)
  await call('alice', 'POST', `/api/cancel/${byHand}`)
  await happened(`handoff.cancelled ${byHand}`)

  const asked = await caught({ max_attempts: 3, retry_delay: 0 })
  await call('alice', 'POST', `/api/cancel/${asked}`)
  await call('bob', 'POST', `/api/decline/${asked}`, { reason: 'told to stop' })
  await happened(`handoff.caught ${asked}`, `handoff.declined ${asked}`)
  t.match(await callbackOf(service, asked), { delivered: 2 })

  const expired = await caught({ work_within: 1, max_attempts: 2, retry_delay: 0 })
  await until(async () => { await service.store.handoffs.sweep(tagOf(expired), 100); return to.got.length >= 2 })
  await happened(`handoff.caught ${expired}`, `handoff.reissued ${expired}`)

  // By default only the end, of the attempt that ends it.
  const silent = await caught({ callback: { url: other.url } })
  const last = await reissue(silent)
  await call('bob', 'GET', `/api/catch/${last}`)
  await call('bob', 'POST', `/api/done/${last}`)
  await until(() => other.got.length > 0)
  t.strictSame(other.got.map(told), [`handoff.done ${last}`])
  t.match(JSON.parse(other.got[0]!.body).data, { reissue_of: silent, attempt: 2 })
  for (const id of [taken, next, failed, asked, last]) await untilQuiet(service, id)
  t.strictSame(await kept(service), [], 'nothing is left in Redis')
})

t.test('an id that comes back counts nothing of the one before', async t => {
  const service = await webhookApp(t)
  const { call, redis, prefix } = service
  const to = await receiver(t, response => response.writeHead(500).end())
  const key = { 'idempotency-key': 'k' }
  const body = { task: 't', callback: { url: to.url } }
  const pass = async () => (await call('alice', 'POST', '/api/pass', body, key)).json().handoff_id as string
  const id = await pass()
  await call('alice', 'POST', `/api/cancel/${id}`)
  await until(async () => (await callbackOf(service, id)).last_status === 500)
  await redis.del(`${prefix}:{${tagOf(id)}}:h:default:${id}`)
  t.equal(await pass(), id)
  to.answer = response => response.writeHead(204).end()
  await until(async () => to.got.length === 2 && (await kept(service)).length === 0)
  t.match(await callbackOf(service, id), { pending: 0, delivered: 0, last_at: null })
  await call('alice', 'POST', `/api/cancel/${id}`)
  await untilQuiet(service, id)
  t.match(await callbackOf(service, id), { delivered: 1 })
  const ids = to.got.map(({ headers }) => headers['webhook-id'])
  t.strictSame([ids[0] === ids[1], ids[1] === ids[2]], [true, false])
})

t.test('retries end after the tenth, and Retry-After is heeded', async t => {
  const service = await webhookApp(t)
  const { call, redis, prefix } = service
  const to = await receiver(t, response => response.writeHead(503, { 'retry-after': '600' }).end())
  const id = await service.pass({ callback: { url: to.url, result: true } })
  await call('bob', 'GET', `/api/catch/${id}`)
  await call('bob', 'POST', `/api/done/${id}`, { output: { n: 1 } })
  await until(async () => (await callbackOf(service, id)).last_status === 503)
  const [tag, calls] = [tagOf(id), `${prefix}:{${tagOf(id)}}:calls`]
  const [one, due] = await redis.zrange(`${calls}:default`, '0', '-1', 'WITHSCORES')
  const pause = Number(due) - Date.now()
  t.ok(pause > 500_000 && pause < 700_000, `again in ${pause} ms`)
  const key = `${prefix}:{${tag}}:call:default:${one}`
  t.equal(await redis.hget(key, 'r'), '{"n":1}', 'kept until then')
  await redis.hset(key, 'n', (await redis.hget(key, 'n'))!.replace(/^\d+/, '9'))
  await redis.zadd(`${calls}:default`, '0', one!)
  await redis.zadd(calls, '0', 'default')
  await until(async () => (await callbackOf(service, id)).failed === 1)
  t.match(await callbackOf(service, id), { pending: 0, delivered: 0, last_status: 503 })
  t.strictSame(await kept(service), [], 'and no longer')
})

t.test('who passed it may have no key any more; who follows redirects gets nothing', async t => {
  const service = await webhookApp(t)
  const { call, app, store } = service
  const stranger = await receiver(t)
  const to = await receiver(t, response => response.writeHead(307, { location: stranger.url }).end())
  const { key, record } = await newKey(store.keyRecords, { agent: 'erin' })
  const as = (method: 'GET' | 'POST', url: string, payload?: object) => app.inject({ method, url, headers: bearer(key), ...payload && { payload } })
  const secret = (await as('GET', '/api/callbacks/secret')).json().secret
  keepSecret(secret)
  const { handoff_id: id } = (await as('POST', '/api/pass', { task: 't', callback: { url: to.url, token: 'a-token-for-the-receiver' } })).json()
  await call('bob', 'GET', `/api/catch/${id}`)
  await store.keyRecords.revoke(record.id, 'me')
  await until(async () => (await as('GET', '/api/callbacks/secret')).statusCode === 401)
  await call('bob', 'POST', `/api/done/${id}`)
  await until(async () => (await callbackOf(service, id)).last_status === 307)
  to.answer = response => response.writeHead(204).end()
  await untilQuiet(service, id)
  t.match(await callbackOf(service, id), { delivered: 1 })
  t.equal(to.got.length, 2)
  for (const { body, headers } of to.got) t.doesNotThrow(() => new Webhook(secret).verify(body, headers as Record<string, string>))
  t.strictSame(stranger.got, [])
})

t.test('a name that leads elsewhere between the pass and the delivery', async t => {
  const hosts = join(await scratchDir(t), 'hosts')
  await writeFile(hosts, '127.0.0.1 there.example\n')
  const service = await webhookApp(t, { WEBHOOK_ALLOW: '127.0.0.1' }, { webhooks: { lookups: { hosts } } })
  const to = await receiver(t)
  const id = await service.pass({ callback: { url: to.url.replace('127.0.0.1', 'there.example'), types: all } })
  await service.call('bob', 'GET', `/api/catch/${id}`)
  await untilQuiet(service, id)
  t.equal(to.got.length, 1)
  await writeFile(hosts, '127.0.0.2 there.example # as a private address would be\n')
  // A connection that is still open leads to the address that was checked.
  await new Promise(resolve => setTimeout(resolve, 5500))
  await service.call('bob', 'POST', `/api/done/${id}`)
  await until(async () => (await callbackOf(service, id)).last_error === 'target_refused')
  t.match(await callbackOf(service, id), { pending: 1, delivered: 1, failed: 0, last_status: null })
  await writeFile(hosts, '127.0.0.1 there.example\n')
  await untilQuiet(service, id)
  t.strictSame(to.got.map(told), [`handoff.caught ${id}`, `handoff.done ${id}`])
})

t.test('a token and a query are shown nowhere; people see where it goes', async t => {
  // Over TCP, because REDIS_URL can't name a unix socket.
  const { url: REDIS_URL } = await startRedisServer(t)
  const service = await webhookApp(t, { READER_KEYS: `olga:${secrets.operator}` }, { url: REDIS_URL })
  const { call, pass, app, prefix } = service
  const inspected = async (...args: string[]) => (await handoff(['inspect', ...args], { env: { REDIS_URL, REDIS_KEY_PREFIX: prefix } })).stdout
  const [token, query] = ['shown-to-nobody-0123456789', 'nor-is-this-0123456789']
  keepSecret(token, query)
  const to = await receiver(t, response => response.writeHead(500).end())
  const callback = { url: `${to.url}?q=${query}`, token, result: true, types: all }
  const waiting = await pass({ callback, require_human: true, to: 'box' })
  const held = await pass({ callback, to: 'box' })
  const { items: [caught] } = (await call('bob', 'POST', '/api/catch', { inbox: 'box' })).json()
  t.equal(caught.handoff_id, held)
  await until(async () => (await callbackOf(service, held)).last_status === 500)
  t.equal((await call('alice', 'PUT', '/api/schedules/nightly', { every: 3600, handoff: { task: 't', callback } })).statusCode, 201)
  const person = await personWith(service, secrets.approver)
  const operator = await personWith(service, secrets.operator)
  const agent = await agentOf(t, service, 'bob', '2026-07-28')
  const at = (who: 'alice' | 'operator' | 'approver', path: string) => async () => (await call(who, 'GET', path)).body
  const looks: Record<string, () => Promise<string>> = {
    ...Object.fromEntries([held, waiting].flatMap(id => [
      [`status ${id}`, at('alice', `/api/status/${id}`)],
      [`everything ${id}`, at('operator', `/api/handoffs/${id}`)],
      [`console ${id}`, async () => (await operator(`/console/handoffs/${id}`)).body],
      [`tool ${id}`, async () => JSON.stringify(await agent.call('handoff_status', { id }))],
      [`inspect ${id}`, () => inspected(id)], [`inspect ${id} --json`, () => inspected(id, '--json')],
    ])),
    'the catch': async () => JSON.stringify(caught),
    'read again': async () => JSON.stringify(await agent.call('handoff_read', { id: held, offset: 0 })),
    list: at('alice', '/api/handoffs?limit=100'),
    wait: async () => (await call('alice', 'POST', '/api/wait', { ids: [held, waiting] })).body,
    events: at('alice', '/api/events?after=0-0'),
    approvals: at('approver', '/api/approvals'),
    approval: at('approver', `/api/approvals/${waiting}`),
    'the page': async () => (await person(`/approvals/${waiting}`)).body,
    schedule: at('alice', '/api/schedules/nightly'),
    schedules: at('alice', '/api/schedules'),
    metrics: async () => (await app.inject('/metrics')).body,
  }
  for (const [name, look] of Object.entries(looks)) {
    const body = await look()
    t.notMatch(body, token, name)
    // A schedule is its owner's own text.
    if (!name.startsWith('schedule')) t.notMatch(body, query, name)
  }
  t.match(textOf((await person(`/approvals/${waiting}`)).body), `Callback what becomes of it, with its result, to ${to.url}`)
  t.match(textOf((await operator(`/console/handoffs/${held}`)).body), /Callback http:\S+\/hook : 1 pending, 0 delivered, 0 failed; the last answer was 500,.* The receiver answered 500, which isn’t 2xx\./)
  t.match(await inspected(held), `callback   ${to.url}: 1 pending, 0 delivered, 0 failed`)
  t.match(await inspected(held), /\n +last tried .* ago\): The receiver answered 500, which isn’t 2xx\./)
  t.match(JSON.parse(await inspected(held, '--json')).callback, { url: to.url, pending: 1, last_status: 500 })
})
