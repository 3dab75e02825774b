import type { ServerResponse } from 'node:http'
import { setImmediate, setTimeout } from 'node:timers/promises'
import { Webhook } from 'standardwebhooks'
import t from 'tap'
import type { Test } from 'tap'
import { Unavailable } from '../../src/core/errors.ts'
import { homeTag } from '../../src/core/ids.ts'
import { scriptCalls } from '../../src/redis/call.ts'
import type { ScriptCallMessage } from '../../src/redis/call.ts'
import { KeyNames } from '../../src/store/key-names.ts'
import { pauses } from '../../src/webhooks/sender.ts'
import { timeRun } from '../helpers/clock.ts'
import { isProblem } from '../helpers/problems.ts'
import { receiver } from '../helpers/receiver.ts'
import { until } from '../helpers/until.ts'
import { webhookApp } from '../helpers/webhooks.ts'
import type { Delivery, WebhookApp } from '../helpers/webhooks.ts'

const hour = 3_600_000

/** Sets Redis's clock to when a webhook's delivery is tried again, or beyond, and has it looked at. @returns the pause that it had */
async function untilNext ({ setClock, store }: WebhookApp, delivery: Delivery, beyond = 0): Promise<number> {
  await setClock(Date.parse(delivery.next_at!) + beyond)
  store.webhooks!.notify()
  return Date.parse(delivery.next_at!) - Date.parse(delivery.last_at!)
}

t.test('what fails is tried again by the schedule, with the same id, and then failed', async t => {
  const service = await webhookApp(t)
  const { make, pass, untilDeliveries, setClock } = service
  const start = Date.now()
  await setClock(start)
  const { url, got } = await receiver(t, response => response.writeHead(500).end('broken'))
  const { id } = await make(url)
  await pass()
  for (const [at, pause] of pauses.entries()) {
    const [delivery] = await untilDeliveries(id, ([one]) => one?.attempts === at + 1)
    t.match(delivery, { status: 'pending', last_status: 500, last_error: null })
    const took = await untilNext(service, delivery!)
    t.ok(took >= pause * 0.8 && took <= pause * 1.2, `${took} ms after attempt ${at + 1}`)
  }
  const [delivery] = await untilDeliveries(id, ([one]) => one?.status === 'failed')
  t.match(delivery, { attempts: 10, last_status: 500, next_at: null })
  t.equal(got.length, 10)
  t.equal(new Set(got.map(({ headers }) => headers['webhook-id'])).size, 1)
  t.equal(new Set(got.map(({ body }) => body)).size, 1, 'the same message, with the time of the event')
})

t.test('however a receiver misbehaves, it is told what was wrong', async t => {
  // Only one waits for it. The others must answer within it, on a busy machine too.
  const service = await webhookApp(t, {}, { webhooks: { attemptTimeout: 3000 } })
  const { make, pass, untilDeliveries } = service
  const elsewhere = await receiver(t)
  const closed = await receiver(t)
  const { url: refusedUrl } = closed
  const cases: Array<[name: string, url: string, like: object]> = [
    ['hangs', (await receiver(t, () => {})).url, { last_status: null, last_error: 'timeout' }],
    ['redirects', (await receiver(t, response => response.writeHead(302, { location: elsewhere.url }).end())).url, { last_status: 302, last_error: null }],
    ['breaks off', (await receiver(t, response => response.destroy())).url, { last_status: null, last_error: 'ECONNRESET' }],
    ['speaks no HTTP', (await receiver(t, response => response.socket!.end('nonsense\r\n\r\n'))).url, { last_status: null, last_error: /^HPE_/ }],
    ['changes the protocol', (await receiver(t, response => response.socket!.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n'))).url, { last_status: null, last_error: 'ECONNRESET' }],
    ['asks for patience', (await receiver(t, response => response.writeHead(429, { 'retry-after': '7200' }).end())).url, { last_status: 429 }],
    ['has another scheme', refusedUrl.replace('http:', 'https:'), { last_status: null, last_error: /^(ERR_SSL|EPROTO)/ }],
  ]
  const made = await Promise.all(cases.map(([, url]) => make(url)))
  const endless = await receiver(t, response => {
    response.writeHead(200)
    const timer = setInterval(() => response.write('x'.repeat(10_000)), 1)
    response.on('close', () => clearInterval(timer))
  })
  const slow = await receiver(t, response => {
    response.writeHead(202)
    response.write('a')
  })
  const well = await Promise.all([endless, slow].map(({ url }) => make(url)))
  await pass()
  for (const [at, [name, , like]] of cases.entries()) t.match((await untilDeliveries(made[at]!.id, ([one]) => one?.attempts === 1))[0], { status: 'pending', ...like }, name)
  for (const { id } of well) t.match((await untilDeliveries(id, ([one]) => one?.status === 'delivered'))[0], { attempts: 1, last_error: null })
  const [patient] = await service.deliveries(made[5]!.id)
  t.equal(Date.parse(patient!.next_at!) - Date.parse(patient!.last_at!), hour, 'Retry-After, up to an hour')
  t.equal(elsewhere.got.length, 0, 'redirects are not followed')
})

t.test('what a stopping service cuts off is no attempt: another replica makes it', async t => {
  const { app, make, pass, deliveries } = await webhookApp(t)
  const { url, got } = await receiver(t, () => {})
  const { id } = await make(url)
  await pass()
  await until(() => got.length === 1)
  await app.deliverer!.stop()
  t.match(await deliveries(id), [{ status: 'pending', attempts: 0, last_error: null }])
})

t.test('a receiver that answers at once and goes on slowly gets no more connections than one that hangs', async t => {
  const { make, pass, deliveries } = await webhookApp(t)
  const open: ServerResponse[] = []
  const slow = await receiver(t, response => {
    response.writeHead(200).write('a')
    open.push(response)
  })
  const { id } = await make(slow.url)
  await Promise.all(Array.from({ length: 40 }, () => pass()))
  await until(async () => (await deliveries(id, '?status=delivered')).length === 16)
  await setTimeout(300)
  t.equal(slow.got.length, 16)
  slow.answer = response => response.writeHead(200).end()
  for (const response of open) response.end()
  await until(() => slow.got.length === 40)
})

t.test('of events of one millisecond the newest are listed too', async t => {
  const { make, store, deliveries } = await webhookApp(t, {}, {}, false)
  const { id } = await make('http://127.0.0.1:1/')
  const ids = Array.from({ length: 150 }, (_, at) => `1795377044681-${at}`)
  await store.webhooks!.plan('default', id, null, '', ids.map(id => ({ id, text: 'passed pending AVHdDBR3Ox_T_H9gltuUjYVhg alice -' })))
  t.strictSame((await deliveries(id)).map(one => one.id), ids.reverse().slice(0, 100))
})

t.test('410 disables a webhook, which the feed and the log tell; enabling begins anew', async t => {
  const { make, pass, hooks, call, lines, deliveries, app } = await webhookApp(t)
  const gone = await receiver(t, response => response.writeHead(410).end())
  const { id } = await make(gone.url)
  const witness = await receiver(t)
  await make(witness.url)
  await pass()
  const find = async () => (await call('alice', 'GET', '/api/events?after=0-0&types=webhook.disabled')).json().items
  const [event] = await until(async () => (await find()).length > 0 ? find() : null)
  t.match(event, { type: 'webhook.disabled', data: { webhook_id: id, reason: 'gone' } })
  t.strictSame((await call('alice', 'GET', '/api/events?after=0-0&types=webhook.disabled&inbox=a')).json().items, [])
  t.match((await hooks('GET', `/${id}`)).json(), { enabled: false, disabled_because: 'gone' })
  t.match((await deliveries(id)), [{ status: 'failed', last_status: 410, attempts: 1 }])
  t.ok(lines.some(line => line.includes('webhook disabled') && line.includes(id)))
  t.strictSame({ ...app.deliverer!.disabled }, { gone: 1, failing: 0 })
  let plans = 0
  onScript(t, 'webhook-plan', () => { plans++ })
  await pass()
  await until(() => witness.got.length === 2)
  t.equal(gone.got.length, 1)
  t.notOk(witness.got.some(({ body }) => body.includes('webhook.disabled')), 'it is in the feed alone')
  t.strictSame((await hooks('POST', `/${id}/replay`, { since: '0-0' })).json(), { replayed: 0 }, 'not while it is disabled')
  t.ok(plans <= 3, `${plans} plans, of which the witness’s is one`)
  gone.answer = response => response.writeHead(204).end()
  const enabled = await hooks('POST', `/${id}/enable`)
  t.equal(enabled.statusCode, 200)
  t.match(enabled.json(), { id, enabled: true })
  t.notOk('disabled_because' in enabled.json())
  await pass()
  await until(() => gone.got.length === 2)
  t.strictSame((await hooks('POST', `/${id}/replay`, { since: event.id })).json(), { replayed: 2 }, 'what it missed')
  await until(() => gone.got.length === 4)
})

t.test('72 hours of failures without one success disable it', async t => {
  const service = await webhookApp(t, { EVENTS_RETENTION: '864000' })
  const { make, pass, setClock, hooks, untilDeliveries, deliveries, store } = service
  const start = Date.now()
  await setClock(start)
  const failing = await receiver(t, response => response.writeHead(503).end())
  const { id } = await make(failing.url)
  let passed = 0
  const passAt = async (hours: number) => {
    await setClock(start + hours * hour)
    store.webhooks!.notify()
    await pass()
    passed++
  }
  /** Passes something at this hour, and waits until how it went is noted: otherwise it is noted at a later hour. */
  const at = async (hours: number) => {
    await passAt(hours)
    await untilDeliveries(id, found => found.length === passed && found.every(({ last_at: last }) => last !== null))
  }
  await at(0)
  await at(71)
  failing.answer = response => response.writeHead(200).end()
  await at(71.5)
  await until(async () => (await deliveries(id, '?status=delivered')).length > 0)
  failing.answer = response => response.writeHead(503).end()
  await at(80)
  await at(151)
  t.equal((await hooks('GET', `/${id}`)).json().enabled, true, 'there was a success')
  await passAt(152.5)
  t.match(await until(async () => {
    const webhook = (await hooks('GET', `/${id}`)).json()
    return webhook.enabled ? null : webhook
  }), { disabled_because: 'failing' })
})

t.test('types and inbox choose what is delivered', async t => {
  const { make, pass, call } = await webhookApp(t)
  const [all, done, box] = await Promise.all([receiver(t), receiver(t), receiver(t)])
  await make(all.url)
  await make(done.url, { types: ['handoff.done', 'handoff.cancelled'] })
  await make(box.url, { inbox: 'box' })
  const foreign = await receiver(t)
  await make(foreign.url, {}, 'other')
  const id = await pass({ to: 'box' })
  await call('bob', 'GET', `/api/catch/${id}`)
  await call('bob', 'POST', `/api/done/${id}`, {})
  const other = await pass({ to: 'elsewhere' })
  const last = await pass({ to: 'box' })
  await until(() => all.got.length === 5 && box.got.length === 4 && done.got.length === 1)
  const idsOf = ({ got }: typeof all) => new Set(got.map(({ body }) => JSON.parse(body).data.handoff_id))
  t.strictSame(idsOf(all), new Set([id, other, last]))
  t.strictSame(idsOf(box), new Set([id, last]))
  t.match(JSON.parse(done.got[0]!.body), { type: 'handoff.done', data: { handoff_id: id } })
  t.equal(foreign.got.length, 0, 'tenants are apart')
  await pass({}, 'foreignAlice')
  await until(() => foreign.got.length === 1)
  t.equal(all.got.length, 5)
})

t.test('during a rotation both secrets sign, and then the new one', async t => {
  const service = await webhookApp(t)
  const { make, pass, hooks, untilDeliveries, setClock } = service
  const start = Date.now()
  await setClock(start)
  const { url, got } = await receiver(t, response => response.writeHead(500).end())
  const { id, secret } = await make(url)
  await pass()
  let [delivery] = await untilDeliveries(id, ([one]) => one?.attempts === 1)
  const rotated = await hooks('POST', `/${id}/rotate`, { grace: 60 })
  t.equal(rotated.statusCode, 200)
  const fresh = rotated.json()
  t.match(fresh, { id, secret: /^whsec_/, old_secret_until: new Date(start + 60_000).toISOString() })
  t.not(fresh.secret, secret)
  await untilNext(service, delivery!);
  [delivery] = await untilDeliveries(id, ([one]) => one?.attempts === 2)
  await untilNext(service, delivery!, 60_000)
  await untilDeliveries(id, ([one]) => one?.attempts === 3)
  const signedBy = (at: number) => [secret, fresh.secret].map(one => {
    try {
      new Webhook(one).verify(got[at]!.body, got[at]!.headers as Record<string, string>)
      return true
    } catch {
      return false
    }
  })
  t.strictSame([signedBy(0), signedBy(1), signedBy(2)], [[true, false], [true, true], [false, true]])
  const standard = (await hooks('POST', `/${id}/rotate`)).json()
  const { lastTime } = { lastTime: Date.parse(standard.old_secret_until) - Date.parse(delivery!.next_at!) }
  t.equal(lastTime, 60_000 + 86_400_000, 'a day by default')
})

t.test('when a callback’s old secret ends goes by Redis’s clock', async t => {
  const { call, setClock } = await webhookApp(t)
  const start = Date.now() + 24 * hour
  const secret = async () => (await call('alice', 'GET', '/api/callbacks/secret')).json()
  await setClock(start)
  const { old_secret_until: until } = (await call('alice', 'POST', '/api/callbacks/rotate', { grace: 3600 })).json()
  t.equal(until, new Date(start + hour).toISOString())
  t.equal((await secret()).old_secret_until, until)
  await setClock(start + hour)
  t.equal((await secret()).old_secret_until, undefined)
})

t.test('a test is delivered once, also where the webhook is disabled', async t => {
  const { make, hooks, untilDeliveries, pass } = await webhookApp(t)
  const target = await receiver(t, response => response.writeHead(500).end())
  const { id } = await make(target.url, { types: ['handoff.done'] })
  const asked = await hooks('POST', `/${id}/test`)
  t.equal(asked.statusCode, 202)
  const [first] = await untilDeliveries(id, ([one]) => one?.status === 'failed')
  t.match(first, { id: asked.json().id, type: 'webhook.test', attempts: 1, last_status: 500 })
  t.match(JSON.parse(target.got[0]!.body), { type: 'webhook.test', timestamp: /Z$/, data: { webhook_id: id } })
  t.equal(target.got[0]!.headers['webhook-id'], asked.json().id)
  target.answer = response => response.writeHead(410).end()
  await hooks('POST', `/${id}/test`)
  await until(async () => !(await hooks('GET', `/${id}`)).json().enabled)
  target.answer = response => response.writeHead(200).end()
  await hooks('POST', `/${id}/test`)
  await until(() => target.got.length === 3)
  await pass()
  t.match((await untilDeliveries(id, found => found.some(({ status }) => status === 'delivered')))[0], { type: 'webhook.test' })
})

t.test('events are replayed from an id or a time on, with their ids', async t => {
  const { make, pass, hooks, untilDeliveries, redis, prefix, store } = await webhookApp(t)
  const { url, got } = await receiver(t)
  await Promise.all([pass(), pass(), pass()])
  // They are delivered as they are planned: no later look finds them pending.
  const read = store.webhooks!.listed.bind(store.webhooks)
  store.webhooks!.listed = async tenant => {
    const { now, webhooks } = await read(tenant)
    return { now, webhooks: webhooks.map(webhook => ({ ...webhook, first: null })) }
  }
  const { id } = await make(url)
  t.equal((await hooks('POST', `/${id}/replay`, { since: '2020-01-01T00:00:00Z' })).statusCode, 202)
  await until(() => got.length === 3)
  const ids = got.map(({ headers }) => String(headers['webhook-id'])).sort()
  t.strictSame((await hooks('POST', `/${id}/replay`, { since: ids[1] })).json(), { replayed: 2 }, 'that one included')
  await until(() => got.length === 5)
  t.strictSame(got.slice(3).map(({ headers }) => String(headers['webhook-id'])).sort(), ids.slice(1))
  t.strictSame((await hooks('POST', `/${id}/replay`, { since: '2100-01-01T00:00:00+01:00' })).json(), { replayed: 0 })
  const listed = await untilDeliveries(id, found => found.length === 3 && found.every(({ status }) => status === 'delivered'))
  t.strictSame(listed.map(one => one.id), ids.reverse(), 'each once, the newest first')
  // More than a replay reads at a time.
  const events = redis.pipeline()
  for (let at = 0; at < 600; at++) {
    events.xadd(`${prefix}:e:default`, '*', 'e', `${at % 50 === 0 ? 'done done' : 'caught caught'} AVHdDBR3Ox_T_H9gltuUjYVhg alice bob`)
  }
  const written = await events.exec()
  const done = await receiver(t)
  const { id: filtered } = await make(done.url, { types: ['handoff.done'] })
  t.strictSame((await hooks('POST', `/${filtered}/replay`, { since: '0-0' })).json(), { replayed: 12 })
  await until(() => done.got.length >= 12)
  t.strictSame(done.got.map(({ headers }) => headers['webhook-id']).sort(), written!.map(([, id]) => id).filter((_, at) => at % 50 === 0).sort())
  const counts = { open: 0, most: 0 }
  const count = (message: unknown) => {
    const { script, answer } = message as ScriptCallMessage
    if (script !== 'feed') return
    counts.most = Math.max(counts.most, ++counts.open)
    answer.finally(() => { counts.open-- })
  }
  scriptCalls.subscribe(count)
  t.teardown(() => scriptCalls.unsubscribe(count))
  // The deliverer reads as well.
  const { id: unwanted } = await make(done.url, { types: ['handoff.rejected'] })
  const asked = await Promise.all(Array.from({ length: 60 }, () => hooks('POST', `/${unwanted}/replay`, { since: '0-0' })))
  for (const answer of asked) t.strictSame(answer.json(), { replayed: 0 })
  t.ok(counts.most <= 20, `${counts.most} read events at once`)
  const many = redis.pipeline()
  for (let at = 0; at < 4500; at++) many.xadd(`${prefix}:e:default`, '*', 'e', 'caught caught AVHdDBR3Ox_T_H9gltuUjYVhg alice bob')
  await many.exec()
  t.strictSame((await hooks('POST', `/${unwanted}/replay`, { since: '0-0' })).json(), { replayed: 0, more: true }, 'of the first 5,000')
})

t.test('a page of the feed without anything for a webhook holds up nothing behind it', async t => {
  const { make, pass, store, redis, prefix } = await webhookApp(t)
  const { url, got } = await receiver(t)
  await make(url, { types: ['handoff.passed'] })
  await pass()
  await until(() => got.length === 1)
  // From here on no round looks at everything again.
  store.webhooks!.tenants = async () => { throw new Unavailable('away') }
  const events = redis.pipeline()
  for (let at = 0; at < 500; at++) events.xadd(`${prefix}:e:default`, '*', 'e', 'caught caught AVHdDBR3Ox_T_H9gltuUjYVhg alice bob')
  await events.exec()
  await pass()
  await until(() => got.length === 2, 10_000)
})

t.test('what is not planned because too much is pending is planned once there is room, and others get theirs meanwhile', async t => {
  const { make, pass, hooks, store, redis, prefix, lines } = await webhookApp(t)
  const [full, witness] = [await receiver(t), await receiver(t)]
  const { id } = await make(full.url)
  await make(witness.url)
  // None of these is due soon.
  const due = new KeyNames(prefix).webhookDue(homeTag('default'), 'default', id)
  await redis.zadd(due, ...Array.from({ length: 10_000 }, (_, at) => [Date.now() + hour, `9-${at}`]).flat())
  await pass()
  await until(() => witness.got.length === 1)
  const refused = await hooks('POST', `/${id}/test`)
  t.match(isProblem(t, refused, 503, 'unavailable').detail, /^Too many deliveries of this webhook are pending/)
  t.equal(refused.headers['retry-after'], '1')
  t.notOk(lines.some(line => line.includes('Redis is full')), 'nor is Redis')
  t.equal(full.got.length, 0)
  await redis.del(due)
  await store.webhooks!.notify()
  await until(() => full.got.length === 1)
  t.equal(witness.got.length, 1)
})

t.test('a replica takes nothing while another one delivers, and begins anew once it delivers again', async t => {
  const { make, pass, store, redis, prefix } = await webhookApp(t)
  const { url, got } = await receiver(t)
  await make(url)
  await pass()
  await until(() => got.length === 1)
  const take = store.takeDelivering.bind(store)
  store.takeDelivering = async () => false
  const feed = `${prefix}:e:default`
  await until(async () => String(await redis.call('PUBSUB', 'SHARDNUMSUB', feed)) === `${feed},0`)
  store.takeDelivering = take
  await pass()
  await until(() => got.length === 2)
})

t.test('a receiver gets four attempts at once after a failure, until a success', async t => {
  const { make, pass } = await webhookApp(t)
  const open: ServerResponse[] = []
  const answer = (status: number) => { for (const response of open.splice(0)) response.writeHead(status).end() }
  const failing = await receiver(t, response => { open.push(response) })
  await make(failing.url)
  await Promise.all(Array.from({ length: 30 }, () => pass()))
  await until(() => open.length === 16)
  answer(500)
  await until(() => failing.got.length >= 20)
  const witness = await receiver(t)
  await make(witness.url)
  await pass()
  await until(() => witness.got.length === 1)
  t.equal(failing.got.length, 20)
  answer(204)
  await until(() => failing.got.length >= 31)
})

t.test('what happens is delivered although nobody answers the subscription to events', async t => {
  const { make, pass, untilDeliveries, store } = await webhookApp(t)
  t.intercept(store.events!, 'listen', { value: () => new Promise(() => {}) })
  const { url, got } = await receiver(t)
  const { id } = await make(url)
  await pass()
  t.match(await untilDeliveries(id, ([one]) => one?.status === 'delivered'), [{ attempts: 1 }])
  t.equal(got.length, 1)
})

t.test('a webhook that is deleted gets nothing more', async t => {
  const { make, pass, hooks, dump, call, store, redis, prefix } = await webhookApp(t)
  const release: Array<() => void> = []
  const { url, got } = await receiver(t, response => { release.push(() => response.writeHead(500).end()) })
  const { id } = await make(url)
  const witness = await receiver(t)
  const { id: last } = await make(witness.url)
  await pass()
  await until(() => got.length === 1)
  t.equal((await hooks('DELETE', `/${id}`)).statusCode, 204, 'while an attempt is under way')
  for (const answer of release) answer()
  await pass()
  await until(() => witness.got.length === 2)
  t.equal(got.length, 1)
  t.strictSame(Object.keys(await dump()).filter(key => key.includes(id)), [], 'and nothing of it comes back')
  t.strictSame((await call('alice', 'GET', '/api/events?after=0-0&types=webhook.disabled')).json().items, [])
  const feed = `${prefix}:e:default`
  const listening = async () => String(await redis.call('PUBSUB', 'SHARDNUMSUB', feed))
  t.equal(await listening(), `${feed},1`)
  await hooks('DELETE', `/${last}`)
  await until(async () => {
    await store.webhooks!.notify()
    return await listening() === `${feed},0`
  })
  await make(witness.url)
  await pass()
  await until(() => witness.got.length === 3)
  t.pass('a tenant without any is forgotten until it makes one')
})

t.test('what receivers are told is by Redis’s clock, and what they ask for is by theirs', async t => {
  const service = await webhookApp(t)
  const { make, pass, hooks, setClock, untilDeliveries } = service
  const start = Date.now() - hour
  await setClock(start)
  const receivers = new Date(start + 5 * hour).toUTCString()
  const { url, got } = await receiver(t, response => {
    response.writeHead(503, { date: receivers, 'retry-after': new Date(Date.parse(receivers) + 600_000).toUTCString() }).end()
  })
  const { id } = await make(url)
  await pass()
  const [delivery] = await untilDeliveries(id, ([one]) => one?.attempts === 1)
  t.equal(got[0]!.headers['webhook-timestamp'], String(Math.floor(start / 1000)))
  t.equal(Date.parse(delivery!.next_at!) - Date.parse(delivery!.last_at!), 600_000)
  t.match((await hooks('POST', `/${id}/test`)).json(), { id: new RegExp(`^test_${start}_`) })
})

t.test('webhooks that have nothing to send cost one reading call a tenant, however many they are', async t => {
  const { make, store } = await webhookApp(t)
  const { url } = await receiver(t)
  for (let n = 0; n < 5; n++) await make(url)
  const webhooks = store.webhooks!
  const listed = webhooks.listed.bind(webhooks)
  let [lists, claims] = [0, 0]
  onScript(t, 'webhook-claim', () => { claims++ })
  webhooks.listed = async tenant => {
    lists++
    return await listed(tenant)
  }
  const read = store.events!.read.bind(store.events)
  let isPlanning = false
  store.events!.read = async (...call) => {
    isPlanning = lists > 0
    return await read(...call)
  }
  // Of no tenant: all are looked at, as in the round that makes up for lost messages.
  const began = timeRun()
  await webhooks.notify()
  await until(() => isPlanning)
  t.equal(claims, 0)
  t.ok(timeRun() - began < 2500, 'at once, and not in the round of every five seconds')
})

t.test('a message of no tenant, which may stand for lost ones, has all looked at in the next round', async t => {
  const { app, store } = await webhookApp(t, {}, {}, false)
  const webhooks = store.webhooks!
  const [tenants, take] = [webhooks.tenants.bind(webhooks), store.takeDelivering.bind(store)]
  let [looks, rounds] = [0, 0]
  webhooks.tenants = async (...call) => {
    looks++
    return await tenants(...call)
  }
  store.takeDelivering = async (...call) => {
    rounds++
    return await take(...call)
  }
  app.deliverer!.start()
  for (let n = 0; n < 4; n++) {
    const [before, begun] = [looks, rounds]
    await webhooks.notify()
    await until(() => looks > before)
    // The first one may come before the subscription does. One round may begin while a message is on its way.
    if (n > 0) t.ok(rounds - begun <= 3, `looked at in round ${rounds - begun}, and not only in the one of every five seconds`)
  }
})

t.test('what a tenant changes has no other tenant’s webhooks looked at', async t => {
  const { make, store } = await webhookApp(t)
  const { url } = await receiver(t)
  const webhooks = store.webhooks!
  const listed = webhooks.listed.bind(webhooks)
  const asked: string[] = []
  webhooks.listed = async tenant => {
    asked.push(tenant)
    return await listed(tenant)
  }
  await make(url, {}, 'other')
  await until(() => asked.includes('other'))
  asked.length = 0
  const began = timeRun()
  for (let n = 1; n <= 8; n++) {
    const before = asked.filter(tenant => tenant === 'default').length
    await make(url)
    await until(() => asked.filter(tenant => tenant === 'default').length > before)
  }
  const others = asked.filter(tenant => tenant === 'other').length
  t.ok(others <= 1, `${others} times, of which the slow round may be one`)
  t.ok(timeRun() - began < 5000, 'each at once, and not in the round of every second')
})

t.test('tenants are looked at a few at a time, and one that gets no answer holds up no other', async t => {
  const { app, store } = await webhookApp(t, {}, {}, false)
  const names = Array.from({ length: 40 }, (_, n) => `tenant${n}`)
  const seen = new Set<string>()
  let [open, most] = [0, 0]
  let answer = () => {}
  const untilAnswered = new Promise<void>(resolve => { answer = resolve })
  t.teardown(() => answer())
  store.webhooks!.tenants = async () => names
  store.webhooks!.listed = async tenant => {
    most = Math.max(most, ++open)
    seen.add(tenant)
    if (tenant === 'tenant3') await untilAnswered
    else await setImmediate()
    open--
    return { now: Date.now(), webhooks: [] }
  }
  app.deliverer!.start()
  await until(() => seen.size === names.length)
  t.ok(most <= 8 + 1, `${most} at once, of which one may go on by itself`)
})

t.test('a tenant’s slow receivers, of however many webhooks, take a share of the attempts', { timeout: 60_000 }, async t => {
  const { make, pass } = await webhookApp(t)
  const open: ServerResponse[] = []
  const slow = await receiver(t, response => { open.push(response) })
  const well = await receiver(t)
  for (let n = 0; n < 20; n++) await make(slow.url, { types: ['handoff.passed'] })
  await make(well.url, { types: ['handoff.passed'] }, 'other')
  for (let n = 0; n < 12; n++) await pass()
  await until(() => open.length >= 128)
  await pass({}, 'foreignAlice')
  await until(() => well.got.length === 1)
  t.equal(slow.got.length, 128)
  slow.answer = response => response.writeHead(200).end()
  for (const response of open) response.writeHead(200).end()
  await until(() => slow.got.length === 20 * 12)
})

/** Calls this with each call of a script from now on. */
function onScript (t: Test, name: string, called: () => void): void {
  const count = (message: unknown) => { if ((message as ScriptCallMessage).script === name) called() }
  scriptCalls.subscribe(count)
  t.teardown(() => scriptCalls.unsubscribe(count))
}
