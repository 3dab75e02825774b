import t from 'tap'
import { testApp } from '../helpers/app.ts'
import { isProblem } from '../helpers/problems.ts'
import { through } from '../helpers/through.ts'
import { until } from '../helpers/until.ts'

/** Why a pending handoff waits: GET /api/status/:id?explain=true. */

for (const [where, service] of [['one Redis', await testApp(t)], ['spread', await testApp(t, {}, { isSpread: true })]] as const) {
  const { call, pass } = service
  const why = async (id: string) => (await call('alice', 'GET', `/api/status/${id}?explain=true`)).json().waits_for
  const set = (inbox: string, body: object) => call('operator', 'PUT', `/api/inboxes/${inbox}`, body)

  t.test(`all that hinders it, in order: ${where}`, async t => {
    const plain = await pass()
    t.strictSame(await why(plain), [], 'nothing')
    const first = await pass({ to: 'box' })
    t.strictSame(await why(first), [{ reason: 'no_listener' }])
    const second = await pass({ to: 'box' })
    const urgent = await pass({ to: 'box', priority: 9 })
    t.strictSame(await Promise.all([urgent, first, second].map(why)), [
      [{ reason: 'no_listener' }], [{ reason: 'ahead', ahead: 1 }, { reason: 'no_listener' }], [{ reason: 'ahead', ahead: 2 }, { reason: 'no_listener' }],
    ])
    const approved = await pass({ to: 'box', require_human: true })
    await call('approver', 'POST', `/api/approve/${approved}`)
    t.strictSame(await why(approved), [{ reason: 'ahead', ahead: 3 }, { reason: 'no_listener' }], 'what is in the other partition counts')
    const last = await pass({ to: 'box' })
    t.match(await why(last), [{ reason: 'ahead', ahead: 4 }])

    const all = (await call('alice', 'POST', '/api/pass', { task: 't', to: 'box', require_human: true, delay: 60, after: [plain, first] })).json()
    await set('box', { paused: true })
    t.strictSame(await why(all.handoff_id), [
      { reason: 'approval', until: all.expires_at }, { reason: 'delay', until: all.available_at }, { reason: 'after', blocked_by: 2 }, { reason: 'paused' }, { reason: 'no_listener' },
    ])
    await set('box', { paused: false, max_caught: 1 })
    await call('bob', 'GET', `/api/catch/${urgent}`, undefined, { 'handoff-worker': 'w:1' })
    await until(async () => (await why(second)).length === 2)
    t.strictSame(await why(second), [{ reason: 'max_caught', caught: 1, max: 1 }, { reason: 'ahead', ahead: 1 }], 'who has one caught works on it')
    t.strictSame(await why(first), [{ reason: 'max_caught', caught: 1, max: 1 }])
    t.equal(await why(urgent), undefined, 'it isn’t pending')
    await call('bob', 'POST', `/api/done/${urgent}`)
    t.equal(await why(urgent), undefined)
    await set('box', { max_caught: null })
  })

  t.test(`somebody who waits is a listener: ${where}`, through === undefined ? {} : { skip: 'what one replica knows' }, async t => {
    await set('held', { paused: true })
    const waiting = call('bob', 'POST', '/api/catch?wait=30', { inbox: 'held' })
    const id = await pass({ to: 'held' })
    await until(async () => (await why(id)).length === 1)
    t.strictSame(await why(id), [{ reason: 'paused' }])
    await set('held', { paused: false })
    await waiting
    t.equal(await why(id), undefined)
  })
}

t.test('without it nothing is explained, and with anything else it is refused', async t => {
  const { call, pass, dump } = await testApp(t)
  const id = await pass({ to: 'box' })
  const before = await dump()
  t.notOk('waits_for' in (await call('alice', 'GET', `/api/status/${id}`)).json())
  for (const value of ['false', '1', '', 'TRUE']) isProblem(t, await call('alice', 'GET', `/api/status/${id}?explain=${value}`), 400, 'invalid_request', value)
  const waited = await call('alice', 'GET', `/api/status/${id}?explain=true&wait=1&until=caught`)
  t.match(waited.json().waits_for, [{ reason: 'no_listener' }], 'after a wait it says what is true then')
  t.strictSame(await dump(), before)
})

t.test('above a thousand nobody counts', async t => {
  const { call, pass } = await testApp(t)
  for (let n = 0; n < 11; n++) await call('alice', 'POST', '/api/batch', { operations: Array.from({ length: 100 }, () => ({ op: 'pass', body: { task: 't', to: 'long' } })) })
  const id = await pass({ to: 'long' })
  t.strictSame((await call('alice', 'GET', `/api/status/${id}?explain=true`)).json().waits_for, [{ reason: 'ahead', ahead: 1000, at_least: true }, { reason: 'no_listener' }])
})
