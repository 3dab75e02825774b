import t from 'tap'
import { Webhook } from 'standardwebhooks'
import { a2aTest, bindings, sending, shown, text } from '../helpers/a2a.ts'
import { quietCalls, sendsPushes, untilGot } from '../helpers/pushes.ts'
import { receiver } from '../helpers/receiver.ts'

/** Push configs of A2A tasks: clients make them, and their addresses get each change of state, and each artifact. */

const authentication = { scheme: 'Bearer', credentials: 'credentials-of-the-client' }

for (const binding of bindings) {
  t.test(`${binding}: configs are made, replaced, read, listed and deleted`, async t => {
    const service = await a2aTest(t, sendsPushes)
    const [alice, bob] = await Promise.all([service.client2a('alice', binding), service.client2a('bob', binding)])
    const { id: taskId } = shown(await alice.sendMessage(sending(text('x'), { returnImmediately: true })) as any)
    const config = { tenant: '', taskId, id: 'mine', url: 'http://127.0.0.1:9/a?b=c', token: 'token-of-the-client', authentication }
    const seen = { taskId, id: 'mine', url: config.url, authentication: { scheme: 'Bearer', credentials: '' }, token: '' }
    t.match(await alice.createTaskPushNotificationConfig(config), seen)
    t.match(await alice.createTaskPushNotificationConfig({ ...config, url: 'http://127.0.0.1:9/b' }), { ...seen, url: 'http://127.0.0.1:9/b' }, 'the same id replaces')
    t.match(await alice.getTaskPushNotificationConfig({ tenant: '', taskId, id: 'mine' }), { ...seen, url: 'http://127.0.0.1:9/b' })
    await t.rejects(alice.getTaskPushNotificationConfig({ tenant: '', taskId, id: 'other' }), { name: 'TaskNotFoundError' })
    const more = ['', 'a/b c', 'ü', '4'].map(id => alice.createTaskPushNotificationConfig({ ...config, id, token: '', authentication: undefined }))
    const made = await Promise.all(more)
    t.match(made.map(({ id }) => id), [/^push-[\w-]{22}$/, 'a/b c', 'ü', '4'])
    await t.rejects(alice.createTaskPushNotificationConfig({ ...config, id: 'sixth' }), { name: 'RequestMalformedError', message: /at most 5/ })
    const all = await alice.listTaskPushNotificationConfig({ tenant: '', taskId, pageSize: 0, pageToken: '' })
    // The client doesn't send these over HTTP+JSON.
    const page = async (more: object) => (await service.rpc('ListTaskPushNotificationConfigs', { taskId, ...more })).json.result
    const [whole, first] = [await page({ pageSize: 100 }), await page({ page_size: '3' })]
    t.strictSame(new Set(all.configs.map(({ id }) => id)), new Set(['mine', ...made.map(({ id }) => id)]))
    t.strictSame([whole.configs.length, whole.nextPageToken, first.configs], [5, '', whole.configs.slice(0, 3)])
    t.strictSame(await page({ pageSize: 3, pageToken: first.nextPageToken }), { configs: whole.configs.slice(3), nextPageToken: '' })
    t.notMatch(JSON.stringify(all), /of-the-client/, 'no secret comes back')
    for (const id of ['a/b c', 'a/b c', 'mine']) await alice.deleteTaskPushNotificationConfig({ tenant: '', taskId, id })
    t.strictSame(new Set((await page({})).configs.map(({ id }: any) => id)), new Set([made[0]!.id, 'ü', '4']))
    const byBob: Array<() => Promise<unknown>> = [
      () => bob.createTaskPushNotificationConfig(config), () => bob.listTaskPushNotificationConfig({ tenant: '', taskId, pageSize: 0, pageToken: '' }),
      () => bob.deleteTaskPushNotificationConfig({ tenant: '', taskId, id: '4' })
    ]
    for (const call of byBob) await t.rejects(async () => { await call() }, { name: 'TaskNotFoundError' }, 'another agent’s task')
  })
}

t.test('what a config may not be', async t => {
  const service = await a2aTest(t, sendsPushes)
  const made = await service.rpc('SendMessage', { message: { messageId: 'm', role: 'ROLE_USER', parts: text('x') }, configuration: { returnImmediately: true } })
  const taskId = made.json.result.task.id
  const wrong: Array<[more: object, field: string]> = [
    [{ url: undefined }, '/url'], [{ url: 'http://10.0.0.1/' }, '/url'], [{ url: 'https://a:b@example.com/' }, '/url'], [{ url: 'file:///etc/passwd' }, '/url'],
    [{ url: `https://example.com/${'a'.repeat(2048)}` }, '/url'], [{ token: 'a b' }, '/token'], [{ token: 'a\r\nb: c' }, '/token'], [{ token: 'a'.repeat(1025) }, '/token'],
    [{ authentication: {} }, '/authentication/scheme'], [{ authentication: { scheme: 'Bearer', credentials: 'ü' } }, '/authentication/credentials'],
    [{ authentication: [] }, '/authentication'], [{ id: 'a'.repeat(257) }, '/id'], [{ id: 7 }, '/id']
  ]
  for (const [more, field] of wrong) {
    const config = { url: 'https://example.com/', ...more }
    const answer = await service.rpc('CreateTaskPushNotificationConfig', { taskId, ...config })
    t.match(answer.json.error, { code: -32602, data: [{}, { fieldViolations: [{ field }] }] }, JSON.stringify(more).slice(0, 99))
    const sent = await service.rpc('SendMessage', { message: { messageId: 'n', role: 'ROLE_USER', parts: text('x') }, configuration: { returnImmediately: true, taskPushNotificationConfig: config } })
    t.match(sent.json.error, { code: -32602, data: [{}, { fieldViolations: [{ field: `/configuration/taskPushNotificationConfig${field}` }] }] })
  }
  const { json } = await service.rpc('ListTasks', {})
  t.equal(json.result.totalSize, 1, 'nothing was passed with a wrong one')
  t.match((await service.rpc('ListTaskPushNotificationConfigs', { taskId })).json.result, { configs: [], nextPageToken: '' })
})

t.test('a service that sends nothing says so', async t => {
  const service = await a2aTest(t)
  const alice = await service.client2a('alice')
  t.equal((await alice.getAgentCard()).capabilities?.pushNotifications, false)
  const config = { url: 'https://example.com/' }
  for (const [method, params] of Object.entries({
    CreateTaskPushNotificationConfig: { taskId: 'x', ...config },
    ListTaskPushNotificationConfigs: { taskId: 'x' },
    SendMessage: { message: { messageId: 'm', role: 'ROLE_USER', parts: text('x') }, configuration: { taskPushNotificationConfig: config } }
  })) t.match((await service.rpc(method, params)).json.error, { code: -32003 }, method)
})

for (const isSpread of [false, true]) {
  t.test(`each change of state and each artifact is sent${isSpread ? ', with relayed events' : ''}`, async t => {
    const service = await a2aTest(t, { ...sendsPushes, ...isSpread && { EVENTS_RETENTION: '3600' } }, {}, { isSpread })
    service.app.deliverer!.start()
    const to = await receiver(t)
    const alice = await service.client2a('alice')
    t.equal((await alice.getAgentCard()).capabilities?.pushNotifications, true)
    const taskPushNotificationConfig = { url: to.url, token: 'abc', authentication }
    const message = sending(text('x'), { returnImmediately: true, taskPushNotificationConfig })
    const { id, contextId } = shown(await alice.sendMessage(message) as any)
    await service.call('bob', 'GET', `/api/catch/${id}`)
    await untilGot(to, 1)
    await service.call('bob', 'POST', `/api/heartbeat/${id}`, { progress: { message: 'half', percent: 50 } })
    await service.call('bob', 'POST', `/api/ask/${id}`, { question: 'When?', of: 'passer', details: { days: [1, 2] } })
    await untilGot(to, 2)
    await alice.sendMessage(sending(text('now'), { returnImmediately: true, taskPushNotificationConfig }, { taskId: id }))
    await untilGot(to, 3)
    const odd = '{"artifacts":[{"artifactId":"a","parts":[{"data":9007199254740993}]},{"artifactId":"b","parts":[{"text":"x"}]}]}'
    await service.call('bob', 'POST', `/api/done/${id}`, `{"output":${odd}}`)
    await untilGot(to, 6)
    await quietCalls(service)
    const bodies = to.got.map(({ body }) => JSON.parse(body))
    const status = (state: string, more: object = {}) => ({ statusUpdate: { taskId: id, contextId, status: { state: `TASK_STATE_${state}`, timestamp: String, ...more } } })
    t.match(bodies, [
      status('WORKING'), status('INPUT_REQUIRED', { message: { parts: [{ text: 'When?' }, { data: { details: { days: [1, 2] } } }] } }), status('WORKING'),
      { artifactUpdate: { taskId: id, artifact: { artifactId: 'a' } } }, { artifactUpdate: { artifact: { artifactId: 'b' } } }, status('COMPLETED')
    ], 'no progress')
    t.match(to.got[3]!.body, /"data":9007199254740993/, 'literally')
    const numbers = bodies.map(({ statusUpdate, artifactUpdate }) => (statusUpdate ?? artifactUpdate).metadata.handoff.sequence)
    t.strictSame(numbers, [...new Set(numbers)].sort((a, b) => a - b), 'the sequence grows')
    t.equal(new Set(to.got.map(({ headers }) => headers['webhook-id'])).size, 6)
    const { secret } = (await service.call('alice', 'GET', '/api/callbacks/secret')).json()
    for (const { headers, body } of to.got) {
      t.match(headers, { 'content-type': 'application/a2a+json', 'x-a2a-notification-token': 'abc', authorization: 'Bearer credentials-of-the-client' })
      t.doesNotThrow(() => new Webhook(secret).verify(body, headers as Record<string, string>))
    }
    await alice.createTaskPushNotificationConfig({ tenant: '', taskId: id, id: 'late', url: to.url, token: '', authentication: undefined })
    await quietCalls(service)
    t.equal(to.got.length, 6, 'a config that comes after the end is sent nothing')
    t.equal(shown(await alice.sendMessage(message) as any).id, id, 'the message again')
    await quietCalls(service)
    t.equal(to.got.length, 6)
  })
}

t.test('a task that is done without a result, and a message that is sent again with its config', async t => {
  const service = await a2aTest(t, sendsPushes)
  service.app.deliverer!.start()
  const to = await receiver(t)
  const send = async (messageId: string, more: object) => (await service.rpc('SendMessage', { message: { messageId, role: 'ROLE_USER', parts: text('x') }, configuration: { returnImmediately: true, ...more } })).json.result.task
  const taskPushNotificationConfig = { url: to.url }
  const { id } = await send('bare', { taskPushNotificationConfig })
  await service.call('bob', 'GET', `/api/catch/${id}`)
  await untilGot(to, 1)
  await service.call('bob', 'POST', `/api/done/${id}`)
  await untilGot(to, 2)
  await quietCalls(service)
  t.match(to.got.map(({ body }) => JSON.parse(body)), [{ statusUpdate: { status: { state: 'TASK_STATE_WORKING' } } }, { statusUpdate: { status: { state: 'TASK_STATE_COMPLETED' } } }])

  // As if the config could not be kept the first time.
  const { id: second } = await send('again', {})
  await service.call('bob', 'GET', `/api/catch/${second}`)
  await send('again', { taskPushNotificationConfig })
  await untilGot(to, 3)
  await send('again', { taskPushNotificationConfig })
  await quietCalls(service)
  t.match(to.got.slice(2).map(({ body }) => JSON.parse(body)), [{ statusUpdate: { taskId: second, status: { state: 'TASK_STATE_WORKING' } } }], 'what it missed, once')
})

t.test('configs move with the work over attempts', async t => {
  const service = await a2aTest(t, sendsPushes, { options: { defaults: { max_attempts: 2, retry_delay: 0 } } })
  service.app.deliverer!.start()
  const to = await receiver(t)
  const alice = await service.client2a('alice')
  const { id } = shown(await alice.sendMessage(sending(text('x'), { returnImmediately: true })) as any)
  await service.call('bob', 'GET', `/api/catch/${id}`)
  await alice.createTaskPushNotificationConfig({ tenant: '', taskId: id, id: 'a', url: to.url, token: '', authentication: undefined })
  const { reissued_as: second } = (await service.call('bob', 'POST', `/api/fail/${id}`, { error: { message: 'once' } })).json()
  await service.call('bob', 'GET', `/api/catch/${second}`)
  await service.call('bob', 'POST', `/api/fail/${second}`, { error: { message: 'twice' } })
  await untilGot(to, 1)
  await quietCalls(service)
  t.match(to.got.map(({ body }) => JSON.parse(body)), [{ statusUpdate: { taskId: id, status: { state: 'TASK_STATE_FAILED', message: { parts: [{ text: 'twice' }] } }, metadata: { handoff: { handoffId: second } } } }], 'it was worked on all along')
})
