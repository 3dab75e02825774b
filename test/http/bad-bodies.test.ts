import t from 'tap'
import { testApp, secrets } from '../helpers/app.ts'
import { isProblem } from '../helpers/problems.ts'
import { ask, listen, wire } from '../helpers/wire.ts'

/** Of all that needs no service of its own. */
const service = await testApp(t)
const { app, call, dump } = service

const nested = (depth: number) => `{"a":${'['.repeat(depth - 1)}${']'.repeat(depth - 1)}}`

t.test('a body that is no JSON object is refused and changes nothing', async t => {
  const id = await service.caught()
  const before = await dump()
  const wrong: Array<string | Buffer> = [
    '{', '}', '{"task":"t"', '{"task":"t",}', '{task:"t"}', "{'task':'t'}", '{"task":"t"}}', '{"task":"t"} x', '{"task":"t"}{"task":"t"}',
    '{"task":"t" "output":{}}', '{"task":"a\nb"}', '{"task":"\\x"}', '{"task":"t","output":{"a":01}}', '{"task":"t","output":{"a":NaN}}',
    '{"task":"t","output":{"a":1,}}', '{"task":"t","output":[1}', '{"task":"t"/**/}', '{"output":tru}',
    'null', '[]', '[{"task":"t"}]', '"t"', '1', 'true', ' ', '\u00a0{}',
    '\ufeff{"task":"t"}',
    Buffer.from('{"task":"\xff"}', 'latin1'), Buffer.from('{"task":"t","output":{"\xc3":1}}', 'latin1'), Buffer.from('{"task":"\xed\xa0\x80"}', 'latin1'),
    Buffer.concat([Buffer.from('{"task":"t"}'), Buffer.from([0])]), Buffer.from('{"task":"t"}', 'utf16le'),
    `{"task":"t","output":${nested(100)}}`,
  ]
  for (const body of wrong) {
    for (const path of ['/api/pass', `/api/done/${id}`]) {
      const document = isProblem(t, await call('bob', 'POST', path, body), 400, 'invalid_request', `${path} ${String(body).slice(0, 60)}`)
      t.match(document.errors, [{ pointer: String, message: /./ }])
    }
  }
  isProblem(t, await call('bob', 'POST', '/api/pass', ''), 400, 'invalid_request', 'empty')
  t.strictSame(await dump(), before)
  t.equal((await call('alice', 'POST', '/api/pass', `{"task":"t","output":${nested(99)}}`)).statusCode, 201, 'a depth of 100 is taken')
})

t.test('each member of a body is accepted as it is or refused by name', async t => {
  const id = await service.caught()
  const before = await dump()
  const wrong: Array<[string, string]> = [
    ['{}', '/task'], ['{"task":""}', '/task'], ['{"task":null}', '/task'], ['{"task":5}', '/task'], ['{"task":["t"]}', '/task'], ['{"task":{}}', '/task'],
    ['{"task":"t","output":[]}', '/output'], ['{"task":"t","output":"{}"}', '/output'], ['{"task":"t","output":1}', '/output'],
    ['{"task":"t","context":[]}', '/context'], ['{"task":"t","context":false}', '/context'],
    ['{"task":"t","constraints":5}', '/constraints'], ['{"task":"t","constraints":{}}', '/constraints'],
    ['{"task":"t","require_human":"false"}', '/require_human'], ['{"task":"t","require_human":0}', '/require_human'], ['{"task":"t","require_human":"true"}', '/require_human'],
    ['{"task":"t","requireHuman":true}', '/requireHuman'], ['{"task":"t","Task":"t"}', '/Task'], ['{"task":"t","a/b~c":1}', '/a~1b~0c'],
    ['{"task":"t","__proto__":{"require_human":true}}', '/__proto__'], ['{"task":"t","constructor":1}', '/constructor'], ['{"task":"t","":1}', '/'],
    ['{"task":"t","task":"t"}', '/task'], ['{"task":"t","require_human":true,"require_human":false}', '/require_human'],
    ['{"task":"t","\\u0074ask":"t"}', '/task'], ['{"task":"t","__proto__":1,"__proto__":2}', '/__proto__'],
  ]
  for (const [body, pointer] of wrong) {
    const document = isProblem(t, await call('alice', 'POST', '/api/pass', body), 400, 'invalid_request', body)
    t.ok(document.errors.some((fault: { pointer: string }) => fault.pointer === pointer), `${body} is told of ${pointer}`)
  }
  for (const [body, pointer] of [['{"output":[]}', '/output'], ['{"output":"x"}', '/output'], ['{"result":{}}', '/result'], ['{"output":{},"output":{}}', '/output']]) {
    const document = isProblem(t, await call('bob', 'POST', `/api/done/${id}`, body), 400, 'invalid_request', body)
    t.equal(document.errors[0].pointer, pointer)
  }
  t.strictSame(await dump(), before)
  const both = isProblem(t, await call('alice', 'POST', '/api/pass', '{"output":1,"x":2}'), 400, 'invalid_request')
  t.strictSame(both.errors.map((fault: { pointer: string }) => fault.pointer).sort(), ['/output', '/task', '/x'], 'all that is wrong is told')
})

t.test('an unknown name that resembles one of this place is answered with that one', async t => {
  const messages = async (path: string, body: unknown) =>
    Object.fromEntries(isProblem(t, await call('alice', 'POST', path, body), 400, 'invalid_request').errors.map(({ pointer, message }: { pointer: string, message: string }) => [pointer, message]))
  const meant = (name: string) => `unknown; did you mean ${name}?`
  t.strictSame(await messages('/api/pass', { task: 't', inbox: 'box', result: {}, requireHuman: true, 'max-attempts': 2, expires_im: 1, contxet: {}, Task: 't', x: 1, ['y'.repeat(10_000)]: 1 }), {
    '/inbox': meant('to'),
    '/result': meant('output'),
    '/requireHuman': meant('require_human'),
    '/max-attempts': meant('max_attempts'),
    '/expires_im': meant('expires_in'),
    '/contxet': meant('context'),
    '/Task': meant('task'),
    '/x': 'unknown',
    [`/${'y'.repeat(63)}…`]: 'unknown',
  })
  const id = await service.caught()
  t.strictSame(await messages(`/api/done/${id}`, { result: {} }), { '/result': meant('output') })
  t.strictSame(await messages(`/api/heartbeat/${id}`, { progress: { mesage: 'm', percent: 1 } }), { '/progress/mesage': meant('message') })
  t.strictSame(await messages('/api/catch', { to: 'box', inboxs: ['a'] }), { '/to': meant('inbox'), '/inboxs': meant('inbox') })
  t.strictSame(await messages('/api/batch', { operation: [], operations: [{ op: 'pass', idempotencyKey: 'k' }] }), {
    '/operation': meant('operations'), '/operations/0/idempotencyKey': meant('idempotency_key'),
  })
  const { results } = (await call('alice', 'POST', '/api/batch', { operations: [{ op: 'pass', body: { task: 't', inbox: 'box' } }] })).json()
  t.match(results[0].body, { errors: [{ pointer: '/inbox', message: meant('to') }] })
  const { errors } = isProblem(t, await call('alice', 'GET', `/api/status/${id}?untill=done`), 400, 'invalid_request')
  t.strictSame(errors, [{ pointer: '/untill', message: `querystring: ${meant('until')}` }])
})

t.test('a body over the limit, declared or chunked, is 413; one at the limit is accepted', async t => {
  const service = await testApp(t, { BODY_LIMIT: '1024' })
  const { app, call, dump } = service
  const port = await listen(app)
  const ofLength = (length: number) => `{"task":"${'t'.repeat(length - 11)}"}`
  t.equal((await call('alice', 'POST', '/api/pass', ofLength(1024))).statusCode, 201)
  const before = await dump()
  isProblem(t, await call('alice', 'POST', '/api/pass', ofLength(1025)), 413, 'payload_too_large')
  const head = `POST /api/pass HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${secrets.alice}\r\nContent-Type: application/json\r\n`
  const chunk = `200\r\n${'x'.repeat(512)}\r\n`
  for (const rest of ['Content-Length: 1025\r\n\r\n', 'Content-Length: 99999999999\r\n\r\n', `Transfer-Encoding: chunked\r\n\r\n${chunk.repeat(3)}`]) {
    const { send, answer, ended } = await wire(t, port)
    send(head + rest)
    isProblem(t, await answer(), 413, 'payload_too_large', rest.slice(0, 30))
    await ended
  }
  t.strictSame(await dump(), before)
  // Its buffer grows by doubling, and not beyond the limit.
  const { app: other } = await testApp(t, { BODY_LIMIT: '5000' })
  isProblem(t, await ask(t, await listen(other), `${head}Transfer-Encoding: chunked\r\n\r\n${chunk.repeat(12)}`), 413, 'payload_too_large', 'chunks, a little over the limit')
})

t.test('only unencoded JSON in UTF-8 with the right media type is accepted', async t => {
  const before = await dump()
  const payload = '{"task":"t"}'
  const authorization = `Bearer ${secrets.alice}`
  const wrong: Array<Record<string, string>> = [
    {}, ...['text/plain', 'text/json', 'application/jsonp', 'application/x-www-form-urlencoded', 'application/merge-patch+json', 'application/json, text/plain',
      'application/json; charset=latin1', 'application/json; charset=utf-16', 'garbage', ';;;', '*/*'].map(type => ({ 'content-type': type })),
    ...['gzip', 'identity', 'br', ''].map(encoding => ({ 'content-type': 'application/json', 'content-encoding': encoding })),
  ]
  for (const headers of wrong) {
    isProblem(t, await app.inject({ method: 'POST', url: '/api/pass', payload, headers: { authorization, ...headers } }), 415, 'unsupported_media_type', JSON.stringify(headers))
  }
  t.strictSame(await dump(), before)
  for (const type of ['application/json; charset=utf-8', 'Application/JSON;Charset="UTF-8"', 'application/json;charset=utf-8; x=y']) {
    t.equal((await call('alice', 'POST', '/api/pass', payload, { 'content-type': type })).statusCode, 201, type)
  }
})

t.test('the body of done may be empty, {} or missing, with and without a content type', async t => {
  const port = await listen(app)
  const bodies = [
    '\r\n',
    'Content-Type: application/json\r\n\r\n',
    'Content-Length: 0\r\n\r\n',
    'Content-Type: application/json\r\nContent-Length: 0\r\n\r\n',
    'Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    'Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    'Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}',
    'Content-Type: application/json\r\nContent-Length: 15\r\n\r\n{"output":null}',
  ]
  for (const rest of bodies) {
    const id = await service.caught()
    const answer = await ask(t, port, `POST /api/done/${id} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${secrets.bob}\r\n${rest}`)
    t.equal(answer.statusCode, 200, JSON.stringify(rest))
    t.strictSame(Object.keys(JSON.parse(answer.body)).sort(), ['completed_at', 'handoff_id', 'status'])
    t.equal((await call('alice', 'GET', `/api/status/${id}`)).json().result, null)
  }
})

t.test('bodies are read strictly', async t => {
  const id = await service.caught({ heartbeat_within: 30 })
  const bad: Record<string, Array<[body: unknown, pointer: string]>> = {
    heartbeat: [
      [{ extend_by: 0 }, '/extend_by'], [{ extend_by: 604801 }, '/extend_by'], [{ extend_by: 1.5 }, '/extend_by'],
      [{ extend_by: '5' }, '/extend_by'], [{ more: 1 }, '/more'], [{ progress: {} }, '/progress'],
      [{ progress: { message: null, percent: null } }, '/progress'], [{ progress: 'half' }, '/progress'],
      [{ progress: [] }, '/progress'], [{ progress: { message: '' } }, '/progress/message'],
      [{ progress: { message: 'x'.repeat(1001) } }, '/progress/message'],
      [{ progress: { percent: 100.1 } }, '/progress/percent'], [{ progress: { percent: -1 } }, '/progress/percent'],
      [{ progress: { percent: '5' } }, '/progress/percent'],
      [{ progress: { message: 'x', at: 'now' } }, '/progress/at'],
      ['{"progress": {"percent": 1, "percent": 2}}', '/progress/percent'],
      ['{"extend_by": 5, "extend_by": 6}', '/extend_by'],
    ],
    fail: [
      [{}, '/error'], [undefined, '/error'], [{ error: null }, '/error'], [{ error: 'no' }, '/error'],
      [{ error: {} }, '/error/message'], [{ error: { message: null } }, '/error/message'],
      [{ error: { message: '' } }, '/error/message'], [{ error: { message: 'x'.repeat(4001) } }, '/error/message'],
      [{ error: { message: 'x', code: '' } }, '/error/code'],
      [{ error: { message: 'x', code: 'a b' } }, '/error/code'],
      [{ error: { message: 'x', code: 'x'.repeat(65) } }, '/error/code'],
      [{ error: { message: 'x', data: [] } }, '/error/data'], [{ error: { message: 'x', more: 1 } }, '/error/more'],
      ['{"error": {"message": "x", "message": "y"}}', '/error/message'],
      [{ error: { message: 'x' }, retry: 'false' }, '/retry'], [{ error: { message: 'x' }, retries: 1 }, '/retries'],
    ],
    decline: [
      [{}, '/reason'], [undefined, '/reason'], [{ reason: null }, '/reason'], [{ reason: '' }, '/reason'],
      [{ reason: 'x'.repeat(4001) }, '/reason'], [{ reason: 5 }, '/reason'],
      [{ reason: 'x', retry: false }, '/retry'],
    ],
    cancel: [
      [{ reason: '' }, '/reason'], [{ reason: 'x'.repeat(4001) }, '/reason'], [{ force: 'true' }, '/force'],
      [{ forced: true }, '/forced'],
    ],
    reissue: [
      [{ now: true }, '/now'],
    ],
    pass: [
      [{ work_within: 0 }, '/work_within'], [{ work_within: 604801 }, '/work_within'],
      [{ heartbeat_within: 4 }, '/heartbeat_within'], [{ heartbeat_within: 86401 }, '/heartbeat_within'],
      [{ delay: 0 }, '/delay'], [{ delay: 60, expires_in: 60 }, '/delay'], [{ delay: 86400 }, '/delay'],
      [{ max_attempts: 0 }, '/max_attempts'], [{ max_attempts: 11 }, '/max_attempts'],
      [{ max_attempts: 1.5 }, '/max_attempts'], [{ retry_delay: -1 }, '/retry_delay'],
      [{ retry_delay: 3601 }, '/retry_delay'], [{ result_schema: true }, '/result_schema'],
      [{ parent: 5 }, '/parent'], [{ attempts: 2 }, '/attempts'],
    ],
  }
  const before = await dump()
  for (const [path, rows] of Object.entries(bad)) {
    const who = ['heartbeat', 'fail', 'decline'].includes(path) ? 'bob' : 'alice'
    for (const [body, pointer] of rows) {
      const [url, sent] = path === 'pass' ? ['/api/pass', { task: 't', ...body as object }] : [`/api/${path}/${id}`, body]
      const { errors } = isProblem(t, await call(who, 'POST', url, sent), 400, 'invalid_request', `${path} ${pointer}`)
      t.match(errors, [{ pointer }], `${path} ${JSON.stringify(body)}`)
    }
  }
  t.strictSame(await dump(), before, 'nothing changed')
})

t.test('lengths are in characters, and null means absent', async t => {
  const absent = ['heartbeat_within', 'work_within', 'delay', 'max_attempts', 'retry_delay', 'result_schema', 'parent'].map(name => [name, null])
  const id = await service.caught(Object.fromEntries(absent))
  const beat = (id: string, progress: object) => call('bob', 'POST', `/api/heartbeat/${id}`, { extend_by: null, progress })
  t.equal((await beat(id, { message: '😀'.repeat(1000), percent: null })).statusCode, 200)
  t.equal((await call('bob', 'POST', `/api/fail/${id}`, { error: { message: '😀'.repeat(4000), code: null, data: null }, retry: null })).statusCode, 200)
  isProblem(t, await beat(await service.caught(), { message: '😀'.repeat(1001) }), 400, 'invalid_request')
})

t.test('a percent is shown as it came, but a long one as the number that was checked: it is never above 100', async t => {
  const id = await service.caught()
  for (const [given, shown] of [['50.0', '50.0'], [`100.${'0'.repeat(20)}1`, '100']] as const) {
    t.equal((await call('bob', 'POST', `/api/heartbeat/${id}`, `{"progress":{"percent":${given}}}`)).statusCode, 200, given)
    t.match((await call('alice', 'GET', `/api/status/${id}`)).body, `"percent":${shown},`, given)
  }
})

t.test('heartbeats need the scope catch and a well-formed Idempotency-Key', async t => {
  const id = await service.caught()
  for (const path of ['heartbeat', 'fail', 'decline', 'cancel', 'reissue']) {
    isProblem(t, await call('approver', 'POST', `/api/${path}/${id}`, {}), 403, 'insufficient_scope', path)
    isProblem(t, await call('bob', 'POST', `/api/${path}/${id}`, {}, { 'idempotency-key': 'ä' }), 400, 'invalid_request', path)
    isProblem(t, await call('bob', 'POST', `/api/${path}/nothing`, path === 'fail' ? { error: { message: 'm' } } : path === 'decline' ? { reason: 'r' } : {}), 404, 'not_found', path)
  }
  t.equal((await call('bob', 'POST', `/api/heartbeat/${id}`, {}, { 'idempotency-key': 'k' })).headers['idempotency-replayed'], undefined)
})
