import t from 'tap'
import type { Test } from 'tap'
import { callerOf } from '../../src/core/model.ts'
import { secrets, testApp } from '../helpers/app.ts'
import type { TestApp } from '../helpers/app.ts'
import { scrape } from '../helpers/metrics.ts'
import { isProblem } from '../helpers/problems.ts'
import { listen, wire } from '../helpers/wire.ts'

const mebi = 1024 * 1024
/** A body of at most so many bytes is read beyond the limit, so that each operation gets its own answer. */
const small = 16 * 1024
const routes = ['/api/batch', '/mcp', '/mcp/']
const status = { op: 'status', id: 'nonsense' }
const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'handoff_status', arguments: { id: 'nonsense' } } }

/** Uses up bob's limit. */
async function exhaust ({ call }: TestApp): Promise<void> {
  while ((await call('bob', 'GET', '/api/status/nowhere')).statusCode !== 429);
}

/** What is refused before any operation, by name, with its status. */
const refused: Array<[string, number, string, unknown, Record<string, string>?]> = [
  ['no JSON', 400, '/api/batch', '{"operations":['],
  ['no operations', 400, '/api/batch', { operations: [] }],
  ['an unknown member', 400, '/api/batch', { operations: [status], more: 1 }],
  ['an unknown operation', 400, '/api/batch', { operations: [{ op: 'nothing' }] }],
  ['a query', 400, '/api/batch?a=1', { operations: [status] }],
  ['a key for the whole batch', 400, '/api/batch', { operations: [status] }, { 'idempotency-key': 'k' }],
  ['another type', 415, '/api/batch', 'x', { 'content-type': 'text/plain' }],
  ['a large body of another type', 415, '/api/batch', 'x'.repeat(100_000), { 'content-type': 'text/plain' }],
  ['too many bytes', 413, '/api/batch', 'x'.repeat(200_000)],
  ['no JSON to MCP', 400, '/mcp', 'nonsense'],
  ['no JSON to MCP, with a slash', 400, '/mcp/', 'nonsense'],
  ['much that is no JSON to MCP', 400, '/mcp', 'x'.repeat(60_000)],
  ['more than one message to MCP', 400, '/mcp', [message]],
  ['another type to MCP', 415, '/mcp', 'x', { 'content-type': 'text/plain' }],
  ['too many bytes to MCP', 413, '/mcp', 'x'.repeat(200_000)],
]
const origin = 'https://agents.example'
const limits = { RATE_LIMIT_PER_MINUTE: '2', BODY_LIMIT: '65536', BATCH_LIMIT: '131072' }

t.test('what is refused before any operation counts as one request, and beyond the limit it is 429', async t => {
  // Each case is an agent of its own.
  const keys = refused.map((_, at) => ({ secret: `secret-of-agent-0123456789-${at}`, caller: callerOf('default', `agent-${at}`, ['pass', 'status']) }))
  const { app, call } = await testApp(t, limits, {}, keys)
  for (const [at, [name, code, path, body, more]] of refused.entries()) {
    const headers = { authorization: `Bearer ${keys[at]!.secret}`, ...more }
    const before = app.refused.limited
    const answers = []
    for (let n = 0; n < 4; n++) answers.push(await call(null, 'POST', path, body, headers))
    t.strictSame(answers.map(({ statusCode }) => statusCode), [code, code, 429, 429], name)
    t.strictSame(answers.map(answer => /r=(\d+);/.exec(String(answer.headers.ratelimit))?.[1]), ['1', '0', '0', '0'], name)
    for (const answer of answers.slice(2)) {
      isProblem(t, answer, 429, 'rate_limited', name)
      t.match(answer.headers['retry-after'], /^[1-9]\d*$/)
    }
    t.equal(app.refused.limited, before + 2, name)
    t.equal((await call(null, 'GET', '/api/status/nowhere', undefined, headers)).statusCode, 429, `${name}: other requests too`)
  }
  t.equal((await call('alice', 'GET', '/api/status/nowhere')).statusCode, 404, 'nobody else’s')
})

t.test('operations outside the key’s scopes: the batch counts as one', async t => {
  const service = await testApp(t, limits)
  const ask = () => service.call('approver', 'POST', '/api/batch', { operations: [{ op: 'cancel', id: 'x' }, { op: 'pass', body: {} }] })
  for (const r of [1, 0, 0]) {
    const answer = await ask()
    t.strictSame(answer.json().results.map((one: { status: number }) => one.status), [403, 403], 'their scope comes first')
    t.match(answer.headers.ratelimit, `r=${r};`)
  }
})

t.test('beyond the limit a large body is 429 before it is read', async t => {
  const service = await testApp(t, { RATE_LIMIT_PER_MINUTE: '2' })
  const port = await listen(service.app)
  const ask = async (path: string, length: string) => {
    const one = await wire(t, port)
    one.send(`POST ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${secrets.bob}\r\nContent-Type: application/json\r\n${length}\r\n\r\n`)
    return one
  }
  await exhaust(service)
  for (const path of routes) {
    for (const length of [`Content-Length: ${7 * mebi}`, `Content-Length: ${small + 1}`, 'Transfer-Encoding: chunked', `Content-Length: ${7 * mebi}\r\nExpect: 100-continue`]) {
      // Nothing of the body was sent, so the answer can't have waited for it.
      const answer = await (await ask(path, length)).answer()
      isProblem(t, answer, 429, 'rate_limited', `${path} ${length}`)
      t.match(answer.headers, { 'retry-after': /^[1-9]\d*$/, ratelimit: /r=0;/ })
      if (!length.endsWith(String(small + 1))) t.equal(answer.headers.connection, 'close')
    }
  }
  t.equal((await scrape(service.app)).get('handoff_body_bytes'), 0)
  // What is sent all the same is dropped.
  const whole = await ask('/api/batch', `Content-Length: ${mebi}`)
  whole.send(Buffer.alloc(mebi, 'x'))
  isProblem(t, await whole.answer(), 429, 'rate_limited')
  await whole.ended
})

t.test('beyond the limit a small body is read: each operation and each call gets its own answer', async t => {
  const service = await testApp(t, { RATE_LIMIT_PER_MINUTE: '2', MCP_ORIGINS: origin })
  await exhaust(service)
  const before = service.app.refused.limited
  const text = JSON.stringify({ operations: [status, status, status] })
  const batch = await service.call('bob', 'POST', '/api/batch', text.padEnd(small))
  t.equal(batch.statusCode, 200)
  t.strictSame(batch.json().results.map((one: { body: { code: string } }) => one.body.code), Array(3).fill('rate_limited'))
  t.match(batch.headers, { 'retry-after': /^[1-9]\d*$/, ratelimit: /r=0;/ })
  t.equal(service.app.refused.limited, before + 3)
  isProblem(t, await service.call('bob', 'POST', '/api/batch', text.padEnd(small + 1)), 429, 'rate_limited', 'one byte more')
  const fromPage = await service.call('bob', 'POST', '/mcp', JSON.stringify(message).padEnd(small + 1), { origin })
  isProblem(t, fromPage, 429, 'rate_limited')
  t.equal(fromPage.headers['access-control-allow-origin'], origin, 'the page may read it')
  const tool = (await service.call('bob', 'POST', '/mcp', message)).json().result
  t.match([tool.isError, JSON.parse(tool.content[0].text)], [true, { code: 'rate_limited', retry_after: Number }])
})

t.test('within the limit a batch counts as its operations and a message as one, whatever their size', async t => {
  const service = await testApp(t, { RATE_LIMIT_PER_MINUTE: '100' })
  const left = async (t: Test, path: string, body: string) => {
    const answer = await service.call('bob', 'POST', path, body)
    t.equal(answer.statusCode, 200)
    return Number(/r=(\d+);/.exec(String(answer.headers.ratelimit))![1])
  }
  t.equal(await left(t, '/api/batch', JSON.stringify({ operations: Array(10).fill(status) })), 90)
  t.equal(await left(t, '/api/batch', JSON.stringify({ operations: [status] }).padEnd(mebi)), 89)
  t.equal(await left(t, '/mcp', JSON.stringify(message)), 88)
  t.equal(await left(t, '/mcp', JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' }).padEnd(mebi / 2)), 87)
})
