import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import type { Test } from 'tap'
import { Problem, TooLarge, Unavailable } from '../../src/core/errors.ts'
import { randomId, randomToken, tagOf } from '../../src/core/ids.ts'
import { callerOf } from '../../src/core/model.ts'
import { AfterService } from '../../src/handoffs/lifecycle/after.ts'
import { placesOf } from '../../src/handoffs/inbox/take.ts'
import { InboxService } from '../../src/handoffs/inbox/inboxes.ts'
import { ManyHandoffs } from '../../src/handoffs/wait/many.ts'
import { Waiter } from '../../src/handoffs/wait/waiter.ts'
import type { WaitingRequester } from '../../src/handoffs/wait/waiter.ts'
import { longAgo } from '../../src/store/requester.ts'
import { Reads } from '../../src/store/reads.ts'
import { Cancelling } from '../../src/mcp/calls.ts'
import { scriptCalls } from '../../src/redis/call.ts'
import type { ScriptCallMessage } from '../../src/redis/call.ts'
import { secrets, testApp } from '../helpers/app.ts'
import { personWith, signedIn } from '../helpers/forms.ts'
import { isProblem } from '../helpers/problems.ts'
import { grantOf } from '../helpers/stored-keys.ts'
import { through } from '../helpers/through.ts'
import { asleep } from '../helpers/waits.ts'

/** What is larger than 16 KB waits for a slot: Redis serves nobody else until it has answered all that arrived together. */

const service = await testApp(t)
const long = 'x'.repeat(70_000)
const output = { long }
const ofOneReplica = through === undefined ? false : 'counts the calls of one replica'

/** Counts the calls of a script that this process makes, without those that find out that what they ask for is large. */
function countWhole (t: Test, name: string): { looks: number, whole: number, most: number } {
  const counts = { looks: 0, whole: 0, most: 0 }
  const open = new Set<{ isWhole: boolean, besides: Set<object> }>()
  const ended: Array<{ isWhole: boolean, besides: Set<object> }> = []
  const count = (message: unknown) => {
    const { script, answer } = message as ScriptCallMessage
    if (script !== name) return
    const call = { isWhole: false, besides: new Set<object>(open) }
    open.add(call)
    const end = (isWhole: boolean) => {
      open.delete(call)
      call.isWhole = isWhole
      ended.push(call)
      if (!isWhole) counts.looks++
      else counts.whole++
      counts.most = Math.max(...ended.filter(one => one.isWhole).map(one => 1 + ended.filter(other => other.isWhole && one.besides.has(other)).length), 0)
    }
    interface Reply { longer?: number | null, isFaultLonger?: boolean, isLarger?: boolean }
    const isLook = ({ longer = null, isFaultLonger = false, isLarger = false }: Reply) => longer !== null || isFaultLonger || isLarger
    answer.then(reply => end(!isLook(reply as object)), error => end(!(error instanceof TooLarge)))
  }
  scriptCalls.subscribe(count)
  t.teardown(() => scriptCalls.unsubscribe(count))
  return counts
}

const many = 40
const all = <T>(make: (at: number) => Promise<T>) => Promise.all(Array.from({ length: many }, (_, at) => make(at)))

const kinds: Record<string, { script: string, prepare: (at: number) => Promise<string>, ask: (id: string) => ReturnType<typeof service.call>, status?: number }> = {
  'catches by id': {
    script: 'catch', prepare: () => service.pass({ output }), ask: id => service.call('bob', 'GET', `/api/catch/${id}`),
  },
  'catches from an inbox': {
    script: 'take', prepare: () => service.pass({ output, to: 'bulk' }), ask: () => service.call('bob', 'POST', '/api/catch', { inbox: 'bulk' }),
  },
  statuses: {
    script: 'status',
    async prepare () {
      const id = await service.caught()
      await service.call('bob', 'POST', `/api/done/${id}`, { output })
      return id
    },
    ask: id => service.call('alice', 'GET', `/api/status/${id}`),
  },
  'statuses of what failed': {
    script: 'status',
    async prepare () {
      const id = await service.caught()
      await service.call('bob', 'POST', `/api/fail/${id}`, { error: { message: 'm', data: output } })
      return id
    },
    ask: id => service.call('alice', 'GET', `/api/status/${id}?wait=10`),
  },
  'questions with large details': {
    script: 'asked',
    async prepare () {
      const id = await service.caught()
      await service.call('bob', 'POST', `/api/ask/${id}`, { question: 'q', details: output })
      return id
    },
    ask: id => service.call('bob', 'GET', `/api/ask/${id}`),
  },
  'what a person is to decide': {
    script: 'inspect', prepare: () => service.pass({ output, require_human: true }), ask: id => service.call('approver', 'GET', `/api/approvals/${id}`),
  },
  'passes with a parent, whose payload Redis reads': {
    script: 'lineage', prepare: () => service.caught({ output }), ask: parent => service.call('bob', 'POST', '/api/pass', { task: 'c', parent }), status: 201,
  },
}

for (const [kind, { script, prepare, ask, status = 200 }] of Object.entries(kinds)) {
  t.test(`${kind}: what is large is read a few at a time`, { skip: ofOneReplica }, async t => {
    const ids = await all(prepare)
    const counts = countWhole(t, script)
    const answers = await Promise.all(ids.map(ask))
    t.strictSame([...new Set(answers.map(({ statusCode }) => statusCode))], [status])
    if (status === 200) t.ok(answers.every(({ body }) => body.includes(long)), 'and whole')
    // A catch may look for what version 0.2.0 left of the inbox, too.
    const isWhole = script === 'take' ? counts.whole >= many : counts.whole === many
    t.strictSame({ looks: counts.looks, isWhole }, { looks: many, isWhole: true }, `${counts.whole}`)
    t.ok(counts.most > 1 && (script === 'take' || counts.most <= 16), `${counts.most} at once`)
  })
}

t.test('long lists of what people decide on are read a few at a time', { skip: ofOneReplica }, async t => {
  const counts = countWhole(t, 'list')
  for (const { statusCode } of await all(() => service.call('approver', 'GET', '/api/approvals?limit=100'))) t.equal(statusCode, 200)
  t.strictSame({ ...counts, most: counts.most <= 16 }, { looks: 0, whole: many, most: true }, `${counts.most} at once`)
})

t.test('a console page reads what a catcher said at the end in turn, and no result', { skip: ofOneReplica }, async t => {
  const operator = await personWith(service, secrets.operator)
  const { prepare } = kinds['statuses of what failed']!
  const ids = await all(prepare)
  const counts = countWhole(t, 'status')
  for (const { statusCode } of await all(at => operator(`/console/handoffs/${ids[at]}`))) t.equal(statusCode, 200)
  t.strictSame({ ...counts, looks: counts.looks >= many, most: counts.most <= 16 }, { looks: true, whole: many, most: true }, `${counts.most} at once`)
})

t.test('an open question with large details is waited for, and read whole once for all who wait', { skip: ofOneReplica }, async t => {
  const id = await service.caught()
  const { ask_id: askId } = (await service.call('bob', 'POST', `/api/ask/${id}`, { question: 'q', details: output })).json()
  const counts = countWhole(t, 'asked')
  const waits = Array.from({ length: many }, () => service.call('bob', 'GET', `/api/ask/${id}?wait=30`))
  await asleep(service, id)
  t.equal(counts.whole, 0)
  t.equal((await service.call('approver', 'POST', `/api/answer/${id}`, { ask_id: askId, answer: { long } })).statusCode, 200)
  for (const { statusCode, body } of await Promise.all(waits)) {
    t.equal(statusCode, 200)
    t.match(JSON.parse(body), { state: 'answered', details: output, answer: { long } })
  }
  t.ok(counts.whole < 5, `${counts.whole} times`)
})

t.test('a page shows all of what is large', async t => {
  const id = await service.pass({ output, require_human: true })
  const cookie = await signedIn(service)
  const whole = await service.app.inject({ url: `/approvals/${id}/whole`, headers: { cookie } })
  t.equal(whole.statusCode, 200)
  t.ok(whole.body.includes(long))
})

t.test('what is small is read at once, by one call', { skip: ofOneReplica }, async t => {
  const ids = await all(() => service.pass({ output: { text: 'x'.repeat(16_000) } }))
  const counts = countWhole(t, 'catch')
  await Promise.all(ids.map(id => service.call('bob', 'GET', `/api/catch/${id}`)))
  t.match(counts, { looks: 0, whole: many })
  t.ok(counts.most > 16, `${counts.most} at once`)
  const statuses = countWhole(t, 'status')
  await service.call('bob', 'POST', `/api/fail/${ids[0]}`, { error: { message: 'm'.repeat(1000) } })
  t.equal((await service.call('alice', 'GET', `/api/status/${ids[0]}`)).json().error.message.length, 1000)
  t.match(statuses, { looks: 0, whole: 1 })
})

t.test('what is large and can’t be caught is refused by one call, and waited for like anything else', { skip: ofOneReplica }, async t => {
  const id = await service.pass({ output, require_human: true })
  const path = `/api/catch/${id}`
  const counts = countWhole(t, 'catch')
  isProblem(t, await service.call('bob', 'GET', path), 409, 'approval_required')
  isProblem(t, await service.call('foreignAlice', 'GET', path), 404, 'not_found')
  t.match(counts, { looks: 0, whole: 2 })
  const waiting = service.call('bob', 'GET', `${path}?wait=30`, undefined, { 'idempotency-key': 'large' })
  await asleep(service, id)
  await service.call('approver', 'POST', `/api/approve/${id}`, { note: 'go' })
  const caught = await waiting
  t.match([caught.statusCode, caught.json().output, caught.json().approval.note], [200, output, 'go'])
  isProblem(t, await service.call('alice', 'GET', path), 409, 'already_caught')
  const again = await service.call('bob', 'GET', path, undefined, { 'idempotency-key': 'large' })
  t.strictSame([again.headers['idempotency-replayed'], again.body], ['true', caught.body])
  await service.call('bob', 'POST', `/api/done/${id}`, { output })
  isProblem(t, await service.call('bob', 'GET', path), 409, 'already_done')
  t.equal((await service.call('alice', 'GET', `/api/status/${id}?wait=30`)).json().result.long, long)
})

t.test('a schema counts as well, and an inbox’s large ones come in their order', async t => {
  const schema = { type: 'object', description: 'y'.repeat(10_000) }
  const id = await service.pass({ output: { text: 'x'.repeat(10_000) }, result_schema: schema })
  t.strictSame((await service.call('bob', 'GET', `/api/catch/${id}`)).json().result_schema, schema)
  const decided = await service.pass({ output: { text: 'x'.repeat(60_000) }, result_schema: schema, require_human: true })
  const counts = countWhole(t, 'inspect')
  t.strictSame((await service.call('approver', 'GET', `/api/approvals/${decided}`)).json().result_schema, schema)
  if (!ofOneReplica) t.match(counts, { looks: 1, whole: 1 }, 'of what a person is to decide too')
  const ids = []
  for (const more of [{ output }, {}, { output }, { output }]) ids.push(await service.pass({ ...more, to: 'mixed' }))
  const keyed = { 'idempotency-key': 'mixed' }
  const taken = await service.call('bob', 'POST', '/api/catch', { inbox: 'mixed', max: 3 }, keyed)
  t.strictSame(taken.json().items.map(({ handoff_id: id }: { handoff_id: string }) => id), ids.slice(0, 3))
  const again = await service.call('bob', 'POST', '/api/catch', { inbox: 'mixed', max: 3 }, keyed)
  t.strictSame([again.headers['idempotency-replayed'], again.body], ['true', taken.body])
  t.equal((await service.call('bob', 'POST', '/api/catch', { inbox: 'mixed', max: 3 })).json().items[0].handoff_id, ids[3])
})

t.test('many schemas together are taken in turn, and taken again', { skip: ofOneReplica }, async t => {
  const schema = { type: 'object', description: 'y'.repeat(10_000) }
  for (let at = 0; at < 8; at++) await service.pass({ to: 'schemas', result_schema: schema })
  for (const replayed of [undefined, 'true']) {
    const counts = countWhole(t, 'take')
    const taken = await service.call('bob', 'POST', '/api/catch', { inbox: 'schemas', max: 8 }, { 'idempotency-key': 'schemas' })
    t.match([taken.statusCode, taken.headers['idempotency-replayed'], taken.json().items.length], [200, replayed, 8])
    t.match(counts, { looks: 1 })
  }
})

for (const [what, prepare, body] of [
  ['small first and then large', async () => { for (const more of [{}, { output }, { output }]) await service.pass({ ...more, to: 'in-turn-1' }) }, { inbox: 'in-turn-1', max: 3 }],
  ['approved', async () => {
    const id = await service.pass({ output, to: 'in-turn-2', require_human: true })
    await service.call('approver', 'POST', `/api/approve/${id}`, { note: 'go' })
  }, { inbox: 'in-turn-2' }],
  ['taken before by this key', async () => {
    await service.pass({ output, to: 'in-turn-3' })
    await service.call('bob', 'POST', '/api/catch', { inbox: 'in-turn-3' }, { 'idempotency-key': 'again' })
  }, { inbox: 'in-turn-3' }],
] as const) {
  t.test(`what is ${what} is taken in turn as well`, { skip: ofOneReplica }, async t => {
    await prepare()
    const counts = countWhole(t, 'take')
    const { statusCode, body: text } = await service.call('bob', 'POST', '/api/catch', body, what.startsWith('taken') ? { 'idempotency-key': 'again' } : {})
    t.match([statusCode, text.includes(long)], [200, true])
    t.match(counts, { looks: 1 })
  })
}

/** Reads whose only slot is held until the test lets go. */
function oneSlot (t: Test) {
  const reads = new Reads(undefined, { slots: 1 })
  let letGo = () => {}
  const held = reads.run({ tenant: 'default', tag: '0' }, () => new Promise<void>(resolve => { letGo = resolve }))
  t.teardown(() => letGo())
  return { reads, letGo: async () => { letGo(); await held } }
}

const bob = callerOf('default', 'bob', ['catch', 'status'])
/** @param authorise as the key is when it is asked */
const askerOf = (authorise: () => Promise<typeof bob>, isGone = false): WaitingRequester =>
  ({ grant: () => grantOf(authorise), isGone: () => isGone, onGone: () => () => {} })

t.test('nothing is caught for a client that has gone, a call that was cancelled, or a key that has ended, while it waited for its slot', async t => {
  const { reads, letGo } = oneSlot(t)
  const caught: string[] = []
  const catches = (requester: WaitingRequester) => reads.read({ tenant: 'default', tag: '0' }, requester, async (maxBytes, { agent } = bob) => {
    if (maxBytes !== undefined) throw new TooLarge()
    caught.push(agent)
    return agent
  })
  const cancelling = new Cancelling()
  const requesters = [
    askerOf(async () => { throw new Problem('unauthorized') }), askerOf(async () => bob, true), askerOf(async () => ({ ...bob, agent: 'as it is now' })),
    cancelling.until(askerOf(async () => bob), bob, 7)
  ]
  const ends = requesters.map(async requester => await catches(requester).catch(error => error.code))
  await sleep(longAgo + 20)
  cancelling.cancel(bob, 7)
  await letGo()
  t.strictSame(await Promise.all(ends), ['unauthorized', 'request_timeout', 'as it is now', 'request_timeout'])
  t.strictSame(caught, ['as it is now'])
})

t.test('a take from several inboxes by key, whose slot comes late, chooses again and gets it', { skip: ofOneReplica }, async t => {
  const { store } = service
  const id = await service.pass({ output, to: 'late' })
  const { reads, letGo } = oneSlot(t)
  const inboxes = new InboxService(store.inboxes, store.subscriptions, new Waiter(store.subscriptions), reads, 60_000)
  t.teardown(() => inboxes.close())
  const taking = inboxes.catch(bob, { inboxes: ['none', 'late'], max: 1, bytes: Buffer.from('late'), requester: askerOf(async () => bob) }, 'late', null)
  // Longer than it takes by one choice.
  await sleep(2500)
  await letGo()
  t.match(await taking, { items: [{ id }], replayed: false })
})

t.test('a take whose reply was lost gets what it took, also where that is large and came after what is gone', async t => {
  const { own } = placesOf('default', 'lost-reply')
  const token = randomToken()
  const id = await service.pass({ output, to: 'lost-reply' })
  await service.redis.zadd(`${service.prefix}:{${own.tag}}:i:default:lost-reply`, 1, `default:${randomId()}`)
  const take = (maxBytes?: number) =>
    service.store.inboxes.take(own, { token, agent: 'bob', max: 1, lifetime: null, request: '-', maxBytes })
  await t.rejects(take(65_536), TooLarge, 'what it would take is counted, and not what is gone')
  t.match(await take(), { outcome: 'taken', items: [{ id }] })
  t.match(await take(65_536), { outcome: 'replayed', items: [{ id }] })
})

t.test('a wait for many small ones needs no slot, and for large ones waits for one', { skip: ofOneReplica }, async t => {
  const { reads, letGo } = oneSlot(t)
  const many = new ManyHandoffs(service.store.handoffs, new Waiter(service.store.subscriptions), reads)
  const small = await service.caught()
  const large = await service.caught()
  await service.call('bob', 'POST', `/api/done/${small}`, { output: { a: 1 } })
  await service.call('bob', 'POST', `/api/done/${large}`, { output })
  const wait = (id: string, withResults = true) => many.wait(bob, [id], 'all', withResults, { waiting: null, requester: askerOf(async () => bob) })
  t.match(JSON.parse((await wait(small)).toString()), { items: [{ result: { a: 1 } }], complete: true })
  t.match(JSON.parse((await wait(large, false)).toString()), { items: [{ handoff_id: large, status: 'done' }] })
  let isRead = false
  const read = wait(large).then(text => {
    isRead = true
    return text
  })
  await sleep(100)
  t.notOk(isRead)
  await letGo()
  t.match(JSON.parse((await read).toString()), { items: [{ result: output }] })
})

t.test('long results of what a handoff comes after are read in one slot, and left out where it doesn’t come', async t => {
  const { handoffs, dependents } = service.store
  const before = [await service.caught(), await service.caught(), await service.caught()]
  for (const [at, id] of before.entries()) await service.call('bob', 'POST', `/api/done/${id}`, { output: at === 1 ? { a: 1 } : output })
  const first = await service.pass({ after: before })
  const reads = new Reads()
  const { run } = reads
  let slots = 0
  let refusal: Error | undefined
  reads.run = (want, read) => {
    slots++
    return refusal === undefined ? run.call(reads, want, read) as never : Promise.reject(refusal)
  }
  const complete = async (id = first) => {
    const reply = await handoffs.catch({ tenant: 'default', id, tag: tagOf(id) }, 'token', 'bob')
    if (!('payload' in reply)) throw new Error(reply.outcome)
    const one = Object.assign(reply, { id })
    await new AfterService(handoffs, dependents, reads).complete('default', [one], askerOf(async () => bob))
    return JSON.parse(one.after!).map((item: { result?: unknown, result_omitted?: boolean }) => item.result_omitted ?? item.result)
  }
  t.strictSame(await complete(), [output, { a: 1 }, output])
  t.equal(slots, 1)
  const small = await all(() => service.caught())
  for (const id of small) await service.call('bob', 'POST', `/api/done/${id}`, { output: { text: 'x'.repeat(1000) } })
  const more = await service.pass({ after: small })
  t.strictSame(await complete(more), small.map(() => ({ text: 'x'.repeat(1000) })))
  t.equal(slots, 2, 'many small ones are long together')
  for (refusal of [new Problem('unavailable'), new Unavailable('x')]) t.strictSame(await complete(), [true, { a: 1 }, true])
  refusal = new Problem('unauthorized')
  await t.rejects(complete(), { code: 'unauthorized' })
})
