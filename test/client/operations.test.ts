import t from 'tap'
import { HandoffClient, isHandoffError, rawJson } from '../../src/clients/typescript/index.ts'
import type { ApprovalsWanted, PassBody } from '../../src/clients/typescript/index.ts'
import { tagOf } from '../../src/core/ids.ts'
import { clientTest, tenants } from '../helpers/client.ts'
import { until } from '../helpers/until.ts'

const tenant = await tenants(t)

t.test('a handoff goes from one agent to another', async t => {
  const { client } = tenant()
  const [alice, bob] = [client('alice'), client('bob')]
  const passed = await alice.pass({ task: 'Count', output: { rows: 3 }, context: { ticket: 'T-1' }, constraints: 'Read only.' })
  t.match(passed, { status: 'pending', handoff_id: /^.{25}$/ })
  const caught = await bob.catch(passed.handoff_id)
  t.match(caught, { handoff_id: passed.handoff_id, status: 'caught', task: 'Count', output: { rows: 3 }, context: { ticket: 'T-1' }, constraints: 'Read only.' })
  t.strictSame({ ...JSON.parse(caught.text), attempt: 1 }, JSON.parse(JSON.stringify(caught)), 'the text is its own')
  t.notOk(Object.keys(caught).includes('text'))
  const beat = await bob.heartbeat(passed.handoff_id, { progress: { percent: 50 }, extendBy: 100 })
  t.match(beat, { status: 'caught', cancel_requested: false })
  t.match(await alice.status(passed.handoff_id), { status: 'caught', caught_by: 'bob', progress: { percent: 50 } })
  t.match(await bob.done(passed.handoff_id, { counted: 3 }), { status: 'done' })
  t.match(await alice.status(passed.handoff_id, { wait: 5 }), { status: 'done', result: { counted: 3 } })
})

t.test('an inbox: how full it is, and what comes next, each with its own text', async t => {
  const { client } = tenant()
  const [alice, bob] = [client('alice'), client('bob')]
  const tasks = ['a "quoted" [one]', 'two {}, \\ and "', 'three']
  for (const task of tasks) await alice.pass({ task, to: 'in', output: rawJson('{"n": 1.0,  "big":[9007199254740993]}') })
  t.match(await alice.inbox('in'), { inbox: 'in', pending: 3, waiting_approval: 0 })
  const items = await bob.catchNext({ inbox: 'in', max: 10 })
  t.strictSame(items.map(({ task }) => task), tasks)
  for (const item of items) {
    t.match(item.text, /^\{"handoff_id":.*"output":\{"n": 1\.0, {2}"big":\[9007199254740993\]\}.*\}$/)
    t.strictSame({ ...JSON.parse(item.text), attempt: 1 }, { ...item })
  }
  t.match(items.text, /^\{"items":\[/)
  t.strictSame([...await bob.catchNext({ inbox: 'in', wait: 1 })], [])
  t.strictSame([...await bob.catchNext()], [], 'its own inbox')
  for (const to of ['one', 'two']) await alice.pass({ task: to, to })
  const [first] = await bob.catchNext({ inboxes: ['none', 'two', 'one'], max: 10 })
  t.match(first, { task: 'two', to: 'two' }, 'the first that has something')
})

t.test('fail, decline, reissue and cancel', async t => {
  const { client } = tenant()
  const [alice, bob] = [client('alice'), client('bob')]
  const caught = async (more: Partial<PassBody> = {}) => {
    const { handoff_id: id } = await alice.pass({ task: 'x', ...more })
    await bob.catch(id)
    return id
  }
  const failed = await caught({ max_attempts: 2 })
  t.match(await bob.fail(failed, { message: 'No.', code: 'E1', data: { a: 1 } }), { status: 'failed', reissued_as: /./ })
  const last = await caught({ max_attempts: 2 })
  t.equal((await bob.fail(last, 'No.', { retry: false })).reissued_as, undefined)
  t.match(await alice.status(last), { error: { message: 'No.' } })
  const declined = await caught()
  t.match(await bob.decline(declined, 'Not mine.'), { status: 'declined' })
  const again = await alice.reissue(declined)
  t.match(again, { status: 'pending' })
  t.match(await alice.cancel(again.handoff_id, { reason: 'Enough.' }), { status: 'cancelled' })
  const asked = await caught()
  t.match(await alice.cancel(asked, { reason: 'Please.' }), { status: 'caught', cancel_requested_at: /./ })
  t.match(await bob.heartbeat(asked), { cancel_requested: true, cancel_reason: 'Please.' })
  t.match(await alice.cancel(asked, { force: true }), { status: 'cancelled' })
  const error = await bob.done(asked).catch((error: unknown) => error)
  t.ok(isHandoffError(error, 'cancelled'))
  t.match(error, { status: 409, handoffStatus: 'cancelled', retryable: false, requestId: /./, detail: /./, message: /\(cancelled\)$/ })
})

t.test('people decide', async t => {
  const { client, setClock } = await clientTest(t)
  const [alice, bob, carol] = [client('alice'), client('bob'), client('approver')]
  const ids = []
  for (const task of ['one', 'two']) {
    // Those of one millisecond are listed in the order of their ids.
    await setClock(Date.now() + ids.length)
    ids.push((await alice.pass({ task, require_human: true, labels: { run: '42', task }, ...task === 'two' && { to: 'w' } })).handoff_id)
  }
  const first = await carol.approvals.list({ limit: 1 })
  t.match(first, { items: [{ handoff_id: ids[0] }], next_cursor: /./ })
  t.match(await carol.approvals.list({ limit: 1, cursor: first.next_cursor! }), { items: [{ handoff_id: ids[1] }] })
  const found = async (wanted: ApprovalsWanted) => (await carol.approvals.list(wanted)).items.map(({ handoff_id: id }) => id)
  t.strictSame(await found({ labels: { run: '42', task: 'two' } }), [ids[1]])
  t.strictSame(await found({ labels: { run: '42' }, inbox: 'w' }), [ids[1]])
  t.strictSame(await found({ labels: { run: '4' } }), [])
  for (const labels of [{ 'run:4': '2' }, { run: '42,task:one' }, { 'run,x': '1' }] as Array<Record<string, string>>) await t.rejects(carol.approvals.list({ labels }), TypeError, 'it would ask for other labels')
  await t.rejects(carol.approvals.list({ labels: {} }), { code: 'invalid_request' })
  const { digest, task, labels } = await carol.approvals.get(ids[0]!)
  t.equal(task, 'one')
  t.equal(labels?.run, '42')
  await t.rejects(carol.approvals.approve(ids[0]!, { digest: digest!.replace(/:.{4}/, ':AAAA') }), { code: 'content_changed' })
  t.match(await carol.approvals.approve(ids[0]!, { note: 'Go.', digest: digest! }), { status: 'pending', approval: { state: 'approved', note: 'Go.' } })
  t.match(await bob.catch(ids[0]!, { wait: 1 }), { approval: { state: 'approved' } })
  t.match(await carol.approvals.reject(ids[1]!, 'No.'), { status: 'rejected', approval: { state: 'rejected', note: 'No.' } })
  await t.rejects(carol.approvals.approve(ids[1]!), { code: 'already_decided', handoffStatus: 'rejected' })
})

t.test('a batch: each operation has a key of its own, each result a text of its own', async t => {
  const { client } = tenant()
  const [alice, bob] = [client('alice'), client('bob')]
  const { results, text } = await alice.batch([
    { op: 'pass', body: { task: 'one', output: rawJson('{"big":1e400}') } },
    { op: 'pass', body: { task: 'two' }, idempotency_key: 'my-own' },
    { op: 'status', id: 'nowhere' },
  ])
  t.strictSame(results.map(({ status }) => status), [201, 201, 404])
  t.match(results[2]!.body, { code: 'not_found' })
  for (const result of results) {
    t.ok(text.includes(result.text) && result.text.includes(`"body":${result.body.text}`))
    t.strictSame(JSON.parse(result.body.text), { ...result.body })
  }
  const [caught] = (await bob.batch([{ op: 'catch', id: String(results[0]!.body.handoff_id) }])).results
  t.match(caught!.body.text, /"output":\{"big":1e400\}/)
  t.match((await alice.batch([{ op: 'pass', body: { task: 'two' }, idempotency_key: 'my-own' }])).results, [{ replayed: true }])

  const hundred = Array.from({ length: 100 }, () => ({ op: 'pass' as const, body: { task: 'x' } }))
  t.ok((await alice.batch(hundred, { idempotencyKey: 'k'.repeat(125) })).results.every(({ status }) => status === 201))
  await t.rejects(alice.batch(hundred, { idempotencyKey: 'k'.repeat(126) }), { name: 'TypeError', message: /1 to 125/ })
})

t.test('numbers that JavaScript doesn’t have go through as text', async t => {
  const { client } = tenant()
  const [alice, bob] = [client('alice'), client('bob')]
  const text = '{"n":9007199254740993,"f":1.0,"e":1e400,"a":1,"a":2,"__proto__":{"x":"\\ud800"}}'
  const { handoff_id: id } = await alice.pass({ task: 't', output: rawJson(text), context: { within: [rawJson('1.50')], same: 'raw-0' } })
  const caught = await bob.catch(id)
  t.ok(caught.text.includes(`"output":${text}`))
  t.ok(caught.text.includes('"context":{"within":[1.50],"same":"raw-0"}'))
  await bob.done(id, rawJson(text))
  t.ok((await alice.status(id)).text.includes(`"result":${text}`))
  t.throws(() => rawJson('1},"require_human":false,"x":{'), SyntaxError)
  t.throws(() => JSON.stringify(rawJson('1')), TypeError)
  await t.rejects(alice.pass({ task: 't', output: { big: 1n } }), TypeError)
})

t.test('errors say what the service says', async t => {
  const { client, address } = tenant()
  const alice = client('alice')
  await t.rejects(alice.pass({ task: '', priority: 10 }), {
    name: 'HandoffError', code: 'invalid_request', status: 400, errors: [{ pointer: /^\// }], message: /\/priority/
  })
  await t.rejects(alice.catch('../../status'), { code: 'not_found', status: 404 })
  await t.rejects(new HandoffClient({ baseUrl: address, key: 'wrong-key-0123456789' }).status('x'), { code: 'unauthorized', status: 401 })
  await t.rejects(new HandoffClient({ baseUrl: address }).status('x'), { code: 'unauthorized' }, 'without a key')
  await t.rejects(client('approver').pass({ task: 'x' }), { code: 'insufficient_scope', status: 403 })
  const first = await alice.pass({ task: 'one' }, { idempotencyKey: 'same' })
  t.equal((await alice.pass({ task: 'one' }, { idempotencyKey: 'same' })).handoff_id, first.handoff_id)
  await t.rejects(alice.pass({ task: 'two' }, { idempotencyKey: 'same' }), { code: 'idempotency_key_reused' })
  await t.rejects(alice.pass({ task: 'x' }, { idempotencyKey: 'a b' }), TypeError)
  t.notOk(isHandoffError(new Error('x')))
})

t.test('where it is and who asks', async t => {
  const { address, secrets } = tenant()
  process.env.HANDOFF_URL = `${address}/`
  process.env.HANDOFF_KEY = secrets.alice
  t.teardown(() => {
    delete process.env.HANDOFF_URL
    delete process.env.HANDOFF_KEY
  })
  t.match(await new HandoffClient().inbox('x'), { pending: 0 })
  for (const baseUrl of ['nonsense', 'ftp://x', 'http://user:password@x', 'http://user@x', 'http://:password@x']) t.throws(() => new HandoffClient({ baseUrl }), TypeError, baseUrl)
  t.throws(() => new HandoffClient({ key: 'two\nlines' }), TypeError)
})

t.test('waitFor goes on until it is so, over all attempts', async t => {
  const { client } = tenant()
  const [alice, bob] = [client('alice'), client('bob')]
  const { handoff_id: id } = await alice.pass({ task: 'x', max_attempts: 3, retry_delay: 0 })
  const [caught, done, first] = [alice.waitFor(id, 'caught'), alice.waitFor(id, 'done'), alice.waitFor(id, 'done', { follow: false })]
  await bob.catch(id)
  t.match(await caught, { status: 'caught', handoff_id: id })
  const { reissued_as: next } = await bob.fail(id, 'Again.')
  t.match(await alice.status(next!), { attempt: 2 })
  await bob.catch(next!, { wait: 5 })
  await bob.done(next!, { at: 'last' })
  t.match(await done, { status: 'done', handoff_id: next, result: { at: 'last' } })
  t.match(await first, { status: 'failed', reissued_as: next }, 'without the further attempts')
  const { handoff_id: other } = await alice.pass({ task: 'x' })
  await t.rejects(alice.waitFor(other, 'done', { timeout: 3000 }), { code: 'timeout', retryable: true, detail: `${other} is not done within 3000 ms; its last status is pending.`, handoffStatus: 'pending' })
  await t.rejects(alice.waitFor('nowhere', 'done'), { code: 'not_found' })
})

t.test('waitFor waits for an attempt that is still to be made', async t => {
  const { client, store } = tenant()
  const [alice, bob] = [client('alice'), client('bob')]
  const { handoff_id: id } = await alice.pass({ task: 'x', work_within: 3, max_attempts: 2, retry_delay: 0 })
  await bob.catch(id)
  const [caught, done] = [alice.waitFor(id, 'caught'), alice.waitFor(id, 'done')]
  t.match(await caught, { status: 'caught' })
  await until(async () => (await alice.status(id)).status === 'expired')
  t.equal((await alice.status(id)).reissued_as, null)
  // The sweep comes only after the client has seen that there is no successor yet: an end without its id is none.
  let answers = 0
  const asked: string[] = []
  const counting: typeof fetch = async (...request) => {
    asked.push(String(request[0]))
    return fetch(...request).finally(() => answers++)
  }
  const next = client('alice', { fetch: counting }).waitFor(id, 'caught')
  await until(() => answers > 0)
  await store.handoffs.sweep(tagOf(id), 100)
  const { reissued_as: successor } = await alice.status(id)
  t.type(successor, 'string')
  await bob.catch(successor!, { wait: 5 })
  t.match(await next, { status: 'caught', handoff_id: successor })
  t.match(asked, [/until=caught/, /until=done/], 'it asks to wait for the successor, which the service does until an end')
  await bob.done(successor!)
  t.match(await done, { status: 'done', handoff_id: successor })
})
