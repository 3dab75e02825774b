import t from 'tap'
import { secrets, testApp } from '../helpers/app.ts'
import { isProblem } from '../helpers/problems.ts'
import { bearer, newKey } from '../helpers/stored-keys.ts'

/** GET /api/handoffs/:id, which shows all of a handoff to keys with the scope `read`. */

/** The operator is a reader too: one key may stand in both variables. */
const readers = { READER_KEYS: `olga:${secrets.operator}` }
const service = await testApp(t, readers)
const { call, pass, caught } = service
const read = async (id: string) => call('operator', 'GET', `/api/handoffs/${id}`)
/** The raw text of the members behind those of status. */
const behindStatus = (body: string) => body.slice(body.indexOf(',"passed_by"'))

const task = '"t\\u0041 \\ud800"'
const odd = '{"n":[9007199254740993,1.0,1e400],"a":1,"a":2,"__proto__":{}}'

t.test('all of it, literally, and null for what is gone or never was', async t => {
  const { handoff_id: id } = (await call('alice', 'POST', '/api/pass', `{"task":${task},"output":${odd},"constraints":"c","labels":{"run":"7"},"to":"box"}`)).json()
  const before = await service.dump()
  const pending = await read(id)
  t.equal(pending.statusCode, 200)
  const none = ',"result":null,"error":null,"question":null,"answer":null'
  const attempts = (more: object) => `,"attempts":${JSON.stringify([{ handoff_id: id, attempt: 1, status: 'pending', worker: null, ended_at: null, ...more }])}}`
  const payload = `,"passed_by":"alice","task":${task},"output":${odd},"context":{},"constraints":"c"`
  t.equal(behindStatus(pending.body), `${payload}${none},"progress":null,"checkpoint":null${attempts({})}`)
  const { result, ...status } = (await call('alice', 'GET', `/api/status/${id}`)).json()
  t.match(pending.json(), status, 'with the members of status')
  t.strictSame(await service.dump(), before, 'reading changes nothing')

  await call('bob', 'GET', `/api/catch/${id}`)
  await call('bob', 'POST', `/api/heartbeat/${id}`, '{"progress":{"message":"h\\u00e4lf","percent":50.0}}')
  const { ask_id: askId } = (await call('bob', 'POST', `/api/ask/${id}`, '{"question":"wh\\u0061t","of":"passer","details":{"d":1}}')).json()
  await call('alice', 'POST', `/api/answer/${id}`, `{"ask_id":"${askId}","answer":${odd},"note":"n"}`)
  const asked = await read(id)
  t.equal(behindStatus(asked.body), `${payload},"result":null,"error":null,"question":"wh\\u0061t","answer":${odd},"checkpoint":null${attempts({ status: 'caught' })}`)
  t.match(asked.body, '"progress":{"message":"h\\u00e4lf","percent":50.0,"at":')
  await call('bob', 'POST', `/api/done/${id}`, `{"output":${odd}}`)
  const done = await read(id)
  t.match(behindStatus(done.body), `,"passed_by":"alice","task":null,"output":null,"context":null,"constraints":null,"result":${odd},"error":null,"question":"wh\\u0061t"`)
  t.match(done.json().attempts, [{ status: 'done', ended_at: done.json().completed_at }])

  const failed = await caught()
  await call('bob', 'POST', `/api/fail/${failed}`, '{"error":{"message":"m\\u0061","data":{"n":1.0}}}')
  t.match(behindStatus((await read(failed)).body), '"result":null,"error":{"message":"m\\u0061","data":{"n":1.0}},"question":null')
  const declined = await caught()
  await call('bob', 'POST', `/api/decline/${declined}`, '{"reason":"n\\u006f"}')
  const { body } = await read(declined)
  t.match(body, '"reason":"n\\u006f","passed_by"')
  t.match(body, '"error":null')
})

t.test('the last 50 attempts, whichever of them is asked for', async t => {
  const ids = [await pass({ to: 'again' })]
  for (let n = 1; n < 53; n++) {
    await call('bob', 'GET', `/api/catch/${ids.at(-1)!}`)
    ids.push((await call('alice', 'POST', `/api/reissue/${ids.at(-1)!}`)).json().handoff_id)
  }
  const wanted = ids.slice(-50).map((id, at) => ({ handoff_id: id, attempt: at + 4, status: at === 49 ? 'pending' : 'cancelled' }))
  for (const at of [0, 1, 20, 52]) {
    const { attempts } = (await read(ids[at]!)).json()
    t.equal(attempts.length, 50)
    t.match(attempts, wanted, `asked for number ${at}`)
  }
  const one = await pass({ to: 'few' })
  await call('bob', 'GET', `/api/catch/${one}`)
  const { handoff_id: next } = (await call('alice', 'POST', `/api/reissue/${one}`)).json()
  t.match((await read(next)).json().attempts, [{ handoff_id: one, attempt: 1 }, { handoff_id: next, attempt: 2, ended_at: null }])
  const rejected = await pass({ require_human: true })
  await call('approver', 'POST', `/api/reject/${rejected}`, { note: 'no' })
  const { attempts: [only], approval } = (await read(rejected)).json()
  t.match(only, { status: 'rejected', ended_at: approval.decided_at })
})

t.test('texts that would bring it over 4 MiB are left out', async t => {
  const large = await testApp(t, { ...readers, BODY_LIMIT: String(8 * 1024 * 1024) })
  const bytes = (count: number) => 'x'.repeat(count)
  const MiB = 1024 * 1024
  const id = await large.caught({ output: { long: bytes(3 * MiB) }, context: { long: bytes(1.5 * MiB) }, constraints: 'short' })
  const seen = async () => (await large.call('operator', 'GET', `/api/handoffs/${id}`)).json()
  const one = await seen()
  t.match(one, { task: 't', context_omitted: true, constraints: 'short', context: undefined })
  t.equal(one.output.long.length, 3 * MiB)
  t.notOk('output_omitted' in one)
  await large.call('bob', 'POST', `/api/fail/${id}`, { error: { message: 'm', data: { long: bytes(4.5 * MiB) } } })
  t.match(await seen(), { error_omitted: true, error: undefined, constraints: 'short' })
  const other = await large.caught()
  await large.call('bob', 'POST', `/api/done/${other}`, { output: { long: bytes(5 * MiB) } })
  t.match((await large.call('operator', 'GET', `/api/handoffs/${other}`)).json(), { result_omitted: true, task: null })
})

t.test('it needs the scope, and is another tenant’s, or another inbox’s, for nobody', async t => {
  const id = await pass({ to: 'box' })
  for (const who of ['alice', 'approver'] as const) isProblem(t, await call(who, 'GET', `/api/handoffs/${id}`), 403, 'insufficient_scope')
  isProblem(t, await call('foreignOperator', 'GET', `/api/handoffs/${id}`), 403, 'insufficient_scope')
  isProblem(t, await read('x'), 404, 'not_found')
  isProblem(t, await read(`${id.slice(0, -1)}${id.endsWith('A') ? 'Q' : 'A'}`), 404, 'not_found')
  isProblem(t, await call('operator', 'GET', `/api/handoffs/${id}?x=1`), 400, 'invalid_request')
  isProblem(t, await call('operator', 'POST', `/api/handoffs/${id}`), 405, 'method_not_allowed')
  const { key } = await newKey(service.store.keyRecords, { scopes: ['read'], inboxes: ['other'] })
  const asHeld = (of: string) => service.app.inject({ url: `/api/handoffs/${of}`, headers: bearer(key) })
  isProblem(t, await asHeld(id), 403, 'not_addressee')
  t.equal((await asHeld(await pass({ to: 'other' }))).statusCode, 200)
  t.equal((await asHeld(await pass())).statusCode, 200, 'what is for none is for all')
  isProblem(t, await call('operator', 'POST', '/api/batch', { operations: [{ op: 'get', id }] }), 400, 'invalid_request')
})

t.test('who reads what is a line of the log, once in ten minutes', async t => {
  const { call, pass, lines } = await testApp(t, readers)
  const [one, two] = [await pass(), await pass()]
  for (const id of [one, one, two, one]) await call('operator', 'GET', `/api/handoffs/${id}`, undefined, { 'x-request-id': `of-${id}` })
  const told = lines.map(line => JSON.parse(line)).filter(({ msg }) => msg === 'read')
  t.match(told, [one, two].map(id => ({ handoff_id: id, reader: 'olga', tenant: 'default', request_id: `of-${id}` })))
  t.equal(told.length, 2)
})
