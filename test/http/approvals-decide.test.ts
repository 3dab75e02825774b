import { createHash } from 'node:crypto'
import t from 'tap'
import { testApp } from '../helpers/app.ts'
import { isProblem } from '../helpers/problems.ts'
import { passed } from '../helpers/waits.ts'

const service = await testApp(t)
const { call } = service

const start = Date.now() - 3600_000
const iso = (later: number) => new Date(start + later).toISOString()

const verdicts = [['approve', 'approved', 'pending'], ['reject', 'rejected', 'rejected']] as const

for (const [path, state, status] of verdicts) {
  t.test(`${path}: every answer from then on has who decided, when, and the note as written`, async t => {
    // Notes as JSON text.
    for (const note of ['"plain"', '"a\\u0041\\/ \\ud800 ä 𝄞 \\"q\\" \\n\\t"', '"</script><b>"', '"  two  spaces  "', `"${'ä'.repeat(4000)}"`]) {
      await service.setClock(start)
      const id = await passed(service)
      await service.setClock(start + 1000)
      const answer = await call('approver', 'POST', `/api/${path}/${id}`, `{ "note" : ${note} }`)
      const approval = `"approval":{"state":"${state}","decided_at":"${iso(1000)}","decided_by":"carol","note":${note}}`
      t.equal(answer.statusCode, 200)
      t.equal(answer.headers['content-type'], 'application/json; charset=utf-8')
      t.equal(answer.body, `{"handoff_id":"${id}","status":"${status}",${approval}}`)
      await service.setClock(start + 2000)
      t.ok((await call('alice', 'GET', `/api/status/${id}`)).body.includes(`,${approval},"result":null}`), 'status')
      const caught = await call('bob', 'GET', `/api/catch/${id}`)
      if (path === 'approve') t.ok(caught.body.endsWith(`,"created_at":"${iso(0)}",${approval}}`), 'catch')
      else t.equal(isProblem(t, caught, 409, 'rejected').handoff_status, 'rejected')
    }
  })

  t.test(`${path}: an invalid note is refused`, async t => {
    const id = await passed(service)
    const before = await service.dump()
    const notes = ['5', 'true', '[]', '{}', `"${'x'.repeat(100 * 1024)}"`, `"${'x'.repeat(4001)}"`,
      ...[0, 7, 8, 11, 12, 27, 31, 127, 128, 159].map(code => `"a\\u${code.toString(16).padStart(4, '0')}b"`), `"a${String.fromCharCode(127)}b"`, `"a${String.fromCharCode(0x9b)}b"`,
      ...(path === 'reject' ? ['null', '""'] : [])]
    for (const note of notes) {
      const document = isProblem(t, await call('approver', 'POST', `/api/${path}/${id}`, `{"note":${note}}`), 400, 'invalid_request', note.slice(0, 30))
      t.equal(document.errors[0].pointer, '/note')
    }
    const bodies = ['{"note":"a\nb"}', '{"note":"a","note":"b"}', '{"Note":"a","note":"b"}', '{"note":"a","by":"dave"}', '[]', '"note"', 'null', '{"note":"a"', '{"note":"\\ud8"}',
      ...(path === 'reject' ? ['', '{}'] : [])]
    for (const body of bodies) isProblem(t, await call('approver', 'POST', `/api/${path}/${id}`, body), 400, 'invalid_request', body)
    isProblem(t, await call('approver', 'POST', `/api/${path}/${id}`, 'note=a', { 'content-type': 'application/x-www-form-urlencoded' }), 415, 'unsupported_media_type')
    isProblem(t, await call('approver', 'POST', `/api/${path}/${id}?note=a`, { note: 'a' }), 400, 'invalid_request')
    t.strictSame(await service.dump(), before, 'none of these decided')
    isProblem(t, await call('bob', 'GET', `/api/catch/${id}`), 409, 'approval_required')
  })
}

t.test('an approval needs no note: null, absent, no body with or without a type', async t => {
  for (const [body, headers] of [[undefined, {}], ['', { 'content-type': 'application/json' }], ['{}', {}], ['{"note":null}', {}]] as const) {
    const id = await passed(service)
    const answer = await call('approver', 'POST', `/api/approve/${id}`, body, headers)
    t.equal(answer.statusCode, 200, String(body))
    t.match(answer.json(), { status: 'pending', approval: { state: 'approved', note: null } })
    t.equal((await call('bob', 'GET', `/api/catch/${id}`)).json().approval.note, null)
  }
})

/** The digest of what a person saw: a decision sends it, and is refused if the content differs. */

const body = '{"require_human": true, "task": "h\\u00e4lf", "output": { "n": 1.0 }}'
const other = `sha-256=:${createHash('sha256').update('other').digest('base64')}:`

t.test('the digest covers the catch answer’s bytes from task to constraints', async t => {
  const { handoff_id: id } = (await call('alice', 'POST', '/api/pass', body)).json()
  const { digest } = (await call('approver', 'GET', `/api/approvals/${id}`)).json()
  t.equal((await call('approver', 'POST', `/api/approve/${id}`, { digest })).json().approval.digest, digest)
  const answer = (await call('bob', 'GET', `/api/catch/${id}`)).body
  const content = `{${answer.slice(answer.indexOf('"task":'), answer.indexOf(',"created_at"'))}}`
  t.equal(digest, `sha-256=:${createHash('sha256').update(content).digest('base64')}:`)
  t.equal(JSON.parse(answer).approval.digest, digest)
  t.equal((await call('alice', 'GET', `/api/status/${id}`)).json().approval.digest, digest)
  await call('bob', 'POST', `/api/done/${id}`)
  t.match((await call('approver', 'GET', `/api/approvals/${id}`)).json(), { task: null, digest }, 'known also when the payload is gone')
})

t.test('a decision with another digest is refused', async t => {
  const { handoff_id: id } = (await call('alice', 'POST', '/api/pass', body)).json()
  const before = await service.dump()
  for (const [verdict, more] of [['approve', {}], ['reject', { note: 'n' }]] as const) {
    t.match(isProblem(t, await call('approver', 'POST', `/api/${verdict}/${id}`, { ...more, digest: other }), 409, 'content_changed'), { handoff_status: 'pending' })
    isProblem(t, await call('approverAlice', 'POST', `/api/${verdict}/${id}`, { ...more, digest: other }), 403, 'self_approval')
    for (const digest of ['x', 'sha-256=:x:', other.toUpperCase(), other.slice(1), `${other} `, 5]) {
      t.match(isProblem(t, await call('approver', 'POST', `/api/${verdict}/${id}`, { ...more, digest }), 400, 'invalid_request').errors, [{ pointer: '/digest' }])
    }
  }
  t.strictSame(await service.dump(), before)
  t.notOk('digest' in (await call('approver', 'POST', `/api/approve/${id}`, { digest: null })).json().approval, 'left out: whatever is there')
})

t.test('the approver’s answer has everything that was passed', async t => {
  const plain = (await call('alice', 'POST', '/api/pass', { task: 't', require_human: true })).json().handoff_id
  t.strictSame(Object.keys((await call('approver', 'GET', `/api/approvals/${plain}`)).json()),
    ['handoff_id', 'status', 'task', 'output', 'context', 'constraints', 'created_at', 'expires_at', 'passed_by', 'approval', 'digest'])
  const root = (await call('bob', 'POST', '/api/pass', { task: 'r' })).json().handoff_id
  await call('alice', 'GET', `/api/catch/${root}`)
  const options = { work_within: 60, heartbeat_within: 30, max_attempts: 1, delay: 5, parent: root, result_schema: { type: 'object' } }
  const { handoff_id: id, available_at: availableAt } = (await call('alice', 'POST', '/api/pass', { task: 't', require_human: true, ...options })).json()
  const { delay, ...shown } = options
  t.match((await call('approver', 'GET', `/api/approvals/${id}`)).json(), { ...shown, available_at: availableAt })
})
