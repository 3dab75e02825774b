import t from 'tap'
import { testApp } from '../helpers/app.ts'
import { isProblem } from '../helpers/problems.ts'
import { agentOf, eras, told, toolNames, toolOperations } from '../helpers/mcp.ts'
import type { Agent, Result } from '../helpers/mcp.ts'
import { bearer, newKey } from '../helpers/stored-keys.ts'
import { until } from '../helpers/until.ts'

/** The tools, by real clients of both kinds: those of 2026-07-28, and those that begin with a handshake. */

const codeOf = (result: Result) => result.isError === true ? told(result).code : 'ok'
const passed = async (agent: Agent, more: object = {}): Promise<string> => told(await agent.call('handoff_pass', { task: 't', ...more })).handoff_id
const held = async (agent: Agent, more: object = {}): Promise<string> => {
  const id = await passed(agent, more)
  await agent.call('handoff_catch', { id })
  return id
}

for (const era of eras) {
  t.test(`${era}: each tool answers as its own request does`, async t => {
    const service = await testApp(t)
    const [alice, bob] = await Promise.all([agentOf(t, service, 'alice', era), agentOf(t, service, 'bob', era)])
    t.equal(alice.version(), era)
    t.match(alice.instructions(), /idempotency_key/)
    const key = { idempotency_key: 'k' }

    const first = await alice.call('handoff_pass', { task: 'count', output: { rows: [1, 2] }, context: {}, constraints: 'read only', to: 'desk', labels: { z: '1', 1: 'a:b' }, heartbeat_within: 60, ...key })
    const { handoff_id: id, ...rest } = told(first)
    t.match(rest, { status: 'pending', pickup_url: String, created_at: String })
    t.strictSame(first.structuredContent, told(first), 'no payload in it, so as an object too')
    const again = await alice.call('handoff_pass', { ...key, to: 'desk', context: {}, labels: { z: '1', 1: 'a:b' }, heartbeat_within: 60, constraints: 'read only', output: { rows: [1, 2] }, task: 'count' })
    t.equal(again.content[0]!.text, first.content[0]!.text, 'the same call, its arguments in another order, passes nothing more')
    t.match(again._meta, { 'idempotency-replayed': true })
    t.equal(codeOf(await alice.call('handoff_pass', { task: 'another', to: 'desk', ...key })), 'idempotency_key_reused')

    const next = await bob.call('handoff_catch_next', { inbox: 'desk', ...key })
    t.match(told(next), { items: [{ handoff_id: id, status: 'caught', task: 'count', output: { rows: [1, 2] }, constraints: 'read only', to: 'desk', labels: { z: '1', 1: 'a:b' } }] })
    t.equal(next.structuredContent, undefined, 'a payload comes as text alone')
    t.equal(told(await bob.call('handoff_catch_next', { inbox: 'desk', wait: 30, ...key })).items[0].handoff_id, id, 'again, and waiting')
    t.strictSame(told(await bob.call('handoff_catch_next', {})), { items: [] }, 'its own inbox')
    const other = await passed(alice, { to: 'other' })
    t.equal(told(await bob.call('handoff_catch_next', { inboxes: ['desk', 'other'], wait: 1 })).items[0].handoff_id, other, 'of several')
    t.equal(`{"items":[${(await bob.call('handoff_read', { id, offset: 0 })).content[0]!.text}]}`, next.content[0]!.text)
    t.match(told(await bob.call('handoff_heartbeat', { id, progress: { percent: 50 }, ...key })), { handoff_id: id, status: 'caught', cancel_requested: false })
    t.match(told(await alice.call('handoff_status', { id })), { status: 'caught', caught_by: 'bob', progress: { percent: 50 } })
    const done = await bob.call('handoff_done', { id, output: { sum: 3 }, ...key })
    t.match(told(done), { handoff_id: id, status: 'done' })
    t.equal((await bob.call('handoff_done', { id, output: { sum: 3 }, ...key })).content[0]!.text, done.content[0]!.text)
    t.match(told(await alice.call('handoff_status', { id, wait: 50, until: 'done' })), { status: 'done', result: { sum: 3 } })
    const both = await alice.call('handoff_wait', { ids: [id, 'none'], wait: 50 })
    const labelled = await passed(alice, { labels: { list: '1' } })
    t.match(told(await alice.call('handoff_list', { labels: 'list:1', state: null, limit: 5 })), { items: [{ handoff_id: labelled, status: 'pending' }], next_cursor: null })
    t.match(told(both), { items: [{ handoff_id: id, result: { sum: 3 } }, { handoff_id: 'none', status: 'unknown' }], complete: true })
    t.equal(both.structuredContent, undefined, 'a result comes as text alone')
    t.match(told(await alice.call('handoff_wait', { ids: [id, await passed(alice)], wait: 1, until: 'all', results: false })), { items: [{ status: 'done', result: undefined }, { status: 'pending' }], complete: false })

    const caught = await bob.call('handoff_catch', { id: await passed(alice), wait: 5, ...key })
    const failed = told(caught).handoff_id
    t.match(told(await bob.call('handoff_fail', { id: failed, error: { message: 'm', code: 'c', data: { x: 1 } }, ...key })), { handoff_id: failed, status: 'failed' })
    t.match(told(await alice.call('handoff_reissue', { id: failed, ...key })), { status: 'pending', handoff_id: String })
    const declined = await held(alice)
    t.match(told(await alice.call('handoff_decline', { id: declined, reason: 'r', ...key })), { status: 'declined' })
    t.match(told(await alice.call('handoff_cancel', { id: await held(alice), reason: 'r', ...key })), { status: 'caught', cancel_requested_at: String })
    t.match(told(await alice.call('handoff_cancel', { id: await held(alice), force: true })), { status: 'cancelled' })

    const asking = told(await bob.call('handoff_catch', { id: await passed(alice) })).handoff_id
    const asked = bob.call('handoff_ask', { id: asking, question: 'Which one?', of: 'passer', wait: 30 })
    const open = await until(async () => {
      const answer = await alice.call('handoff_asked', { id: asking })
      return answer.isError === true ? null : told(answer)
    })
    t.match(told(await alice.call('handoff_answer', { id: asking, ask_id: open.ask_id, answer: { one: 1 } })), { state: 'answered' })
    t.match(told(await asked), { ask_id: open.ask_id, state: 'answered', answer: { one: 1 } }, 'a question that waits comes back with its answer')
  })

  t.test(`${era}: a refusal is a tool error with the problem`, async t => {
    const service = await testApp(t)
    const [alice, bob] = await Promise.all([agentOf(t, service, 'alice', era), agentOf(t, service, 'bob', era)])
    const id = await held(alice)
    const refused = await bob.call('handoff_catch', { id })
    t.equal(refused.isError, true)
    t.match(told(refused), { code: 'already_caught', detail: String, retryable: false, handoff_status: 'caught' })
    for (const [name, args, code] of [
      ['handoff_done', { id }, 'not_the_catcher'], ['handoff_cancel', { id }, 'not_the_passer'], ['handoff_status', { id: 'nonsense' }, 'not_found'],
      ['handoff_read', { id, offset: 0 }, 'not_the_catcher'], ['handoff_read', { id: await passed(alice), offset: 0 }, 'not_caught'],
    ] as const) t.equal(codeOf(await bob.call(name, args)), code, name)
    const later = told(await bob.call('handoff_catch', { id: await passed(alice, { delay: 60 }) }))
    t.match(later, { code: 'not_yet', retry_after: Number })
    for (const [name, args, pointer] of [
      ['handoff_pass', {}, '/task'], ['handoff_pass', { task: 7 }, '/task'], ['handoff_pass', { task: 't', extra: 1 }, '/extra'], ['handoff_pass', { task: 't', priority: 1 }, '/priority'], ['handoff_pass', { task: 't', labels: {} }, '/labels'], ['handoff_pass', { task: 't', labels: { 'a b': 'c' } }, '/labels/a b'],
      ['handoff_pass', { task: 't', id }, '/id'], ['handoff_catch', {}, '/id'], ['handoff_catch', { id, wait: 51 }, '/wait'], ['handoff_catch', { id, wait: '5' }, '/wait'],
      ['handoff_catch', { id, idempotency_key: 'ä' }, '/idempotency_key'], ['handoff_catch_next', { max: 2 }, '/max'], ['handoff_catch_next', { inboxes: [] }, '/inboxes'], ['handoff_catch_next', { inbox: 'a', inboxes: ['a'] }, '/inboxes'], ['handoff_status', { id, until: 'x' }, '/until'],
      ['handoff_wait', { ids: [id], wait: 51 }, '/wait'], ['handoff_wait', { id }, '/ids'], ['handoff_wait', { ids: [id], until: 'done' }, '/until'], ['handoff_wait', { ids: [id], idempotency_key: 'k' }, '/idempotency_key'],
      ['handoff_read', { id }, '/offset'], ['handoff_read', { id, offset: -1 }, '/offset'], ['handoff_heartbeat', { id, progress: { percent: 101 } }, '/progress/percent'],
      ['handoff_done', { id, output: [] }, '/output'], ['handoff_fail', { id, error: {} }, '/error/message'], ['handoff_status', { id, idempotency_key: 'k' }, '/idempotency_key'],
    ] as const) t.match(told(await alice.call(name, args)), { code: 'invalid_request', errors: [{ pointer }] }, `${name} ${JSON.stringify(args)}`)
    await t.rejects(alice.call('handoff_approve', { id }), /Unknown tool/)
    await t.rejects(alice.call('constructor', {}), /Unknown tool/)
  })

  t.test(`${era}: a key's scopes are the tools that it has`, async t => {
    const service = await testApp(t)
    const names = async (agent: Agent) => (await agent.tools()).map(({ name }) => name)
    const alice = await agentOf(t, service, 'alice', era)
    t.strictSame(await names(alice), toolNames('pass', 'catch', 'status'))
    const id = await passed(alice)
    const approver = await agentOf(t, service, 'approver', era)
    t.strictSame(await names(approver), toolNames('approve', 'status'))
    t.equal(told(await approver.call('handoff_status', { id })).status, 'pending')
    const refused = await approver.call('handoff_catch', { id })
    t.match(told(refused), { code: 'insufficient_scope', retryable: false })
    t.equal(told(await alice.call('handoff_status', { id })).status, 'pending', 'nothing happened')
    const { key } = await newKey(service.store.keyRecords, { scopes: ['pass'] })
    const passer = await agentOf(t, service, { key }, era)
    t.strictSame(await names(passer), toolNames('pass'))
    t.equal((await service.app.inject({ method: 'GET', url: '/healthz', headers: bearer(key) })).statusCode, 200)
    // What a person is asked no tool answers, also where the key could by itself.
    await alice.call('handoff_catch', { id })
    const { ask_id: ask } = told(await alice.call('handoff_ask', { id, question: 'Which one?' }))
    const both = await agentOf(t, service, await newKey(service.store.keyRecords, { agent: 'zoe', scopes: ['pass', 'approve'] }), era)
    t.equal(codeOf(await both.call('handoff_answer', { id, ask_id: ask, answer: {} })), 'insufficient_scope')
    t.equal(told(await both.call('handoff_asked', { id })).state, 'open')
  })
}

t.test('each tool says when it is for, and what it takes', async t => {
  const service = await testApp(t)
  const tools = await (await agentOf(t, service, 'alice', '2025-11-25')).tools()
  for (const { name, title, description, inputSchema, annotations } of tools) {
    t.ok(title !== undefined && description!.length > 100, name)
    const { headers } = toolOperations.find(({ tool }) => tool!.name === name)!
    // A wait is a POST without a change.
    t.equal(annotations.readOnlyHint, headers === undefined || name === 'handoff_wait', `${name} reads alone`)
    t.equal('idempotency_key' in inputSchema.properties, annotations.readOnlyHint === false, `${name}: what changes something takes a key`)
    t.equal(inputSchema.additionalProperties, false)
    for (const [member, { type, description }] of Object.entries<any>(inputSchema.properties)) t.ok(typeof type === 'string' && description, `${name}: ${member}`)
  }
  const pass = tools.find(({ name }) => name === 'handoff_pass')!.inputSchema
  t.match(pass, { required: ['task'], properties: { expires_in: { type: 'integer', maximum: 2592000 }, to: { pattern: String }, result_schema: { type: 'object' } } })
  const members = Object.keys((await service.app.inject('/openapi.json')).json().paths['/api/pass'].post.requestBody.content['application/json'].schema.properties)
  t.strictSame(Object.keys(pass.properties), [...members, 'idempotency_key'], 'all that the API takes')
})

t.test('an address lists the tools that a role needs', async t => {
  const { call } = await testApp(t)
  const namesAt = async (query: string, who: 'alice' | 'bob' = 'alice') => {
    const answer = await call(who, 'POST', `/mcp${query}`, { jsonrpc: '2.0', id: 1, method: 'tools/list' })
    return answer.json().result.tools.map(({ name }: { name: string }) => name.slice('handoff_'.length)).sort()
  }
  const all = await namesAt('')
  const passer = ['answer', 'asked', 'cancel', 'list', 'pass', 'reissue', 'status', 'wait']
  const worker = ['ask', 'asked', 'catch', 'catch_next', 'decline', 'done', 'fail', 'heartbeat', 'read']
  t.strictSame(await namesAt('?tools=all'), all)
  t.strictSame(await namesAt('?tools=passer'), passer)
  t.strictSame(await namesAt('?tools=worker'), worker)
  t.strictSame([...new Set([...passer, ...worker])].sort(), all)
  for (const query of ['?tools=', '?tools=Worker', '?tools=constructor', '?tools=worker&tools=passer']) {
    const answer = await call('alice', 'POST', `/mcp${query}`, { jsonrpc: '2.0', id: 1, method: 'tools/list' })
    t.match(isProblem(t, answer, 400, 'invalid_request').errors, [{ pointer: '/tools' }], query)
  }
  const ran = await call('alice', 'POST', '/mcp?tools=worker', { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'handoff_pass', arguments: { task: 't' } } })
  t.match(told(ran.json().result), { status: 'pending' }, 'it is no right')
})
