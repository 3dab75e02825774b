import t from 'tap'
import { randomId } from '../../src/core/ids.ts'
import { testApp, secrets } from '../helpers/app.ts'
import { isProblem } from '../helpers/problems.ts'
import { until } from '../helpers/until.ts'
import { ask, listen, wire } from '../helpers/wire.ts'

/** Of all that needs no service of its own. */
const service = await testApp(t)
const { call } = service
const port = await listen(service.app)

const key = `Authorization: Bearer ${secrets.alice}\r\n`
const head = `POST /api/pass HTTP/1.1\r\nHost: x\r\n${key}Content-Type: application/json\r\n`
const body = '{"task":"t"}'
const chunks = `c\r\n${body}\r\n0\r\n\r\n`
const hidden = `POST /api/pass HTTP/1.1\r\nHost: x\r\n${key}Content-Type: application/json\r\nContent-Length: 12\r\n\r\n${body}`

/** Requests whose end a proxy in front may see elsewhere than the service does. */
const ambiguous: Record<string, string> = {
  'a length and chunks': `${head}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n${chunks}`,
  'chunks and a length': `${head}Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n${chunks}`,
  'a length and chunks, of HTTP/1.0': `${head.replace('1.1', '1.0')}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n${chunks}`,
  'two lengths': `${head}Content-Length: 12\r\nContent-Length: 13\r\n\r\n${body}`,
  'the same length twice': `${head}Content-Length: 12\r\nContent-Length: 12\r\n\r\n${body}`,
  'a list of lengths': `${head}Content-Length: 12, 12\r\n\r\n${body}`,
  'a length with a sign': `${head}Content-Length: +12\r\n\r\n${body}`,
  'a length in hexadecimal': `${head}Content-Length: 0xc\r\n\r\n${body}`,
  'a length beyond 64 bits': `${head}Content-Length: 18446744073709551628\r\n\r\n${body}`,
  'chunks by another name': `${head}Transfer-Encoding: xchunked\r\n\r\n${chunks}`,
  'chunks that are not last': `${head}Transfer-Encoding: chunked, identity\r\n\r\n${chunks}`,
  'chunks twice': `${head}Transfer-Encoding: chunked, chunked\r\n\r\n${chunks}`,
  'chunks before a colon that stands apart': `${head}Transfer-Encoding : chunked\r\n\r\n${chunks}`,
  'chunks behind a vertical tab': `${head}Transfer-Encoding:\x0bchunked\r\n\r\n${chunks}`,
  'a chunk’s size with 0x': `${head}Transfer-Encoding: chunked\r\n\r\n0x${chunks}`,
  'a chunk’s size beyond 64 bits': `${head}Transfer-Encoding: chunked\r\n\r\n1000000000000000${chunks}`,
  'a chunk’s size that ends in a bare line feed': `${head}Transfer-Encoding: chunked\r\n\r\n${chunks.replace('\r', '')}`,
  'a chunk longer than it says': `${head}Transfer-Encoding: chunked\r\n\r\n${chunks.replace('"t"}', '"t"} ')}`,
  'a line feed in a chunk’s extension': `${head}Transfer-Encoding: chunked\r\n\r\n${chunks.replace('c', 'c;a\nb')}`,
  'a field over two lines': `${head}X: a\r\n Content-Length: 12\r\n\r\n${body}`,
  'bare line feeds': `${head}Content-Length: 12\r\n\r\n`.replaceAll('\r', '') + body,
  'one bare line feed': `${head}X: y\nContent-Length: 12\r\n\r\n${body}`,
  'a bare carriage return': `${head}X: y\rContent-Length: 12\r\n\r\n${body}`,
  'a zero byte': `${head}X: a\0b\r\nContent-Length: 12\r\n\r\n${body}`,
}

t.test('an ambiguous request is refused, and nothing after it is read as a request', async t => {
  const { app, dump } = await testApp(t)
  const port = await listen(app)
  for (const [name, request] of Object.entries(ambiguous)) {
    const { send, answer, ended } = await wire(t, port)
    send(request + hidden)
    isProblem(t, await answer(), 400, 'invalid_request', name)
    await ended
    await t.rejects(answer(), /the connection ended after ""/, `${name}: one answer`)
  }
  t.strictSame(await dump(), {}, 'nothing was passed')
})

t.test('what goes on after its refusal is read and dropped, so that the refusal arrives', async t => {
  const { app } = await testApp(t)
  const cut: boolean[] = []
  const { send, answer } = await wire(t, await listen(app))
  app.server.on('clientError', (_, socket) => cut.push(socket.destroyed))
  send('\0\r\n\r\n')
  isProblem(t, await answer(), 400, 'invalid_request')
  send('more')
  await until(() => cut.length === 2)
  t.strictSame(cut, [false, false], 'its connection isn’t cut meanwhile')
})

/** Requests with a clear end but another ambiguity, or with a construct that the service doesn't support. */
const faulty: Record<string, string> = {
  'two Host fields': `${head}Host: y\r\nContent-Length: 12\r\n\r\n${body}`,
  'the same Host twice': `${head}Host: x\r\nContent-Length: 12\r\n\r\n${body}`,
  'two Host fields with different capitals': `${head}hOST: x\r\nContent-Length: 12\r\n\r\n${body}`,
  'two Host fields of HTTP/1.0': `${head.replace('1.1', '1.0')}Host: y\r\nConnection: keep-alive\r\nContent-Length: 12\r\n\r\n${body}`,
  'no Host field': `${head.replace('Host: x\r\n', '')}Content-Length: 12\r\n\r\n${body}`,
  'another coding below chunks': `${head}Transfer-Encoding: gzip, chunked\r\n\r\n${chunks}`,
  'another coding in a field of its own': `${head}Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n${chunks}`,
}

t.test('what RFC 9112 says to refuse is refused, and the next request on that connection is answered', async t => {
  const { app, dump } = await testApp(t)
  const port = await listen(app)
  for (const [name, request] of Object.entries(faulty)) {
    const { send, answer, socket } = await wire(t, port)
    send(request)
    isProblem(t, await answer(), 400, 'invalid_request', name)
    send('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n')
    t.match(await answer(), { statusCode: 200 }, name)
    socket.destroy()
  }
  t.strictSame(await dump(), {}, 'nothing was passed')
  for (const coding of ['chunked', 'Chunked', 'CHUNKED ']) {
    const passed = await ask(t, port, `${head}Transfer-Encoding: ${coding}\r\n\r\n${chunks}`)
    t.equal(passed.statusCode, 201, coding)
  }
})

t.test('the body of a refused request is not read as a request', async t => {
  const { app, dump } = await testApp(t)
  const port = await listen(app)
  const within = `Content-Length: ${hidden.length}\r\n\r\n${hidden}`
  const requests = [
    [404, `GET /api/status/${randomId()} HTTP/1.1\r\nHost: x\r\n${key}`], [404, `POST /nowhere HTTP/1.1\r\nHost: x\r\n${key}`],
    [405, 'PUT /api/pass HTTP/1.1\r\nHost: x\r\n'], [401, 'POST /api/pass HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n'],
    [400, head], [415, `POST /api/pass HTTP/1.1\r\nHost: x\r\n${key}`],
  ] as const
  for (const [status, start] of requests) {
    const { send, answer, socket } = await wire(t, port)
    send(start + within)
    send('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n')
    t.equal((await answer()).statusCode, status, start)
    t.match(await answer(), { statusCode: 200, body: '{"status":"ok"}' }, 'the next one is the next one')
    socket.destroy()
  }
  t.strictSame(await dump(), {})
})

t.test('nothing in a request comes back as a header or as markup', async t => {
  const script = '<script>alert(1)</script>'
  const said = [
    `GET /api/status/x HTTP/1.1\r\nHost: x\r\n${key}X-Request-Id: ${script}\r\n`,
    `GET /api/status/x HTTP/1.1\r\nHost: x\r\n${key}X-Request-Id: a%0d%0aSet-Cookie: evil=1\r\n`,
    `POST /api/pass HTTP/1.1\r\nHost: x\r\n${key}Idempotency-Key: ${script}%0d%0aevil\r\n`,
    `GET /${script}%0d%0aSet-Cookie:evil=1 HTTP/1.1\r\nHost: evil.example\r\nX-Forwarded-Host: evil.example\r\n`,
    `GET /approvals/${script} HTTP/1.1\r\nHost: evil.example\r\nSec-Fetch-Site: cross-site\r\n`,
    `GET /approvals/sign-in?next=/approvals/${script}&ended=${script} HTTP/1.1\r\nHost: evil.example\r\n`,
    `GET /docs/static/${script} HTTP/1.1\r\nHost: evil.example\r\n`,
    `GET /problems?${script} HTTP/1.1\r\nHost: evil.example\r\n`,
  ]
  for (const request of said) {
    const { headers, body } = await ask(t, port, `${request}\r\n`)
    t.notMatch(JSON.stringify(headers) + body, /alert\(1\)<|<script>alert|evil/, request)
    t.equal(headers['set-cookie'], undefined)
  }
})

t.test('Host, X-Forwarded-* and duplicate headers decide neither identity nor links', async t => {
  const forged = 'X-Forwarded-Host: evil.example\r\nX-Forwarded-Proto: https\r\nX-Forwarded-For: 1.2.3.4\r\nForwarded: host=evil.example\r\nX-Original-URL: /docs\r\nX-HTTP-Method-Override: DELETE\r\n'
  const passed = await ask(t, port, `${head.replace('Host: x', 'Host: evil.example')}${forged}Content-Length: 12\r\n\r\n${body}`)
  t.equal(passed.statusCode, 201)
  t.notMatch(JSON.stringify(passed), /evil/)
  for (const target of ['/approvals', '//evil.example/approvals', '/approvals//evil.example', '/approvals/\\evil.example', 'http://evil.example/approvals']) {
    const { statusCode, headers } = await ask(t, port, `GET ${target} HTTP/1.1\r\nHost: evil.example\r\n${forged}\r\n`)
    t.ok([303, 404].includes(statusCode), target)
    t.match(headers.location ?? '/approvals/sign-in?next=', /^\/approvals\/sign-in\?next=/, 'never to another site')
  }
  const twice = await ask(t, port, `GET /api/status/x HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer wrong\r\n${key}\r\n`)
  isProblem(t, twice, 401, 'unauthorized', 'a right key behind a wrong one')
})

t.test('ids can’t be enumerated', async t => {
  const operations = Array.from({ length: 50 }, () => ({ op: 'pass', body: { task: 't' } }))
  const ids: string[] = []
  while (ids.length < 200) {
    const { results } = (await call('alice', 'POST', '/api/batch', { operations })).json()
    ids.push(...results.map(({ body }: { body: { handoff_id: string } }) => body.handoff_id))
  }
  // Three characters are the partition; 22 hold 128 random bits.
  const secret = ids.map(id => Buffer.from(id.slice(3), 'base64url'))
  t.ok(secret.every(bytes => bytes.length === 16))
  const ones = secret.reduce((sum, bytes) => sum + bytes.reduce((count, byte) => count + byte.toString(2).replaceAll('0', '').length, 0), 0)
  // 25,600 fair bits: 12,800 ones, and 800 more or fewer is ten standard deviations.
  t.ok(Math.abs(ones - 12_800) < 800, `${ones} of 25600 bits are set`)
  t.equal(new Set(ids).size, ids.length)
  const gone = isProblem(t, await call('bob', 'GET', `/api/status/${randomId()}`), 404, 'not_found')
  const foreign = isProblem(t, await call('foreignAlice', 'GET', `/api/status/${ids[0]}`), 404, 'not_found')
  t.strictSame({ ...foreign, request_id: '' }, { ...gone, request_id: '' }, 'another tenant’s is like none')
})
