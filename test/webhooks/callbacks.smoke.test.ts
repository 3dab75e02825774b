import t from 'tap'
import { Webhook } from 'standardwebhooks'
import { tagOf } from '../../src/core/ids.ts'
import { testApp } from '../helpers/app.ts'
import { keepSecret } from '../helpers/log-sink.ts'
import { isProblem } from '../helpers/problems.ts'
import { receiver } from '../helpers/receiver.ts'
import type { Got } from '../helpers/receiver.ts'
import { until } from '../helpers/until.ts'
import { webhookApp, webhookSecret } from '../helpers/webhooks.ts'

/** Pass's `callback` (docs/callbacks.md). */

const odd = '{"n":[9007199254740993,1.0,1e400],"a":1,"a":2,"s":"\\ud800"}'
const token = 'callback-token-0123456789'
keepSecret(token)
const all = [
  'handoff.caught', 'handoff.done', 'handoff.failed', 'handoff.declined', 'handoff.cancelled', 'handoff.expired',
  'handoff.rejected', 'handoff.asked', 'handoff.reissued'
]
const bodyOf = ({ body }: Got) => JSON.parse(body)
const typeOf = (got: Got): string => bodyOf(got).type
/** Three ways to keep things: with events, without, and as in a Cluster. */
const ways = [
  ['events on', { EVENTS_RETENTION: '60' }, {}], ['events off', { EVENTS_RETENTION: '0' }, {}],
  ['spread, events on', { EVENTS_RETENTION: '60' }, { isSpread: true }],
  ['spread, events off', { EVENTS_RETENTION: '0' }, { isSpread: true }]
] as const

for (const [how, env, options] of ways) {
  const service = await webhookApp(t, env, options)
  const { call, pass, store } = service
  const secretOf = async (who: 'alice' | 'bob' = 'alice'): Promise<string> =>
    (await call(who, 'GET', '/api/callbacks/secret')).json().secret
  const status = async (id: string) => (await call('alice', 'GET', `/api/status/${id}`)).json()
  const caught = async (more: object) => {
    const id = await pass(more)
    await call('bob', 'GET', `/api/catch/${id}`)
    return id
  }
  const told = async (at: { got: Got[] }, count: number) => await until(() => at.got.length >= count && at.got)
  const quiet = async (id: string) => await until(async () => (await status(id)).callback.pending === 0)

  t.test(`every end is told, signed, with the event's data: ${how}`, async t => {
    const to = await receiver(t)
    const url = `${to.url}?secret=1`
    const callback = { url, token, result: true }
    const ends: Record<string, () => Promise<string>> = {
      done: async () => {
        const id = await caught({ callback, labels: { run: '1' }, to: 'box' })
        await call('bob', 'POST', `/api/done/${id}`, `{"output":${odd}}`)
        return id
      },
      failed: async () => {
        const id = await caught({ callback })
        await call('bob', 'POST', `/api/fail/${id}`, `{"error":{"message":"m\\u0061","data":${odd}}}`)
        return id
      },
      declined: async () => {
        const id = await caught({ callback })
        await call('bob', 'POST', `/api/decline/${id}`, { reason: 'r' })
        return id
      },
      cancelled: async () => {
        const id = await caught({ callback })
        await call('alice', 'POST', `/api/cancel/${id}`, { force: true })
        return id
      },
      expired: async () => {
        const id = await pass({ callback, expires_in: 1 })
        await until(async () => { await store.handoffs.sweep(tagOf(id), 100); return to.got.length === 5 })
        return id
      },
      rejected: async () => {
        const id = await pass({ callback, require_human: true })
        await call('approver', 'POST', `/api/reject/${id}`, { note: 'no' })
        return id
      },
      asked: async () => {
        const id = await caught({ callback })
        await call('bob', 'POST', `/api/ask/${id}`, { question: 'q' })
        return id
      }
    }
    const secret = await secretOf()
    let count = 0
    for (const [name, end] of Object.entries(ends)) {
      const id = await end()
      await told(to, ++count)
      const got = to.got[count - 1]!
      const body = bodyOf(got)
      t.equal(body.type, `handoff.${name}`)
      t.match(body, { timestamp: /^\d{4}-.*Z$/, data: { handoff_id: id, status: name === 'asked' ? 'caught' : name, passed_by: 'alice' } })
      t.match(got.headers, { 'content-type': 'application/json', 'webhook-id': /^cb_[\w-]+$/, authorization: `Bearer ${token}` })
      t.equal(got.path, '/hook?secret=1')
      t.doesNotThrow(() => new Webhook(secret).verify(got.body, got.headers as Record<string, string>))
      t.notMatch(got.body, /"(task|reason|output)"/)
      await quiet(id)
      t.match((await status(id)).callback, { url: to.url, pending: 0, delivered: 1, failed: 0, last_status: 204, last_error: null, last_at: String })
      if (name === 'done') {
        t.match(got.body, `,"result":${odd}}`, 'literally')
        t.match(body.data, { labels: { run: '1' }, to: 'box', caught_by: 'bob' })
      } else if (name === 'failed') t.match(got.body, `,"error":{"message":"m\\u0061","data":${odd}}}`)
      else {
        t.notOk('result' in body)
        t.notOk('error' in body)
      }
    }
    t.equal(new Set(to.got.map(({ headers }) => headers['webhook-id'])).size, count)
    t.equal(to.got.length, count, 'once each')
  })

  t.test(`types, and what has a successor: ${how}`, async t => {
    const to = await receiver(t)
    const other = await receiver(t)
    const callback = { url: to.url, types: [...all, 'handoff.done'] }
    const id = await caught({ callback, max_attempts: 2, retry_delay: 0 })
    const { reissued_as: second } = (await call('bob', 'POST', `/api/fail/${id}`, { error: { message: 'm' } })).json()
    await call('bob', 'GET', `/api/catch/${second}`)
    const { handoff_id: third } = (await call('alice', 'POST', `/api/reissue/${second}`)).json()
    await call('bob', 'GET', `/api/catch/${third}`)
    await call('bob', 'POST', `/api/ask/${third}`, { question: 'q', of: 'passer' })
    await call('bob', 'POST', `/api/done/${third}`)
    await told(to, 7)
    const seen = to.got.map(got => `${typeOf(got)} ${bodyOf(got).data.handoff_id}`)
    t.strictSame([...seen].sort(), [
      `handoff.caught ${id}`, `handoff.reissued ${id}`, `handoff.caught ${second}`, `handoff.reissued ${second}`,
      `handoff.caught ${third}`, `handoff.asked ${third}`, `handoff.done ${third}`
    ].sort())
    t.match(bodyOf(to.got.find(got => typeOf(got) === 'handoff.reissued' && bodyOf(got).data.handoff_id === id)!).data, { reissued_as: second })
    t.notOk('result' in bodyOf(to.got.find(got => typeOf(got) === 'handoff.done')!), 'results only when asked for')
    for (const one of [id, second, third]) await quiet(one)
    t.match((await status(id)).callback, { delivered: 2 })
    t.match((await status(second)).callback, { delivered: 2 })
    t.match((await status(third)).callback, { delivered: 3 })

    // By default neither the catch nor an end that is tried again.
    const silent = await caught({ callback: { url: other.url }, max_attempts: 2, retry_delay: 0 })
    const { reissued_as: next } = (await call('bob', 'POST', `/api/fail/${silent}`, { error: { message: 'm' } })).json()
    await call('bob', 'GET', `/api/catch/${next}`)
    await call('bob', 'POST', `/api/fail/${next}`, { error: { message: 'm' } })
    await told(other, 1)
    t.strictSame(other.got.map(got => `${typeOf(got)} ${bodyOf(got).data.handoff_id}`), [`handoff.failed ${next}`])
    t.notOk('error' in bodyOf(other.got[0]!))
    t.match((await status(silent)).callback, { pending: 0, delivered: 0, failed: 0, last_status: null, last_error: null, last_at: null })
  })

  t.test(`cascades, purges and batches tell too: ${how}`, async t => {
    const to = await receiver(t)
    const callback = { url: to.url }
    const first = await pass()
    const ids = [first]
    for (let n = 0; n < 3; n++) ids.push(await pass({ callback, after: [ids.at(-1)] }))
    await call('alice', 'POST', `/api/cancel/${first}`)
    if (how.startsWith('spread')) store.sweeper.start()
    await told(to, 3)
    t.strictSame(to.got.map(got => [typeOf(got), bodyOf(got).data.handoff_id]).sort(), ids.slice(1).map(id => ['handoff.cancelled', id]).sort())
    await store.sweeper.stop()

    const purged = await Promise.all([1, 2, 3].map(() => pass({ to: `purged-${how.length}`, callback })))
    await call('operator', 'POST', '/api/purge', { inbox: `purged-${how.length}` })
    await told(to, 6)
    t.strictSame(to.got.slice(3).map(got => bodyOf(got).data.handoff_id).sort(), [...purged].sort())

    const { results } = (await call('alice', 'POST', '/api/batch', {
      operations: [{ op: 'pass', body: { task: 't', callback } }, { op: 'pass', body: { task: 't', callback: { url: 'x' } } }]
    })).json()
    t.match(results, [{ status: 201 }, { status: 400, body: { errors: [{ pointer: '/callback/url' }] } }])
    await call('alice', 'POST', `/api/cancel/${results[0].body.handoff_id}`)
    await told(to, 7)
  })

  t.test(`large results are left out: ${how}`, async t => {
    const to = await receiver(t)
    const callback = { url: to.url, result: true }
    const text = (bytes: number) => `{"a":"${'x'.repeat(bytes - 8)}"}`
    for (const [bytes, isThere] of [[262_144, true], [262_145, false], [1_000_000, false]] as const) {
      const before = to.got.length
      const id = await caught({ callback })
      t.equal((await call('bob', 'POST', `/api/done/${id}`, `{"output":${text(bytes)}}`)).statusCode, 200)
      await told(to, before + 1)
      const body = bodyOf(to.got.at(-1)!)
      if (isThere) t.equal(JSON.stringify(body.result), text(bytes))
      else t.match(body, { result_omitted: true, result: undefined })
      const failed = await caught({ callback })
      await call('bob', 'POST', `/api/fail/${failed}`, `{"error":{"message":"m","data":${text(bytes - 23)}}}`)
      await told(to, before + 2)
      const error = bodyOf(to.got.at(-1)!)
      if (isThere) t.match(error, { error: { message: 'm' } })
      else t.match(error, { error_omitted: true, error: undefined })
    }
    const id = await caught({ callback })
    await call('bob', 'POST', `/api/done/${id}`)
    await told(to, 7)
    t.equal(bodyOf(to.got.at(-1)!).result, null, 'done without output')
  })

  t.test(`failures are retried with the same id; 410 ends it; redirects aren't followed: ${how}`, async t => {
    const to = await receiver(t, response => response.writeHead(302, { location: '/else' }).end())
    const id = await pass({ callback: { url: to.url } })
    await call('alice', 'POST', `/api/cancel/${id}`)
    await told(to, 1)
    await until(async () => (await status(id)).callback.last_status === 302)
    t.match((await status(id)).callback, { pending: 1, delivered: 0, failed: 0, last_error: null })
    to.answer = response => response.writeHead(200).end()
    await told(to, 2)
    await quiet(id)
    t.match((await status(id)).callback, { delivered: 1, last_status: 200 })
    const [one, again] = to.got as [Got, Got]
    t.equal(again.headers['webhook-id'], one.headers['webhook-id'])
    t.equal(again.body, one.body)
    t.ok(again.at - one.at >= 4000 - 50, 'after 5 s, less 20 %')

    to.answer = response => response.writeHead(410).end()
    const gone = await pass({ callback: { url: to.url } })
    await call('alice', 'POST', `/api/cancel/${gone}`)
    await until(async () => (await status(gone)).callback.failed === 1)
    t.match((await status(gone)).callback, { pending: 0, delivered: 0, last_status: 410 })
    await until(async () => /^handoff_callbacks_gone_total 1$/m.test((await service.app.inject('/metrics')).body))
  })

  t.test(`the secret is each agent's own, and the one that counts when it is sent: ${how}`, async t => {
    const to = await receiver(t, response => response.writeHead(500).end())
    const old = await secretOf()
    t.not(await secretOf('bob'), old)
    t.equal(await secretOf(), old)
    t.equal((await call('alice', 'GET', '/api/callbacks/secret')).json().old_secret_until, undefined)
    const id = await pass({ callback: { url: to.url } })
    await call('alice', 'POST', `/api/cancel/${id}`)
    await told(to, 1)
    const rotated = await call('alice', 'POST', '/api/callbacks/rotate', { grace: 0 })
    t.equal(rotated.statusCode, 200)
    const { secret: fresh, old_secret_until: oldUntil } = rotated.json()
    t.match([fresh, oldUntil], [/^whsec_/, /Z$/])
    to.answer = response => response.writeHead(200).end()
    await told(to, 2)
    const headers = to.got[1]!.headers as Record<string, string>
    t.doesNotThrow(() => new Webhook(fresh).verify(to.got[1]!.body, headers))
    t.throws(() => new Webhook(old).verify(to.got[1]!.body, headers))
    const both = (await call('alice', 'POST', '/api/callbacks/rotate')).json()
    t.match((await call('alice', 'GET', '/api/callbacks/secret')).json(), { secret: both.secret, old_secret_until: both.old_secret_until })
    const next = await pass({ callback: { url: to.url } })
    await call('alice', 'POST', `/api/cancel/${next}`)
    await told(to, 3)
    for (const secret of [fresh, both.secret]) {
      t.doesNotThrow(() => new Webhook(secret).verify(to.got[2]!.body, to.got[2]!.headers as Record<string, string>))
    }
    isProblem(t, await call('operator', 'GET', '/api/callbacks/secret'), 403, 'insufficient_scope')
  })

  t.test(`it lives on when its handoff has gone: ${how}`, async t => {
    const to = await receiver(t, response => response.writeHead(500).end())
    const id = await caught({ callback: { url: to.url, result: true, token } })
    await call('bob', 'POST', `/api/done/${id}`, { output: { n: 1 } })
    await told(to, 1)
    await service.redis.del(`${service.prefix}:{${tagOf(id)}}:h:default:${id}`)
    t.equal((await call('alice', 'GET', `/api/status/${id}`)).statusCode, 404)
    to.answer = response => response.writeHead(200).end()
    await told(to, 2)
    t.match(bodyOf(to.got[1]!), { result: { n: 1 } })
    t.equal(to.got[1]!.headers.authorization, `Bearer ${token}`)
    const left = `${service.prefix}:{${tagOf(id)}}:call`
    await until(async () => !(await service.redis.keys('*')).some(key => key.startsWith(left)))
  })

  t.test(`approvals show it: ${how}`, async t => {
    const id = await pass({ callback: { url: 'https://example.com/a?b=c', token, result: true }, require_human: true })
    const answer = await call('approver', 'GET', `/api/approvals/${id}`)
    t.strictSame(answer.json().callback, { url: 'https://example.com/a', result: true })
    for (const path of [`/api/status/${id}`, '/api/handoffs?limit=100', '/api/approvals', `/api/approvals/${id}`]) {
      const { body } = await call(path.includes('approvals') ? 'approver' : 'alice', 'GET', path)
      t.notMatch(body, token)
      t.notMatch(body, 'b=c')
    }
    t.match((await status(id)).callback, { url: 'https://example.com/a', pending: 0 })
    await call('approver', 'POST', `/api/approve/${id}`)
    t.notMatch((await call('bob', 'GET', `/api/catch/${id}`)).body, 'example.com', 'its catcher knows nothing of it')
  })
}

t.test('what a callback may be', async t => {
  const { call } = await webhookApp(t, {}, {}, false)
  const wrong: Array<[callback: unknown, pointer: string]> = [
    ['https://example.com', '/callback'], [{}, '/callback/url'], [{ url: '' }, '/callback/url'],
    [{ url: 'ftp://example.com' }, '/callback/url'], [{ url: 'https://u@example.com' }, '/callback/url'],
    [{ url: 'https://example.com/#f' }, '/callback/url'], [{ url: 'https://10.0.0.1/' }, '/callback/url'],
    [{ url: 'https://[::1]/' }, '/callback/url'], [{ url: 'http://8.8.8.8/' }, '/callback/url'],
    [{ url: 'mailto:a@example.com' }, '/callback/url'], [{ url: `https://example.com/${'a'.repeat(2040)}` }, '/callback/url'],
    [{ url: 'https://example.com', types: [] }, '/callback/types'],
    [{ url: 'https://example.com', types: 'handoff.done' }, '/callback/types'],
    [{ url: 'https://example.com', types: ['handoff.done', 'handoff.passed'] }, '/callback/types/1'],
    [{ url: 'https://example.com', types: [1] }, '/callback/types/0'],
    [{ url: 'https://example.com', token: '' }, '/callback/token'],
    [{ url: 'https://example.com', token: 'a b' }, '/callback/token'],
    [{ url: 'https://example.com', token: 'a'.repeat(1025) }, '/callback/token'],
    [{ url: 'https://example.com', result: 'yes' }, '/callback/result'],
    [{ url: 'https://example.com', tokens: 'x' }, '/callback/tokens'],
  ]
  for (const [callback, pointer] of wrong) {
    const { errors } = isProblem(t, await call('alice', 'POST', '/api/pass', { task: 't', callback }), 400, 'invalid_request', JSON.stringify(callback).slice(0, 80))
    t.match(errors, [{ pointer }])
  }
  const many = { url: 'https://example.com', types: Array.from({ length: 200_000 }, () => 1) }
  t.equal(isProblem(t, await call('alice', 'POST', '/api/pass', { task: 't', callback: many }), 400, 'invalid_request').errors.length, 128, 'of a long list not all is told')
  for (const callback of [
    null, { url: 'https://example.com' }, { url: 'http://127.0.0.1:9/x', types: null, token: null, result: null },
    { url: 'https://no-such-name.invalid/x', token: 'a'.repeat(1024) }, { url: 'https://localhost/' }
  ]) t.equal((await call('alice', 'POST', '/api/pass', { task: 't', callback })).statusCode, 201)
})

t.test('without WEBHOOK_SECRET there are none', async t => {
  const { call } = await testApp(t, { EVENTS_RETENTION: '60' })
  const { errors } = isProblem(t, await call('alice', 'POST', '/api/pass', { task: 't', callback: { url: 'https://example.com' } }), 400, 'invalid_request')
  t.match(errors, [{ pointer: '/callback' }])
  isProblem(t, await call('alice', 'GET', '/api/callbacks/secret'), 404, 'events_off')
  isProblem(t, await call('alice', 'POST', '/api/callbacks/rotate'), 404, 'events_off')
})

t.test('a name that leads to a private address is refused when it is sent', async t => {
  const { call, pass } = await webhookApp(t, { WEBHOOK_ALLOW: '' }, { webhooks: { lookups: {} } })
  const id = await pass({ callback: { url: 'https://localhost:9/' } })
  await call('alice', 'POST', `/api/cancel/${id}`)
  const { callback } = await until(async () => {
    const answer = (await call('alice', 'GET', `/api/status/${id}`)).json()
    return answer.callback.last_error !== null && answer
  })
  t.match(callback, { pending: 1, last_status: null, last_error: 'target_refused' })
})

t.test('what a replica took that died is delivered by another, with the same id', async t => {
  const to = await receiver(t)
  const first = await webhookApp(t, {}, {}, false)
  const id = await first.pass({ callback: { url: to.url } })
  await first.call('alice', 'POST', `/api/cancel/${id}`)
  const taken = await first.store.callbacks.claim(tagOf(id), 'default', 10, 1000)
  t.equal(taken.callbacks.length, 1)
  t.equal((await first.store.callbacks.claim(tagOf(id), 'default', 10, 1000)).callbacks.length, 0, 'not twice at once')
  first.app.deliverer!.start()
  await until(() => to.got.length === 1)
  t.equal(to.got[0]!.headers['webhook-id'], taken.callbacks[0]!.id)
})

t.test('one tenant’s slow targets hold up no other’s', async t => {
  const slow = await receiver(t, () => {})
  const quick = await receiver(t)
  const { call, pass } = await webhookApp(t)
  const ids = await Promise.all(Array.from({ length: 100 }, () => pass({ callback: { url: slow.url } })))
  await Promise.all(ids.map(id => call('alice', 'POST', `/api/cancel/${id}`)))
  await until(() => slow.got.length >= 48)
  const other = await pass({ callback: { url: quick.url } }, 'foreignAlice')
  await call('foreignAlice', 'POST', `/api/cancel/${other}`)
  await until(() => quick.got.length === 1)
  t.equal(slow.got.length, 48, 'a tenant has its share')
})

t.test('a replay of pass and of the end tells nothing twice; counts are in the metrics', async t => {
  const to = await receiver(t)
  const { call, app } = await webhookApp(t)
  const key = { 'idempotency-key': 'k' }
  const body = { task: 't', callback: { url: to.url, token, types: ['handoff.done', 'handoff.caught'] } }
  const [one, two] = [await call('alice', 'POST', '/api/pass', body, key), await call('alice', 'POST', '/api/pass', body, key)]
  t.equal(one.body, two.body)
  t.equal((await call('alice', 'POST', '/api/pass', { ...body, callback: { url: to.url } }, key)).statusCode, 422)
  const id = one.json().handoff_id
  for (let n = 0; n < 2; n++) await call('bob', 'GET', `/api/catch/${id}`, undefined, key)
  for (let n = 0; n < 2; n++) t.equal((await call('bob', 'POST', `/api/done/${id}`, {}, key)).statusCode, 200)
  await until(async () => (await call('alice', 'GET', `/api/status/${id}`)).json().callback.delivered === 2)
  t.strictSame(to.got.map(typeOf).sort(), ['handoff.caught', 'handoff.done'])
  t.match((await app.inject('/metrics')).body, /^handoff_callbacks_total\{outcome="delivered"\} 2$/m)
  t.equal(webhookSecret.length > 16, true)
})
