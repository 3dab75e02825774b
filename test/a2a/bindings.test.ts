import t from 'tap'
import { Unavailable } from '../../src/core/errors.ts'
import { isProblem } from '../helpers/problems.ts'
import { a2aTest, card, sending, shown, text } from '../helpers/a2a.ts'
import { until } from '../helpers/until.ts'

/** What both bindings answer to requests that no client of the authors sends. */

const message = (more: object = {}) => ({ message: { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'x' }], ...more }, configuration: { returnImmediately: true } })

t.test('an inbox is an agent once it has a card', async t => {
  const service = await a2aTest(t)
  const { call } = service
  const path = '/a2a/default/desk/.well-known/agent-card.json'
  isProblem(t, await call(null, 'GET', path), 401, 'unauthorized')
  isProblem(t, await service.call('foreignAlice', 'GET', path), 404, 'not_found')
  isProblem(t, await service.call('alice', 'GET', '/a2a/default/other/.well-known/agent-card.json'), 404, 'not_found')
  const shownCard = await service.call('alice', 'GET', path)
  t.match(shownCard.headers, { 'content-type': 'application/json', 'cache-control': 'private, max-age=60', etag: String, 'last-modified': String })
  t.match(shownCard.json(), {
    name: 'desk',
    version: '1',
    ...card,
    supportedInterfaces: [{ url: service.agent, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }, { url: service.agent, protocolBinding: 'HTTP+JSON', protocolVersion: '1.0' }],
    capabilities: { streaming: true, pushNotifications: false, extendedAgentCard: false, extensions: [{ uri: 'urn:agent-handoff:a2a-options:1' }] },
    securitySchemes: { bearer: { httpAuthSecurityScheme: { scheme: 'Bearer' } } },
    defaultInputModes: ['text/plain', 'application/json'],
  })
  t.equal((await service.call('alice', 'GET', path, undefined, { 'if-none-match': String(shownCard.headers.etag) })).statusCode, 304)
  await service.call('operator', 'PUT', '/api/inboxes/desk', { card: { ...card, public: true, name: 'Desk' } })
  const open = await call(null, 'GET', path)
  t.match([open.statusCode, open.headers['cache-control'], open.json().name], [200, 'public, max-age=60', 'Desk'])
  isProblem(t, await service.call('alice', 'PUT', '/api/inboxes/desk', { card: null }), 403, 'insufficient_scope')
  for (const [wrong, pointer] of [[{ ...card, skills: [] }, '/card/skills'], [{ skills: card.skills }, '/card/description'], [{ ...card, url: 'x' }, '/card/url'], [{ ...card, options: { fixed: { to: 'x' } } }, '/card/options/fixed/to'],
    [{ ...card, options: { defaults: { priority: 10 } } }, '/card/options/defaults/priority'], [{ ...card, options: { fixed: { labels: { 'a2a.context': 'x' } } } }, '/card/options/fixed/labels/a2a.context'],
    [{ ...card, options: { fixed: { labels: { run: ' ' } } } }, '/card/options/fixed/labels/run'], [{ ...card, options: { fixed: { result_schema: { type: 'x' } } } }, '/card/options/fixed/result_schema/type']] as const) {
    t.match((await service.call('operator', 'PUT', '/api/inboxes/desk', { card: wrong })).json(), { code: 'invalid_request', errors: [{ pointer }] }, pointer)
  }
  t.equal((await service.call('operator', 'PUT', '/api/inboxes/desk', { card: null })).statusCode, 200)
  isProblem(t, await service.call('alice', 'GET', path), 404, 'not_found')
  isProblem(t, await service.call('alice', 'POST', '/a2a/default/desk', { jsonrpc: '2.0', id: 1, method: 'GetTask', params: { id: 'x' } }), 404, 'not_found')
})

t.test('whoever has no key makes few look-ups of cards', async t => {
  const { call, store } = await a2aTest(t)
  const looked = t.capture(store.cards, 'get', store.cards.get)
  const path = (inbox: string) => `/a2a/default/${inbox}/.well-known/agent-card.json`
  for (let n = 0; n < 3; n++) isProblem(t, await call(null, 'GET', path('nobody')), 401, 'unauthorized')
  t.equal(looked().length, 1)
  const all = await Promise.all(Array.from({ length: 150 }, (_, n) => call(null, 'GET', path(`no-${n}`))))
  t.ok(all.some(({ statusCode }) => statusCode === 503))
  t.ok(looked().length < 150)
  t.equal((await call('alice', 'GET', path('desk'))).statusCode, 200, 'a key has limits of its own')
})

t.test('at the service’s own address there may be one', async t => {
  const { agent, call } = await a2aTest(t, { A2A_ROOT: 'default/desk' }, { public: true })
  t.match((await call(null, 'GET', '/.well-known/agent-card.json')).json(), { name: 'desk', supportedInterfaces: [{ url: agent }] })
})

t.test('JSON-RPC: each mistake has its code, and an id comes back as it was', async t => {
  const service = await a2aTest(t)
  const send = async (body: string, headers: Record<string, string> = {}) => {
    const answer = await service.call('alice', 'POST', '/a2a/default/desk', body, { 'a2a-version': '1.0', ...headers })
    return { status: answer.statusCode, text: answer.body, json: answer.json() }
  }
  const valid = (more: string, method = 'GetTask') => `{"jsonrpc":"2.0",${more}"method":"${method}","params":{"id":"x"}}`
  for (const [body, code, id] of [
    ['', -32700, 'null'], ['{', -32700, 'null'], ['{"jsonrpc":"2.0","id":1,}', -32700, 'null'], ['[]', -32600, 'null'], [`[${valid('"id":1,')}]`, -32600, 'null'], ['7', -32600, 'null'], ['null', -32600, 'null'],
    [valid(''), -32600, 'null'], [valid('"id":{},'), -32600, 'null'], [valid('"id":[1],'), -32600, 'null'], [valid('"id":true,'), -32600, 'null'], [valid('"id":1,"id":2,'), -32600, 'null'],
    [valid(`"id":"${'x'.repeat(1022)}",`), -32001, `"${'x'.repeat(1022)}"`], [valid(`"id":"${'x'.repeat(1023)}",`), -32600, 'null'],
    [valid('"id":"a\\u0062",'), -32001, '"a\\u0062"'], [valid('"id":1.50,'), -32001, '1.50'], [valid('"id":9007199254740993,'), -32001, '9007199254740993'], [valid('"id":null,'), -32001, 'null'],
    ['{"id":3,"method":"GetTask"}', -32600, '3'], ['{"jsonrpc":"2.0","id":3,"method":7}', -32600, '3'], ['{"jsonrpc":"2.0","id":3,"method":"GetTask","params":[]}', -32602, '3'],
    [valid('"id":1,', 'GetTasks'), -32601, '1'], [valid('"id":1,', 'constructor'), -32601, '1'], [valid('"id":1,', 'GetExtendedAgentCard'), -32004, '1'], [valid('"id":1,', 'ListTaskPushNotificationConfigs'), -32003, '1'],
    [`{"jsonrpc":"2.0","id":1,"method":"GetTask","params":${'['.repeat(101)}${']'.repeat(101)}}`, -32600, 'null'],
    ['{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{}}', -32602, '1'], ['{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"x","id":"y"}}', -32602, '1'],
  ] as const) {
    const { status, text, json } = await send(body)
    t.match(json, { error: { code, message: String, data: [{ '@type': 'type.googleapis.com/google.rpc.ErrorInfo', domain: 'a2a-protocol.org' }] } }, body.slice(0, 80))
    t.equal(status, 200)
    t.ok(text.startsWith(`{"jsonrpc":"2.0","id":${id},`), text.slice(0, 60))
  }
  t.match((await send(valid('"id":1,'), { 'content-type': 'text/plain' })).json, { error: { code: -32005 } })
  for (const version of ['0.3', '1', '1.0.0', '']) t.match((await send(valid('"id":1,'), { 'a2a-version': version })).json, { error: { code: -32009 } }, version)
  t.match((await service.call('alice', 'POST', '/a2a/default/desk/?A2A-Version=1.0', valid('"id":1,'))).json(), { error: { code: -32001 } }, 'in the query')
  const { call } = service
  isProblem(t, await call(null, 'POST', '/a2a/default/desk', valid('"id":1,')), 401, 'unauthorized')
  isProblem(t, await service.call('operator', 'POST', '/a2a/default/desk', { jsonrpc: '2.0', id: 1, method: 'SendMessage', params: message() }, { 'a2a-version': '1.0' }), 403, 'insufficient_scope')
})

t.test('JSON-RPC: an answer has its call’s id, also where the card could not be looked for', async t => {
  const service = await a2aTest(t)
  t.intercept(service.store.cards, 'get', { value: async () => { throw new Unavailable('away') } })
  const { status, text } = await service.rpc('GetTask', { id: 'x' }, { id: '"a\\u0062"' })
  t.equal(status, 503)
  t.match(text, '{"jsonrpc":"2.0","id":"a\\u0062","error":{"code":-32603,"message":"Nothing happened, or the outcome is unknown; send the request again as it was."')
})

t.test('a message that can’t be passed says where', async t => {
  const service = await a2aTest(t, { BODY_LIMIT: '20000', BATCH_LIMIT: '20000' }, { options: { fixed: { require_human: true } } })
  const uri = 'urn:agent-handoff:a2a-options:1'
  for (const [params, code, field] of [
    [{}, -32602, '/message'], [{ message: {} }, -32602, '/message/messageId'], [message({ role: 'ROLE_AGENT' }), -32602, '/message/role'], [message({ parts: [] }), -32602, '/message/parts'],
    [message({ parts: [{}] }), -32602, '/message/parts/0'], [message({ parts: [{ text: 'x', data: 1 }] }), -32602, '/message/parts/0'], [message({ parts: [{ text: 7 }] }), -32602, '/message/parts/0/text'],
    [message({ parts: [{ raw: '?' }] }), -32602, '/message/parts/0/raw'], [message({ contextId: 'a b' }), -32602, '/message/contextId'], [message({ metadata: 7 }), -32602, '/message/metadata'],
    [message({ parts: [{ raw: 'aGk=', mediaType: 'image/png' }] }), -32005, undefined], [{ ...message(), configuration: { acceptedOutputModes: ['image/png'] } }, -32005, undefined],
    [{ ...message(), configuration: { taskPushNotificationConfig: { url: 'https://example.com' } } }, -32003, undefined],
    [{ ...message(), metadata: { [uri]: { priority: 10 } } }, -32602, `/metadata/${uri}/priority`], [{ ...message(), metadata: { [uri]: { group: 'a b' } } }, -32602, `/metadata/${uri}/group`], [{ ...message(), metadata: { [uri]: { to: 'x' } } }, -32602, `/metadata/${uri}/to`],
    [{ ...message(), metadata: { [uri]: { require_human: false } } }, -32602, `/metadata/${uri}/require_human`], [{ ...message(), metadata: { [uri]: { labels: { 'a2a.context': 'x' } } } }, -32602, `/metadata/${uri}/labels/a2a.context`],
    [{ ...message(), metadata: { [uri]: { parent: 'x' } } }, -32602, `/metadata/${uri}/parent`],
  ] as const) {
    const { json } = await service.rpc('SendMessage', params)
    t.match(json, { error: { code, data: [{}, ...field === undefined ? [] : [{ fieldViolations: [{ field }] }]] } }, JSON.stringify(params))
  }
  const large = await service.rpc('SendMessage', message({ parts: [{ text: 'x'.repeat(30_000) }] }))
  t.match(large, { status: 413, json: { id: null, error: { code: -32603 } } })
  t.match((await service.call('alice', 'POST', '/a2a/default/desk/message:send', message({ parts: [{ text: 'x'.repeat(30_000) }] }), { 'a2a-version': '1.0' })).json(), { error: { code: 413 } })
  const sent = (await service.rpc('SendMessage', { ...message(), metadata: { [uri]: { priority: 3, group: 'customer-7', labels: { a: '1', b: '2', c: '3', d: '4', e: '5', f: '6', g: '7', h: '8' } } } }, { headers: { 'a2a-extensions': uri } }))
  t.equal(sent.headers['a2a-extensions'], uri)
  t.match(sent.json.result.task, { status: { state: 'TASK_STATE_SUBMITTED', message: { parts: [{ text: /A person must approve/ }] } }, metadata: { handoff: { priority: 3, group: 'customer-7', requireHuman: true, labels: { h: '8' }, approval: { state: 'waiting', decidedAt: null } } } })
  const { id } = sent.json.result.task
  await service.call('approver', 'POST', `/api/reject/${id}`, { note: 'no' })
  t.match((await service.rpc('GetTask', { id })).json.result, { status: { state: 'TASK_STATE_REJECTED', message: { parts: [{ text: 'no' }] } } })
})

t.test('HTTP+JSON: types, versions and errors', async t => {
  const service = await a2aTest(t)
  const { call } = service
  const ask = (method: 'GET' | 'POST' | 'DELETE', path: string, body?: unknown, headers: Record<string, string> = {}) => service.call('alice', method, `/a2a/default/desk/${path}`, body, { 'a2a-version': '1.0', ...headers })
  const sent = await ask('POST', 'message:send', message(), { 'content-type': 'application/a2a+json' })
  t.match([sent.statusCode, sent.headers['content-type']], [200, 'application/a2a+json'])
  const { id } = sent.json().task
  for (const [accept, type] of [['application/json', 'application/json'], ['*/*', 'application/a2a+json'], ['application/a2a+json, application/json', 'application/a2a+json']] as const) {
    t.equal((await ask('GET', `tasks/${id}`, undefined, { accept })).headers['content-type'], type, accept)
  }
  t.notOk('history' in (await ask('GET', `tasks/${id}?historyLength=0`)).json())
  t.match((await ask('GET', 'tasks?pageSize=1&includeArtifacts=true')).json(), { tasks: [{ id }], totalSize: 1, nextPageToken: '' })
  for (const [answer, status, code, reason] of [
    [await ask('GET', 'tasks/nonsense'), 404, 'NOT_FOUND', 'TASK_NOT_FOUND'], [await ask('GET', `tasks/${id}`, undefined, { 'a2a-version': '0.3' }), 400, 'FAILED_PRECONDITION', 'VERSION_NOT_SUPPORTED'],
    [await ask('POST', 'message:send', 'x', { 'content-type': 'text/plain' }), 400, 'INVALID_ARGUMENT', 'CONTENT_TYPE_NOT_SUPPORTED'], [await ask('POST', 'message:send', '{'), 400, 'INVALID_ARGUMENT', 'JSON_PARSE'],
    ...await Promise.all(['pageSize=0', 'pageSize=0x10', 'historyLength=', 'historyLength=%20'].map(async query => [await ask('GET', `tasks?${query}`), 400, 'INVALID_ARGUMENT', 'INVALID_PARAMS'] as const)),
    [await ask('GET', 'extendedAgentCard'), 400, 'FAILED_PRECONDITION', 'UNSUPPORTED_OPERATION'],
  ] as const) t.match([answer.statusCode, answer.json()], [status, { error: { code: status, status: code, details: [{ reason, domain: 'a2a-protocol.org' }] } }], reason)
  t.match((await ask('POST', `tasks/${id}:cancel`)).json(), { id, status: { state: 'TASK_STATE_CANCELED' } })
  t.match((await ask('POST', `tasks/${id}:cancel`)).json(), { error: { details: [{ reason: 'TASK_NOT_CANCELABLE' }] } })
  isProblem(t, await ask('GET', 'nothing'), 404, 'not_found')
  for (const [method, path, allow] of [['GET', 'message:send', 'POST'], ['POST', 'tasks', 'GET'], ['DELETE', `tasks/${id}`, 'GET'], ['DELETE', `tasks/${id}/pushNotificationConfigs`, 'POST, GET'], ['POST', `tasks/${id}/pushNotificationConfigs/x`, 'GET, DELETE'], ['GET', '', 'POST']] as const) {
    const answer = await ask(method, path)
    isProblem(t, answer, 405, 'method_not_allowed')
    t.equal(answer.headers.allow, allow, path)
  }
  isProblem(t, await call(null, 'GET', `/a2a/default/desk/tasks/${id}`), 401, 'unauthorized')
  isProblem(t, await service.call('foreignAlice', 'GET', `/a2a/default/desk/tasks/${id}`, undefined, { 'a2a-version': '1.0' }), 404, 'not_found')
})

t.test('what waits ends by itself after A2A_WAIT, and fifty of a key wait', async t => {
  const service = await a2aTest(t, { A2A_WAIT: '2' })
  const answers = await Promise.all(Array.from({ length: 51 }, (_, n) => service.rpc('SendMessage', { message: { ...message().message, messageId: `m${n}` } })))
  const refused = answers.filter(({ status }) => status === 429)
  t.equal(refused.length, 1)
  t.match(refused[0], { json: { error: { code: -32603 } }, headers: { 'retry-after': '2' } })
  t.ok(answers.every(({ status, json }) => status === 429 || json.result.task.status.state === 'TASK_STATE_SUBMITTED'))
  t.match((await service.rpc('ListTasks', {})).json.result, { totalSize: 50 }, 'what was refused was not passed')
})

t.test('a pass that doesn’t come by A2A has no task, and nobody else gives a context', async t => {
  const service = await a2aTest(t)
  const id = await service.pass({ to: 'desk' })
  t.match((await service.rpc('GetTask', { id })).json, { error: { code: -32001 } })
  t.match((await service.call('alice', 'POST', '/api/pass', { task: 't', labels: { 'a2a.context': 'x' } })).json(), { errors: [{ pointer: '/labels/a2a.context' }] })
  const alice = await service.client2a('alice')
  const sent = shown(await alice.sendMessage(sending(text('x'), { returnImmediately: true })) as any)
  t.strictSame((await service.call('alice', 'GET', `/api/handoffs?labels=a2a.context:${sent.contextId}`)).json().items.map((item: { handoff_id: string }) => item.handoff_id), [sent.id])
  const keys = await service.redis.keys(`${service.prefix}:*task*`)
  t.equal(keys.length, 3, String(keys))
  for (const key of keys) t.ok(await service.redis.pttl(key) > 0, key)
  t.notOk(keys.some(key => key.includes(id)))
})

t.test('as many tasks as may be live: 429, in both bindings', async t => {
  const service = await a2aTest(t)
  await service.store.keyRecords.limits.set({ tenant: 'default', agent: 'alice', maxLive: 1 }, 'me')
  await until(() => service.keys.limits.maxLiveOf('default') !== undefined)
  const first = message({ messageId: 'quota-1' })
  t.match(await service.rpc('SendMessage', first), { status: 200, json: { result: { task: { status: { state: 'TASK_STATE_SUBMITTED' } } } } })
  const next = message({ messageId: 'quota-2' })
  t.match(await service.rpc('SendMessage', next), { status: 429, headers: { 'retry-after': '1' }, json: { error: { code: -32603, message: /live/, data: [{ reason: 'RESOURCE_EXHAUSTED' }] } } })
  const rest = await service.call('alice', 'POST', '/a2a/default/desk/message:send', next, { 'a2a-version': '1.0', 'content-type': 'application/a2a+json' })
  t.match([rest.statusCode, rest.headers['retry-after'], rest.json().error], [429, '1', { code: 429, status: 'RESOURCE_EXHAUSTED', details: [{ reason: 'RESOURCE_EXHAUSTED' }] }])
  t.match(await service.rpc('SendMessage', first), { status: 200 }, 'the same message again')
})
