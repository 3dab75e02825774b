import t from 'tap'
import { tagOf } from '../../src/core/ids.ts'
import { secrets, testApp } from '../helpers/app.ts'
import { callText, told } from '../helpers/mcp.ts'
import { isProblem } from '../helpers/problems.ts'
import { bearer, newKey } from '../helpers/stored-keys.ts'

t.test('a handoff written by a newer version is 503 on this one, and stays unchanged', async t => {
  const { app, store, call, redis, prefix, dump } = await testApp(t)
  const id = (await call('alice', 'POST', '/api/pass', { task: 't', require_human: true, to: 'other' })).json().handoff_id
  const key = `${prefix}:{${tagOf(id)}}:h:default:${id}`
  await redis.hset(key, 's', `3:${await redis.hget(key, 's')}`)
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
