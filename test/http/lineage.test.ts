import t from 'tap'
import { randomId } from '../../src/core/ids.ts'
import { testApp } from '../helpers/app.ts'
import type { TestApp, Who } from '../helpers/app.ts'
import { isProblem } from '../helpers/problems.ts'

/** Of all that needs no service of its own. */
const service = await testApp(t)

/** Work that is passed on: parent, root, hops, and the limits. */

const pass = ({ call }: TestApp, who: Who, body: object, headers?: Record<string, string>) => call(who, 'POST', '/api/pass', { task: 't', ...body }, headers)

/** A handoff that one agent has passed and another caught. @returns its id */
async function handed (service: TestApp, from: Who, to: Who, body: object): Promise<string> {
  const answer = await pass(service, from, body)
  if (answer.statusCode !== 201) throw new Error(answer.body)
  const { handoff_id: id } = answer.json()
  await service.call(to, 'GET', `/api/catch/${id}`)
  return id
}

t.test('parent, root and hops are shown if there is a parent', async t => {
  const root = await handed(service, 'alice', 'bob', {})
  const child = (await pass(service, 'bob', { parent: root, task: 'next' })).json().handoff_id
  const lineage = { parent: root, root, hops: 1 }
  t.match((await service.call('alice', 'GET', `/api/status/${child}`)).json(), lineage)
  t.match((await service.call('alice', 'GET', `/api/catch/${child}`)).json(), lineage)
  const grandchild = (await pass(service, 'alice', { parent: child, task: 'last' })).json().handoff_id
  t.match((await service.call('bob', 'GET', `/api/status/${grandchild}`)).json(), { parent: child, root, hops: 2 })
  t.notOk('root' in (await service.call('bob', 'GET', `/api/status/${root}`)).json())
  await service.call('bob', 'POST', `/api/done/${root}`)
  t.equal((await pass(service, 'bob', { parent: root, task: 'afterwards' })).statusCode, 201, 'what it has caught and done is its parent still')
})

t.test('a parent that this agent hasn’t caught is unknown', async t => {
  const service = await testApp(t)
  const own = await handed(service, 'alice', 'bob', {})
  const pending = (await pass(service, 'alice', {})).json().handoff_id
  const foreign = (await pass(service, 'foreignAlice', {})).json().handoff_id
  await service.call('foreignAlice', 'GET', `/api/catch/${foreign}`)
  const gone = await handed(service, 'alice', 'bob', {})
  await service.redis.del(`${service.prefix}:{${gone.slice(0, 3)}}:h:default:${gone}`)
  for (const [who, parent] of [['alice', own], ['bob', pending], ['alice', foreign], ['bob', gone], ['bob', randomId()], ['bob', 'x'], ['bob', ''], ['bob', `${own} `], ['bob', 'ä'.repeat(25)]] as const) {
    isProblem(t, await pass(service, who, { parent }), 409, 'unknown_parent', `${who} ${parent}`)
  }
})

t.test('25 hops are allowed, and one more is refused', async t => {
  const service = await testApp(t)
  let [from, to]: [Who, Who] = ['alice', 'bob']
  let parent = await handed(service, from, to, {})
  for (let hop = 1; hop <= 25; hop++) {
    [from, to] = [to, from]
    parent = await handed(service, from, to, { parent, task: `hop ${hop}` })
  }
  t.equal((await service.call('alice', 'GET', `/api/status/${parent}`)).json().hops, 25)
  isProblem(t, await pass(service, to, { parent, task: 'one more' }), 409, 'hop_limit')
  const few = await testApp(t, { HOP_LIMIT: '1' })
  const root = await handed(few, 'alice', 'bob', {})
  const child = await handed(few, 'bob', 'alice', { parent: root, task: 'other' })
  isProblem(t, await pass(few, 'alice', { parent: child }), 409, 'hop_limit')
})

t.test('the same work a third time along one line is a loop', async t => {
  const root = await handed(service, 'alice', 'bob', { context: { n: 1 } })
  const other = await handed(service, 'bob', 'alice', { parent: root, context: { n: 1 } })
  const second = await handed(service, 'alice', 'bob', { parent: other, context: { n: 1 } })
  const again = await handed(service, 'bob', 'alice', { parent: second, context: { n: 1 } })
  isProblem(t, await pass(service, 'alice', { parent: again, context: { n: 1 } }), 409, 'loop_detected')
  t.equal((await pass(service, 'alice', { parent: again, context: { n: 1.0 } })).statusCode, 409, 'JSON.stringify writes the same text')
  t.equal((await service.call('alice', 'POST', '/api/pass', `{"task": "t", "context": { "n": 1.0 }, "parent": "${again}"}`)).statusCode, 201, 'another text is other work')
  t.equal((await pass(service, 'alice', { context: { n: 1 } })).statusCode, 201, 'a guard rail: leaving parent out evades it')
})

t.test('a reissue is no hop', async t => {
  const root = await handed(service, 'alice', 'bob', {})
  let attempt = await handed(service, 'bob', 'alice', { parent: root, task: 'child', max_attempts: 10, retry_delay: 0 })
  for (let n = 2; n < 6; n++) {
    const { reissued_as: next } = (await service.call('alice', 'POST', `/api/decline/${attempt}`, { reason: 'r' })).json()
    t.match((await service.call('alice', 'GET', `/api/catch/${next}`)).json(), { parent: root, root, hops: 1, attempt: n })
    attempt = next
  }
  const below = await handed(service, 'alice', 'bob', { parent: attempt, task: 'below' })
  t.match((await service.call('alice', 'GET', `/api/status/${below}`)).json(), { parent: attempt, root, hops: 2 })
})

t.test('a replayed pass gets its answer even if its parent is gone by now', async t => {
  const service = await testApp(t)
  const root = await handed(service, 'alice', 'bob', {})
  const key = { 'idempotency-key': 'k' }
  const first = await pass(service, 'bob', { parent: root }, key)
  await service.redis.del(`${service.prefix}:{${root.slice(0, 3)}}:h:default:${root}`)
  const again = await pass(service, 'bob', { parent: root }, key)
  t.strictSame([again.statusCode, again.json(), again.headers['idempotency-replayed']], [201, first.json(), 'true'])
  isProblem(t, await pass(service, 'bob', { parent: root, task: 'other' }, key), 422, 'idempotency_key_reused')
  const before = await service.dump()
  isProblem(t, await pass(service, 'bob', { parent: root }, { 'idempotency-key': 'new' }), 409, 'unknown_parent')
  t.strictSame(await service.dump(), before)
})
