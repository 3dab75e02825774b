import t from 'tap'
import { testApp } from '../helpers/app.ts'

t.test('a handoff goes from pass to done', async t => {
  const { call } = await testApp(t)
  const passed = await call('alice', 'POST', '/api/pass', { task: 'count', output: { rows: 3 }, constraints: 'read only' })
  t.equal(passed.statusCode, 201)
  const { handoff_id: id, ...rest } = passed.json()
  t.match(rest, { status: 'pending', pickup_url: `http://127.0.0.1:8080/api/catch/${id}` })
  t.equal(passed.headers.location, `/api/status/${id}`)
  t.equal(Date.parse(rest.expires_at) - Date.parse(rest.created_at), 86400_000)

  const caught = await call('bob', 'GET', `/api/catch/${id}`)
  t.equal(caught.statusCode, 200)
  t.strictSame(caught.json(), {
    handoff_id: id, status: 'caught', task: 'count', output: { rows: 3 }, context: {}, constraints: 'read only', created_at: rest.created_at
  })

  const done = await call('bob', 'POST', `/api/done/${id}`, { output: { sum: 6 } })
  t.equal(done.statusCode, 200)
  t.strictSame(done.json(), { handoff_id: id, status: 'done', completed_at: done.json().completed_at })

  const status = await call('alice', 'GET', `/api/status/${id}`)
  t.strictSame(status.json(), {
    handoff_id: id,
    status: 'done',
    require_human: false,
    created_at: rest.created_at,
    expires_at: rest.expires_at,
    caught_at: status.json().caught_at,
    caught_by: 'bob',
    completed_at: done.json().completed_at,
    approval: null,
    result: { sum: 6 },
  })
})
