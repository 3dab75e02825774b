import Fastify from 'fastify'
import t from 'tap'
import { tags } from '../../src/core/ids.ts'
import { expiryLog, logTransitions } from '../../src/http/observe.ts'
import { openLog } from '../../src/log.ts'
import { openStore } from '../../src/store/store.ts'
import { loopback } from '../faults/fleet/process.ts'
import { freePort } from '../faults/fleet/ports.ts'
import { secrets, testApp } from '../helpers/app.ts'
import { asked, form, own, shown, signedIn } from '../helpers/forms.ts'
import { logSink } from '../helpers/log-sink.ts'
import { ownRedis } from '../helpers/own-redis.ts'
import { until } from '../helpers/until.ts'
import { listen, wire } from '../helpers/wire.ts'

const canary = (where: string) => `canary-${where}`

t.test('at the usual level the four operations log nothing, and no hook does it', async t => {
  const lines: string[] = []
  const log = openLog('info', { write: line => { lines.push(line) } })
  const { call } = await testApp(t, {}, {}, [], log)
  const { handoff_id: id } = (await call('alice', 'POST', '/api/pass', { task: 't' })).json()
  await call('bob', 'GET', `/api/catch/${id}`)
  await call('bob', 'POST', `/api/done/${id}`)
  await call('bob', 'GET', `/api/status/${id}`)
  await call('bob', 'GET', '/api/status/x')
  await call('alice', 'GET', `/api/catch/${id}`)
  t.strictSame(lines, [])
  const app = Fastify()
  const hooks: string[] = []
  app.addHook = ((name: string) => { hooks.push(name) }) as never
  logTransitions(app, log)
  t.strictSame(hooks, [], 'at info')
  logTransitions(app, openLog('debug', { write () {} }))
  t.strictSame(hooks, ['onSend'], 'at debug')
  t.equal(expiryLog(log), undefined, 'nor is Redis asked to name what expires')
})

const trace = '4bf92f3577b34da6a3ce929d0e0e4736'
const traceparent = `00-${trace}-00f067aa0ba902b7-01`

/** The lines with this message, without the fields that pino adds to every line. */
function told (lines: string[], message: string): object[] {
  return lines.map(line => JSON.parse(line)).filter(({ msg }) => msg === message).map(({ time, pid, hostname, msg, ...rest }) => rest)
}

t.test('at debug each transition is a line, and nothing else is', async t => {
  const { call, lines } = await testApp(t)
  const id = (number: number) => ({ 'x-request-id': `r${number}` })
  const key = { 'idempotency-key': 'k' }
  const { handoff_id: handoff } = (await call('alice', 'POST', '/api/pass', { task: 't' }, { ...id(1), ...key, traceparent })).json()
  t.equal((await call('alice', 'POST', '/api/pass', { task: 't' }, { ...id(2), ...key })).statusCode, 201)
  t.equal((await call('alice', 'POST', '/api/pass', { task: 5 }, id(3))).statusCode, 400)
  t.equal((await call('bob', 'POST', `/api/done/${handoff}`, {}, id(4))).statusCode, 409)
  t.equal((await call('bob', 'GET', `/api/catch/${handoff}`, undefined, { ...id(5), ...key })).statusCode, 200)
  t.equal((await call('bob', 'GET', `/api/catch/${handoff}`, undefined, { ...id(6), ...key })).statusCode, 200)
  t.equal((await call('alice', 'GET', `/api/catch/${handoff}`, undefined, id(7))).statusCode, 409)
  t.equal((await call(null, 'GET', `/api/catch/${handoff}`, undefined, id(8))).statusCode, 401)
  t.equal((await call('bob', 'POST', `/api/done/${handoff}`, {}, id(9))).statusCode, 200)
  t.equal((await call('bob', 'GET', `/api/status/${handoff}`, undefined, id(10))).statusCode, 200)
  const about = { level: 20, handoff_id: handoff, tenant: 'default' }
  t.strictSame(told(lines, 'moved'), [
    { ...about, to: 'pending', agent: 'alice', request_id: 'r1', trace_id: trace },
    { ...about, to: 'caught', agent: 'bob', request_id: 'r5', trace_id: trace },
    { ...about, to: 'done', agent: 'bob', request_id: 'r9' },
  ])
})

t.test('at debug each end is a line, and each successor has one with its own id', async t => {
  const { call, lines, caught } = await testApp(t)
  const ids = { failed: await caught({ max_attempts: 2 }), last: await caught(), declined: await caught({ max_attempts: 2 }), soft: await caught(), forced: await caught(), taken: await caught() }
  lines.length = 0
  const post = async (who: 'alice' | 'bob', operation: string, id: string, body: object = {}) =>
    (await call(who, 'POST', `/api/${operation}/${id}`, body, { 'idempotency-key': 'k' })).json()
  const made: string[] = []
  made.push((await post('bob', 'fail', ids.failed, { error: { message: canary('error') } })).reissued_as)
  await post('bob', 'fail', ids.last, { error: { message: canary('error') } })
  made.push((await post('bob', 'decline', ids.declined, { reason: canary('reason') })).reissued_as)
  await post('bob', 'heartbeat', ids.soft, { progress: { message: canary('progress') } })
  await post('alice', 'cancel', ids.soft, { reason: canary('reason') })
  await post('alice', 'cancel', ids.forced, { reason: canary('reason'), force: true })
  made.push((await post('alice', 'reissue', ids.taken)).handoff_id)
  made.push((await post('alice', 'reissue', ids.last)).handoff_id)
  t.strictSame(told(lines, 'moved').map(({ handoff_id: id, to, agent }: any) => [id, to, agent]), [
    [ids.failed, 'failed', 'bob'], [made[0], 'pending', 'bob'],
    [ids.last, 'failed', 'bob'],
    [ids.declined, 'declined', 'bob'], [made[1], 'pending', 'bob'],
    [ids.forced, 'cancelled', 'alice'],
    [ids.taken, 'cancelled', 'alice'], [made[2], 'pending', 'alice'],
    [made[3], 'pending', 'alice'],
  ])
  lines.length = 0
  const batch = await call('bob', 'POST', '/api/batch', { operations: [{ op: 'catch', id: made[2] }, { op: 'pass', body: { task: 't' } }, { op: 'catch', id: made[3] }] })
  const passed = batch.json().results[1].body.handoff_id
  t.strictSame(told(lines, 'moved').map(({ handoff_id: id, to }: any) => [id, to]), [[made[2], 'caught'], [passed, 'pending'], [made[3], 'caught']], 'each of a batch with its own id')
  for (const line of lines) t.notMatch(line, /canary/)
})

t.test('a request that the client gave up logs no transition', async t => {
  const { app, call, lines } = await testApp(t)
  const port = await listen(app)
  const { handoff_id: handoff } = (await call('alice', 'POST', '/api/pass', { task: 't', require_human: true })).json()
  const closed = new Promise(resolve => app.server.once('connection', socket => socket.once('close', resolve)))
  const asked = new Promise(resolve => app.server.once('request', resolve))
  const { send, socket } = await wire(t, port)
  send(`GET /api/catch/${handoff}?wait=20 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${secrets.bob}\r\n\r\n`)
  await asked
  socket.resetAndDestroy()
  await closed
  t.equal((await call('bob', 'GET', `/api/status/${handoff}`)).json().status, 'pending')
  t.match(told(lines, 'moved'), [{ to: 'pending' }])
  t.equal(told(lines, 'moved').length, 1)
})

t.test('decisions are logged at info, with who and what, but never the note', async t => {
  const service = await testApp(t)
  const { app, call, lines } = service
  const cookie = await signedIn(service)
  const [approved, rejected, approvedThere, rejectedThere] = [await asked(service), await asked(service), await asked(service), await asked(service)]
  const [seen, alsoSeen] = [await shown(service, approvedThere, cookie), await shown(service, rejectedThere, cookie)]
  lines.length = 0
  const note = canary('note')
  t.equal((await call('approver', 'POST', `/api/approve/${approved}`, { note }, { 'x-request-id': 'a', traceparent })).statusCode, 200)
  t.equal((await call('approver', 'POST', `/api/reject/${rejected}`, { note }, { 'x-request-id': 'b' })).statusCode, 200)
  t.equal((await call('approver2', 'POST', `/api/reject/${approved}`, { note })).statusCode, 409)
  t.equal((await call('alice', 'POST', `/api/reject/${approved}`, { note })).statusCode, 403)
  for (const [verdict, id, status] of [['approve', approvedThere, 303], ['reject', rejectedThere, 303], ['reject', rejectedThere, 409], ['reject', approvedThere, 409]] as const) {
    const answer = await app.inject(form(`/approvals/${id}/${verdict}`, { note, ...id === approvedThere ? seen : alsoSeen }, { ...own, cookie, 'x-request-id': `page-${verdict}` }))
    t.equal(answer.statusCode, status)
  }
  t.equal((await app.inject(form(`/approvals/${await asked(service)}/reject`, { note }, { ...own, cookie }))).statusCode, 409)
  const by = { level: 30, tenant: 'default', agent: 'carol' }
  t.strictSame(told(lines, 'decided'), [
    { ...by, handoff_id: approved, verdict: 'approved', request_id: 'a', trace_id: trace },
    { ...by, handoff_id: rejected, verdict: 'rejected', request_id: 'b' },
    { ...by, handoff_id: approvedThere, verdict: 'approved', request_id: 'page-approve' },
    { ...by, handoff_id: rejectedThere, verdict: 'rejected', request_id: 'page-reject' },
  ])
  t.strictSame(told(lines, 'moved').filter((line: any) => line.to !== 'pending').map(({ handoff_id: id, to, request_id: request }: any) => [id, to, request]),
    [[rejected, 'rejected', 'b'], [rejectedThere, 'rejected', 'page-reject']], 'to reject is a transition as well; to approve is none')
})

t.test('an expiry is logged by the replica whose sweep finds it', async t => {
  const { call, lines, store, setClock } = await testApp(t)
  const { handoff_id: handoff, expires_at: expires } = (await call('alice', 'POST', '/api/pass', { task: 't', expires_in: 1 })).json()
  await setClock(Date.parse(expires))
  store.sweeper.start()
  await until(() => told(lines, 'moved').length === 2, 10_000)
  t.strictSame(told(lines, 'moved')[1], { level: 20, handoff_id: handoff, to: 'expired', tenant: 'default' })
})

t.test('an error is logged with its message but without attached data', async t => {
  const lines: string[] = []
  const log = openLog('trace', { write: line => { lines.push(line) } })
  const { admin } = await ownRedis(t)
  await admin.config('SET', 'requirepass', 'the-right-password')
  const refused = await admin.auth(canary('password')).catch(error => error)
  t.match(refused.command, { name: 'auth', args: [canary('password')] }, 'ioredis’s has the password')
  log.error({ err: refused }, 'refused')
  log.error({ err: new Error('outer', { cause: refused }) }, 'because')
  log.error({ err: canary('thrown') }, 'no error')
  t.equal(lines.length, 3)
  for (const line of lines) t.notMatch(line, /canary/)
  t.match(JSON.parse(lines[0]!).err, { type: 'ReplyError', message: /WRONGPASS/, stack: /WRONGPASS/ })
  t.match(JSON.parse(lines[1]!).err, { message: 'outer', cause: { type: 'ReplyError' } })
})

t.test('the password of REDIS_URL is in no line, whatever is wrong with Redis', async t => {
  const port = await freePort(loopback)
  const { admin } = await ownRedis(t)
  await admin.config('SET', 'port', String(port))
  await admin.config('SET', 'requirepass', 'the-right-password')
  const password = canary('password')
  for (const url of [`redis://:${password}@127.0.0.1:${port}`, `redis://me:${password}@127.0.0.1:1`, `redis://me:${password}@nowhere.invalid`,
    `redis+sentinel://me:${password}@127.0.0.1:1/m?sentinel_password=${password}`, `redis+cluster://me:${password}@127.0.0.1:${port}`]) {
    const { log, lines } = logSink(t)
    const store = openStore({ url, keyPrefix: 'x', tags, workTtl: 1, retention: 1, replicas: 0, log })
    await until(async () => lines.length > 0 && await store.whyNotReady())
    t.ok(lines.some(line => JSON.parse(line).msg === 'not ready' || JSON.parse(line).msg === 'Redis is away'), url)
    await store.close()
    for (const line of lines) t.notMatch(line, password)
  }
})

t.test('an outage names each of its reasons once, then its end', async t => {
  const port = await freePort(loopback)
  const { log, lines } = logSink(t)
  const store = openStore({ url: `redis://:a-password@127.0.0.1:${port}`, keyPrefix: 'x', tags, workTtl: 1, retention: 1, replicas: 0, log })
  t.teardown(() => store.close())
  const seen = (text: string) => lines.filter(line => line.includes('"msg":"Redis is ') && line.includes(text)).length
  // The store has two connections, each with lines of its own.
  await until(() => seen('ECONNREFUSED') === 2)
  const { admin } = await ownRedis(t)
  await admin.config('SET', 'requirepass', 'another-password')
  await admin.config('SET', 'port', String(port))
  await until(() => seen('WRONGPASS') === 2)
  await admin.config('SET', 'requirepass', 'a-password')
  await until(() => seen('Redis is back') === 2)
  t.equal(seen('Redis is away'), 4)
})
