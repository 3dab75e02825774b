import t from 'tap'
import { tagOf } from '../../src/core/ids.ts'
import { testApp } from '../helpers/app.ts'
import type { TestApp } from '../helpers/app.ts'
import { isProblem } from '../helpers/problems.ts'
import { asleep, nobody, passed } from '../helpers/waits.ts'

/** Of all that needs no service of its own. */
const service = await testApp(t)

/** Waiting requests combined with cancelling, failing, delays and successors, by Redis’s own clock. */

const catchIt = ({ call }: TestApp, id: string, wait = 60) => call('bob', 'GET', `/api/catch/${id}?wait=${wait}`)
const status = ({ call }: TestApp, id: string, query: string) => call('alice', 'GET', `/api/status/${id}?${query}`)

t.test('waits for approval and for the end are answered when the handoff is cancelled or rejected', async t => {
  for (const [who, operation, body, ended] of [['alice', 'cancel', {}, 'cancelled'], ['approver', 'reject', { note: 'n' }, 'rejected']] as const) {
    const id = await passed(service)
    const waiting = [catchIt(service, id), status(service, id, 'wait=60'), status(service, id, 'wait=60&until=caught')]
    await asleep(service, id)
    await service.call(who, 'POST', `/api/${operation}/${id}`, body)
    const [refused, ...told] = await Promise.all(waiting)
    isProblem(t, refused!, 409, ended)
    for (const answer of told) t.equal(answer.json().status, ended)
    t.ok(await nobody(service, id))
  }
})

t.test('a cancel request ends no wait; the catcher’s answer to it does', async t => {
  for (const [operation, body, ended] of [['fail', { error: { message: 'm' } }, 'failed'], ['decline', { reason: 'r' }, 'declined'], ['done', {}, 'done']] as const) {
    const id = await service.caught()
    let isTold = false
    const waiting = status(service, id, 'wait=60').finally(() => { isTold = true })
    await asleep(service, id)
    t.equal((await service.call('alice', 'POST', `/api/cancel/${id}`)).statusCode, 202)
    t.equal((await service.call('bob', 'POST', `/api/heartbeat/${id}`, { extend_by: 90000 })).json().cancel_requested, true)
    t.notOk(isTold)
    await service.call('bob', 'POST', `/api/${operation}/${id}`, body)
    t.equal((await waiting).json().status, ended)
  }
})

t.test('a catch that waits for a delay gets the handoff when the delay is over, not before', async t => {
  const { handoff_id: id, available_at: availableAt } = (await service.call('alice', 'POST', '/api/pass', { task: 't', delay: 1 })).json()
  const answer = await catchIt(service, id)
  t.equal(answer.statusCode, 200)
  const { caught_at: caughtAt } = (await status(service, id, 'wait=0')).json()
  t.ok(caughtAt >= availableAt, `${caughtAt} >= ${availableAt}`)
  const other = (await service.call('alice', 'POST', '/api/pass', { task: 't', delay: 1000 })).json().handoff_id
  isProblem(t, await catchIt(service, other, 1), 409, 'not_yet')
})

t.test('a catch that waits for a person and a delay waits for both', async t => {
  const { handoff_id: id, available_at: availableAt } = (await service.call('alice', 'POST', '/api/pass', { task: 't', delay: 2, require_human: true })).json()
  const waiting = catchIt(service, id)
  await asleep(service, id)
  await service.call('approver', 'POST', `/api/approve/${id}`)
  t.equal((await waiting).statusCode, 200)
  t.ok((await status(service, id, 'wait=0')).json().caught_at >= availableAt)
})

t.test('a status that waits for the end is told the successor, even on a replica that doesn’t sweep', async t => {
  const service = await testApp(t)
  const other = await testApp(t, {}, { prefix: service.prefix })
  const id = await service.caught({ work_within: 1, max_attempts: 2, retry_delay: 0 })
  const waiting = status(other, id, 'wait=60')
  await asleep(other, id)
  const early = (await status(other, id, 'wait=60&until=caught')).json()
  t.equal(early.status, 'caught')
  while ((await service.store.handoffs.sweep(tagOf(id), 10)).expired === 0);
  const { status: ended, expired_because: because, reissued_as: successor } = (await waiting).json()
  t.match([ended, because, successor], ['expired', 'not_done', /^.{25}$/])
  t.match((await service.call('bob', 'GET', `/api/catch/${successor}`)).json(), { attempt: 2, reissue_of: id })
})

t.test('what runs out of time is tried again when the sweep gets there, and a status that waits is told then', async t => {
  const service = await testApp(t)
  const start = Date.now() + 3600_000
  await service.setClock(start)
  const id = await service.caught({ max_attempts: 2, retry_delay: 0, heartbeat_within: 5 })
  await service.setClock(start + 5000)
  t.match((await status(service, id, '')).json(), { status: 'expired', expired_because: 'stalled', reissued_as: null })
  const waiting = status(service, id, 'wait=30')
  t.equal((await status(service, id, 'wait=30&until=caught')).json().status, 'expired', 'until=caught is answered at once')
  await service.store.handoffs.sweep(tagOf(id), 100)
  const told = (await waiting).json()
  t.match(told, { status: 'expired', reissued_as: /./ })
  t.match(isProblem(t, await service.call('bob', 'POST', `/api/done/${id}`), 410, 'expired'), { reissued_as: told.reissued_as })
})
