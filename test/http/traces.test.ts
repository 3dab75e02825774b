import t from 'tap'
import { testApp } from '../helpers/app.ts'
import type { TestApp } from '../helpers/app.ts'

/** Of all that needs no service of its own. */
const service = await testApp(t)
const { call } = service

const trace = '4bf92f3577b34da6a3ce929d0e0e4736'
const parent = '00f067aa0ba902b7'
const traceparent = `00-${trace}-${parent}-01`
const another = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-00`

async function pass ({ call }: TestApp, headers: Record<string, string> = {}, more: object = {}): Promise<string> {
  const answer = await call('alice', 'POST', '/api/pass', { task: 'count', ...more }, headers)
  if (answer.statusCode !== 201) throw new Error(answer.body)
  return answer.json().handoff_id
}

/** The one handoff's hash in Redis. */
async function kept ({ dump }: TestApp): Promise<{ content: { s: string } }> {
  const found = Object.entries(await dump()).find(([key]) => key.includes('}:h:'))
  return found?.[1] as { content: { s: string } }
}

/** Passes with this traceparent. @returns the traceparent that the catch answers */
async function through (service: TestApp, given: string): Promise<unknown> {
  const id = await pass(service, { traceparent: given })
  const answer = await service.call('bob', 'GET', `/api/catch/${id}`)
  if (answer.statusCode !== 200) throw new Error(answer.body)
  return answer.headers.traceparent
}

t.test('pass’s traceparent comes back with its catch, and only there', async t => {
  const service = await testApp(t)
  const { call } = service
  const id = await pass(service, { traceparent })
  t.equal((await call('bob', 'GET', `/api/status/${id}`)).headers.traceparent, undefined)

  const key = { 'idempotency-key': 'k1' }
  const caught = await call('bob', 'GET', `/api/catch/${id}`, undefined, { ...key, traceparent: another })
  t.equal(caught.statusCode, 200)
  t.equal(caught.headers.traceparent, traceparent, 'the passed one, not the requester’s')
  t.same(Object.keys(caught.json()), ['handoff_id', 'status', 'task', 'output', 'context', 'constraints', 'created_at'])

  const again = await call('bob', 'GET', `/api/catch/${id}`, undefined, key)
  t.match(again.headers, { traceparent, 'idempotency-replayed': 'true' })
  const refused = await call('alice', 'GET', `/api/catch/${id}`)
  t.equal(refused.statusCode, 409)
  t.equal(refused.headers.traceparent, undefined)
  t.equal((await call('bob', 'POST', `/api/done/${id}`, {}, key)).headers.traceparent, undefined)

  t.strictSame(Object.keys((await kept(service)).content).sort(), ['p', 's'], 'Redis keeps it in no field of its own')
})

t.test('without a traceparent there is none, and Redis stores nothing more', async t => {
  const id = await pass(service)
  t.match((await kept(service)).content.s, / alice -$/)
  t.notOk('traceparent' in (await service.call('bob', 'GET', `/api/catch/${id}`)).headers)
})

t.test('a replayed pass with another trace is the same operation, and the first trace stays', async t => {
  const asked = (headers: Record<string, string>, task = 'count') =>
    call('alice', 'POST', '/api/pass', { task }, { 'idempotency-key': 'k', ...headers })
  const first = await asked({ traceparent })
  for (const headers of [{ traceparent: another }, {}, { traceparent }]) {
    const again = await asked(headers)
    t.equal(again.statusCode, 201)
    t.equal(again.headers['idempotency-replayed'], 'true')
    t.equal(again.body, first.body)
  }
  t.equal((await asked({ traceparent }, 'another')).statusCode, 422, 'another body is another operation')
  t.equal((await call('bob', 'GET', `/api/catch/${first.json().handoff_id}`)).headers.traceparent, traceparent)

  const bare = await call('alice', 'POST', '/api/pass', { task: 'count' }, { 'idempotency-key': 'bare' })
  const later = await call('alice', 'POST', '/api/pass', { task: 'count' }, { 'idempotency-key': 'bare', traceparent })
  t.equal(later.headers['idempotency-replayed'], 'true')
  t.equal((await call('bob', 'GET', `/api/catch/${bare.json().handoff_id}`)).headers.traceparent, undefined, 'one that comes later is no part of it')
})

t.test('the trace survives a person’s decision and done', async t => {
  const id = await pass(service, { traceparent }, { require_human: true })
  t.equal((await call('bob', 'GET', `/api/catch/${id}`)).headers.traceparent, undefined, 'nobody has it before')
  t.equal((await call('approver', 'POST', `/api/approve/${id}`, {})).statusCode, 200)
  const caught = await call('bob', 'GET', `/api/catch/${id}`)
  t.equal(caught.headers.traceparent, traceparent)
  t.match(caught.json(), { approval: { state: 'approved' } })
  t.equal((await call('bob', 'POST', `/api/done/${id}`, { output: { n: 1 } })).statusCode, 200)
  t.match((await call('alice', 'GET', `/api/status/${id}`)).json(), { status: 'done', caught_by: 'bob', result: { n: 1 } })
})

t.test('a valid traceparent is accepted, and one of a later version read as version 00', async t => {
  const valid: Array<[given: string, taken?: string]> = [
    ...['00', '01', '02', '03', 'ff'].map((flags): [string] => [`00-${trace}-${parent}-${flags}`]),
    [`01-${trace}-${parent}-01`, traceparent],
    [`cc-${trace}-${parent}-00`, `00-${trace}-${parent}-00`],
    [`fe-${trace}-${parent}-ff-what-the-future-will-be-like`, traceparent],
    [`01-${trace}-${parent}-fe-`, `00-${trace}-${parent}-00`],
  ]
  for (const [given, taken = given] of valid) t.equal(await through(service, given), taken, given)
})

t.test('a malformed traceparent is ignored and never an error', async t => {
  const malformed = [
    '', '-', 'x', trace,
    `00-${'0'.repeat(32)}-${parent}-01`, `00-${trace}-${'0'.repeat(16)}-01`,
    `01-${'0'.repeat(32)}-${parent}-01`, `01-${trace}-${'0'.repeat(16)}-01`,
    `ff-${trace}-${parent}-01`,
    `00-${trace}-${parent}-01-`, `00-${trace}-${parent}-01-more`, `00-${trace}-${parent}-0`, `00-${trace}-${parent}-011`,
    `00-${trace}-${parent}`, `00-${trace}-${parent}-`, `0-${trace}-${parent}-01`, `000-${trace}-${parent}-01`,
    `00-${trace.slice(1)}-${parent}-01`, `00-${trace}f-${parent}-01`, `00-${trace}-${parent.slice(1)}-01`, `00-${trace}-${parent}f-01`,
    `00-${trace.toUpperCase()}-${parent}-01`, `00-${trace}-${parent.toUpperCase()}-01`, `0A-${trace}-${parent}-01`, `00-${trace}-${parent}-0G`,
    `00-${trace.replace('4', 'g')}-${parent}-01`, `00_${trace}_${parent}_01`, `00-${trace} ${parent}-01`,
    `.0-${trace}-${parent}-01`, `01-${trace}-${parent}-01.more`, `01-${trace}-${parent}-0`,
    `${traceparent}, ${another}`, `${traceparent},`, `"${traceparent}"`, `${traceparent}/more`, `${traceparent} more`,
    '00-'.repeat(2000),
  ]
  for (const given of malformed) t.equal(await through(service, given), undefined, given.slice(0, 80))

  const twice = await service.app.inject({
    method: 'POST', url: '/api/pass', payload: { task: 't' }, headers: { authorization: 'Bearer alice-secret-0123456789', traceparent: [traceparent, another] },
  })
  t.equal(twice.statusCode, 201)
  const caught = await service.call('bob', 'GET', `/api/catch/${twice.json().handoff_id}`)
  t.equal(caught.headers.traceparent, undefined, 'two are none')
})

t.test('a catch from an inbox answers the trace of a single handoff; of several it answers none', async t => {
  for (const [count, expected] of [[1, traceparent], [2, undefined]] as const) {
    for (let n = 0; n < count; n++) await pass(service, { traceparent }, { to: 'traced' })
    const { headers, json } = await call('bob', 'POST', '/api/catch', { inbox: 'traced', max: 2 })
    t.strictSame([json().items.length, headers.traceparent], [count, expected])
  }
})
