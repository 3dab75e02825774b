import t from 'tap'
import { testApp } from '../helpers/app.ts'
import type { TestApp, Who } from '../helpers/app.ts'
import { isProblem } from '../helpers/problems.ts'

/** Of all that needs no service of its own. */
const service = await testApp(t)

/** Work deadlines and heartbeats, and their members in answers. */

const start = Date.now() + 3600_000
const at = (seconds: number) => new Date(start + seconds * 1000).toISOString()

async function caught (service: TestApp, options: object = {}): Promise<string> {
  await service.setClock(start)
  const id = (await service.call('alice', 'POST', '/api/pass', { task: 't', ...options })).json().handoff_id
  await service.call('bob', 'GET', `/api/catch/${id}`)
  return id
}

const beat = ({ call }: TestApp, id: string, body?: unknown, who: Who = 'bob') => call(who, 'POST', `/api/heartbeat/${id}`, body)
const status = async ({ call }: TestApp, id: string) => (await call('alice', 'GET', `/api/status/${id}`)).json()

/** The members that only some handoffs have. */
const special = ['to', 'priority', 'available_at', 'work_expires_at', 'heartbeat_expires_at', 'progress', 'cancel_requested_at', 'cancel_reason', 'ended_at', 'ended_by', 'error',
  'reason', 'expired_because', 'attempt', 'reissue_of', 'reissued_as', 'parent', 'root', 'hops', 'result_schema', 'heartbeat_within']
const specialOf = (answer: object) => Object.keys(answer).filter(name => special.includes(name)).sort()

t.test('a plain handoff’s answers have no new members', async t => {
  const service = await testApp(t)
  await service.setClock(start)
  const passed = (await service.call('alice', 'POST', '/api/pass', { task: 't' })).json()
  t.strictSame(Object.keys(passed), ['handoff_id', 'pickup_url', 'status', 'created_at', 'expires_at'])
  const id = passed.handoff_id
  t.strictSame(specialOf(await status(service, id)), [])
  t.strictSame(Object.keys((await service.call('bob', 'GET', `/api/catch/${id}`)).json()), ['handoff_id', 'status', 'task', 'output', 'context', 'constraints', 'created_at'])
  t.strictSame(specialOf(await status(service, id)), [])
  await service.call('bob', 'POST', `/api/done/${id}`)
  t.strictSame(specialOf(await status(service, id)), [])
})

t.test('a heartbeat answers the deadlines, extends the work and stores progress', async t => {
  const service = await testApp(t, { MAX_WORK_TTL: '300', WORK_TTL: '100' })
  const id = await caught(service, { heartbeat_within: 30 })
  await service.setClock(start + 10_000)
  const answer = { handoff_id: id, status: 'caught', work_expires_at: at(100), heartbeat_expires_at: at(40), cancel_requested: false, cancel_reason: null }
  t.strictSame((await beat(service, id)).json(), answer)
  t.strictSame((await beat(service, id, {})).json(), answer)
  t.strictSame((await beat(service, id, { extend_by: 5, progress: null })).json(), answer, 'never earlier than it was')
  t.equal((await beat(service, id, { extend_by: 200 })).json().work_expires_at, at(210))
  t.equal((await beat(service, id, { extend_by: 300 })).json().work_expires_at, at(300), 'no later than MAX_WORK_TTL from the catch')
  await beat(service, id, '{"progress": {"percent": 50.0, "message": "h\\u00e4lf"}}')
  t.match((await service.call('alice', 'GET', `/api/status/${id}`)).body, `"progress":{"message":"h\\u00e4lf","percent":50.0,"at":"${at(10)}"}`, 'as it was said')
  await service.setClock(start + 12_000)
  await beat(service, id)
  t.match((await status(service, id)).progress, { percent: 50, at: at(10) }, 'stays')
  await beat(service, id, { progress: { message: 'more', percent: null } })
  t.strictSame((await status(service, id)).progress, { message: 'more', at: at(12) }, 'replaced by what was said last')
})

t.test('bodies are read strictly', async t => {
  const id = await caught(service, { heartbeat_within: 30 })
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
  const before = await service.dump()
  for (const [path, rows] of Object.entries(bad)) {
    const who = ['heartbeat', 'fail', 'decline'].includes(path) ? 'bob' : 'alice'
    for (const [body, pointer] of rows) {
      const [url, sent] = path === 'pass' ? ['/api/pass', { task: 't', ...body as object }] : [`/api/${path}/${id}`, body]
      const { errors } = isProblem(t, await service.call(who, 'POST', url, sent), 400, 'invalid_request', `${path} ${pointer}`)
      t.match(errors, [{ pointer }], `${path} ${JSON.stringify(body)}`)
    }
  }
  t.strictSame(await service.dump(), before, 'nothing changed')
})

t.test('lengths are in characters, and null means absent', async t => {
  const id = await caught(service, { heartbeat_within: null, work_within: null, delay: null, max_attempts: null, retry_delay: null, result_schema: null, parent: null })
  t.strictSame(specialOf(await status(service, id)), [])
  t.equal((await beat(service, id, { extend_by: null, progress: { message: '😀'.repeat(1000), percent: null } })).statusCode, 200)
  t.equal((await service.call('bob', 'POST', `/api/fail/${id}`, { error: { message: '😀'.repeat(4000), code: null, data: null }, retry: null })).statusCode, 200)
  isProblem(t, await beat(service, await caught(service), { progress: { message: '😀'.repeat(1001) } }), 400, 'invalid_request')
})

t.test('heartbeats need the scope catch and a well-formed Idempotency-Key', async t => {
  const id = await caught(service)
  for (const path of ['heartbeat', 'fail', 'decline', 'cancel', 'reissue']) {
    isProblem(t, await service.call('approver', 'POST', `/api/${path}/${id}`, {}), 403, 'insufficient_scope', path)
    isProblem(t, await service.call('bob', 'POST', `/api/${path}/${id}`, {}, { 'idempotency-key': 'ä' }), 400, 'invalid_request', path)
    isProblem(t, await service.call('bob', 'POST', `/api/${path}/nothing`, path === 'fail' ? { error: { message: 'm' } } : path === 'decline' ? { reason: 'r' } : {}), 404, 'not_found', path)
  }
  t.equal((await service.call('bob', 'POST', `/api/heartbeat/${id}`, {}, { 'idempotency-key': 'k' })).headers['idempotency-replayed'], undefined)
})
