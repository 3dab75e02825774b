import t from 'tap'
import { testApp } from '../helpers/app.ts'
import type { TestApp } from '../helpers/app.ts'
import { agentOf, callWith, eras, told, toolNames } from '../helpers/mcp.ts'
import { bearer, newKey } from '../helpers/stored-keys.ts'

const service = await testApp(t)
const { call, pass, caught, store, lines } = service

/** The lines about operators since the last call, without the fields that pino adds to every line. */
function operated (): object[] {
  const found = lines.map(line => JSON.parse(line)).filter(({ msg }) => msg === 'operated')
  lines.length = 0
  return found.map(({ time, pid, hostname, msg, level, request_id: request, ...rest }) => rest)
}

const olga = { operator: 'olga', tenant: 'default', changed: 1 }

t.test('an operator cancels what others passed', async t => {
  const id = await pass({ to: 'w' })
  const cancelled = await call('operator', 'POST', `/api/cancel/${id}`, { reason: 'nobody needs it' })
  t.equal(cancelled.statusCode, 200)
  t.match(cancelled.json(), { handoff_id: id, status: 'cancelled' })
  t.strictSame(operated(), [{ ...olga, action: 'cancel', handoff_id: id, force: false }])
  t.match((await call('alice', 'GET', `/api/status/${id}`)).json(), { status: 'cancelled', ended_by: 'olga', cancel_reason: 'nobody needs it' })
  t.strictSame((await call('operator', 'POST', `/api/cancel/${id}`, { force: true })).json(), cancelled.json(), 'again')
  t.strictSame((await call('alice', 'POST', `/api/cancel/${id}`)).json(), cancelled.json(), 'and by its passer')
  t.strictSame(operated(), [], 'what changed nothing is no line')

  const held = await caught()
  const asked = await call('operator', 'POST', `/api/cancel/${held}`)
  t.equal(asked.statusCode, 202)
  t.match((await call('bob', 'POST', `/api/heartbeat/${held}`)).json(), { cancel_requested: true, cancel_reason: null })
  t.strictSame((await call('operator', 'POST', `/api/cancel/${held}`)).json(), asked.json(), 'again, which is no line')
  t.strictSame((await call('operator', 'POST', `/api/cancel/${held}`, { reason: 'why' })).json(), asked.json())
  t.match((await call('bob', 'POST', `/api/heartbeat/${held}`)).json(), { cancel_requested: true, cancel_reason: 'why' })
  t.equal((await call('operator', 'POST', `/api/cancel/${held}`, { force: true })).statusCode, 200)
  t.match((await call('bob', 'POST', `/api/done/${held}`)).json(), { code: 'cancelled' })
  const line = { ...olga, action: 'cancel', handoff_id: held }
  t.strictSame(operated(), [{ ...line, force: false }, { ...line, force: false }, { ...line, force: true }])
})

t.test('an operator reissues what others passed, for the same passer', async t => {
  const id = await caught({ to: 'w', max_attempts: 1 })
  t.equal((await call('bob', 'POST', `/api/fail/${id}`, { error: { message: 'm' } })).statusCode, 200)
  const made = await call('operator', 'POST', `/api/reissue/${id}`)
  t.equal(made.statusCode, 201)
  const { handoff_id: successor } = made.json()
  t.equal(made.headers.location, `/api/status/${successor}`)
  t.strictSame(operated(), [{ ...olga, action: 'reissue', handoff_id: id }])
  const again = await call('operator', 'POST', `/api/reissue/${id}`)
  t.match(again, { statusCode: 201, headers: { 'idempotency-replayed': 'true' }, body: made.body })
  t.equal((await call('bob', 'POST', `/api/cancel/${successor}`)).json().code, 'not_the_passer')
  t.equal((await call('alice', 'POST', `/api/cancel/${successor}`)).statusCode, 200, 'alice passed it')
  t.strictSame(operated(), [])

  const taken = await caught()
  t.equal((await call('operator', 'POST', `/api/reissue/${taken}`)).statusCode, 201)
  t.match((await call('alice', 'GET', `/api/status/${taken}`)).json(), { status: 'cancelled', ended_by: 'olga' })
  t.strictSame(operated(), [{ ...olga, action: 'reissue', handoff_id: taken }])
})

t.test('the order of refusals stays, and not_the_passer is none of an operator’s', async t => {
  const [done, waiting] = [await caught(), await pass({ require_human: true })]
  await call('bob', 'POST', `/api/done/${done}`)
  for (const verb of ['cancel', 'reissue']) {
    t.match((await call('operator', 'POST', `/api/${verb}/${done}`)).json(), { status: 409, code: 'already_done', handoff_status: 'done' }, verb)
    t.match((await call('foreignOperator', 'POST', `/api/${verb}/${done}`)).json(), { status: 404, code: 'not_found' })
    t.match((await call('operator', 'POST', `/api/${verb}/nothing`)).json(), { status: 404, code: 'not_found' })
    t.match((await call('bob', 'POST', `/api/${verb}/${done}`)).json(), { status: 403, code: 'not_the_passer' })
    const refused = await call('approver', 'POST', `/api/${verb}/${done}`)
    t.match(refused.json(), { status: 403, code: 'insufficient_scope', detail: 'This operation needs a key with the scope pass or operate.' })
    t.equal(refused.headers['www-authenticate'], 'Bearer error="insufficient_scope", scope="pass"')
  }
  t.match((await call('operator', 'POST', `/api/reissue/${waiting}`)).json(), { status: 409, code: 'not_caught' })
  t.match((await call('operator', 'POST', '/api/pass', { task: 't' })).json(), { code: 'insufficient_scope', detail: 'This operation needs a key with the scope pass.' })
  t.match((await call('operator', 'GET', `/api/catch/${waiting}`)).json(), { code: 'insufficient_scope' })
  t.equal((await call('operator', 'POST', `/api/approve/${waiting}`)).statusCode, 200, 'it approves as well')
  t.strictSame(operated(), [])
})

t.test('a key with pass and operate is its own agent’s passer; with operate alone it is only an operator', async t => {
  const both = await newKey(store.keyRecords, { agent: 'alice', scopes: ['pass', 'operate'] })
  const alone = await newKey(store.keyRecords, { agent: 'alice', scopes: ['operate'] })
  const [own, another, third] = [await pass(), await pass(), await caught()]
  const by = ({ key }: { key: string }, path: string) => call(null, 'POST', path, undefined, bearer(key))
  t.equal((await by(both, `/api/cancel/${own}`)).statusCode, 200)
  t.strictSame(operated(), [], 'what it passed itself is no operator’s work')
  t.equal((await by(alone, `/api/cancel/${another}`)).statusCode, 200)
  t.match(operated(), [{ operator: 'alice', action: 'cancel', handoff_id: another }])
  t.equal((await by(alone, `/api/reissue/${third}`)).statusCode, 201)
  t.match(operated(), [{ operator: 'alice', action: 'reissue', handoff_id: third }])
})

t.test('in a batch', async t => {
  const [first, second, third] = [await pass(), await caught(), await pass()]
  lines.length = 0
  const operations = [{ op: 'cancel', id: first }, { op: 'reissue', id: second }, { op: 'pass', body: { task: 't' } }, { op: 'cancel', id: 'x' }]
  const { results } = (await call('operator', 'POST', '/api/batch', { operations })).json()
  t.strictSame(results.map(({ status, body }: any) => body.code ?? status), [200, 201, 'insufficient_scope', 'not_found'])
  t.strictSame(operated(), [{ ...olga, action: 'cancel', handoff_id: first, force: false }, { ...olga, action: 'reissue', handoff_id: second }])
  t.equal((await call('bob', 'POST', '/api/batch', { operations: [{ op: 'cancel', id: third }] })).json().results[0].body.code, 'not_the_passer')
})

t.test('as tools', async t => {
  const agent = await agentOf(t, service as TestApp, 'operator', eras[0])
  t.strictSame((await agent.tools()).map(({ name }) => name), toolNames('operate', 'approve', 'status'))
  const [first, second] = [await pass(), await caught()]
  lines.length = 0
  t.match(told(await agent.call('handoff_cancel', { id: first })), { status: 'cancelled' })
  t.match(told(await agent.call('handoff_reissue', { id: second })), { status: 'pending' })
  t.strictSame(operated(), [{ ...olga, action: 'cancel', handoff_id: first, force: false }, { ...olga, action: 'reissue', handoff_id: second }])
  t.match(told(await callWith(service, 'approver', 'handoff_cancel', `{"id":"${first}"}`)), { code: 'insufficient_scope' })
  t.match(told(await callWith(service, 'bob', 'handoff_cancel', `{"id":"${await pass()}"}`)), { code: 'not_the_passer' })
})

t.test('the documents name both scopes', async t => {
  const { body } = await service.app.inject('/llms.txt')
  for (const verb of ['cancel', 'reissue']) t.ok(body.includes(`\`POST /api/${verb}/:id\`, scope \`pass\` or \`operate\`.`), verb)
  t.ok(body.includes('`POST /api/pass`, scope `pass`.'))
})
