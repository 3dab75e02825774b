import t from 'tap'
import { testApp, secrets } from '../helpers/app.ts'
import { skipInQuick } from '../helpers/extent.ts'
import { scrape, sum } from '../helpers/metrics.ts'
import { isProblem } from '../helpers/problems.ts'
import { ask, listen, wire } from '../helpers/wire.ts'

/** Of all that needs no service of its own. */
const service = await testApp(t)
const port = await listen(service.app)

const head = `Host: x\r\nAuthorization: Bearer ${secrets.bob}\r\n`

t.test('an impossible id is 404, and an endless one 414', async t => {
  const id = await service.pass()
  const before = await service.dump()
  const wrong = ['', '%00', '..', '../', '../status', '..%2F..%2Fetc', '{a}', `{${id.slice(0, 3)}}`, '*', '%', '%zz', '%e2%82', '%C0%80', ':id', 'x y'.replace(' ', '%20'),
    id.slice(1), id + 'A', id.slice(0, -1) + '.', id.slice(0, -1) + 'B', `${id}/`, `${id}/x`, `${id}%00`, `${id}%0d%0a`, id.toLowerCase() + id.toUpperCase(),
    'default:' + id, 'a'.repeat(101)]
  for (const one of wrong) {
    for (const operation of ['GET /api/catch/', 'POST /api/done/', 'GET /api/status/']) {
      isProblem(t, await ask(t, port, `${operation}${one} HTTP/1.1\r\n${head}\r\n`), 404, 'not_found', operation + one)
    }
  }
  for (const operation of ['GET /api/catch/', 'POST /api/done/', 'GET /api/status/']) {
    isProblem(t, await ask(t, port, `${operation}${'a'.repeat(10_240)} HTTP/1.1\r\n${head}\r\n`), 414, 'uri_too_long', `${operation}10 KB`)
  }
  t.strictSame(await service.dump(), before)
})

t.test('HEAD on catch is refused and catches nothing', async t => {
  const id = await service.pass()
  for (const path of [`/api/catch/${id}`, `/api/status/${id}`]) {
    const answer = await ask(t, port, `HEAD ${path} HTTP/1.1\r\n${head}\r\n`, 'HEAD')
    t.match(answer, { statusCode: 405, headers: { allow: 'GET', 'cache-control': 'no-store', 'content-type': /problem/ } })
  }
  t.equal((await service.call('bob', 'GET', `/api/status/${id}`)).json().status, 'pending')
  t.equal((await service.call('bob', 'GET', `/api/catch/${id}`)).statusCode, 200)
})

t.test('a known path with another method is 405, an unknown path 404; neither needs a key or reads the body', async t => {
  const id = await service.pass()
  const before = await service.dump()
  const bodies = ['', 'Content-Type: application/json\r\nContent-Length: 4\r\n\r\n{bad', 'Content-Type: ;;;\r\nContent-Length: 4\r\n\r\n<x/>',
    'Content-Type: application/json\r\nContent-Length: 0\r\n\r\n', 'Content-Type: application/json\r\nContent-Length: 12\r\n\r\n{"task":"t"}']
  for (const rest of bodies) {
    const request = (line: string) => ask(t, port, `${line} HTTP/1.1\r\nHost: x\r\n${rest || '\r\n'}`)
    for (const method of rest === '' ? ['OPTIONS', 'PUT', 'PATCH', 'DELETE', 'TRACE', 'PROPFIND', 'PURGE', 'MKCOL'] : ['OPTIONS', 'PUT', 'MKCOL']) {
      const paths = [['/api/pass', 'POST'], [`/api/catch/${id}`, 'GET'], [`/api/done/${id}`, 'POST'], [`/api/status/${id}`, 'GET'], ['/healthz', 'GET, HEAD']] as const
      for (const [path, allow] of paths) {
        const answer = await request(`${method} ${path}`)
        isProblem(t, answer, 405, 'method_not_allowed', `${method} ${path}`)
        t.equal(answer.headers.allow?.split(', ').sort().join(', '), allow)
      }
      isProblem(t, await request(`${method} /api/unknown`), 404, 'not_found', method)
    }
    for (const [path, allow] of [['/clients/', 'GET, HEAD'], ['/clients', 'GET, HEAD'], ['/docs/', 'GET'], ['/approvals/', 'GET'], ['/console/', 'GET']] as const) {
      const answer = await request(`PUT ${path}`)
      t.strictSame([answer.statusCode, answer.headers.allow?.split(', ').sort().join(', ')], [405, allow], path)
    }
    isProblem(t, await request(`POST /api/catch/${id}`), 405, 'method_not_allowed')
    isProblem(t, await request('GET /api/pass'), 405, 'method_not_allowed')
    for (const line of ['POST /nowhere', 'GET /api', 'POST /api/pass/', 'POST //api/pass', 'GET /API/STATUS/x', 'OPTIONS *', 'GET /.env', 'POST /api/pass%2F', `GET /${'a'.repeat(10_240)}`]) {
      isProblem(t, await request(line), 404, 'not_found', line.slice(0, 40))
    }
  }
  t.strictSame(await service.dump(), before)
})

t.test('an unknown query parameter is refused by name', async t => {
  const id = await service.pass()
  const before = await service.dump()
  for (const [query, name] of [['foo=1', 'foo'], ['foo', 'foo'], ['__proto__=1', '__proto__'], ['id=x', 'id'], ['a%20b=', 'a b'], [`key=${secrets.bob}`, 'key']]) {
    const answers = [
      await service.call('bob', 'POST', `/api/pass?${query}`, { task: 't' }),
      await service.call('bob', 'GET', `/api/catch/${id}?${query}`),
      await service.call('bob', 'POST', `/api/done/${id}?${query}`),
      await service.call('bob', 'GET', `/api/status/${id}?${query}`),
    ]
    for (const answer of answers) {
      t.match(isProblem(t, answer, 400, 'invalid_request', query).errors, [{ pointer: `/${name}`, message: /./ }])
      t.notMatch(answer.body, secrets.bob)
    }
  }
  t.strictSame(await service.dump(), before)
})

t.test('HTTP/1.1 needs a Host field with any value; HTTP/1.0 needs none', async t => {
  const id = await service.pass()
  const authorization = `Authorization: Bearer ${secrets.bob}\r\n`
  const before = await service.dump()
  const refused = isProblem(t, await ask(t, port, `GET /api/catch/${id} HTTP/1.1\r\n${authorization}\r\n`), 400, 'invalid_request')
  t.match(refused.detail, 'must have a Host field', 'the detail says what is wrong with it')
  isProblem(t, await ask(t, port, 'GET /nowhere HTTP/1.1\r\n\r\n'), 400, 'invalid_request')
  t.strictSame(await service.dump(), before)
  t.equal((await ask(t, port, `GET /api/status/${id} HTTP/1.0\r\n${authorization}\r\n`)).statusCode, 200)
  t.equal((await ask(t, port, `GET http://evil.example/api/status/${id} HTTP/1.1\r\nHost: evil.example\r\n${authorization}\r\n`)).statusCode, 200, 'absolute form')
})

t.test('an expectation or upgrade that the service doesn’t support is ignored', async t => {
  for (const field of ['Expect: tea', 'Connection: Upgrade\r\nUpgrade: websocket', 'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk']) {
    const id = await service.pass()
    const answer = await ask(t, port, `GET /api/catch/${id} HTTP/1.1\r\n${head}${field}\r\n\r\n`)
    t.equal(answer.statusCode, 200, field)
    t.equal(JSON.parse(answer.body).handoff_id, id)
  }
})

t.test('of three pipelined catches one succeeds, and the answers come in order', async t => {
  const { send, answer } = await wire(t, await listen(service.app))
  const id = await service.pass()
  send(`GET /api/catch/${id} HTTP/1.1\r\n${head}\r\n`.repeat(3))
  t.equal(JSON.parse((await answer()).body).task, 't')
  for (const place of ['second', 'third']) isProblem(t, await answer(), 409, 'already_caught', place)
})

t.test('a connection on which too many requests wait for an answer is ended, and the others go on', async t => {
  const { app } = await testApp(t)
  const port = await listen(app)
  const { send, answer } = await wire(t, port)
  send(`GET /healthz HTTP/1.1\r\n${head}\r\n`.repeat(20))
  for (let count = 0; count < 20; count++) t.equal((await answer()).statusCode, 200)
  for (const path of ['/healthz', '/readyz', '/openapi.json', '/docs/json', '/api/status/x']) {
    const before = sum(await scrape(app), /^http_request_duration_seconds_count\{/)
    const { send, ended } = await wire(t, port)
    send(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`.repeat(1000))
    await ended
    t.ok(sum(await scrape(app), /^http_request_duration_seconds_count\{/) - before < 50, path)
  }
  send(`GET /healthz HTTP/1.1\r\n${head}\r\n`)
  t.equal((await answer()).statusCode, 200)
})

t.test('of a connection with too many requests node reads no more, and the next ones are well', skipInQuick, async t => {
  const { app } = await testApp(t)
  const port = await listen(app)
  // After an upgrade that nobody takes, node waits for this long before it ends the connection.
  app.server.keepAliveTimeout = 100
  let begun = 0
  app.server.on('request', () => { begun++ })
  for (const more of ['', 'Connection: Upgrade\r\nUpgrade: x\r\n', 'Transfer-Encoding: chunked\r\n', 'Content-Length: 0\r\nExpect: 100-continue\r\n']) {
    begun = 0
    const rest = more.startsWith('Transfer') ? '0\r\n\r\n' : ''
    await Promise.all(Array.from({ length: 5 }, async () => {
      const { send, ended } = await wire(t, port)
      send(`POST /healthz HTTP/1.1\r\nHost: x\r\n${more}\r\n${rest}`.repeat(400))
      await ended
    }))
    t.ok(begun > 0 && begun <= 5 * 22, `${begun} of 2,000 with ${JSON.stringify(more)}`)
    // Node uses parsers again.
    await Promise.all(Array.from({ length: 10 }, async () => {
      const { send, answer } = await wire(t, port)
      send(`GET /healthz HTTP/1.1\r\n${head}\r\n`)
      if ((await answer()).statusCode !== 200) t.fail('another connection')
      send(`GET /healthz HTTP/1.1\r\n${head}\r\n`)
      if ((await answer()).statusCode !== 200) t.fail('again')
    }))
  }
})

t.test('a refused body doesn’t close the connection', async t => {
  const { send, answer } = await wire(t, await listen(service.app))
  const post = (body: string) => send(`POST /api/pass HTTP/1.1\r\n${head}Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`)
  for (const body of ['{', '{"task":5}', '[]']) {
    post(body)
    isProblem(t, await answer(), 400, 'invalid_request', body)
  }
  post('{"task":"t"}')
  t.equal((await answer()).statusCode, 201)
})

t.test('a value that is none of the allowed ones has one error, with their names', async t => {
  const id = await service.pass()
  const status = await service.call('bob', 'GET', `/api/status/${id}?until=ended`)
  t.same(isProblem(t, status, 400, 'invalid_request').errors, [{ pointer: '/until', message: 'querystring: must be one of caught, done' }])
})

t.test('of several faults the first is told: scope, query and header fields, media type, size, body', async t => {
  const service = await testApp(t, { BODY_LIMIT: '1024', BATCH_LIMIT: '2048' })
  const { call } = service
  const id = await service.pass()
  const before = await service.dump()
  const plain = { 'content-type': 'text/plain' }
  const tooLarge = ' '.repeat(4096)
  isProblem(t, await call('approver', 'POST', '/api/pass?x=1', tooLarge, plain), 403, 'insufficient_scope')
  for (const path of ['/api/pass', `/api/done/${id}`, '/api/catch', '/api/batch', `/api/cancel/${id}`]) {
    for (const body of ['{', '{"unknown":1}', tooLarge]) {
      const name = `${path} ${body.slice(0, 20)}`
      for (const headers of [plain, {}]) {
        const { errors } = isProblem(t, await call('alice', 'POST', `${path}?x=1`, body, headers), 400, 'invalid_request', name)
        t.strictSame(errors, [{ pointer: '/x', message: 'querystring: unknown' }], `${name}: the query comes first`)
        const field = isProblem(t, await call('alice', 'POST', path, body, { ...headers, 'idempotency-key': 'a b' }), 400, 'invalid_request', name)
        t.equal(field.errors[0].pointer, '/idempotency-key', `${name}: then a header field`)
      }
      isProblem(t, await call('alice', 'POST', path, body, plain), 415, 'unsupported_media_type', name)
      isProblem(t, await call('alice', 'POST', path, body, { 'content-encoding': 'gzip' }), 415, 'unsupported_media_type', name)
    }
    isProblem(t, await call('alice', 'POST', path, tooLarge), 413, 'payload_too_large', path)
  }
  isProblem(t, await call('alice', 'POST', '/mcp', tooLarge, plain), 415, 'unsupported_media_type', '/mcp')
  t.strictSame(await service.dump(), before)
})

t.test('a body that is too large ends its connection, whatever is told first', async t => {
  const { app } = await testApp(t)
  const { send, answer, ended } = await wire(t, await listen(app))
  send(`POST /api/pass?x=1 HTTP/1.1\r\n${head}Content-Type: text/plain\r\nContent-Length: 2000000\r\n\r\n{`)
  const refused = await answer()
  isProblem(t, refused, 400, 'invalid_request')
  t.equal(refused.headers.connection, 'close')
  await ended
})
