import { createHash } from 'node:crypto'
import t from 'tap'
import { testApp } from '../helpers/app.ts'
import { isProblem } from '../helpers/problems.ts'

/** Of all that needs no service of its own. */
const service = await testApp(t)

/** The digest of what a person saw: a decision sends it, and is refused if the content differs. */

const body = '{"require_human": true, "task": "h\\u00e4lf", "output": { "n": 1.0 }}'
const other = `sha-256=:${createHash('sha256').update('other').digest('base64')}:`

t.test('the digest covers the catch answer’s bytes from task to constraints', async t => {
  const { handoff_id: id } = (await service.call('alice', 'POST', '/api/pass', body)).json()
  const { digest } = (await service.call('approver', 'GET', `/api/approvals/${id}`)).json()
  t.equal((await service.call('approver', 'POST', `/api/approve/${id}`, { digest })).json().approval.digest, digest)
  const answer = (await service.call('bob', 'GET', `/api/catch/${id}`)).body
  const content = `{${answer.slice(answer.indexOf('"task":'), answer.indexOf(',"created_at"'))}}`
  t.equal(digest, `sha-256=:${createHash('sha256').update(content).digest('base64')}:`)
  t.equal(JSON.parse(answer).approval.digest, digest)
  t.equal((await service.call('alice', 'GET', `/api/status/${id}`)).json().approval.digest, digest)
  await service.call('bob', 'POST', `/api/done/${id}`)
  t.match((await service.call('approver', 'GET', `/api/approvals/${id}`)).json(), { task: null, digest }, 'known also when the payload is gone')
})

t.test('a decision with another digest is refused', async t => {
  const { handoff_id: id } = (await service.call('alice', 'POST', '/api/pass', body)).json()
  const before = await service.dump()
  for (const [verdict, more] of [['approve', {}], ['reject', { note: 'n' }]] as const) {
    t.match(isProblem(t, await service.call('approver', 'POST', `/api/${verdict}/${id}`, { ...more, digest: other }), 409, 'content_changed'), { handoff_status: 'pending' })
    isProblem(t, await service.call('approverAlice', 'POST', `/api/${verdict}/${id}`, { ...more, digest: other }), 403, 'self_approval')
    for (const digest of ['x', 'sha-256=:x:', other.toUpperCase(), other.slice(1), `${other} `, 5]) {
      t.match(isProblem(t, await service.call('approver', 'POST', `/api/${verdict}/${id}`, { ...more, digest }), 400, 'invalid_request').errors, [{ pointer: '/digest' }])
    }
  }
  t.strictSame(await service.dump(), before)
  t.notOk('digest' in (await service.call('approver', 'POST', `/api/approve/${id}`, { digest: null })).json().approval, 'left out: whatever is there')
})

t.test('the approver’s answer has everything that was passed', async t => {
  const service = await testApp(t)
  const plain = (await service.call('alice', 'POST', '/api/pass', { task: 't', require_human: true })).json().handoff_id
  t.strictSame(Object.keys((await service.call('approver', 'GET', `/api/approvals/${plain}`)).json()),
    ['handoff_id', 'status', 'task', 'output', 'context', 'constraints', 'created_at', 'expires_at', 'passed_by', 'approval', 'digest'])
  const root = (await service.call('bob', 'POST', '/api/pass', { task: 'r' })).json().handoff_id
  await service.call('alice', 'GET', `/api/catch/${root}`)
  const options = { work_within: 60, heartbeat_within: 30, max_attempts: 1, delay: 5, parent: root, result_schema: { type: 'object' } }
  const { handoff_id: id, available_at: availableAt } = (await service.call('alice', 'POST', '/api/pass', { task: 't', require_human: true, ...options })).json()
  const { delay, ...shown } = options
  t.match((await service.call('approver', 'GET', `/api/approvals/${id}`)).json(), { ...shown, available_at: availableAt })
})
