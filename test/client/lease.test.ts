import { setImmediate as setImmediateOf } from 'node:timers'
import { setImmediate } from 'node:timers/promises'
import t from 'tap'
import { insist, moment } from '../../src/clients/typescript/clock.ts'
import { HandoffError, isHandoffError } from '../../src/clients/typescript/index.ts'
import { Lease } from '../../src/clients/typescript/work.ts'
import { aborted, answering, paths, tenants, worker } from '../helpers/client.ts'
import { skipInQuick } from '../helpers/extent.ts'
import { until } from '../helpers/until.ts'

/** How a worker knows whether its handoff is still its own. */

const tenant = await tenants(t)

t.test('what a gateway says in the service’s place ends nothing, and loses no answer', async t => {
  const odd = new Map([['heartbeat', 0], ['done', 0]])
  const { pass, work, ended, seen } = await worker(t, tenant(), ({ url }) => {
    const what = url.split('/')[2]!
    const count = odd.get(what)
    if (count === undefined || count === 2) return 'pass'
    odd.set(what, count + 1)
    return answering(404, '404 page not found\n', { 'content-type': 'text/plain' })
  })
  const [id] = await pass({ heartbeat_within: 5 })
  const { stop } = work(async (_, { signal }) => {
    await until(() => signal.aborted || paths(seen, 'heartbeat').length === 3)
    return { isLost: signal.aborted }
  }, { onError: error => t.fail(String(error)) })
  t.match(await ended(id!), { status: 'done', result: { isLost: false } })
  t.equal(new Set(paths(seen, 'done').map(({ key }) => key)).size, 1)
  await stop()
})

t.test('an answer that a gateway never lets through is a failure', skipInQuick, async t => {
  const { pass, work, ended } = await worker(t, tenant(), ({ url }) => url.startsWith('/api/done') ? answering(403, '<html>Blocked') : 'pass')
  const [id] = await pass({})
  const errors: unknown[] = []
  const { stop } = work(() => ({ n: 1 }), { onError: error => errors.push(error) })
  t.match(await ended(id!), { status: 'failed', error: { message: /status 403/, code: 'connection_failed' } })
  await until(() => errors.length === 1)
  await stop()
})

t.test('without heartbeats too a handoff that was taken away ends its handler', async t => {
  const { alice, pass, work, seen } = await worker(t, tenant())
  const [id] = await pass({})
  const { now } = Date
  t.teardown(() => { Date.now = now })
  let reason: unknown
  const { stop } = work(async ({ handoff_id: id }, { signal }) => {
    const ending = aborted(signal)
    await alice.cancel(id, { force: true })
    // It is asked after every ten seconds.
    Date.now = () => now() + 10_000
    reason = await ending
  }, { onError: error => t.fail(String(error)) })
  await until(() => reason)
  t.ok(isHandoffError(reason, 'cancelled'))
  t.match(await alice.status(id!), { status: 'cancelled' })
  t.equal(paths(seen, 'heartbeat').length, 1)
  await stop()
})

t.test('but not at once, however long it was waited for', async t => {
  const { pass, work, ended, seen } = await worker(t, tenant())
  const { now } = Date
  t.teardown(() => { Date.now = now })
  const { stop } = work(() => ({}))
  await until(() => paths(seen, 'catch').length === 1)
  Date.now = () => now() + 20_000
  const [id] = await pass({})
  t.match(await ended(id!), { status: 'done' })
  t.equal(paths(seen, 'heartbeat').length, 0)
  await stop()
})

t.test('a heartbeat that is refused is tried again soon, but not before Retry-After', async t => {
  const times: number[] = []
  const { pass, work, ended } = await worker(t, tenant(), ({ url }) =>
    url.startsWith('/api/heartbeat') && times.push(performance.now()) === 1 ? answering(429, '{"code":"rate_limited"}', { 'retry-after': '1' }) : 'pass')
  const [id] = await pass({ heartbeat_within: 5 })
  const { stop } = work(async () => { await until(() => times.length === 2) })
  t.match(await ended(id!), { status: 'done' })
  t.ok(times[1]! - times[0]! >= 1000, `${times}`)
  await stop()
})

t.test('while a question is open heartbeats that fail lose nothing; then they count again', async t => {
  const { now } = Date
  t.teardown(() => { Date.now = now })
  let answer = () => {}
  const asked = new Promise(resolve => { answer = () => resolve({ ask_id: 'q', state: 'answered', answer: { yes: true } }) })
  const beat = async () => ({ work_expires_at: null })
  const client = { ask: async () => ({ ask_id: 'q' }), asked: () => asked, heartbeat: () => Promise.reject(new HandoffError('connection_failed')) }
  const lease = new Lease(client as never, { handoff_id: 'x', heartbeat_within: 5 } as never, moment())
  t.teardown(() => lease.close())
  const asking = lease.ask('May I?')
  await setImmediate()
  Date.now = () => now() + 60_000
  t.notOk(lease.isLost())
  client.heartbeat = beat as never
  answer()
  t.strictSame(await asking, { yes: true })
  t.notOk(lease.isLost())
  Date.now = () => now() + 120_000
  t.ok(lease.isLost())
})

t.test('the answer to another question is none to this one', async t => {
  const asked = { ask_id: 'later', state: 'answered', answer: { no: true } }
  const client = { ask: async () => ({ ask_id: 'q' }), asked: async () => asked, heartbeat: async () => ({ work_expires_at: null }) }
  const lease = new Lease(client as never, { handoff_id: 'x' } as never, moment())
  t.teardown(() => lease.close())
  await t.rejects(lease.ask('May I?'), { code: 'withdrawn' })
  asked.ask_id = 'q'
  t.strictSame(await lease.ask('May I?'), { no: true })
})

t.test('heartbeats are due from when the catch was sent: its answer may have been on its way for a while', async t => {
  const { now } = Date
  t.teardown(() => { Date.now = now })
  const sentAt = moment()
  Date.now = () => now() + 1000
  const lease = new Lease({ heartbeat: () => Promise.reject(new HandoffError('connection_failed')) } as never, { handoff_id: 'x', heartbeat_within: 5 } as never, sentAt)
  t.teardown(() => lease.close())
  t.notOk(lease.isLost())
  Date.now = () => now() + 5000
  t.ok(lease.isLost())
})

t.test('each heartbeat that got through counts from when it was sent, and one that didn’t is tried again soon', async t => {
  const { now } = Date
  t.teardown(() => { Date.now = now })
  let beats = 0
  const heartbeat = async () => {
    if (++beats === 2) throw new HandoffError('connection_failed')
    return { work_expires_at: null }
  }
  const lease = new Lease({ heartbeat } as never, { handoff_id: 'x', heartbeat_within: 60 } as never, moment())
  t.teardown(() => lease.close())
  Date.now = () => now() + 40_000
  await lease.heartbeat()
  Date.now = () => now() + 90_000
  t.notOk(lease.isLost(), '60 s after the catch, but not after the heartbeat')
  // The regular one, which is due since, fails. A second later it is tried again, and not after the third of a minute.
  await until(() => beats >= 2)
  Date.now = () => now() + 91_500
  await until(() => beats >= 3, 10_000)
  t.notOk(lease.isLost())
})

t.test('what a worker reports is repeated while it may pass, and as long as it goes on; what else answers is believed in the end', async t => {
  // Pauses are over at once.
  t.intercept(globalThis, 'setTimeout', { value: (run: () => void) => setImmediateOf(run) })
  let asked = 0
  const failing = (details: { status: number, retryable?: boolean }, times = Infinity) => async () => {
    if (asked++ >= times) return 'said'
    if (asked > 99) throw new Error('it goes on for ever')
    throw new HandoffError(details.status === 500 ? 'internal_error' : 'connection_failed', details)
  }
  t.equal(await insist(failing({ status: 500 }, 3), { signal: undefined }), 'said', 'the service’s own fault')
  asked = 0
  t.equal(await insist(failing({ status: 503, retryable: true }, 50), { signal: undefined }), 'said')
  asked = 0
  await t.rejects(insist(failing({ status: 403 }), { signal: undefined }), { code: 'connection_failed' })
  t.equal(asked, 8, 'a page in the service’s place')
  asked = 0
  await t.rejects(insist(failing({ status: 503, retryable: true }), { signal: undefined, goesOn: () => asked < 3 }), { code: 'connection_failed', status: 503 })
  t.equal(asked, 3)
})
