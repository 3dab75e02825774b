import t from 'tap'
import { HandoffClient, rawJson } from '../../src/clients/typescript/index.ts'
import type { Question } from '../../src/clients/typescript/index.ts'
import { proxy, serve, tenants, worker } from '../helpers/client.ts'
import { until } from '../helpers/until.ts'

/** Questions in the middle of the work. */

const tenant = await tenants(t)

t.test('a catcher asks, and a person answers, with one key for each question and all texts as they are', async t => {
  const { client, address, secrets, pass } = tenant()
  const [bob, carol] = [client('bob'), client('approver')]
  const id = await pass({ labels: { run: '1' } })
  await bob.catch(id)
  const { address: behind, seen } = await proxy(t, address, (_, index) => index === 0 ? 'drop' : 'pass')
  const shaky = new HandoffClient({ baseUrl: behind, key: secrets.bob })
  const asked = await shaky.ask(id, 'Which one?', {
    details: rawJson('{"n":1.0}'), schema: rawJson('{"type":"object","required":["big"],"minProperties":1e0}'), expiresIn: 100
  })
  t.match(asked, { state: 'open', handoff_id: id, question: 'Which one?', answer_url: /./ })
  t.match(seen.map(({ method, url, key, body }) => [method, url, key, body]), Array(2).fill([
    'POST', `/api/ask/${id}`, /./, '{"question":"Which one?","details":{"n":1.0},"schema":{"type":"object","required":["big"],"minProperties":1e0},"expires_in":100}'
  ]), 'asked twice, since the answer was lost')
  t.ok(seen[0]!.key === seen[1]!.key)
  await t.rejects(bob.ask(id, 'And?'), { code: 'already_asked' })
  const open = await bob.asked(id)
  t.match(open, { ask_id: asked.ask_id, state: 'open', of: 'person', answer: null })
  t.match(open.text, /"details":\{"n":1\.0\},"schema":\{.*"minProperties":1e0\}/)
  const list = await carol.asks({ labels: { run: '1' }, inbox: 'w', limit: 5 })
  t.match(list, { items: [{ ask_id: asked.ask_id, asked_by: 'bob' }], next_cursor: null })
  t.strictSame(JSON.parse(list.items[0]!.text), { ...list.items[0] })
  t.strictSame((await carol.asks({ labels: { run: '2' } })).items, [])
  await t.rejects(carol.answer(id, asked.ask_id, {}), { code: 'result_invalid' })
  t.match(await carol.answer(id, asked.ask_id, rawJson('{"big":1e400}'), { note: 'So.' }), { state: 'answered', answered_by: 'carol' })
  const read = await bob.asked(id, { wait: 5 })
  t.match(read, { state: 'answered', note: 'So.', answered_by: 'carol' })
  t.match(read.text, /"answer":\{"big":1e400\}/)
})

t.test('ask waits for the answer, and the passer is asked', async t => {
  const { client, pass } = tenant()
  const [alice, bob] = [client('alice'), client('bob')]
  const id = await pass()
  await bob.catch(id)
  t.match(await bob.ask(id, 'How many?', { of: 'passer', wait: 1, expiresIn: 1 }), { state: /open|expired/, question: 'How many?' }, 'as it stands then')
  await bob.asked(id, { wait: 5 })
  const answered = bob.ask(id, 'How many?', { of: 'passer', wait: 1000 })
  const open = () => alice.asks({ of: 'passer' }).then(({ items }) => items)
  await until(async () => (await open()).length > 0)
  t.notOk('answer_url' in (await open())[0]!)
  await alice.answer(id, (await open())[0]!.ask_id, { text: 'Three.' })
  t.match(await answered, { state: 'answered', answer: { text: 'Three.' }, of: 'passer' })
  await t.rejects(bob.asks({ of: 'person' }), { code: 'insufficient_scope' })
})

t.test('a wait that is too long for one request is several', async t => {
  const waits: unknown[] = []
  const question = (state: string) => JSON.stringify({ ask_id: 'a', state })
  const baseUrl = await serve(t, ({ method, url = '' }, response) => {
    if (url !== '/healthz') waits.push([method, new URL(url, 'http://x').searchParams.get('wait')])
    response.end(question(waits.length < 3 ? 'open' : 'answered'))
  })
  const client = new HandoffClient({ baseUrl, key: 'k'.repeat(16) })
  const answer: Question = await client.ask('x', 'Which?', { wait: 100 })
  t.equal(answer.state, 'answered')
  t.strictSame(waits, [['POST', null], ['GET', '50'], ['GET', '50']])
  waits.length = 0
  t.equal((await client.asked('x', { wait: 60 })).state, 'open', 'one request')
  t.strictSame(waits, [['GET', '60']])
  // Each request takes 40 s by this clock.
  const steady = performance.now.bind(performance)
  t.intercept(performance, 'now', { value: () => steady() + waits.length * 40_000 })
  let reads = 0
  const fetch = async (url: string) => {
    if (!url.endsWith('/healthz')) waits.push(++reads)
    return new Response(question(reads > 9 ? 'answered' : 'open'))
  }
  t.equal((await new HandoffClient({ baseUrl, key: 'k'.repeat(16), fetch }).asked('x', { wait: 100 })).state, 'open', 'until the whole wait is over')
  t.equal(reads, 3)
})

t.test('a handler asks and goes on with the answer', async t => {
  const { pass, work, ended, client, seen } = await worker(t, tenant())
  const person = client('approver')
  const [id] = await pass({ heartbeat_within: 5 })
  const { stop } = work(async (_, { ask }) => ({ got: await ask('Which?', { schema: { required: ['text'] } }) }))
  await until(async () => (await person.asks()).items.length > 0)
  const { ask_id: askId } = (await person.asks()).items[0]!
  await person.answer(id!, askId, { text: 'This one.' })
  t.match(await ended(id!), { status: 'done', result: { got: { text: 'This one.' } } })
  t.equal(seen.filter(({ url }) => url.startsWith('/api/ask/') && url.includes('wait=')).length, 1, 'it read once, and waited')
  await stop()
})

t.test('a handler learns that nobody answers', async t => {
  const { pass, work, ended, client, alice } = await worker(t, tenant())
  const [late, withdrawn] = await pass({ task: 'late' }, { task: 'withdrawn' })
  const codes: Record<string, unknown> = {}
  const { stop } = work(async ({ task }, { ask, signal }) => {
    codes[task] = await ask('Which?', { of: 'passer', ...task === 'late' && { expiresIn: 1 } }).catch(error => [error.code, signal.aborted])
  }, { concurrency: 2 })
  t.equal((await ended(late!)).status, 'done', 'it decided for itself')
  t.strictSame(codes.late, ['expired', false])
  await until(async () => (await client('alice').asks({ of: 'passer' })).items.length > 0)
  await alice.cancel(withdrawn!, { force: true })
  await until(() => codes.withdrawn !== undefined)
  t.match(codes.withdrawn, [/^withdrawn|cancelled$/, true], 'it is told that the handoff is lost')
  await stop()
})
