import { request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import type { Test } from 'tap'
import { callBudget } from '../../src/redis/lanes.ts'
import { scriptCalls } from '../../src/redis/call.ts'
import type { ScriptCallMessage } from '../../src/redis/call.ts'
import { testApp } from '../helpers/app.ts'
import type { TestApp, Who } from '../helpers/app.ts'
import { ownRedis } from '../helpers/own-redis.ts'
import { isProblem } from '../helpers/problems.ts'
import { bearer, newKey, untilKnown } from '../helpers/stored-keys.ts'
import { ofOneReplica } from '../helpers/through.ts'
import { until } from '../helpers/until.ts'
import { timed } from '../helpers/waits.ts'
import { connectionsOf, listen } from '../helpers/wire.ts'

/** Of all that needs no service of its own. */
const service = await testApp(t)
const { call } = service

/** Many operations in one request: each is what its own request would be. */

interface Result { status: number, body: Record<string, unknown>, replayed?: true }

const send = ({ call }: TestApp, operations: unknown, who: Who = 'alice', headers?: Record<string, string>) => call(who, 'POST', '/api/batch', { operations }, headers)
const results = async (service: TestApp, operations: unknown, who?: Who): Promise<Result[]> => (await send(service, operations, who)).json().results
const caught = async (service: TestApp, more: object = {}): Promise<string> => {
  const id = await service.pass(more)
  await service.call('alice', 'GET', `/api/catch/${id}`)
  return id
}
const status = async ({ call }: TestApp, id: string) => (await call('alice', 'GET', `/api/status/${id}`)).json().status

t.test('each operation answers as its own request does', async t => {
  const service = await testApp(t)
  const [a, b, c, d, e, f] = await Promise.all([service.pass(), ...[1, 2, 3, 4, 5].map(() => caught(service))]) as [string, string, string, string, string, string]
  const answer = await send(service, [
    { op: 'pass', body: { task: 'new' } },
    { op: 'catch', id: a },
    { op: 'done', id: b, body: { output: { x: 1 } } },
    { op: 'status', id: c },
    { op: 'heartbeat', id: c },
    { op: 'fail', id: d, body: { error: { message: 'm' } } },
    { op: 'decline', id: e, body: { reason: 'r' } },
    { op: 'cancel', id: c, body: {} },
    { op: 'reissue', id: f, body: {} },
  ])
  t.equal(answer.statusCode, 200)
  t.equal(answer.headers['cache-control'], 'no-store')
  t.ok(answer.headers['x-request-id'])
  t.match(answer.headers['content-type'], /^application\/json/)
  const all = answer.json().results
  t.strictSame(all.map(({ status }: Result) => status), [201, 200, 200, 200, 200, 200, 200, 202, 201])
  for (const result of all) t.strictSame(Object.keys(result), ['status', 'body'])
  t.match(all, [
    { body: { status: 'pending', pickup_url: String } },
    { body: { handoff_id: a, status: 'caught', task: 't', output: {}, constraints: null } },
    { body: { handoff_id: b, status: 'done' } },
    { body: { handoff_id: c, status: 'caught' } },
    { body: { handoff_id: c, cancel_requested: Boolean } },
    { body: { handoff_id: d, status: 'failed' } },
    { body: { handoff_id: e, status: 'declined' } },
    { body: { handoff_id: c, cancel_requested_at: String } },
    { body: { handoff_id: String, status: 'pending' } },
  ])
  t.equal(await status(service, f), 'cancelled', 'taken from its catcher')
  t.strictSame(Object.keys(all[0].body), ['handoff_id', 'pickup_url', 'status', 'created_at', 'expires_at'])
})

t.test('one that fails touches no other', async t => {
  const id = await service.pass()
  const all = await results(service, [
    { op: 'pass', body: { task: '' } }, { op: 'pass' }, { op: 'pass', body: { task: 't', extra: 1 } }, { op: 'pass', body: [] },
    { op: 'catch', id: 'nonsense' }, { op: 'catch', id }, { op: 'done', id: 'AAAAAAAAAAAAAAAAAAAAAAAAA' }, { op: 'heartbeat', id, body: { progress: { percent: 101 } } },
    { op: 'fail', id, body: { error: { message: 'm', message2: 1 } } }, { op: 'decline', id, body: {} }, { op: 'pass', body: { task: 't', priority: 1 } },
  ])
  t.strictSame(all.map(({ status, body }) => [status, body.code ?? '']), [
    [400, 'invalid_request'], [400, 'invalid_request'], [400, 'invalid_request'], [400, 'invalid_request'],
    [404, 'not_found'], [200, ''], [404, 'not_found'], [400, 'invalid_request'], [400, 'invalid_request'], [400, 'invalid_request'], [400, 'invalid_request'],
  ])
  t.match(all[0]!.body, { type: '/problems#invalid_request', title: 'Invalid request', status: 400, retryable: false, errors: [{ pointer: '/task' }], request_id: String })
  t.match(all[2]!.body, { errors: [{ pointer: '/extra', message: 'unknown' }] })
  t.match(all[8]!.body, { errors: [{ pointer: '/error/message2' }] })
})

t.test('the envelope is checked before anything runs', async t => {
  const id = await service.pass()
  const good = { op: 'catch', id }
  const wrong: Array<[string, unknown, string]> = [
    ['no operations', {}, '/operations'], ['null', { operations: null }, '/operations'], ['an object', { operations: {} }, '/operations'],
    ['none', { operations: [] }, '/operations'], ['101', { operations: Array(101).fill(good) }, '/operations'],
    ['another member', { operations: [good], more: 1 }, '/more'],
    ['no object', { operations: [good, 7] }, '/operations/1'], ['no op', { operations: [good, {}] }, '/operations/1/op'],
    ['no id for reissue', { operations: [good, { op: 'reissue' }] }, '/operations/1/id'], ['approve', { operations: [good, { op: 'approve', id }] }, '/operations/1/op'],
    ['an op that is no string', { operations: [good, { op: ['catch'], id }] }, '/operations/1/op'],
    ['a prototype’s', { operations: [good, { op: 'constructor', id }] }, '/operations/1/op'],
    ['an unknown member', { operations: [good, { op: 'catch', id, wait: 3 }] }, '/operations/1/wait'],
    ['no id', { operations: [good, { op: 'done' }] }, '/operations/1/id'], ['null for an id', { operations: [good, { op: 'done', id: null }] }, '/operations/1/id'],
    ['a number for an id', { operations: [good, { op: 'done', id: 7 }] }, '/operations/1/id'],
    ['an id for pass', { operations: [good, { op: 'pass', id, body: { task: 't' } }] }, '/operations/1/id'],
    ['a body for catch', { operations: [good, { op: 'catch', id, body: {} }] }, '/operations/1/body'],
    ['a body for status', { operations: [good, { op: 'status', id, body: { a: 1 } }] }, '/operations/1/body'],
    ['a bad key', { operations: [good, { op: 'pass', body: { task: 't' }, idempotency_key: 'a b' }] }, '/operations/1/idempotency_key'],
    ['an empty key', { operations: [good, { op: 'pass', body: { task: 't' }, idempotency_key: '' }] }, '/operations/1/idempotency_key'],
    ['a number for a key', { operations: [good, { op: 'status', id, idempotency_key: 1 }] }, '/operations/1/idempotency_key'],
  ]
  for (const [name, body, pointer] of wrong) {
    const problem = isProblem(t, await service.call('alice', 'POST', '/api/batch', body), 400, 'invalid_request', name) as { errors: unknown }
    t.match(problem.errors, [{ pointer }], name)
  }
  for (const [name, text] of [
    ['no JSON', '{"operations":[{"op":"catch"'], ['an array', '[]'], ['nothing', ''], ['bad syntax in a body', `{"operations":[{"op":"pass","body":{"task":tru}},{"op":"catch","id":"${id}"}]}`],
    ['text behind it', `{"operations":[{"op":"catch","id":"${id}"}]}x`], ['an object behind it', `{"operations":[{"op":"catch","id":"${id}"}]} {}`],
    ['no comma between two', `{"operations":[{"op":"catch","id":"${id}"};{"op":"catch","id":"${id}"}]}`], ['operations twice', `{"operations":[],"operations":[{"op":"catch","id":"${id}"}]}`],
    ['op twice', `{"operations":[{"op":"status","op":"catch","id":"${id}"}]}`], ['two names for one', `{"operations":[{"op":"status","\\u006fp":"catch","id":"${id}"}]}`],
    ['a comma too many', `{"operations":[{"op":"catch","id":"${id}"},]}`], ['a byte order mark', `\ufeff{"operations":[{"op":"catch","id":"${id}"}]}`],
  ] as const) isProblem(t, await service.call('alice', 'POST', '/api/batch', text), 400, 'invalid_request', name)
  const many = await service.call('alice', 'POST', '/api/batch', { operations: [good], ...Object.fromEntries(Array.from({ length: 150 }, (_, at) => [`more${at}`, at])) })
  t.equal(many.json().errors.length, 100, 'of very many faults a hundred are named')
  isProblem(t, await send(service, [good], 'alice', { 'idempotency-key': 'k' }), 400, 'invalid_request', 'an Idempotency-Key')
  isProblem(t, await service.call('alice', 'POST', '/api/batch?wait=1', { operations: [good] }), 400, 'invalid_request', 'a query')
  isProblem(t, await service.call('alice', 'POST', '/api/batch', '{}', { 'content-type': 'text/plain' }), 415, 'unsupported_media_type')
  isProblem(t, await call(null, 'POST', '/api/batch', { operations: [good] }), 401, 'unauthorized')
  t.equal(await status(service, id), 'pending', 'nothing ran')
  t.equal((await send(service, Array(100).fill({ op: 'status', id }))).json().results.length, 100)
  t.equal((await service.call('alice', 'POST', '/api/batch', `\n {\t"operations" : [ {"id" : "${id}" , "op":"\\u0063atch", "body":null, "idempotency_key":null} ] }\r\n`)).json().results[0].status, 200)
})

t.test('payloads are literal, and each body has its own depth', async t => {
  const output = '{"n":9007199254740993,"f":1.0,"big":1e400,"a":1,"a":2,"__proto__":{"x":1},"s":"\\ud800 é 🙂"}'
  const deep = (levels: number) => `{"task":"t","output":${'{"a":'.repeat(levels - 2)}{}${'}'.repeat(levels - 2)}}`
  const body = `{"operations":[{"op":"pass","body":{"task":"t","output": ${output} }},{"op":"pass","body":${deep(100)}},{"op":"pass","body":${deep(101)}},{"op":"pass","body":${deep(20_000)}},` +
    '{"op":"pass","body":{"task":"a","task":"b"}}]}'
  const passed = (await service.call('alice', 'POST', '/api/batch', body)).json().results
  t.strictSame(passed.map(({ status }: Result) => status), [201, 201, 400, 400, 400])
  const answer = await send(service, [{ op: 'catch', id: passed[0].body.handoff_id }])
  t.ok(answer.body.includes(`"output":${output}`))
})

t.test('scopes, limits of size, other tenants: as alone', async t => {
  const service = await testApp(t, { BODY_LIMIT: '1024', BATCH_LIMIT: '8192' })
  const id = await service.pass()
  const approver = await results(service, [{ op: 'pass', body: { task: 't' } }, { op: 'status', id }, { op: 'catch', id }, { op: 'cancel', id }], 'approver')
  t.strictSame(approver.map(({ status, body }) => [status, body.code ?? '']), [[403, 'insufficient_scope'], [200, ''], [403, 'insufficient_scope'], [403, 'insufficient_scope']])
  t.match(await results(service, [{ op: 'catch', id }, { op: 'status', id }, { op: 'cancel', id }], 'foreignAlice'), [{ status: 404 }, { status: 404 }, { status: 404 }])
  t.match(await results(service, [{ op: 'cancel', id }], 'bob'), [{ status: 403, body: { code: 'not_the_passer', handoff_status: 'pending' } }])
  const sized = (bytes: number) => ({ op: 'pass', body: { task: 'x'.repeat(bytes - '{"task":""}'.length) } })
  t.match(await results(service, [sized(1024), sized(1025), sized(12)]), [{ status: 201 }, { status: 413, body: { code: 'payload_too_large' } }, { status: 201 }])
  isProblem(t, await send(service, Array(9).fill(sized(1000))), 413, 'payload_too_large')
  isProblem(t, await service.call('alice', 'POST', '/api/pass', { task: 'x'.repeat(1025) }), 413, 'payload_too_large', 'the others’ limit stays')
})

t.test('keys as alone: a replay is marked, two with one key act once', async t => {
  const one = { op: 'pass', body: { task: 't' }, idempotency_key: 'k' }
  const first = await results(service, [one, one, one])
  t.strictSame(first.map(({ status }) => status), [201, 201, 201])
  t.equal(new Set(first.map(({ body }) => body.handoff_id)).size, 1)
  t.equal(first.filter(({ replayed }) => replayed === true).length, 2)
  const single = await service.call('alice', 'POST', '/api/pass', '{"task":"t"}', { 'idempotency-key': 'k' })
  t.equal(single.headers['idempotency-replayed'], 'true', 'the single request is the same operation')
  t.equal(single.json().handoff_id, first[0]!.body.handoff_id)
  t.match(await results(service, [{ ...one, body: { task: 'u' } }]), [{ status: 422, body: { code: 'idempotency_key_reused' } }])
  const id = first[0]!.body.handoff_id as string
  const catches = await results(service, [{ op: 'catch', id, idempotency_key: 'c' }, { op: 'catch', id, idempotency_key: 'c' }, { op: 'catch', id }])
  t.strictSame(catches.map(({ status, replayed }) => `${status} ${replayed ?? ''}`).sort(), ['200 ', '200 true', '409 '].sort())
  const dones = await results(service, [{ op: 'done', id, body: { output: {} }, idempotency_key: 'd' }, { op: 'done', id, body: { output: {} }, idempotency_key: 'd' }])
  t.strictSame(dones.map(({ status, replayed }) => `${status} ${replayed ?? ''}`).sort(), ['200 ', '200 true'].sort())
})

t.test('each operation counts against the limit, and the batch not once more', async t => {
  const service = await testApp(t)
  const { key } = await newKey(service.store.keyRecords, { ratePerMinute: 10 })
  const ask = (operations: unknown[]) => service.app.inject({ method: 'POST', url: '/api/batch', headers: bearer(key), payload: { operations } })
  const one = { op: 'pass', body: { task: 't' } }
  const first = await ask(Array(6).fill(one))
  t.match(first.headers, { 'ratelimit-policy': '"default";q=10;w=60', ratelimit: /r=4;/ })
  const second = await ask(Array(6).fill(one))
  t.equal(second.statusCode, 200)
  t.strictSame(second.json().results.map(({ status }: Result) => status).sort(), [201, 201, 201, 201, 429, 429])
  t.match(second.json().results.find(({ status }: Result) => status === 429).body, { code: 'rate_limited', retryable: true })
  const metrics = (await service.app.inject({ url: '/metrics' })).body
  t.match(metrics, /handoff_transitions_total\{to="pending"\} 10\n/)
})

t.test('metrics are those of the single requests, and how many a batch has', async t => {
  const service = await testApp(t)
  const id = await service.pass({ max_attempts: 2 })
  const free = await service.pass()
  await results(service, [{ op: 'catch', id }, { op: 'pass', body: { task: 't' } }, { op: 'pass', body: { task: '' } }, { op: 'done', id: free }])
  await results(service, [{ op: 'fail', id, body: { error: { message: 'm' } } }, { op: 'catch', id }])
  const { body } = await service.app.inject({ url: '/metrics' })
  for (const line of [
    'handoff_transitions_total{to="caught"} 1', 'handoff_transitions_total{to="failed"} 1', 'handoff_transitions_total{to="pending"} 4',
    'handoff_reissued_total{because="failed"} 1', 'handoff_batch_operations_count 2', 'handoff_batch_operations_sum 6', 'handoff_conflicts_total{code="not_caught"} 1',
    'http_request_duration_seconds_count{method="POST",route="/api/pass",status_code="400"} 1', 'http_request_duration_seconds_count{method="POST",route="/api/batch",status_code="200"} 2',
  ]) t.ok(body.includes(`${line}\n`), line)
})

/** More bytes than are read without a turn. */
const long = 'x'.repeat(20_000)

/**
 * Counts the catches and statuses that this process asks Redis for: all, those under way, and the most that were at once.
 * @param small how many only find out that they are large: these come first
 */
function countReads (t: Test, small = 0): { asked: number, underWay: number, most: number } {
  const reads = { asked: 0, underWay: 0, most: 0 }
  const count = (message: unknown) => {
    const { script, answer } = message as ScriptCallMessage
    if (script !== 'status' && script !== 'catch') return
    if (++reads.asked <= small) return
    reads.most = Math.max(reads.most, ++reads.underWay)
    answer.catch(() => {}).finally(() => { reads.underWay-- })
  }
  scriptCalls.subscribe(count)
  t.teardown(() => scriptCalls.unsubscribe(count))
  return reads
}

t.test('what is large is read a few at a time, over all batches: Redis serves nobody else until it has answered all that it was sent together', { skip: ofOneReplica }, async t => {
  const ids = await Promise.all(Array.from({ length: 40 }, () => caught(service)))
  // An error may be as large as a result.
  await results(service, ids.map((id, at) => at % 2 === 0
    ? { op: 'done', id, body: { output: { long } } }
    : { op: 'fail', id, body: { error: { message: 'm', data: { long } } } }), 'alice')
  // Different ones: statuses of the same one may share a read.
  const reads = countReads(t, 80)
  const all = await Promise.all([
    results(service, ids.map(id => ({ op: 'status', id }))),
    results(service, ids.map(id => ({ op: 'catch', id })), 'bob'),
  ])
  t.strictSame(all.map(found => [...new Set(found.map(({ status }) => status))]), [[200], [409]])
  t.strictSame(all[0]!.map(({ body }) => body.handoff_id), ids, 'in the order asked')
  t.match(all[0]![1], { body: { error: { data: { long } } } })
  t.equal(reads.asked, 120, 'the statuses twice: to refuse a catch reads nothing')
  t.equal(reads.most, 16)
  t.equal(reads.underWay, 0)
})

t.test('what is small is read at once, with all else of its kind; large is what comes with more, too', { skip: ofOneReplica }, async t => {
  const small = await Promise.all(Array.from({ length: 100 }, () => service.pass()))
  const reads = countReads(t)
  t.strictSame(new Set((await results(service, small.map(id => ({ op: 'catch', id })), 'bob')).map(({ status }) => status)), new Set([200]))
  t.match(reads, { asked: 100, most: 100 })
  const before = await caught(service)
  await service.call('alice', 'POST', `/api/done/${before}`, { output: { a: 1 } })
  const large = [await service.pass({ task: long }), await service.pass({ after: [before] }), await service.pass({ result_schema: { type: 'object' }, to: 'large' })]
  const own = large.map((id, at) => ({ op: 'catch', id, idempotency_key: `large-${at}` }))
  reads.asked = 0
  const found = await results(service, own, 'bob')
  t.match(found, [{ status: 200, body: { task: long } }, { status: 200, body: { after: [{ handoff_id: before, result: { a: 1 } }] } }, { status: 200, body: { result_schema: { type: 'object' } } }])
  t.ok(reads.asked >= 5, 'those twice that are more than 16 KB, or come after others')
  t.strictSame(await results(service, own, 'bob'), found.map(one => ({ ...one, replayed: true })))
  const limited = await newKey(service.store.keyRecords, { inboxes: ['other'] })
  const refused = await service.app.inject({ method: 'POST', url: '/api/batch', headers: bearer(limited.key), payload: { operations: own } })
  t.match(refused.json().results.map(({ body }: Result) => body.code), ['already_caught', 'already_caught', 'not_addressee'])
})

/** A service whose Redis is stopped, and a hundred free handoffs that are large, or so many hundreds. */
async function stopped (t: Test, hundreds = 1) {
  const redis = await ownRedis(t)
  const service = await testApp(t, {}, { url: redis.url })
  await service.app.ready()
  const { key, record } = await newKey(service.store.keyRecords, { agent: 'bob' })
  await untilKnown(service.keys, key)
  const ids: string[] = []
  for (let hundred = 0; hundred < hundreds; hundred++) {
    ids.push(...(await results(service, Array.from({ length: 100 }, () => ({ op: 'pass', body: { task: long } })))).map(({ body }) => String(body.handoff_id)))
  }
  const reads = countReads(t)
  process.kill(redis.pid(), 'SIGSTOP')
  const states = async () => {
    const found: unknown[] = []
    for (let from = 0; from < ids.length; from += 100) found.push(...(await results(service, ids.slice(from, from + 100).map(id => ({ op: 'status', id })))).map(({ body }) => body.status))
    return found
  }
  const goOn = () => process.kill(redis.pid(), 'SIGCONT')
  // A test that fails meanwhile mustn't wait for its service to end.
  t.teardown(goOn)
  return { service, key, record, ids, states, reads, goOn }
}

t.test('what is small waits for room that many batches have at once', async t => {
  const service = await testApp(t, { BODIES_LIMIT: String(16 * 1024 * 1024) })
  const operations = new Array(100).fill({ op: 'status', id: await service.pass() })
  const all = (await Promise.all(Array.from({ length: 10 }, () => results(service, operations)))).flat()
  t.strictSame([all.length, ...new Set(all.map(({ status }) => status))], [1000, 200])
})

t.test('while Redis is silent all is 503 in time, whoever else asks, and nothing of it happens later', { skip: ofOneReplica }, async t => {
  const { service, ids, states, reads, goOn } = await stopped(t)
  const catches = ids.map(id => ({ op: 'catch', id }))
  const [all, after] = await timed(() => Promise.all([
    results(service, catches, 'bob'), results(service, catches, 'bob'), results(service, catches, 'bob'),
    results(service, ids.slice(0, 3).map(id => ({ op: 'status', id })), 'foreignAlice'),
  ]))
  t.ok(after < 2 * callBudget, `after ${Math.round(after)} ms`)
  t.strictSame([...new Set(all.flat().map(({ status, body }) => `${status} ${String(body.code)}`))], ['503 unavailable'])
  t.equal(reads.asked, 303, 'each once')
  goOn()
  await until(async () => (await service.app.inject('/readyz')).statusCode === 200)
  t.strictSame([...new Set(await states())], ['pending'])
})

for (const [end, hundreds, expected] of [['is revoked', 5, '401 unauthorized'], ['loses the scope', 2, '403 insufficient_scope']] as const) {
  t.test(`a key that ${end} catches nothing any more with what waits for its turn`, { skip: ofOneReplica }, async t => {
    const { service, key, record, ids, states, reads, goOn } = await stopped(t, hundreds)
    const batches = Array.from({ length: hundreds }, async (_, hundred) => {
      const payload = { operations: ids.slice(100 * hundred, 100 * hundred + 100).map(id => ({ op: 'catch', id })) }
      return (await service.app.inject({ method: 'POST', url: '/api/batch', headers: bearer(key), payload })).json().results as Result[]
    })
    await until(() => reads.asked === ids.length)
    const { keyRecords } = service.store
    const ended = end === 'is revoked' ? keyRecords.revoke(record.id, 'me') : keyRecords.update(record.id, { scopes: ['status'] }, 'me')
    // Below a call's budget, and more than an operation may wait without being asked for its key again.
    await sleep(200)
    goOn()
    await ended
    const all = (await Promise.all(batches)).flat()
    const refused = all.filter(({ status }) => status !== 200)
    t.ok(refused.length > 100, `${refused.length} refused`)
    t.strictSame([...new Set(refused.map(({ status, body }) => `${status} ${String(body.code)}`))], [expected])
    t.strictSame(await states(), all.map(({ status }) => status === 200 ? 'caught' : 'pending'))
  })
}

t.test('for a client that has gone nothing more is caught', { skip: ofOneReplica }, async t => {
  const { service, key, ids, states, reads, goOn } = await stopped(t, 2)
  const port = await listen(service.app)
  const clients = [0, 100].map(from => {
    const client = request({ port, host: '127.0.0.1', method: 'POST', path: '/api/batch', headers: { ...bearer(key), 'content-type': 'application/json' } })
    client.on('error', () => {}).end(JSON.stringify({ operations: ids.slice(from, from + 100).map(id => ({ op: 'catch', id })) }))
    return client
  })
  await until(() => reads.asked === ids.length)
  await sleep(200)
  for (const client of clients) client.destroy()
  await until(async () => await connectionsOf(service.app) === 0)
  goOn()
  // These wait behind them.
  const found = await states()
  t.equal(found.filter(state => state === 'caught').length, 0)
})
