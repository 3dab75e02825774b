import t from 'tap'
import { Webhook } from 'standardwebhooks'
import { testApp } from '../helpers/app.ts'
import { isProblem } from '../helpers/problems.ts'
import { receiver } from '../helpers/receiver.ts'
import { until } from '../helpers/until.ts'
import { webhookApp } from '../helpers/webhooks.ts'

t.test('an event is delivered, signed, with the event’s id', async t => {
  const { make, pass, call, untilDeliveries, dump } = await webhookApp(t)
  const { url, got } = await receiver(t)
  const made = await make(url)
  t.match(made, { id: /^wh_[\w-]{22}$/, url, types: null, inbox: null, enabled: true, created_at: /Z$/, secret: /^whsec_[A-Za-z0-9+/]{43}=$/ })
  t.notOk('disabled_because' in made)
  const id = await pass({ task: 'secret task', output: { secret: 1 } })
  const [message] = await until(() => got.length === 1 ? got : null)
  const { items: [event] } = (await call('alice', 'GET', '/api/events?after=0-0')).json()
  t.match(message!.headers, { 'webhook-id': event.id, 'content-type': 'application/json', 'user-agent': /^agent-handoff-service\// })
  t.strictSame(new Webhook(made.secret).verify(message!.body, message!.headers as Record<string, string>), { type: 'handoff.passed', timestamp: event.time, data: event.data })
  t.equal(event.data.handoff_id, id)
  t.throws(() => new Webhook(`whsec_${Buffer.alloc(32).toString('base64')}`).verify(message!.body, message!.headers as Record<string, string>))
  const [delivery] = await untilDeliveries(made.id, ([one]) => one?.status === 'delivered')
  t.match(delivery, { id: event.id, type: 'handoff.passed', attempts: 1, last_status: 204, last_error: null, last_at: /Z$/, next_at: null })
  t.notOk(JSON.stringify(await dump()).includes(made.secret.slice(6)), 'no secret is in Redis')
})

t.test('webhooks are off without events or WEBHOOK_SECRET', async t => {
  for (const env of [{ EVENTS_RETENTION: '0' }, { WEBHOOK_SECRET: '' }] as Array<Record<string, string>>) {
    const { hooks } = await webhookApp(t, env, {}, false)
    const id = 'wh_AAAAAAAAAAAAAAAAAAAAAA'
    const asked = [['POST', '', { url: 'https://example.com/' }], ['GET', ''], ['GET', `/${id}`], ['DELETE', `/${id}`], ['POST', `/${id}/rotate`, {}], ['POST', `/${id}/enable`],
      ['POST', `/${id}/test`], ['GET', `/${id}/deliveries`], ['POST', `/${id}/replay`, { since: '0-0' }]] as const
    for (const [method, path, body] of asked) isProblem(t, await hooks(method, path, body), 404, 'events_off', path)
  }
})

t.test('they need the scope webhooks, which keys from the environment don’t have', async t => {
  const { call } = await testApp(t, { EVENTS_RETENTION: '60' })
  for (const who of ['alice', 'approver'] as const) isProblem(t, await call(who, 'GET', '/api/webhooks'), 403, 'insufficient_scope')
})

t.test('webhooks are made, listed, read and deleted, by their own tenant alone', async t => {
  const { make, hooks, dump, setClock } = await webhookApp(t)
  await setClock(Date.now() - 1)
  const one = await make('http://127.0.0.1:1/a', { types: ['handoff.done', 'handoff.failed', 'handoff.done'], inbox: 'box' })
  const { secret: _, ...kept } = one
  t.equal(kept.inbox, 'box')
  t.strictSame(kept.types, ['handoff.done', 'handoff.failed'], 'each once')
  // Those of one millisecond are listed in the order of their ids.
  await setClock(Date.now())
  const two = await make('http://127.0.0.1:1/b', { types: null, inbox: null })
  const list = (await hooks('GET', '')).json()
  t.strictSame(list.items.map(({ id }: { id: string }) => id), [one.id, two.id])
  t.strictSame(list.items[0], kept)
  t.strictSame((await hooks('GET', `/${one.id}`)).json(), kept)
  const elsewhere = [['GET', `/${one.id}`], ['DELETE', `/${one.id}`], ['POST', `/${one.id}/rotate`, {}], ['POST', `/${one.id}/enable`], ['POST', `/${one.id}/test`],
    ['GET', `/${one.id}/deliveries`], ['POST', `/${one.id}/replay`, { since: '0-0' }]] as const
  for (const [method, path, body] of elsewhere) isProblem(t, await hooks(method, path, body, 'other'), 404, 'not_found', path)
  t.strictSame((await hooks('GET', '', undefined, 'other')).json(), { items: [] })
  for (const [method, path, body] of elsewhere) isProblem(t, await hooks(method, path.replace(one.id, 'wh_x'), body), 404, 'not_found')
  for (const { id } of [one, two]) {
    const gone = await hooks('DELETE', `/${id}`)
    t.equal(gone.statusCode, 204)
    t.equal(gone.body, '')
    isProblem(t, await hooks('DELETE', `/${id}`), 404, 'not_found')
  }
  t.strictSame(Object.keys(await dump()).filter(key => /:hook/.test(key)), [], 'nothing of them is left')
})

t.test('what changes a webhook, or has something sent, is announced to the replica that delivers before it is answered', async t => {
  const { make, hooks, store } = await webhookApp(t, {}, {}, false)
  const heard: string[] = []
  t.teardown(await store.subscriptions.listen(store.webhooks!.channel, (tenant = '') => { heard.push(tenant) }))
  const announced = async () => {
    await store.webhooks!.notify('the end')
    await until(() => heard.includes('the end'))
    return heard.splice(0).filter(tenant => tenant !== '')
  }
  const { id } = await make('http://127.0.0.1:1/')
  t.strictSame(await announced(), ['default', 'the end'], 'made')
  for (const [method, path] of [['POST', '/enable'], ['POST', '/test'], ['DELETE', '']] as const) {
    await hooks(method, `/${id}${path}`)
    t.strictSame(await announced(), ['default', 'the end'], method + path)
  }
})

t.test('a test of a webhook that is deleted meanwhile is refused', async t => {
  const { make, hooks, store } = await webhookApp(t, {}, {}, false)
  const { id } = await make('http://127.0.0.1:1/')
  const listed = store.webhooks!.listed.bind(store.webhooks)
  store.webhooks!.listed = async tenant => {
    const found = await listed(tenant)
    await store.webhooks!.delete(tenant, id)
    return found
  }
  isProblem(t, await hooks('POST', `/${id}/test`), 404, 'not_found')
})

t.test('a tenant has at most 20', async t => {
  const { make, hooks } = await webhookApp(t, {}, {}, false)
  const made = await Promise.all(Array.from({ length: 20 }, () => make('http://127.0.0.1:1/')))
  isProblem(t, await hooks('POST', '', { url: 'http://127.0.0.1:1/' }), 409, 'too_many_webhooks')
  await make('http://127.0.0.1:1/', {}, 'other')
  await hooks('DELETE', `/${made[3]!.id}`)
  await make('http://127.0.0.1:1/')
})

t.test('what can’t be is refused, with where', async t => {
  const { hooks, make } = await webhookApp(t, {}, {}, false)
  const url = 'http://127.0.0.1:1/'
  const wrong: Array<[body: unknown, pointer: string]> = [
    [{}, '/url'], [{ url: 5 }, '/url'], [{ url: 'x' }, '/url'], [{ url: 'ftp://127.0.0.1/' }, '/url'], [{ url: 'http://a@127.0.0.1/' }, '/url'], [{ url: 'http://:b@127.0.0.1/' }, '/url'],
    [{ url: 'http://127.0.0.1/#a' }, '/url'], [{ url: 'http://127.0.0.1/#' }, '/url'], [{ url: 'http://127.0.0.1/ü' }, '/url'], [{ url: `http://127.0.0.1/${'a'.repeat(2048)}` }, '/url'],
    [{ url: 'http://10.0.0.1/' }, '/url'], [{ url: 'https://10.0.0.1/' }, '/url'], [{ url, types: 'handoff.done' }, '/types'], [{ url, types: [] }, '/types'],
    [{ url, types: ['handoff.done', 'handoff.gone'] }, '/types/1'], [{ url, types: ['webhook.disabled'] }, '/types/0'], [{ url, types: [1] }, '/types/0'],
    [{ url, types: [{}] }, '/types/0'], [{ url, inbox: 'a b' }, '/inbox'], [{ url, more: 1 }, '/more'],
  ]
  for (const [body, pointer] of wrong) t.equal(isProblem(t, await hooks('POST', '', body), 400, 'invalid_request').errors[0].pointer, pointer, JSON.stringify(body).slice(0, 80))
  const all = await hooks('POST', '', { url: 'http://10.0.0.1/', types: ['handoff.done', 'handoff.gone'] })
  t.match(isProblem(t, all, 400, 'invalid_request').errors, [{ pointer: '/url' }, { pointer: '/types/1', message: /^must be one of handoff\./ }], 'all that is wrong, and what may stand there')
  const many = Array.from({ length: 200_000 }, () => 1)
  for (const body of [{ url, types: many }, { url, format: 'slack', include: many }]) {
    t.equal(isProblem(t, await hooks('POST', '', body), 400, 'invalid_request').errors.length, 128, 'of a long list not all is told')
  }
  const { id } = await make(url)
  for (const grace of [-1, 0.5, '1', 2_592_001]) isProblem(t, await hooks('POST', `/${id}/rotate`, { grace }), 400, 'invalid_request')
  const rotated = (await hooks('POST', `/${id}/rotate`, { grace: 2_592_000 })).json()
  t.ok(Date.parse(rotated.old_secret_until) > Date.now() + 29 * 86_400_000, 'thirty days')
  for (const since of ['x', '', '1', '2026-11-20', '2026-02-30T00:00:00Z', '2026-13-01T00:00:00Z', 'yesterday', 5]) t.equal(isProblem(t, await hooks('POST', `/${id}/replay`, { since }), 400, 'invalid_request').errors[0].pointer, '/since')
  isProblem(t, await hooks('POST', `/${id}/replay`), 400, 'invalid_request')
  for (const path of ['enable', 'test']) {
    t.equal(isProblem(t, await hooks('POST', `/${id}/${path}`, { types: ['handoff.done'] }), 400, 'invalid_request').errors[0].pointer, '/types', path)
    t.match(await hooks('POST', `/${id}/${path}`, {}), { statusCode: path === 'test' ? 202 : 200 })
  }
  isProblem(t, await hooks('POST', `/${id}:due/rotate`, {}), 404, 'not_found', 'the key beside it is no webhook')
  isProblem(t, await hooks('GET', `/${id}/deliveries?status=gone`), 400, 'invalid_request')
})
