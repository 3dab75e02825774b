import t from 'tap'
import { tagOf } from '../../src/handoff/id.ts'
import { testApp } from '../helpers/app.ts'
import { isProblem } from '../helpers/problems.ts'

t.test('a handoff written by a newer version is 503 on this one, and stays unchanged', async t => {
  const { call, redis, prefix, dump } = await testApp(t)
  const id = (await call('alice', 'POST', '/api/pass', { task: 't', require_human: true })).json().handoff_id
  const key = `${prefix}:{${tagOf(id)}}:h:default:${id}`
  await redis.hset(key, 's', `3:${await redis.hget(key, 's')}`)
  const before = await dump()
  for (const [who, method, path, body] of [
    ['bob', 'GET', `/api/catch/${id}`, undefined], ['bob', 'GET', `/api/status/${id}`, undefined], ['bob', 'POST', `/api/done/${id}`, {}],
    ['approver', 'POST', `/api/approve/${id}`, {}], ['approver', 'POST', `/api/reject/${id}`, { note: 'no' }], ['approver', 'GET', `/api/approvals/${id}`, undefined],
  ] as const) isProblem(t, await call(who, method, path, body), 503, 'unavailable')
  t.strictSame((await call('approver', 'GET', '/api/approvals')).json().items, [])
  t.strictSame(await dump(), before)
})
