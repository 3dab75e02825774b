import t from 'tap'
import { tagOf } from '../../src/core/ids.ts'
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

t.test('a decline’s reason is shown as it was said', async t => {
  const id = await caught(service)
  await post(service, 'bob', 'decline', id, '{"reason": "not \\u006dine"}')
  t.match((await service.call('alice', 'GET', `/api/status/${id}`)).body, '"reason":"not \\u006dine"')
})

t.test('a reissue’s answer leads to the successor, which has what was passed', async t => {
  await service.setClock(start)
  const id = await caught(service, { expires_in: 100, context: { c: 1.0 } })
  await service.setClock(start + 3000)
  const answer = await post(service, 'alice', 'reissue', id)
  const successor = answer.json().handoff_id
  t.match(answer, { statusCode: 201, headers: { location: `/api/status/${successor}` } })
  t.match(answer.json(), { pickup_url: `http://127.0.0.1:8080/api/catch/${successor}`, created_at: at(3), expires_at: at(103) })
  t.match(isProblem(t, await post(service, 'bob', 'done', id), 409, 'cancelled'), { reissued_as: successor, ended_at: at(3) })
  const got = (await service.call('bob', 'GET', `/api/catch/${successor}`)).json()
  t.match(got, { task: 't', output: { n: 1 }, context: { c: 1 }, attempt: 2, reissue_of: id })
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

t.test('a delay shows in every answer, and who comes too early is told when to come again', async t => {
  await service.setClock(start)
  const body = { task: 't', delay: 30, require_human: true }
  const { handoff_id: id, available_at: availableAt } = (await service.call('alice', 'POST', '/api/pass', body)).json()
  t.equal(availableAt, at(30))
  const { items } = (await service.call('approver', 'GET', '/api/approvals')).json()
  t.match(items.at(-1), { handoff_id: id, available_at: at(30) })
  t.match((await service.call('approver', 'GET', `/api/approvals/${id}`)).json(), { available_at: at(30) })
  await post(service, 'approver', 'approve', id)
  for (const [later, left] of [[0, '30'], [29_999, '1']] as const) {
    await service.setClock(start + later)
    const soon = await service.call('bob', 'GET', `/api/catch/${id}`)
    isProblem(t, soon, 409, 'not_yet')
    t.equal(soon.headers['retry-after'], left)
  }
  await service.setClock(start + 30_000)
  t.equal((await service.call('bob', 'GET', `/api/catch/${id}`)).statusCode, 200)
})
