import t from 'tap'
import { testApp } from '../helpers/app.ts'
import type { TestApp } from '../helpers/app.ts'
import { isProblem } from '../helpers/problems.ts'

/** Of all that needs no service of its own. */
const service = await testApp(t)

/** Outputs must satisfy result_schema. */

const schema = '{"type": "object", "required": ["sum"], "properties": {"sum": {"type": "number", "maximum": 1.50}}, "x": 0}'.replace(', "x": 0', '')

async function caught (service: TestApp, options = ''): Promise<string> {
  const { handoff_id: id } = (await service.call('alice', 'POST', '/api/pass', `{"task": "t", "result_schema": ${schema}${options}}`)).json()
  await service.call('bob', 'GET', `/api/catch/${id}`)
  return id
}

t.test('the catch answer and approvals show the schema literally', async t => {
  const { handoff_id: id } = (await service.call('alice', 'POST', '/api/pass', `{"task": "t", "require_human": true, "result_schema": ${schema}}`)).json()
  t.ok((await service.call('approver', 'GET', `/api/approvals/${id}`)).body.includes(`"result_schema":${schema}`))
  await service.call('approver', 'POST', `/api/approve/${id}`)
  const answer = await service.call('bob', 'GET', `/api/catch/${id}`)
  t.ok(answer.body.includes(`"result_schema":${schema}`), answer.body)
  t.match(answer.json(), { task: 't', result_schema: { type: 'object' } })
})

t.test('a done with an invalid output is refused, after all checks of state, and changes nothing', async t => {
  const id = await caught(service)
  const before = await service.dump()
  for (const [body, pointer] of [[{ output: { sum: 2 } }, '/output/sum'], [{}, '/output/sum'], [undefined, '/output/sum'], [{ output: null }, '/output/sum'], [{ output: { sum: 'x' } }, '/output/sum']] as const) {
    t.match(isProblem(t, await service.call('bob', 'POST', `/api/done/${id}`, body), 422, 'result_invalid').errors, [{ pointer }])
  }
  isProblem(t, await service.call('alice', 'POST', `/api/done/${id}`, { output: { sum: 2 } }), 403, 'not_the_catcher')
  t.strictSame(await service.dump(), before)
  const key = { 'idempotency-key': 'd' }
  const first = await service.call('bob', 'POST', `/api/done/${id}`, { output: { sum: 1.5 } }, key)
  t.equal(first.statusCode, 200)
  const again = await service.call('bob', 'POST', `/api/done/${id}`, { output: { sum: 1.5 } }, key)
  t.strictSame([again.json(), again.headers['idempotency-replayed']], [first.json(), 'true'])
  isProblem(t, await service.call('bob', 'POST', `/api/done/${id}`, { output: { sum: 2 } }), 409, 'already_done')
  t.strictSame((await service.call('alice', 'GET', `/api/status/${id}`)).json().result, { sum: 1.5 })
})

t.test('an unsupported schema is refused at pass, with a pointer', async t => {
  const before = await service.dump()
  for (const [text, pointer] of [
    ['{"type": "objekt"}', '/result_schema/type'],
    ['{"properties": {"a": {"$ref": "https://example.org/s"}}}', '/result_schema/properties/a/$ref'],
    ['{"$defs": {"a": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}', /^\/result_schema/],
    ['{"pattern": "(?i:a)"}', '/result_schema/pattern'],
    [`{"title": "${'x'.repeat(16384)}"}`, '/result_schema'],
  ] as const) {
    const answer = await service.call('alice', 'POST', '/api/pass', `{"task": "t", "result_schema": ${text}}`)
    t.match(isProblem(t, answer, 400, 'invalid_request').errors[0].pointer, pointer)
  }
  t.strictSame(await service.dump(), before)
})

t.test('a successor has the schema too', async t => {
  const id = await caught(service, ', "max_attempts": 2, "retry_delay": 0')
  const { reissued_as: next } = (await service.call('bob', 'POST', `/api/fail/${id}`, { error: { message: 'm' } })).json()
  t.ok((await service.call('bob', 'GET', `/api/catch/${next}`)).body.includes(`"result_schema":${schema}`))
  isProblem(t, await service.call('bob', 'POST', `/api/done/${next}`, {}), 422, 'result_invalid')
  t.equal((await service.call('bob', 'POST', `/api/done/${next}`, { output: { sum: 1 } })).statusCode, 200)
})
