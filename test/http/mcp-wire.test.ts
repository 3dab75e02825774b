import { once } from 'node:events'
import { request as send } from 'node:http'
import t from 'tap'
import { secrets, testApp } from '../helpers/app.ts'
import type { TestApp } from '../helpers/app.ts'
import { serve } from '../helpers/client.ts'
import { skipInQuick } from '../helpers/extent.ts'
import { agentOf, callText, callWith, eras, told, toolOperations } from '../helpers/mcp.ts'
import type { Agent } from '../helpers/mcp.ts'
import { scrape } from '../helpers/metrics.ts'
import { isProblem } from '../helpers/problems.ts'
import { newKey } from '../helpers/stored-keys.ts'
import { until } from '../helpers/until.ts'
import { asleep, nobody, passed } from '../helpers/waits.ts'
import { listen } from '../helpers/wire.ts'

/** Of all that needs no service of its own. */
const service = await testApp(t)
const { app, call } = service

/** What of /mcp is HTTP: who may ask, how payloads pass, waiting, and what a stateless service owes its clients. */

const ping = { jsonrpc: '2.0', id: 1, method: 'ping' }
const taken = async ({ call }: TestApp, text: string): Promise<string> => (await call('alice', 'GET', `/api/catch/${JSON.parse(text).handoff_id}`)).body

/** A message of 2026-07-28. */
function newer (call: TestApp['call'], method: string, params: object = {}) {
  const about = { protocolVersion: '2026-07-28', clientInfo: { name: 'x', version: '1' }, clientCapabilities: {} }
  const _meta = Object.fromEntries(Object.entries(about).map(([name, value]) => [`io.modelcontextprotocol/${name}`, value]))
  return call('alice', 'POST', '/mcp', { jsonrpc: '2.0', id: 1, method, params: { ...params, _meta } }, { 'mcp-protocol-version': '2026-07-28', 'mcp-method': method })
}

t.test('who may not ask is told so as everywhere', async t => {
  const { app, call } = await testApp(t, { BODY_LIMIT: '2000', MCP_ORIGINS: 'https://agents.example, http://localhost:3000' })
  t.equal((await call('alice', 'POST', '/mcp', ping)).statusCode, 200)
  const keyless = await call(null, 'POST', '/mcp', ping)
  isProblem(t, keyless, 401, 'unauthorized')
  t.equal(keyless.headers['www-authenticate'], 'Bearer')
  const wrong = await call(null, 'POST', '/mcp', ping, { authorization: 'Bearer nonsense-nonsense-nonsense' })
  isProblem(t, wrong, 401, 'unauthorized')
  t.match(wrong.headers['www-authenticate'], /invalid_token/)
  for (const origin of ['https://evil.example', 'http://agents.example', 'https://agents.example:444', 'null']) {
    isProblem(t, await call('alice', 'POST', '/mcp', ping, { origin }), 403, 'cross_origin')
  }
  const page = await call('alice', 'POST', '/mcp', ping, { origin: 'http://localhost:3000' })
  t.equal(page.statusCode, 200)
  t.match(page.headers, { 'access-control-allow-origin': 'http://localhost:3000', vary: 'Origin' })
  const preflight = (origin: string) => app.inject({ method: 'OPTIONS', url: '/mcp', headers: { origin, 'access-control-request-method': 'POST', 'access-control-request-headers': 'authorization' } })
  const asked = await preflight('https://agents.example')
  t.match([asked.statusCode, asked.headers], [204, { 'access-control-allow-origin': 'https://agents.example', 'access-control-allow-methods': 'POST', 'access-control-allow-headers': 'authorization' }])
  isProblem(t, await preflight('https://evil.example'), 403, 'cross_origin')
  for (const method of ['GET', 'DELETE', 'PUT', 'HEAD'] as const) {
    const refused = await app.inject({ method, url: '/mcp' })
    t.equal(refused.statusCode, 405, method)
    t.match(String(refused.headers.allow), /\bPOST\b/)
    if (method !== 'HEAD') isProblem(t, refused, 405, 'method_not_allowed')
  }
  isProblem(t, await call('alice', 'POST', '/mcp', callText('handoff_pass', JSON.stringify({ task: 'x'.repeat(2000) }))), 413, 'payload_too_large')
  isProblem(t, await call('alice', 'POST', '/mcp', 'x', { 'content-type': 'text/plain' }), 415, 'unsupported_media_type')
  isProblem(t, await call('alice', 'POST', '/mcp', ping, { 'content-encoding': 'gzip' }), 415, 'unsupported_media_type')
})

t.test('without MCP_ORIGINS no page may ask', async t => {
  const preflight = await app.inject({ method: 'OPTIONS', url: '/mcp', headers: { origin: 'http://localhost:3000', 'access-control-request-method': 'POST' } })
  isProblem(t, preflight, 405, 'method_not_allowed')
  t.equal(preflight.headers.allow, 'POST')
  for (const method of ['GET', 'DELETE'] as const) t.equal((await app.inject({ method, url: '/mcp' })).headers.allow, 'POST')
  isProblem(t, await call('alice', 'POST', '/mcp', ping, { origin: 'http://localhost:3000' }), 403, 'cross_origin')
})

t.test('pages of the service’s own origin may ask', async t => {
  const named = await testApp(t, { BASE_URL: 'https://handoff.example/base', MCP_ORIGINS: 'https://agents.example' })
  const from = (service: TestApp, origin: string) => service.call('alice', 'POST', '/mcp', ping, { origin, host: new URL(origin).host })
  for (const origin of ['https://handoff.example', 'https://agents.example']) {
    const answer = await from(named, origin)
    t.match([answer.statusCode, answer.headers['access-control-allow-origin']], [200, origin])
  }
  // The name that a request's Host has is the attacker's own, once it points here (DNS rebinding).
  for (const origin of ['http://handoff.example', 'https://handoff.example:8443', 'http://127.0.0.1:8080', 'http://localhost:8080', 'https://rebound.example']) {
    isProblem(t, await from(named, origin), 403, 'cross_origin', origin)
  }

  const unnamed = await testApp(t)
  for (const origin of ['http://127.0.0.1:8080', 'http://localhost:8080']) t.equal((await from(unnamed, origin)).statusCode, 200, 'where HOST and PORT are as they are by default')
  const port = await listen(unnamed.app)
  const ask = async (origin: string, path = '/mcp') => {
    const sent = send({ port, host: '127.0.0.1', method: 'POST', path, headers: { origin, host: new URL(origin).host, authorization: `Bearer ${secrets.alice}`, 'content-type': 'application/json' } })
    const [answer] = await once(sent.end(JSON.stringify(ping)), 'response')
    answer.resume()
    return answer.statusCode
  }
  for (const host of ['127.0.0.1', 'localhost']) t.equal(await ask(`http://${host}:${port}`), 200, host)
  t.equal(await ask(`http://localhost:${port}`, '/mcp/'), 200)
  for (const origin of [`https://127.0.0.1:${port}`, `http://127.0.0.1:${port + 1}`, `http://localhost:${port + 1}`, 'http://localhost', `http://rebound.example:${port}`, `http://10.0.0.1:${port}`, `http://[::1]:${port}`]) {
    t.equal(await ask(origin), 403, origin)
  }
})

t.test('a slash behind it changes nothing', async t => {
  const { app, call } = await testApp(t, { MCP_ORIGINS: 'https://agents.example' })
  const passed = await call('alice', 'POST', '/mcp/', callText('handoff_pass', '{"task":"t"}'), { origin: 'https://agents.example' })
  t.match([passed.statusCode, told(passed.json().result)], [200, { status: 'pending' }])
  isProblem(t, await call(null, 'POST', '/mcp/', ping), 401, 'unauthorized')
  isProblem(t, await call('alice', 'POST', '/mcp/', ping, { origin: 'https://evil.example' }), 403, 'cross_origin')
  isProblem(t, await app.inject({ method: 'GET', url: '/mcp/' }), 405, 'method_not_allowed')
  t.equal((await scrape(app)).get('http_request_duration_seconds_count{method="POST",route="/mcp",status_code="200"}'), 1, 'one route')
  isProblem(t, await call('alice', 'POST', '/mcp//', ping), 404, 'not_found')
})

t.test('a subscription is acknowledged with nothing in it, and ends', async t => {
  for (const notifications of [{ toolsListChanged: true }, { toolsListChanged: true, promptsListChanged: true, resourceSubscriptions: ['file:///x'] }, {}]) {
    // Whoever waits for the acknowledgement gets it; the answer ends at once, so nothing stays open for what never comes.
    const answer = await newer(call, 'subscriptions/listen', { notifications })
    t.match([answer.statusCode, answer.headers['content-type'], answer.headers['x-accel-buffering']], [200, 'text/event-stream', 'no'])
    const messages = answer.body.split('\n').filter(line => line.startsWith('data: ')).map(line => JSON.parse(line.slice(6)))
    const subscription = { 'io.modelcontextprotocol/subscriptionId': 1 }
    t.strictSame(messages[0], { jsonrpc: '2.0', method: 'notifications/subscriptions/acknowledged', params: { notifications: {}, _meta: subscription } })
    t.match(messages.slice(1), [{ jsonrpc: '2.0', id: 1, result: { resultType: 'complete', _meta: subscription } }])
  }
  t.match((await newer(call, 'subscriptions/listen')).json(), { id: 1, error: { code: -32602 } })
  const older = await call('alice', 'POST', '/mcp', { ...ping, method: 'subscriptions/listen', params: { notifications: {} } })
  t.match(older.json(), { id: 1, error: { code: -32601 } }, 'no version before 2026-07-28 has it')
})

t.test('what is wrong with a message is told as JSON-RPC has it', async t => {
  for (const [body, code] of [
    ['', -32700], ['{', -32700], ['{"a":1', -32700], ['7', -32700], ['{} {}', -32700], [`{"jsonrpc":"2.0","id":1,"method":"ping","x":${'['.repeat(200)}${']'.repeat(200)}}`, -32700],
    ['{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call"}', -32700], ['{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"arguments":{},"name":"handoff_pass","arguments":{"task":"t"}}}', -32700],
    [JSON.stringify([ping]), -32600], [' []', -32600],
  ] as const) {
    const answer = await call('alice', 'POST', '/mcp', body)
    t.match([answer.statusCode, answer.json()], [400, { jsonrpc: '2.0', error: { code, message: String }, id: null }], body.slice(0, 40))
  }
  t.match((await call('alice', 'POST', '/mcp', { ...ping, method: 'nothing' })).json(), { id: 1, error: { code: -32601 } })
  t.match((await call('alice', 'POST', '/mcp', { ...ping, method: 'tools/call', params: { name: 'handoff_pass', arguments: [] } })).json(), { id: 1, error: { code: -32602 } })
  t.equal((await call('alice', 'POST', '/mcp', { jsonrpc: '2.0', method: 'notifications/initialized' })).statusCode, 202)
  const old = await call('alice', 'POST', '/mcp', ping, { 'mcp-protocol-version': '1999-01-01' })
  t.match([old.statusCode, old.json()], [400, { error: { code: Number } }])
  const card = await app.inject('/.well-known/mcp/server-card.json')
  t.match(card.headers, { 'content-type': 'application/json; charset=utf-8', 'access-control-allow-origin': '*' })
  const reserved = await app.inject('/mcp/server-card')
  t.match([reserved.headers, reserved.body], [{ 'content-type': 'application/mcp-server-card+json', 'access-control-allow-origin': '*' }, card.body])
  t.match(card.json(), { name: /^[\w.-]+\/[\w.-]+$/, version: String, title: 'Agent Handoff', description: /^.{1,100}$/, remotes: [{ type: 'streamable-http', url: /\/mcp$/, headers: [{ name: 'Authorization', isSecret: true }] }] })
  t.match((await newer(call, 'tools/list')).json().result, { cacheScope: 'private', ttlMs: 300_000, tools: Array }, 'the list goes by the key')
  for (const [asked, told] of [['2025-06-18', '2025-06-18'], ['2025-11-25', '2025-11-25'], ['1999-01-01', '2025-11-25']]) {
    const params = { protocolVersion: asked, capabilities: {}, clientInfo: { name: 'x', version: '1' } }
    t.equal((await call('alice', 'POST', '/mcp', { ...ping, method: 'initialize', params })).json().result.protocolVersion, told)
  }
})

t.test('payloads pass as they are', async t => {
  const output = '{"n":9007199254740993,"big":1e400,"x":1,"x":2,"one":1.0,"__proto__":{"a":1},"2":0,"1":0,"lone":"\\ud800","text":"ä😀"}'
  const { content: [passed] } = await callWith(service, 'alice', 'handoff_pass', `{"task":"t","output":${output},"context":${output},"constraints":"\\u0041\\ud800"}`)
  const caught = await callWith(service, 'bob', 'handoff_catch', `{"id":"${JSON.parse(passed!.text).handoff_id}"}`)
  const { handoff_id: id } = told(caught)
  t.ok(caught.content[0]!.text.includes(`"output":${output},"context":${output},"constraints":"\\u0041\\ud800"`))
  await callWith(service, 'bob', 'handoff_done', `{"id":"${id}","output":${output}}`)
  t.ok((await callWith(service, 'alice', 'handoff_status', `{"id":"${id}"}`)).content[0]!.text.includes(`"result":${output}`))
  const next = await callWith(service, 'alice', 'handoff_pass', '{"task":"t"}')
  const failed = JSON.parse(await taken(service, next.content[0]!.text)).handoff_id
  await callWith(service, 'alice', 'handoff_fail', `{"id":"${failed}","error":{"message":"m","data":${output}}}`)
  t.ok((await callWith(service, 'alice', 'handoff_status', `{"id":"${failed}"}`)).content[0]!.text.includes(`"data":${output}`))
  t.match(told(await callWith(service, 'alice', 'handoff_pass', `{"task":"t","output":${'{"a":'.repeat(100)}1${'}'.repeat(100)}}`)), { code: 'invalid_request' }, 'too deep')
  t.equal((await callWith(service, 'alice', 'handoff_pass', `{"task":"t","output":${'{"a":'.repeat(99)}1${'}'.repeat(99)}}`)).isError, undefined, 'as deep as a body may be')
  t.match(told(await callWith(service, 'alice', 'handoff_pass', '{"task":"t","task":"u"}')), { code: 'invalid_request', errors: [{ pointer: '/task', message: 'repeated' }] })
})

/** All parts of a caught handoff. */
async function readAll (agent: Agent, id: string, first: Array<{ text: string }>): Promise<string> {
  let [text, rest] = [first[0]!.text, first[1]]
  while (rest !== undefined) {
    const { truncated, next_offset: offset } = JSON.parse(rest.text)
    if (!truncated || offset !== text.length) throw new Error(`${rest.text} after ${text.length}`)
    const { content } = await agent.call('handoff_read', { id, offset })
    if (/\p{Surrogate}/u.test(content[0]!.text)) throw new Error(`half of a pair at ${offset} or at its end`)
    text += content[0]!.text
    rest = content[1]
  }
  return text
}

for (const era of eras) {
  /** What differs little between the two. */
  const alike = era === eras[0] ? {} : skipInQuick

  t.test(`${era}: a long answer comes in parts`, async t => {
    const service = await testApp(t)
    const [bob, alice] = await Promise.all([agentOf(t, service, 'bob', era), agentOf(t, service, 'alice', era)])
    // Halves of pairs at every place where a part might end.
    for (const text of ['😀'.repeat(70_000), `a${'😀'.repeat(70_000)}`]) {
      const output = { text }
      const { handoff_id: id } = told(await alice.call('handoff_pass', { task: 't', output, to: 'desk' }))
      const caught = await bob.call('handoff_catch_next', { inbox: 'desk', idempotency_key: text.slice(0, 1) === 'a' ? 'a' : 'b' })
      const total = JSON.parse(caught.content[1]!.text).total
      t.ok(caught.content[0]!.text.length >= 59_999 && caught.content[0]!.text.length <= 60_000)
      const whole = await readAll(bob, id, caught.content)
      t.equal(whole.length, total)
      const direct = (await service.call('bob', 'GET', `/api/catch/${id}`)).json()
      t.equal(direct.code, 'already_caught')
      t.strictSame(JSON.parse(whole).output, output)
      t.equal(await readAll(bob, id, (await bob.call('handoff_read', { id, offset: 0 })).content), whole, 'from 0 the whole')
      t.equal((await bob.call('handoff_read', { id, offset: total })).content[0]!.text, '')
      t.match(told(await bob.call('handoff_read', { id, offset: total + 1 })), { code: 'invalid_request', errors: [{ pointer: '/offset' }] })
      t.equal(told(await alice.call('handoff_read', { id, offset: 0 })).code, 'not_the_catcher')
      await bob.call('handoff_done', { id, output })
      t.equal(told(await bob.call('handoff_read', { id, offset: 0 })).code, 'already_done')
      const status = await alice.call('handoff_status', { id })
      const { next_offset: offset } = JSON.parse(status.content[1]!.text)
      t.match((await alice.call('handoff_status', { id, offset })).content[0]!.text, /^(😀)+$/u, 'a long result comes in parts too')
    }
  })

  t.test(`${era}: a call waits without asking, progress is told, and it ends with its key`, skipInQuick, async t => {
    const service = await testApp(t)
    const { key, record } = await newKey(service.store.keyRecords)
    const [bob, alice] = [await agentOf(t, service, 'bob', era), await agentOf(t, service, { key }, era)]
    const id = await passed(service)
    const progress: unknown[] = []
    const onprogress = (some: unknown) => { progress.push(some) }
    const waiting = bob.call('handoff_catch', { id, wait: 50, idempotency_key: 'k' }, { onprogress })
    const quiet = bob.call('handoff_status', { id, wait: 50, until: 'caught' })
    const silent = t.rejects(alice.call('handoff_status', { id, wait: 50 }), /unauthorized/)
    const streamed = alice.call('handoff_status', { id, wait: 50 }, { onprogress })
    await asleep(service, id)
    await until(() => progress.length === 2)
    t.match(progress, [{ progress: 10, total: 50 }, { progress: 10, total: 50 }])
    await service.store.keyRecords.revoke(record.id, 'me')
    await silent
    const result = await streamed
    t.equal(result.isError, true, 'a stream that has begun ends with the problem')
    t.match(told(result), { code: 'unauthorized', status: 401, retryable: false })
    await service.call('approver', 'POST', `/api/approve/${id}`)
    t.match(told(await waiting), { handoff_id: id, status: 'caught' })
    t.match(told(await quiet), { status: 'caught' })
  })

  t.test(`${era}: for a client that has gone nothing is caught`, alike, async t => {
    const service = await testApp(t)
    const bob = await agentOf(t, service, 'bob', era)
    const id = await passed(service)
    for (const settings of [{}, { onprogress () {} }]) {
      const gone = new AbortController()
      const cancelled = t.rejects(bob.call('handoff_catch', { id, wait: 50 }, { signal: gone.signal, ...settings }))
      await asleep(service, id)
      gone.abort()
      await cancelled
      t.ok(await nobody(service, id), 'one that was cancelled')
      const other = await agentOf(t, service, 'bob', era)
      const broken = t.rejects(other.call('handoff_catch', { id, wait: 50 }, settings))
      await asleep(service, id)
      await other.close()
      await broken
      t.ok(await nobody(service, id), 'one whose client closed')
    }
    await service.call('approver', 'POST', `/api/approve/${id}`)
    t.equal((await service.call('alice', 'GET', `/api/status/${id}`)).json().status, 'pending')
  })

  t.test(`${era}: two replicas answer in turn`, alike, async t => {
    const one = await testApp(t)
    const two = await testApp(t, {}, { prefix: one.prefix })
    const ports = [await listen(one.app), await listen(two.app)]
    const seen = [0, 0]
    // A balancer that gives each request to the other replica.
    const balancer = await serve(t, (request, response) => {
      const to = (seen[0]! + seen[1]!) % 2
      seen[to]!++
      request.pipe(send({ port: ports[to], host: '127.0.0.1', method: request.method, path: request.url, headers: request.headers }, answer => {
        answer.pipe(response.writeHead(answer.statusCode!, answer.headers))
      }))
    })
    const alice = await agentOf(t, one, 'alice', era, balancer)
    t.equal((await alice.tools()).length, toolOperations.length)
    for (let i = 0; i < 4; i++) {
      const { handoff_id: id } = told(await alice.call('handoff_pass', { task: 't' }))
      t.equal(told(await alice.call('handoff_catch', { id })).status, 'caught')
      t.equal(told(await alice.call('handoff_done', { id })).status, 'done')
    }
    t.ok(seen[0]! > 5 && seen[1]! > 5, `${seen}`)
  })
}

t.test('a drain ends what waits', async t => {
  const service = await testApp(t)
  const id = await passed(service)
  const bob = await Promise.all(eras.map(era => agentOf(t, service, 'bob', era)))
  const waiting = bob.flatMap(agent => [agent.call('handoff_status', { id, wait: 50 }), agent.call('handoff_catch_next', { wait: 50 }, { onprogress () {} })])
  await asleep(service, id)
  service.app.draining.start()
  const [one, nothing, two, nothingToo] = (await Promise.all(waiting)).map(told)
  t.match([one, two], [{ status: 'pending' }, { status: 'pending' }])
  t.strictSame([nothing, nothingToo], [{ items: [] }, { items: [] }])
})
