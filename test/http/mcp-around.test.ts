import t from 'tap'
import { callerOf } from '../../src/core/model.ts'
import { Cancelling } from '../../src/mcp/calls.ts'
import { testApp } from '../helpers/app.ts'
import { agentOf, callWith, eras, told } from '../helpers/mcp.ts'
import { grown, inboxWaiters, scrape } from '../helpers/metrics.ts'
import { newKey } from '../helpers/stored-keys.ts'
import { until } from '../helpers/until.ts'

/** What the rest of the service knows of a tool's call: keys, limits of a key, metrics, logs, traces. */

const trace = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'

t.test('a key that is held to inboxes catches and reads from those alone', async t => {
  const service = await testApp(t)
  const { key } = await newKey(service.store.keyRecords, { agent: 'bob', inboxes: ['desk'] })
  const caught = async (more: string) => {
    const { handoff_id: id } = told(await callWith(service, 'alice', 'handoff_pass', `{"task":"secret"${more}}`))
    t.equal(told(await callWith(service, 'bob', 'handoff_catch', `{"id":"${id}"}`)).handoff_id, id)
    return id as string
  }
  // The agent caught these with another key of its own, which may catch from any inbox.
  const [mine, foreign, plain] = [await caught(',"to":"desk"'), await caught(',"to":"other"'), await caught('')]
  for (const era of eras) {
    const agent = await agentOf(t, service, { key }, era)
    t.equal(told(await agent.call('handoff_catch_next', { inbox: 'other' })).code, 'not_addressee')
    t.equal(told(await agent.call('handoff_catch_next', {})).code, 'not_addressee')
    t.strictSame(told(await agent.call('handoff_catch_next', { inbox: 'desk' })), { items: [] })
    const refused = await agent.call('handoff_read', { id: foreign, offset: 0 })
    t.equal(refused.isError, true)
    t.match(told(refused), { code: 'not_addressee', handoff_status: 'caught' })
    t.notMatch(JSON.stringify(refused), 'secret')
    t.equal(told(await agent.call('handoff_read', { id: foreign, offset: 1_000_000 })).code, 'not_addressee', 'before the offset is looked at')
    for (const id of [mine, plain]) t.equal(told(await agent.call('handoff_read', { id, offset: 0 })).task, 'secret')
    t.equal(told(await agent.call('handoff_heartbeat', { id: foreign })).status, 'caught', 'what gives no payload is as before')
  }
})

t.test('calls are counted, and what they move is', async t => {
  const service = await testApp(t)
  const before = await scrape(service.app)
  const { handoff_id: id } = told(await callWith(service, 'alice', 'handoff_pass', '{"task":"t","idempotency_key":"k"}'))
  await callWith(service, 'alice', 'handoff_pass', '{"task":"t","idempotency_key":"k"}')
  await callWith(service, 'bob', 'handoff_catch', `{"id":"${id}"}`)
  await callWith(service, 'bob', 'handoff_catch', `{"id":"${id}"}`)
  await callWith(service, 'bob', 'handoff_nothing', '{}')
  const after = await scrape(service.app)
  t.strictSame(grown(before, after, /mcp_calls|transitions|conflicts|duration_seconds_count.*mcp/), {
    'handoff_mcp_calls_total{tool="handoff_pass",result="ok"}': 2,
    'handoff_mcp_calls_total{tool="handoff_catch",result="ok"}': 1,
    'handoff_mcp_calls_total{tool="handoff_catch",result="already_caught"}': 1,
    'handoff_transitions_total{to="pending"}': 1,
    'handoff_transitions_total{to="caught"}': 1,
    'handoff_conflicts_total{code="already_caught"}': 1,
    'http_request_duration_seconds_count{method="POST",route="/mcp",status_code="200"}': 5,
  })
})

t.test('a trace goes with the work', async t => {
  const service = await testApp(t)
  const call = async (who: 'alice' | 'bob', name: string, args: object, meta: object, headers = {}) =>
    (await service.call(who, 'POST', '/mcp', { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args, _meta: meta } }, headers)).json().result
  for (const [meta, headers] of [[{ traceparent: trace }, {}], [{}, { traceparent: trace }]]) {
    const { handoff_id: id } = told(await call('alice', 'handoff_pass', { task: 't', to: 'bob' }, meta!, headers))
    const caught = await call('bob', 'handoff_catch_next', {}, {})
    t.equal(told(caught).items[0].handoff_id, id)
    t.equal(caught._meta.traceparent, trace)
  }
})

t.test('at debug each thing that a call moves is a line', async t => {
  const service = await testApp(t)
  const moved = () => service.lines.map(line => JSON.parse(line)).filter(({ msg }) => msg === 'moved').map(({ handoff_id: id, to, agent, trace_id: trace }) => [id, to, agent, trace])
  const [alice, bob] = [await agentOf(t, service, 'alice', '2025-11-25'), await agentOf(t, service, 'bob', '2025-11-25')]
  // One that is answered as a stream: that has begun when it catches.
  const waiting = bob.call('handoff_catch_next', { wait: 50 }, { onprogress () {} })
  await until(async () => await inboxWaiters(service.app) === 1)
  const { handoff_id: id } = told(await alice.call('handoff_pass', { task: 't', to: 'bob' }))
  t.equal(told(await waiting).items[0].handoff_id, id)
  await bob.call('handoff_done', { id })
  await bob.call('handoff_done', { id })
  t.strictSame(moved(), [[id, 'pending', 'alice', undefined], [id, 'caught', 'bob', undefined], [id, 'done', 'bob', undefined]])
  t.equal((await scrape(service.app)).get('handoff_transitions_total{to="caught"}'), 1)
})

t.test('a call that its client cancels while it looks is as if the client had gone, for that agent’s id alone', async t => {
  const calls = new Cancelling()
  const [bob, other] = [callerOf('acme', 'bob', ['catch']), callerOf('acme', 'other', ['catch'])]
  let [stopped, left] = [0, 0]
  const waiting = calls.until({ isGone: () => false, onGone: () => () => { left++ } } as never, bob, 7)
  const forget = waiting.onGone(() => { stopped++ })
  calls.cancel(other, 7)
  calls.cancel(bob, '7')
  t.strictSame([waiting.isGone(), stopped], [false, 0])
  calls.cancel(bob, 7)
  t.strictSame([waiting.isGone(), stopped], [true, 1])
  forget()
  calls.cancel(bob, 7)
  t.strictSame([stopped, left], [1, 1])
})
