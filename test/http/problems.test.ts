import { once } from 'node:events'
import t from 'tap'
import { errorTable } from '../../src/core/errors.ts'
import { testApp, secrets } from '../helpers/app.ts'
import { isProblem } from '../helpers/problems.ts'
import { until } from '../helpers/until.ts'
import { ask, connectionsOf, listen, wire } from '../helpers/wire.ts'

const codes = Object.keys(errorTable)
const authorization = `Bearer ${secrets.alice}`

t.test('the page that type points to explains every code', async t => {
  const { app } = await testApp(t)
  const page = await app.inject('/problems')
  t.equal(page.statusCode, 200)
  t.match(page.headers['content-type'], /^text\/html/)
  for (const code of codes) t.equal(page.body.split(`id="${code}"`).length, 2, code)
  t.equal(page.body.split('<section').length - 1, codes.length, 'and no other')
  t.match(page.body, /Bearer &(lt|#60);key&(gt|#62);/)
  t.notMatch(page.body, /<key>/)
})

t.test('X-Request-Id is the client’s own if valid, else a new one', async t => {
  const { app } = await testApp(t)
  const port = await listen(app)
  const idOf = async (path: string, field: string) =>
    (await ask(t, port, `GET ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: ${authorization}\r\n${field}\r\n`)).headers['x-request-id']!
  const { handoff_id: id } = (await app.inject({ method: 'POST', url: '/api/pass', payload: { task: 't' }, headers: { authorization } })).json()
  const given = ['a', 'A-z_0.9', 'x'.repeat(128)]
  const refused = ['', 'x'.repeat(129), 'a b', 'caf\xe9', 'a/b', 'a"b', '<b>', 'a\r\nX-Request-Id: b']
  for (const path of [`/api/status/${id}`, '/api/status/x', '/nowhere', '/api/catch/%zz']) {
    for (const value of given) t.equal(await idOf(path, `X-Request-Id: ${value}\r\n`), value)
    const made = [await idOf(path, ''), ...await Promise.all(refused.map(value => idOf(path, `X-Request-Id: ${value}\r\n`)))]
    for (const one of made) t.match(one, /^[A-Za-z0-9._-]{1,128}$/)
    t.equal(new Set([...made, ...refused]).size, made.length + refused.length, 'each a new one')
  }
})

t.test('a request that is not HTTP is answered on the bare socket, which then closes', async t => {
  const { app } = await testApp(t)
  const port = await listen(app)
  const wrong: Array<[string, number, string]> = [
    ['\0\x01garbage\r\n\r\n', 400, 'invalid_request'],
    ['GET / HTTP/9.9\r\n\r\n', 400, 'invalid_request'],
    ['PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 400, 'invalid_request'],
    ['\x16\x03\x01\x02\x00\x01\x00', 400, 'invalid_request'],
    ['POST /api/pass HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n', 400, 'invalid_request'],
    ['POST /api/pass HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n', 400, 'invalid_request'],
    [`POST /api/pass HTTP/1.1\r\nHost: x\r\nAuthorization: ${authorization}\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n`, 400, 'invalid_request'],
    [`GET / HTTP/1.1\r\nHost: x\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`, 431, 'headers_too_large'],
    [`GET / HTTP/1.1\r\nHost: x\r\nX: ${'x'.repeat(2_000_000)}\r\n\r\n`, 431, 'headers_too_large'],
    [`GET /${'x'.repeat(20_000)} HTTP/1.1\r\nHost: x\r\n\r\n`, 431, 'headers_too_large'],
  ]
  for (const [bytes, status, code] of wrong) {
    const { send, answer, ended } = await wire(t, port)
    send(bytes)
    const heard = await answer()
    isProblem(t, heard, status, code, JSON.stringify(bytes.slice(0, 40)))
    t.equal(heard.headers.connection, 'close')
    if (status === 431) t.match(JSON.parse(heard.body).detail, /header fields/, 'it says what to do')
    await ended
  }
  t.ok(await until(async () => await connectionsOf(app) === 0, 3000), 'none stays half open, though the clients never close theirs')
})

t.test('a client that is still sending when it is refused has time to read the answer before the cut', async t => {
  const { app } = await testApp(t)
  const { send, answer } = await wire(t, await listen(app))
  send(`GET / HTTP/1.1\r\nHost: x\r\nX: ${'x'.repeat(20_000)}`)
  isProblem(t, await answer(), 431, 'headers_too_large')
  const more = once(app.server, 'clientError') // this listener comes after the service's own
  send('x'.repeat(10_000))
  const [, socket] = await more
  t.notOk(socket.destroyed)
})

t.test('an internal error is a 500 without details, and is logged with the request’s id', async t => {
  const { app, lines, redis, prefix } = await testApp(t)
  const { handoff_id: id } = (await app.inject({ method: 'POST', url: '/api/pass', payload: { task: 't' }, headers: { authorization } })).json()
  const key = `${prefix}:{${id.slice(0, 3)}}:h:default:${id}`
  await redis.set(key, 'not a hash') // makes the scripts fail with an error instead of a refusal
  lines.length = 0
  for (const [method, path] of [['GET', 'catch'], ['POST', 'done'], ['GET', 'status']] as const) {
    const answer = await app.inject({ method, url: `/api/${path}/${id}`, headers: { authorization, 'x-request-id': `fault-${path}` } })
    t.equal(isProblem(t, answer, 500, 'internal_error').request_id, `fault-${path}`)
    const logged = lines.map(line => JSON.parse(line)).filter(line => line.request_id === `fault-${path}` && line.level >= 50)
    t.equal(logged.length, 1)
    t.match(logged[0].err.message, /WRONGTYPE/)
  }
})

t.test('an aborted upload leaves nothing behind and is not logged as an error', async t => {
  const { app, lines, dump } = await testApp(t)
  const port = await listen(app)
  const gone = new Promise<void>(resolve => app.server.once('connection', socket => socket.once('close', () => resolve())))
  const { send, socket } = await wire(t, port)
  send(`POST /api/pass HTTP/1.1\r\nHost: x\r\nAuthorization: ${authorization}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"task":"t"}`)
  send('   ')
  socket.resetAndDestroy()
  await gone
  t.equal((await app.inject({ url: '/api/status/x', headers: { authorization } })).statusCode, 404, 'it goes on')
  t.strictSame(await dump(), {})
  t.strictSame(lines.map(line => JSON.parse(line)).filter(({ level }) => level >= 40), [], 'nothing to warn of')
})
