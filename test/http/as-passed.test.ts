import t from 'tap'
import { randomToken } from '../../src/core/ids.ts'
import { testApp } from '../helpers/app.ts'
import { newPlace, payload } from '../helpers/handoffs.ts'

/** Of all that needs no service of its own. */
const service = await testApp(t)
const { call } = service

/** JSON texts that JSON.parse and JSON.stringify would change. */
const texts = [
  '{}',
  '{"n":[9007199254740993,1.0,1e400,-0,0.10,1E+2,123456789012345678901234567890]}',
  '{"b":1,"a":2,"10":3,"9":4}',
  '{"a":1,"a":2,"a":{"a":1,"a":1}}',
  '{"__proto__":{"x":1},"constructor":{"prototype":{}},"toString":null}',
  '{"lone":"\\ud800","pair":"\\ud83d\\ude00","\\udfff":"\\u0000"}',
  '{"é":"日本語 😀 \u2028\u2029","nfd":"e\u0301","bidi":"\u202e","bom":"\ufeff"}',
  '{"esc":"\\/\\b\\f\\n\\r\\t\\"\\\\\\u00e9"}',
  '{"":{"":[[],{},[[]],"",null,true,false]}}',
  '{"task":"t","output":{"context":1},"status":"done"}',
]

t.test('whether a pass was made before is asked without making it', async t => {
  const { handoffs } = service.store
  const handoff = { ...newPlace(), token: randomToken(), passedBy: 'alice', requireHuman: false, options: '', expiresIn: 60_000, payload }
  t.equal(await handoffs.passed(handoff), null)
  t.equal(await handoffs.passed(handoff), null)
  await handoffs.pass(handoff)
  t.match(await handoffs.passed(handoff), { outcome: 'replayed' })
})

t.test('output, context and result come back as passed', async t => {
  for (const [at, text] of texts.entries()) {
    const passed = await call('alice', 'POST', '/api/pass', `{"context":${text},"task":"t","output":${text}}`)
    const { handoff_id: id, created_at: createdAt } = passed.json()
    const caught = await call('bob', 'GET', `/api/catch/${id}`)
    t.match(caught.headers['content-type'], /^application\/json(; *charset=utf-8)?$/)
    t.equal(caught.rawPayload.toString('hex'), Buffer.from(`{"handoff_id":"${id}","status":"caught","task":"t","output":${text},"context":${text},` +
      `"constraints":null,"created_at":"${createdAt}"}`).toString('hex'), `text ${at}`)
    await call('bob', 'POST', `/api/done/${id}`, `{"output":${text}}`)
    const status = await call('alice', 'GET', `/api/status/${id}`)
    t.ok(status.rawPayload.includes(`"result":${text}}`), `result ${at}`)
    t.equal(Number(status.headers['content-length']), status.rawPayload.length)
  }
})

t.test('an error, a reason and progress are shown as they were said', async t => {
  for (const [operation, said, shown] of [
    ['fail', '{"error": {"message": "no \\u0064isk", "data": {"n": 1.0}}}', '"error":{"message": "no \\u0064isk", "data": {"n": 1.0}}'],
    ['decline', '{"reason": "not \\u006dine"}', '"reason":"not \\u006dine"'],
    ['heartbeat', '{"progress": {"percent": 50.0, "message": "h\\u00e4lf"}}', '"progress":{"message":"h\\u00e4lf","percent":50.0,"at":'],
  ] as const) {
    const { handoff_id: id } = (await call('alice', 'POST', '/api/pass', { task: 't' })).json()
    await call('bob', 'GET', `/api/catch/${id}`)
    t.equal((await call('bob', 'POST', `/api/${operation}/${id}`, said)).statusCode, 200)
    t.match((await call('alice', 'GET', `/api/status/${id}`)).body, shown, operation)
  }
})

t.test('task and constraints are returned as passed, whatever their characters', async t => {
  const task = '"\\ud800 \\u0041 😀 \\"quoted\\" \\\\"'
  const { handoff_id: id } = (await call('alice', 'POST', '/api/pass', `{"task":${task},"constraints":${task}}`)).json()
  const caught = await call('bob', 'GET', `/api/catch/${id}`)
  t.equal(caught.json().task, JSON.parse(task))
  t.ok(caught.rawPayload.includes(`"task":${task},`))
  t.ok(caught.rawPayload.includes(`"constraints":${task},`))
})

t.test('only insignificant white space may change', async t => {
  const spaced = '{ "a b" :\t[ 1 ,\r\n "  two  " ] }'
  const { handoff_id: id } = (await call('alice', 'POST', '/api/pass', ` {\n"task" : "t" ,\t"output" :${spaced} } \r\n`)).json()
  const bare = (text: string) => text.replace(/("[^"]*")|\s+/g, '$1')
  t.ok(bare((await call('bob', 'GET', `/api/catch/${id}`)).body).includes(`"output":${bare(spaced)},`))
  await call('bob', 'POST', `/api/done/${id}`, `{"output":${spaced}}`)
  t.ok(bare((await call('alice', 'GET', `/api/status/${id}`)).body).includes(`"result":${bare(spaced)}`))
})

t.test('member names may be written with escapes', async t => {
  const { handoff_id: id } = (await call('alice', 'POST', '/api/pass', '{"\\u0074ask":"t","out\\u0070ut":{"a":1.0}}')).json()
  t.ok((await call('bob', 'GET', `/api/catch/${id}`)).body.includes('"output":{"a":1.0}'))
})
