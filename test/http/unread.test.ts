import { once } from 'node:events'
import { request as httpRequest } from 'node:http'
import t from 'tap'
import type { Test } from 'tap'
import { HandoffClient } from '../../src/clients/typescript/index.ts'
import { hasHaproxy, startHaproxy } from '../faults/fleet/haproxy.ts'
import { hasNginx, startNginx } from '../faults/fleet/nginx.ts'
import { secrets, testApp } from '../helpers/app.ts'
import type { TestApp } from '../helpers/app.ts'
import { skipInQuick } from '../helpers/extent.ts'
import { scrape, sum } from '../helpers/metrics.ts'
import { isProblem } from '../helpers/problems.ts'
import { until } from '../helpers/until.ts'
import { listen, wire } from '../helpers/wire.ts'
import type { Answer } from '../helpers/wire.ts'

/** Of all that needs no service of its own. */
const service = await testApp(t)
const { app } = service

const mebi = 1024 * 1024
const ways = {
  directly: { skip: false, start: async (t: Test, at: string[]) => `http://${at[0]}` },
  'through HAProxy': { skip: hasHaproxy() ? false : 'haproxy is not installed', start: async (t: Test, at: string[]) => (await startHaproxy(t, at)).url },
  'through nginx': { skip: hasNginx() ? false : 'nginx is not installed', start: (t: Test, at: string[]) => startNginx(t, at, { takesOut: true }) },
}

/** Sends all of a body, as clients do that read the answer only then. @param chunked without its length */
async function post (url: string, key: string, body: string, headers: Record<string, string> = {}, chunked = false): Promise<Answer> {
  const sent = httpRequest(url, { method: 'POST', agent: false, headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers, ...!chunked && { 'content-length': String(body.length) } } })
  sent.end(body)
  const [answer] = await once(sent, 'response')
  let text = ''
  for await (const some of answer) text += some
  // What is left of the upload may fail, after the answer.
  sent.on('error', () => {})
  return { statusCode: answer.statusCode, headers: answer.headers, body: text }
}

async function started (t: Test, count: number): Promise<{ services: TestApp[], at: string[] }> {
  const services = await Promise.all(Array.from({ length: count }, () => testApp(t)))
  return { services, at: await Promise.all(services.map(async ({ app }) => `127.0.0.1:${await listen(app)}`)) }
}

async function countOf (services: TestApp[], pattern: RegExp): Promise<number> {
  let count = 0
  for (const { app } of services) count += sum(await scrape(app), pattern)
  return count
}

for (const [way, { skip, start }] of Object.entries(ways)) {
  t.test(`${way}: answers that are given before a body was read arrive`, { ...way !== 'directly' && skipInQuick, ...skip !== false && { skip } }, async t => {
    const { services, at } = await started(t, way === 'directly' ? 1 : 3)
    const url = await start(t, at)
    const large = JSON.stringify({ task: 'x'.repeat(1.5 * mebi) })
    const types = { 'content-type': 'text/plain' }
    const cases: Array<[string, number, () => Promise<Answer>]> = [
      ['too large', 413, () => post(`${url}/api/pass`, secrets.alice, large)],
      ['too large, of unknown length', 413, () => post(`${url}/api/pass`, secrets.alice, large, {}, true)],
      ['a wrong key', 401, () => post(`${url}/api/pass`, 'x'.repeat(20), large)],
      ['a key without the scope', 403, () => post(`${url}/api/pass`, secrets.approver, large)],
      ['another type', 415, () => post(`${url}/api/batch`, secrets.alice, large, types)],
      ['an unknown path', 404, () => post(`${url}/api/nothing`, secrets.alice, large)],
      ['another method', 405, () => post(`${url}/healthz`, secrets.alice, large)],
      ['another origin', 403, () => post(`${url}/mcp`, secrets.alice, large, { origin: 'https://evil.example' })],
      ['a form of another site', 403, () => post(`${url}/approvals/sign-in`, secrets.alice, large, { origin: 'https://evil.example' })],
    ]
    for (const [name, status, ask] of cases) {
      const answers = await Promise.all(Array.from({ length: 3 }, ask))
      t.strictSame(answers.map(({ statusCode }) => statusCode), Array(3).fill(status), name)
    }
    // One client sends what is too large all the time; another's small requests are served.
    const own = new AbortController()
    const sending = (async () => { while (!own.signal.aborted) t.equal((await post(`${url}/api/pass`, secrets.bob, large)).statusCode, 413) })()
    for (let n = 0; n < 20; n++) t.equal((await post(`${url}/api/pass`, secrets.alice, '{"task":"t"}')).statusCode, 201)
    own.abort()
    await sending
    const counted = () => countOf(services, /^http_request_duration_seconds_count\{method="POST",route="\/api\/pass",status_code="413"\}/)
    const before = await counted()
    const client = new HandoffClient({ baseUrl: url, key: secrets.alice, retryFor: 5000 })
    await t.rejects(client.pass({ task: 'x'.repeat(1.5 * mebi) }), { code: 'payload_too_large', status: 413 })
    t.equal(await counted(), before + 1, 'the client doesn’t send it again')
  })
}

t.test('the rest of a refused request isn’t read for long', skipInQuick, async t => {
  const { app } = await testApp(t, { BODY_LIMIT: '1024' })
  const sockets: Array<{ bytesRead: number, destroyed: boolean }> = []
  app.server.on('connection', socket => sockets.push(socket))
  const port = await listen(app)
  const { socket, send, answer, ended } = await wire(t, port)
  send(`POST /api/pass HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${secrets.alice}\r\nContent-Type: application/json\r\nContent-Length: ${1000 * mebi}\r\n\r\n`)
  const piece = Buffer.alloc(mebi, 'x')
  const more = () => { while (!socket.destroyed && socket.write(piece)); }
  socket.on('drain', more)
  more()
  const heard = await answer()
  isProblem(t, heard, 413, 'payload_too_large')
  t.equal(heard.headers.connection, 'close')
  await ended
  await until(() => sockets[0]!.destroyed)
  t.ok(sockets[0]!.bytesRead < 20 * mebi, `${sockets[0]!.bytesRead} bytes`)
})

t.test('at most a hundred connections are read from after their answer', skipInQuick, async t => {
  const { app } = await testApp(t, { BODY_LIMIT: '1024' })
  const sockets = new Set<unknown>()
  app.server.on('connection', socket => { sockets.add(socket); socket.once('close', () => sockets.delete(socket)) })
  const port = await listen(app)
  for (let n = 0; n < 150; n++) {
    const { send, answer } = await wire(t, port)
    send(`POST /api/pass HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${secrets.alice}\r\nContent-Type: application/json\r\nContent-Length: ${mebi}\r\n\r\nx`)
    t.equal((await answer()).statusCode, 413)
    t.ok(sockets.size <= 102, `${sockets.size}`)
  }
  await until(() => sockets.size === 0)
})

t.test('who waits for 100 Continue gets it only if the body is wanted', async t => {
  const port = await listen(app)
  const ask = async (key: string, length: number, type = 'application/json') => {
    const one = await wire(t, port)
    one.send(`POST /api/pass HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\nContent-Type: ${type}\r\nContent-Length: ${length}\r\nExpect: 100-continue\r\n\r\n`)
    return { one, statusCode: (await one.answer()).statusCode }
  }
  t.equal((await ask('x'.repeat(20), 12)).statusCode, 401)
  t.equal((await ask(secrets.alice, 2 * mebi)).statusCode, 413)
  t.equal((await ask(secrets.approver, 12)).statusCode, 403)
  t.equal((await ask(secrets.alice, 100_000, 'text/plain')).statusCode, 415)
  const { one, statusCode } = await ask(secrets.alice, 12)
  t.equal(statusCode, 100)
  one.send('{"task":"t"}')
  t.equal((await one.answer()).statusCode, 201)
})

t.test('a small body that is refused unread doesn’t close the connection', async t => {
  const { send, answer } = await wire(t, await listen(app))
  for (let n = 0; n < 3; n++) {
    send(`POST /api/pass HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${'x'.repeat(20)}\r\nContent-Type: application/json\r\nContent-Length: 12\r\n\r\n`)
    const heard = await answer()
    t.equal(heard.statusCode, 401)
    t.not(heard.headers.connection, 'close')
    send('{"task":"t"}')
  }
})

t.test('nor does a large body that was read; one that is refused unread does', async t => {
  const { send, answer, socket } = await wire(t, await listen(app))
  const post = (key: string, body: string, length = body.length) =>
    send(`POST /api/pass HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n\r\n${body}`)
  for (let n = 0; n < 2; n++) {
    post(secrets.alice, JSON.stringify({ task: 'x'.repeat(100_000) }))
    const { statusCode, headers } = await answer()
    t.strictSame([statusCode, headers.connection === 'close'], [201, false], 'the connection is used again')
  }
  post('x'.repeat(20), '', 100_000)
  const { statusCode, headers } = await answer()
  t.strictSame([statusCode, headers.connection], [401, 'close'])
  await new Promise(resolve => socket.write('x'.repeat(50_000), resolve))
  socket.end('x'.repeat(50_000))
  const [hadError] = await once(socket, 'close')
  t.notOk(hadError, 'what it still sends is taken, and not answered with a reset, which could reach it before the answer')
})
