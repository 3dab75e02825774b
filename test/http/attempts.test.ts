import t from 'tap'
import { tagOf } from '../../src/handoff/id.ts'
import { testApp } from '../helpers/app.ts'
import type { TestApp, Who } from '../helpers/app.ts'
import { isProblem } from '../helpers/problems.ts'

/** Of all that needs no service of its own. */
const service = await testApp(t)

/** Fail, decline, cancel, reissue, delays and what is tried again. */

const start = Date.now() + 3600_000
const at = (seconds: number) => new Date(start + seconds * 1000).toISOString()

async function pass ({ call }: TestApp, options: object = {}): Promise<string> {
  return (await call('alice', 'POST', '/api/pass', { task: 't', output: { n: 1 }, ...options })).json().handoff_id
}

async function caught (service: TestApp, options: object = {}): Promise<string> {
  const id = await pass(service, options)
  const answer = await service.call('bob', 'GET', `/api/catch/${id}`)
  if (answer.statusCode !== 200) throw new Error(answer.body)
  return id
}

const post = ({ call }: TestApp, who: Who, operation: string, id: string, body?: unknown, headers?: Record<string, string>) => call(who, 'POST', `/api/${operation}/${id}`, body, headers)
const status = async ({ call }: TestApp, id: string) => (await call('alice', 'GET', `/api/status/${id}`)).json()
const sweep = ({ store }: TestApp, id: string) => store.handoffs.sweep(tagOf(id), 100)
const error = { message: 'no disk', code: 'E.1', data: { left: 0 } }

t.test('fail: its answer, what status shows, its replay', async t => {
  await service.setClock(start)
  const id = await caught(service)
  const body = '{"error": {"message": "no \\u0064isk", "data": {"n": 1.0}}}'
  const answer = await post(service, 'bob', 'fail', id, body, { 'idempotency-key': 'f' })
  t.strictSame([answer.statusCode, answer.json()], [200, { handoff_id: id, status: 'failed', ended_at: at(0) }])
  const shown = await service.call('alice', 'GET', `/api/status/${id}`)
  t.match(shown.json(), { status: 'failed', ended_at: at(0), ended_by: 'bob', caught_by: 'bob', completed_at: null, result: null })
  t.match(shown.body, '"error":{"message": "no \\u0064isk", "data": {"n": 1.0}}', 'literally')
  t.notOk('reissued_as' in shown.json())
  await service.setClock(start + 5000)
  const again = await post(service, 'bob', 'fail', id, body, { 'idempotency-key': 'f' })
  t.strictSame([again.statusCode, again.json(), again.headers['idempotency-replayed']], [200, answer.json(), 'true'])
  for (const [who, key, sent] of [['bob', 'f', { error }], ['bob', 'g', body], ['bob', undefined, body]] as const) {
    const problem = isProblem(t, await post(service, who, 'fail', id, sent, key === undefined ? {} : { 'idempotency-key': key }), 409, 'already_failed')
    t.match(problem, { handoff_status: 'failed', ended_at: at(0) })
  }
  t.match(isProblem(t, await post(service, 'alice', 'fail', id, body, { 'idempotency-key': 'f' }), 403, 'not_the_catcher'), { handoff_status: 'failed', ended_at: at(0) })
})

t.test('decline likewise', async t => {
  await service.setClock(start)
  const id = await caught(service)
  const answer = await post(service, 'bob', 'decline', id, '{"reason": "not \\u006dine"}', { 'idempotency-key': 'd' })
  t.strictSame([answer.statusCode, answer.json()], [200, { handoff_id: id, status: 'declined', ended_at: at(0) }])
  const shown = await service.call('alice', 'GET', `/api/status/${id}`)
  t.match(shown.json(), { status: 'declined', ended_at: at(0), ended_by: 'bob' })
  t.match(shown.body, '"reason":"not \\u006dine"')
  t.equal((await post(service, 'bob', 'decline', id, '{"reason": "not \\u006dine"}', { 'idempotency-key': 'd' })).headers['idempotency-replayed'], 'true')
  isProblem(t, await post(service, 'bob', 'decline', id, { reason: 'again' }), 409, 'already_declined')
  isProblem(t, await post(service, 'bob', 'done', id), 409, 'already_declined')
  isProblem(t, await service.call('bob', 'GET', `/api/catch/${id}`), 409, 'already_declined')
})

t.test('cancel while it is pending: at once, and what was passed is freed', async t => {
  const service = await testApp(t)
  await service.setClock(start)
  const id = await pass(service)
  t.match(isProblem(t, await post(service, 'bob', 'cancel', id), 403, 'not_the_passer'), { handoff_status: 'pending' })
  const answer = await post(service, 'alice', 'cancel', id, { reason: 'not needed' })
  t.strictSame([answer.statusCode, answer.json()], [200, { handoff_id: id, status: 'cancelled', ended_at: at(0) }])
  const shown = await status(service, id)
  t.match(shown, { status: 'cancelled', ended_at: at(0), ended_by: 'alice', cancel_reason: 'not needed', caught_at: null })
  t.notOk('cancel_requested_at' in shown)
  await service.setClock(start + 5000)
  t.strictSame((await post(service, 'alice', 'cancel', id, { reason: 'other' })).json(), answer.json(), 'asked again: what stands')
  t.equal((await status(service, id)).cancel_reason, 'not needed')
  t.match(isProblem(t, await service.call('bob', 'GET', `/api/catch/${id}`), 409, 'cancelled'), { handoff_status: 'cancelled', ended_at: at(0) })
  isProblem(t, await post(service, 'bob', 'done', id), 409, 'cancelled')
  isProblem(t, await post(service, 'alice', 'reissue', id), 409, 'cancelled')
  const key = Object.keys(await service.dump()).find(name => name.includes(id))!
  t.equal(((await service.dump())[key] as { content: Record<string, string> }).content.p, '')
})

t.test('cancel while it is caught: its catcher is told, and may stop or go on', async t => {
  await service.setClock(start)
  const id = await caught(service, { max_attempts: 3 })
  const asked = await post(service, 'alice', 'cancel', id)
  t.strictSame([asked.statusCode, asked.json()], [202, { handoff_id: id, status: 'caught', cancel_requested_at: at(0) }])
  t.match((await post(service, 'bob', 'heartbeat', id)).json(), { cancel_requested: true, cancel_reason: null })
  await service.setClock(start + 1000)
  t.equal((await post(service, 'alice', 'cancel', id, { reason: 'one' })).json().cancel_requested_at, at(0), 'the first time')
  t.match((await post(service, 'bob', 'heartbeat', id)).json(), { cancel_requested: true, cancel_reason: 'one' })
  await post(service, 'alice', 'cancel', id, { reason: 'two' })
  await post(service, 'alice', 'cancel', id)
  t.match(await status(service, id), { status: 'caught', cancel_requested_at: at(0), cancel_reason: 'two' }, 'replaced, and kept')
  t.strictSame((await post(service, 'bob', 'fail', id, { error })).json(), { handoff_id: id, status: 'failed', ended_at: at(1) }, 'which isn’t tried again')
  t.match(isProblem(t, await post(service, 'alice', 'cancel', id), 409, 'already_failed'), { handoff_status: 'failed' })

  const goesOn = await caught(service)
  await post(service, 'alice', 'cancel', goesOn)
  t.equal((await post(service, 'bob', 'done', goesOn)).statusCode, 200)
  t.match(await status(service, goesOn), { status: 'done', cancel_requested_at: at(1) })
  t.match(isProblem(t, await post(service, 'alice', 'cancel', goesOn), 409, 'already_done'), { completed_at: at(1) })

  const expires = await caught(service, { max_attempts: 2, work_within: 5 })
  await post(service, 'alice', 'cancel', expires)
  await service.setClock(start + 6000)
  t.notOk('reissued_as' in await status(service, expires), 'nor is what runs out of time then')
  await sweep(service, expires)
  t.notOk('reissued_as' in await status(service, expires))
  isProblem(t, await post(service, 'alice', 'cancel', expires), 410, 'expired')
})

t.test('cancel by force: whatever the catcher says then is 409 cancelled', async t => {
  await service.setClock(start)
  const id = await caught(service, { max_attempts: 3 })
  const answer = await post(service, 'alice', 'cancel', id, { force: true, reason: 'now' })
  t.strictSame([answer.statusCode, answer.json()], [200, { handoff_id: id, status: 'cancelled', ended_at: at(0) }])
  for (const [operation, body] of [['heartbeat', {}], ['done', {}], ['fail', { error }], ['decline', { reason: 'r' }]] as const) {
    t.match(isProblem(t, await post(service, 'bob', operation, id, body), 409, 'cancelled'), { handoff_status: 'cancelled', ended_at: at(0) })
  }
  t.match(await status(service, id), { status: 'cancelled', ended_by: 'alice', cancel_reason: 'now', caught_by: 'bob' })
})

t.test('a reissue by hand', async t => {
  await service.setClock(start)
  const id = await caught(service, { expires_in: 100, work_within: 50, heartbeat_within: 20, context: { c: 1.0 } })
  await post(service, 'alice', 'cancel', id, { reason: 'slow' })
  await service.setClock(start + 3000)
  isProblem(t, await post(service, 'bob', 'reissue', id), 403, 'not_the_passer')
  const answer = await post(service, 'alice', 'reissue', id)
  const successor = answer.json().handoff_id
  t.strictSame([answer.statusCode, answer.json(), answer.headers.location, answer.headers['idempotency-replayed']], [201, {
    handoff_id: successor, pickup_url: `http://127.0.0.1:8080/api/catch/${successor}`, status: 'pending', created_at: at(3), expires_at: at(103),
  }, `/api/status/${successor}`, undefined])
  t.match(await status(service, id), { status: 'cancelled', ended_at: at(3), ended_by: 'alice', reissued_as: successor, cancel_requested_at: at(0) })
  t.match(isProblem(t, await post(service, 'bob', 'done', id), 409, 'cancelled'), { reissued_as: successor, ended_at: at(3) })
  const again = await post(service, 'alice', 'reissue', id, {})
  t.strictSame([again.statusCode, again.json(), again.headers['idempotency-replayed']], [201, answer.json(), 'true'])
  t.match(await status(service, successor), { status: 'pending', attempt: 2, reissue_of: id, caught_at: null })
  const got = (await service.call('bob', 'GET', `/api/catch/${successor}`)).json()
  t.match(got, { task: 't', output: { n: 1 }, context: { c: 1 }, attempt: 2, reissue_of: id, work_expires_at: at(53), heartbeat_expires_at: at(23), heartbeat_within: 20 })
  t.notOk('cancel_requested_at' in await status(service, successor), 'a requested cancel isn’t carried over')
  t.match(isProblem(t, await post(service, 'alice', 'reissue', (await pass(service))), 409, 'not_caught'), { handoff_status: 'pending' })
  await post(service, 'bob', 'done', successor)
  t.match(isProblem(t, await post(service, 'alice', 'reissue', successor), 409, 'already_done'), { completed_at: at(3) })
})

t.test('a reissue of what has ended', async t => {
  await service.setClock(start)
  const failed = await caught(service)
  await post(service, 'bob', 'fail', failed, { error })
  const next = (await post(service, 'alice', 'reissue', failed)).json().handoff_id
  t.match(await status(service, failed), { status: 'failed', error, reissued_as: next })
  t.match(isProblem(t, await post(service, 'bob', 'fail', failed, { error }), 409, 'already_failed'), { reissued_as: next })
  const declined = await caught(service)
  await post(service, 'bob', 'decline', declined, { reason: 'r' })
  t.equal((await post(service, 'alice', 'reissue', declined)).statusCode, 201)
  const neverCaught = await pass(service, { expires_in: 5 })
  const late = await caught(service, { work_within: 5 })
  const swept = await caught(service, { work_within: 5 })
  await service.setClock(start + 5000)
  await sweep(service, swept)
  isProblem(t, await post(service, 'alice', 'reissue', neverCaught), 410, 'expired')
  for (const id of [late, swept]) {
    const { handoff_id: successor } = (await post(service, 'alice', 'reissue', id)).json()
    t.match(await status(service, id), { status: 'expired', expired_because: 'not_done', ended_at: at(5), reissued_as: successor })
    t.match((await service.call('bob', 'GET', `/api/catch/${successor}`)).json(), { task: 't', output: { n: 1 } })
  }
  const rejected = await pass(service, { require_human: true })
  await post(service, 'approver', 'reject', rejected, { note: 'no' })
  t.match(isProblem(t, await post(service, 'alice', 'reissue', rejected), 409, 'rejected'), { handoff_status: 'rejected', ended_at: at(5) })
})

t.test('what fails is tried again by itself, later each time', async t => {
  await service.setClock(start)
  const first = await caught(service, { max_attempts: 3, retry_delay: 10, expires_in: 100, result_schema: { type: 'object' } })
  const { reissued_as: second, ended_at: endedAt } = (await post(service, 'bob', 'fail', first, { error }, { 'idempotency-key': 'f' })).json()
  t.equal(endedAt, at(0))
  t.equal((await post(service, 'bob', 'fail', first, { error }, { 'idempotency-key': 'f' })).json().reissued_as, second, 'told again')
  t.match(await status(service, second), { status: 'pending', attempt: 2, reissue_of: first, available_at: at(10), expires_at: at(110), created_at: at(0) })
  const soon = await service.call('bob', 'GET', `/api/catch/${second}`)
  t.match(isProblem(t, soon, 409, 'not_yet'), { handoff_status: 'pending' })
  t.equal(soon.headers['retry-after'], '10')
  await service.setClock(start + 9_001)
  t.equal((await service.call('bob', 'GET', `/api/catch/${second}`)).headers['retry-after'], '1')
  await service.setClock(start + 10_000)
  t.match((await service.call('bob', 'GET', `/api/catch/${second}`)).json(), { attempt: 2, result_schema: { type: 'object' } })
  const { reissued_as: third } = (await post(service, 'bob', 'decline', second, { reason: 'r' })).json()
  t.match(await status(service, third), { attempt: 3, reissue_of: second, available_at: at(30), expires_at: at(130) })
  await service.setClock(start + 30_000)
  await service.call('bob', 'GET', `/api/catch/${third}`)
  t.strictSame((await post(service, 'bob', 'fail', third, { error })).json(), { handoff_id: third, status: 'failed', ended_at: at(30) }, 'the last one')
  t.notOk('reissued_as' in await status(service, third))
  const noRetry = await caught(service, { max_attempts: 3 })
  t.notOk('reissued_as' in (await post(service, 'bob', 'fail', noRetry, { error, retry: false })).json())
})

t.test('what runs out of time is tried again when the sweep gets there, and a status that waits is told then', async t => {
  const service = await testApp(t)
  await service.setClock(start)
  const id = await caught(service, { max_attempts: 2, retry_delay: 0, heartbeat_within: 5 })
  await service.setClock(start + 5000)
  t.match(await status(service, id), { status: 'expired', expired_because: 'stalled', reissued_as: null })
  t.notOk('reissued_as' in isProblem(t, await post(service, 'bob', 'done', id), 410, 'expired'))
  const waiting = service.call('alice', 'GET', `/api/status/${id}?wait=30`)
  t.equal((await service.call('alice', 'GET', `/api/status/${id}?wait=30&until=caught`)).json().status, 'expired', 'until=caught is answered at once')
  await sweep(service, id)
  const told = (await waiting).json()
  t.match(told, { status: 'expired', reissued_as: /./ })
  const successor = told.reissued_as
  t.notOk('available_at' in await status(service, successor))
  t.match(isProblem(t, await post(service, 'bob', 'done', id), 410, 'expired'), { reissued_as: successor })
  t.match((await service.call('alice2', 'GET', `/api/catch/${successor}`)).json(), { task: 't', attempt: 2 })
})

t.test('a delay: not before, but it can be decided meanwhile', async t => {
  await service.setClock(start)
  const answer = (await service.call('alice', 'POST', '/api/pass', { task: 't', delay: 30, require_human: true }, { 'idempotency-key': 'd' })).json()
  t.equal(answer.available_at, at(30))
  t.strictSame((await service.call('alice', 'POST', '/api/pass', { task: 't', delay: 30, require_human: true }, { 'idempotency-key': 'd' })).json(), answer, 'replayed')
  const id = answer.handoff_id
  t.match(await status(service, id), { available_at: at(30) })
  t.match((await service.call('approver', 'GET', '/api/approvals')).json().items, [{ handoff_id: id, available_at: at(30) }])
  t.match((await service.call('approver', 'GET', `/api/approvals/${id}`)).json(), { available_at: at(30) })
  isProblem(t, await service.call('bob', 'GET', `/api/catch/${id}`), 409, 'approval_required')
  await post(service, 'approver', 'approve', id)
  const soon = await service.call('bob', 'GET', `/api/catch/${id}`)
  isProblem(t, soon, 409, 'not_yet')
  t.equal(soon.headers['retry-after'], '30')
  await service.setClock(start + 29_999)
  isProblem(t, await service.call('bob', 'GET', `/api/catch/${id}`), 409, 'not_yet')
  await service.setClock(start + 30_000)
  t.equal((await service.call('bob', 'GET', `/api/catch/${id}`)).statusCode, 200)
})

t.test('an approval is kept by the successor', async t => {
  await service.setClock(start)
  const id = await pass(service, { require_human: true, max_attempts: 2, retry_delay: 0 })
  const { digest } = (await service.call('approver', 'GET', `/api/approvals/${id}`)).json()
  await post(service, 'approver', 'approve', id, { note: 'go', digest })
  await service.call('bob', 'GET', `/api/catch/${id}`)
  const { reissued_as: successor } = (await post(service, 'bob', 'fail', id, { error })).json()
  const approval = { state: 'approved', decided_at: at(0), decided_by: 'carol', note: 'go', digest }
  t.strictSame((await status(service, id)).approval, approval)
  t.strictSame((await status(service, successor)).approval, approval)
  t.strictSame((await service.call('bob', 'GET', `/api/catch/${successor}`)).json().approval, approval)
  t.equal((await service.call('approver', 'GET', `/api/approvals/${id}`)).json().digest, digest)
  t.equal((await post(service, 'alice', 'reissue', id)).json().approval_url, `http://127.0.0.1:8080/approvals/${successor}`)
})

t.test('cancelled while a person is to decide: it leaves the list, and can’t be decided', async t => {
  await service.setClock(start)
  const id = await pass(service, { require_human: true })
  await post(service, 'alice', 'cancel', id)
  t.strictSame((await service.call('approver', 'GET', '/api/approvals')).json().items, [])
  t.match(isProblem(t, await post(service, 'approver', 'approve', id), 409, 'cancelled'), { handoff_status: 'cancelled', ended_at: at(0) })
  t.match(await status(service, id), { approval: { state: 'waiting' } })
  const approved = await pass(service, { require_human: true })
  await post(service, 'approver', 'approve', approved)
  await post(service, 'alice', 'cancel', approved)
  isProblem(t, await post(service, 'approver', 'reject', approved, { note: 'n' }), 409, 'already_decided')
})

t.test('the original pass asked again is answered as it was, whatever has become of it', async t => {
  await service.setClock(start)
  const body = { task: 't', max_attempts: 2 }
  const key = { 'idempotency-key': 'p' }
  const first = (await service.call('alice', 'POST', '/api/pass', body, key)).json()
  await service.call('bob', 'GET', `/api/catch/${first.handoff_id}`)
  await post(service, 'bob', 'fail', first.handoff_id, { error })
  const again = await service.call('alice', 'POST', '/api/pass', body, key)
  t.strictSame([again.json(), again.headers['idempotency-replayed']], [first, 'true'])
})
