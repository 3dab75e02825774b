import t from 'tap'
import { testApp } from '../helpers/app.ts'
import { isProblem } from '../helpers/problems.ts'

const service = await testApp(t)
const { call } = service

async function passed (more: object = {}): Promise<string> {
  return (await call('alice', 'POST', '/api/pass', { task: 't', require_human: true, ...more })).json().handoff_id
}

const start = Date.now() - 3600_000
const iso = (later: number) => new Date(start + later).toISOString()

const verdicts = [['approve', 'approved', 'pending'], ['reject', 'rejected', 'rejected']] as const

for (const [path, state, status] of verdicts) {
  t.test(`${path}: every answer from then on has who decided, when, and the note as written`, async t => {
    // Notes as JSON text.
    for (const note of ['"plain"', '"a\\u0041\\/ \\ud800 ä 𝄞 \\"q\\" \\n\\t"', '"</script><b>"', '"  two  spaces  "', `"${'ä'.repeat(4000)}"`]) {
      await service.setClock(start)
      const id = await passed()
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
    const id = await passed()
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

  t.test(`${path}: of 100 decisions at once through two services one wins, and the others are told who`, async t => {
    const second = await testApp(t, {}, { prefix: service.prefix })
    for (let round = 0; round < 5; round++) {
      const id = await passed()
      const answers = await Promise.all(Array.from({ length: 100 }, (_, i) => (i % 2 ? service : second)
        .call(i % 3 ? 'approver' : 'approver2', 'POST', `/api/${i % 5 ? path : verdicts[(round + i) % 2]![0]}/${id}`, { note: `n${i}` })))
      const won = answers.filter(({ statusCode }) => statusCode === 200)
      t.equal(won.length, 1)
      const { approval } = won[0]!.json()
      t.equal(approval.note, `n${answers.indexOf(won[0]!)}`)
      for (const answer of answers.filter(answer => answer !== won[0])) {
        const { code, approval: told } = answer.json()
        if (code !== 'already_decided' || JSON.stringify(told) !== JSON.stringify(approval)) t.fail(`${answer.statusCode} ${answer.body}`)
      }
      t.strictSame((await call('alice', 'GET', `/api/status/${id}`)).json().approval, approval)
    }
  })
}

t.test('an approval needs no note: null, absent, no body with or without a type', async t => {
  for (const [body, headers] of [[undefined, {}], ['', { 'content-type': 'application/json' }], ['{}', {}], ['{"note":null}', {}]] as const) {
    const id = await passed()
    const answer = await call('approver', 'POST', `/api/approve/${id}`, body, headers)
    t.equal(answer.statusCode, 200, String(body))
    t.match(answer.json(), { status: 'pending', approval: { state: 'approved', note: null } })
    t.equal((await call('bob', 'GET', `/api/catch/${id}`)).json().approval.note, null)
  }
})

t.test('nobody catches a handoff before approval, then one agent does; without require_human there is no approval', async t => {
  const id = await passed()
  const before = await service.dump()
  t.equal(isProblem(t, await call('bob', 'GET', `/api/catch/${id}`), 409, 'approval_required').handoff_status, 'pending')
  t.strictSame(await service.dump(), before, 'asking moves nothing')
  await call('approver', 'POST', `/api/approve/${id}`)
  t.match(await call('alice', 'GET', `/api/status/${id}`).then(answer => answer.json()), { status: 'pending', approval: { state: 'approved', decided_by: 'carol' } })
  const caught = await call('bob', 'GET', `/api/catch/${id}`, undefined, { 'idempotency-key': 'k' })
  t.strictSame(Object.keys(caught.json()), ['handoff_id', 'status', 'task', 'output', 'context', 'constraints', 'created_at', 'approval'])
  const again = await call('bob', 'GET', `/api/catch/${id}`, undefined, { 'idempotency-key': 'k' })
  t.equal(again.body, caught.body, 'a lost answer again, decision and all')
  t.equal(again.headers['idempotency-replayed'], 'true')
  isProblem(t, await call('alice', 'GET', `/api/catch/${id}`), 409, 'already_caught')
  const free = await passed({ require_human: false })
  t.notOk('approval' in (await call('bob', 'GET', `/api/catch/${free}`)).json())
})
