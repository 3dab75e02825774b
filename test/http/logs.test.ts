import t from 'tap'
import { callerOf } from '../../src/handoff/handoff.ts'
import { secrets } from '../helpers/app.ts'
import { loggedApp } from '../helpers/logged-app.ts'
import { ask, listen, wire } from '../helpers/wire.ts'

const canaryKey = 'canary-key-0123456789'
const canary = (where: string) => `canary-${where}`

t.test('no log line at any level holds a key, a payload, a query or an idempotency key', async t => {
  const { app, lines, redis, prefix } = await loggedApp(t, [{ secret: canaryKey, caller: callerOf('default', 'mallory', ['pass', 'catch', 'status']) }])
  const port = await listen(app)
  const headers = { authorization: `Bearer ${canaryKey}`, 'idempotency-key': canary('idempotency'), 'x-request-id': 'request-1' }
  const json = { ...headers, 'content-type': 'application/json' }
  const body = { task: canary('task'), output: { o: canary('output') }, context: { c: canary('context') }, constraints: canary('constraints') }
  const post = (url: string, payload: object | string | Buffer, more = {}) => app.inject({ method: 'POST', url, payload, headers: { ...json, ...more } })

  const { handoff_id: id } = (await post('/api/pass', body)).json()
  await post('/api/pass', { ...body, task: canary('another') }) // 422
  await app.inject({ url: `/api/catch/${id}`, headers })
  await app.inject({ url: `/api/catch/${id}?q=${canary('query')}`, headers })
  await post(`/api/done/${id}`, { output: { r: canary('result') } })
  await app.inject({ url: `/api/status/${id}`, headers })
  await post('/api/pass', `{"task":"${canary('malformed')}`)
  await post('/api/pass', { task: 5, [canary('member')]: canary('unknown') })
  await post('/api/pass', Buffer.from(`{"task":"${canary('utf8')}\xff"}`, 'latin1'))
  await post('/api/pass', 'x'.repeat(1100) + canary('type'), { 'content-type': `text/${canary('media')}` })
  await post('/api/pass', `{"task":"${canary('large').repeat(200_000)}"}`)
  await post(`/nowhere?q=${canary('query')}`, `{"a":"${canary('lost')}`)
  await app.inject({ method: 'PUT', url: `/api/pass?q=${canary('query')}`, payload: canary('put'), headers })
  await app.inject({ url: `/api/catch/%zz?q=${canary('query')}`, headers })
  await app.inject({ url: `/api/catch/${canary('x').repeat(400)}`, headers })
  for (const authorization of [`Bearer ${canary('unknown-key')}`, `Basic ${canary('basic')}`, `bearer ${canaryKey}`]) await app.inject({ url: '/api/status/x', headers: { authorization } })
  await ask(t, port, `GET /${canary('raw')} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${canaryKey}\r\nX\x01: ${canary('garbage')}\r\n\r\n`)
  await ask(t, port, `GET /${canary('host')} HTTP/1.1\r\nAuthorization: Bearer ${canaryKey}\r\n\r\n`)

  const passed = await post('/api/pass', body, { 'idempotency-key': canary('second') })
  const broken: string = passed.json().handoff_id
  const key = `${prefix}:{${broken.slice(0, 3)}}:h:default:${broken}`
  await redis.set(key, canary('stored'))
  for (const path of ['catch', 'status']) t.equal((await app.inject({ url: `/api/${path}/${broken}`, headers })).statusCode, 500)
  t.equal((await post(`/api/done/${broken}`, { output: { r: canary('result') } })).statusCode, 500)
  t.equal((await post('/api/pass', body, { 'idempotency-key': canary('second') })).statusCode, 500)

  const closed = new Promise(resolve => app.server.once('connection', socket => socket.once('close', resolve)))
  const { send, socket } = await wire(t, port)
  send(`POST /api/pass HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${canaryKey}\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"task":"${canary('aborted')}`)
  socket.resetAndDestroy()
  await closed
  await app.close()

  for (const line of lines) {
    t.notMatch(line, /canary|Bearer|Basic/)
    const { level, time, msg } = JSON.parse(line)
    t.match({ level, time, msg }, { level: Number, time: Number, msg: String })
  }
  const faults = lines.map(line => JSON.parse(line)).filter(({ level }) => level >= 50)
  t.equal(faults.length, 4)
  for (const fault of faults) t.equal(fault.request_id, 'request-1', 'a fault is found by its request id')
})

t.test('a request that goes well logs nothing at the usual level', async t => {
  const { app, lines } = await loggedApp(t)
  await app.ready()
  const authorization = `Bearer ${secrets.alice}`
  await app.inject({ method: 'POST', url: '/api/pass', payload: { task: 't' }, headers: { authorization } })
  await app.inject({ url: '/api/status/x', headers: { authorization } })
  t.strictSame(lines.filter(line => JSON.parse(line).level >= 30), [])
})
