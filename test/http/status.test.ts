import t from 'tap'
import { tagOf } from '../../src/core/ids.ts'
import { testApp, secrets } from '../helpers/app.ts'
import { callText, told } from '../helpers/mcp.ts'
import { isProblem } from '../helpers/problems.ts'
import { bearer, newKey } from '../helpers/stored-keys.ts'
import { until } from '../helpers/until.ts'

/** Of all that needs no service of its own. */
const service = await testApp(t)
const { call, dump, setClock } = service

t.test('what hasn’t happened is null; task, output and context never show; reading changes nothing', async t => {
  const start = Date.now() - 3600_000
  const iso = (later: number) => new Date(start + later).toISOString()
  await setClock(start)
  const id = await service.pass({ task: 'canary-task', output: { o: 'canary-output' }, context: { c: 'canary-context' }, constraints: 'canary-rule', expires_in: 60 })
  const read = async () => {
    const before = await dump()
    const answer = await call('alice', 'GET', `/api/status/${id}`)
    t.equal(answer.statusCode, 200)
    t.notMatch(answer.body, /canary/)
    t.strictSame(await dump(), before)
    return answer.json()
  }
  const fresh = {
    handoff_id: id,
    status: 'pending',
    require_human: false,
    created_at: iso(0),
    expires_at: iso(60_000),
    caught_at: null,
    caught_by: null,
    completed_at: null,
    approval: null,
    result: null
  }
  t.strictSame(await read(), fresh)
  await setClock(start + 1000)
  await call('bob', 'GET', `/api/catch/${id}`)
  const working = { ...fresh, status: 'caught', caught_at: iso(1000), caught_by: 'bob' }
  t.strictSame(await read(), working)
  await setClock(start + 2000)
  await call('bob', 'POST', `/api/done/${id}`, { output: { x: [] } })
  t.strictSame(await read(), { ...working, status: 'done', completed_at: iso(2000), result: { x: [] } })
})

t.test('an ended handoff is readable for RETENTION, then Redis deletes it', async t => {
  const service = await testApp(t, { RETENTION: '1' })
  const { call, dump } = service
  const [expiring, finished] = [await service.pass({ expires_in: 1 }), await service.pass()]
  await call('bob', 'GET', `/api/catch/${finished}`)
  await call('bob', 'POST', `/api/done/${finished}`)
  const read = (id: string) => call('alice', 'GET', `/api/status/${id}`)
  t.equal((await read(finished)).json().status, 'done')
  t.ok(await until(async () => (await read(expiring)).json().status === 'expired'), 'it can be read as expired')
  for (const id of [expiring, finished]) {
    t.ok(await until(async () => (await read(id)).statusCode === 404))
    isProblem(t, await call('bob', 'GET', `/api/catch/${id}`), 404, 'not_found')
    isProblem(t, await call('bob', 'POST', `/api/done/${id}`), 404, 'not_found')
  }
  t.notOk(Object.keys(await dump()).some(key => key.includes(':h:')))
})

t.test('a handoff written by a newer version is 503 on this one, and stays unchanged', async t => {
  const { app, store, call, redis, prefix, dump } = await testApp(t)
  const id = (await call('alice', 'POST', '/api/pass', { task: 't', require_human: true, to: 'other' })).json().handoff_id
  const key = `${prefix}:{${tagOf(id)}}:h:default:${id}`
  await redis.hset(key, 's', `4:${await redis.hget(key, 's')}`)
  const { key: held } = await newKey(store.keyRecords, { inboxes: ['desk'] })
  const before = await dump()
  for (const [who, method, path, body] of [
    ['bob', 'GET', `/api/catch/${id}`, undefined], ['bob', 'GET', `/api/status/${id}`, undefined], ['bob', 'POST', `/api/done/${id}`, {}],
    ['approver', 'POST', `/api/approve/${id}`, {}], ['approver', 'POST', `/api/reject/${id}`, { note: 'no' }], ['approver', 'GET', `/api/approvals/${id}`, undefined],
  ] as const) isProblem(t, await call(who, method, path, body), 503, 'unavailable')
  for (const key of [secrets.alice, held]) {
    const answer = await app.inject({ method: 'POST', url: '/mcp', payload: callText('handoff_read', `{"id":"${id}","offset":0}`), headers: { ...bearer(key), 'content-type': 'application/json' } })
    t.match(told(answer.json().result), { code: 'unavailable', retryable: true })
  }
  t.strictSame((await call('approver', 'GET', '/api/approvals')).json().items, [])
  t.strictSame(await dump(), before)
})
