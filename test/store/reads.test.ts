import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { Problem, TooLarge, Unavailable } from '../../src/core/errors.ts'
import { callerOf } from '../../src/core/model.ts'
import { ApprovalService } from '../../src/handoffs/people/approvals.ts'
import { homeTag } from '../../src/core/ids.ts'
import type { Lists } from '../../src/store/lists.ts'
import { Budget, longAgo } from '../../src/store/requester.ts'
import type { Requester } from '../../src/store/requester.ts'
import { Reads, small } from '../../src/store/reads.ts'

/** What waits for a slot at its master, and for its budget: the tag is the master's name here. */

const masters = { masterOf: (tag: string) => tag, mastersOf: (tags: readonly string[] = []) => tags.join(' ') }
const bob = callerOf('acme', 'bob', ['status'])
const settle = () => new Promise(resolve => setImmediate(resolve))
/** @param authorise as the key is when it is asked */
const requesterOf = (authorise: () => Promise<typeof bob>, isGone = false): Requester => ({ grant: () => ({ authorise }), isGone: () => isGone })
const here = requesterOf(async () => bob)

/** Reads that end when they are told to. */
function readsOf (slots: number, patience = 60_000) {
  const reads = new Reads(masters, { slots, patience })
  const begun: string[] = []
  const ends = new Map<string, { answer: () => void, fail: () => void }>()
  const ask = (name: string, { tag = 'm', tenant = 'acme', isPage = false, requester = undefined as Requester | undefined } = {}) => {
    const read = (now = bob) => new Promise<string>((resolve, reject) => {
      begun.push(name)
      ends.set(name, { answer: () => resolve(`${name} ${now.agent}`), fail: () => reject(new Unavailable('silent')) })
    })
    return (isPage ? reads.page(tenant, [tag], read, requester) : reads.run({ tenant, tag, requester }, read)).catch(error => `${name} ${error.code ?? 'refused'}`)
  }
  const end = async (how: 'answer' | 'fail', ...names: string[]) => {
    for (const name of names) ends.get(name)![how]()
    await settle()
    await settle()
  }
  return { reads, begun, ask, end }
}

t.test('a few at a time, tenants take turns, and masters don’t wait for each other', async t => {
  const { begun, ask, end } = readsOf(2)
  const all = ['a1', 'a2', 'a3', 'a4', 'a5', 'a6'].map(name => ask(name))
  all.push(ask('other master', { tag: 'n' }))
  await settle()
  t.strictSame(begun, ['a1', 'a2', 'other master'])
  all.push(ask('b1', { tenant: 'other' }), ask('b2', { tenant: 'other' }))
  for (const name of ['a1', 'a2', 'a3']) await end('answer', name)
  t.strictSame(begun.slice(3), ['a3', 'b1', 'a4'], 'one of each in turn')
  await end('answer', 'b1', 'a4')
  t.strictSame(begun.slice(6), ['b2', 'a5'])
  await end('answer', 'b2', 'a5')
  await end('answer', 'a6', 'other master')
  t.equal(new Set(await Promise.all(all)).size, 9)
})

t.test('two pages at most run at once, in slots like all others', async t => {
  const { begun, ask, end } = readsOf(4)
  const all = [...['p1', 'p2', 'p3'].map(name => ask(name, { isPage: true })), ask('a'), ask('b'), ask('c')]
  await settle()
  t.strictSame(begun, ['p1', 'p2', 'a', 'b'])
  await end('answer', 'a')
  t.strictSame(begun.slice(4), ['c'], 'no page holds it up')
  await end('answer', 'p1')
  t.strictSame(begun.slice(5), ['p3'])
  await end('answer', 'b', 'c', 'p2', 'p3')
  await Promise.all(all)
})

t.test('what waited for a silent master is refused and not run; what comes later asks again', async t => {
  const { begun, ask, end } = readsOf(2)
  const all = ['a', 'b', 'c', 'd', 'e'].map(name => ask(name))
  await end('answer', 'a')
  t.strictSame(begun, ['a', 'b', 'c'], 'it answered after those that wait had come, and then no more')
  await end('fail', 'b', 'c')
  t.strictSame(await Promise.all(all), ['a bob', 'b refused', 'c refused', 'd refused', 'e refused'])
  const next = ['f', 'g', 'h', 'i'].map(name => ask(name))
  await end('answer', 'g')
  await end('fail', 'f')
  await end('answer', 'h', 'i')
  t.strictSame(await Promise.all(next), ['f refused', 'g bob', 'h bob', 'i bob'], 'one that alone isn’t answered ends no others')
})

t.test('nothing is run that waited for too long', async t => {
  const { begun, ask, end } = readsOf(1, 20)
  const first = ask('a')
  t.strictSame(await Promise.all([ask('late'), ask('later', { tenant: 'other' })]), ['late unavailable', 'later unavailable'])
  await end('answer', 'a')
  t.equal(await first, 'a bob', 'what has begun is not given up')
  t.strictSame(begun, ['a'])
  const next = ask('next')
  await end('answer', 'next')
  t.equal(await next, 'next bob', 'and takes no slot')
})

t.test('nothing is run for a client that has gone, or whose key has ended, while it waited', async t => {
  const { begun, ask, end } = readsOf(1)
  const first = ask('a')
  const requesters = [
    requesterOf(async () => bob, true), requesterOf(async () => { throw new Problem('unauthorized') }), requesterOf(async () => ({ ...bob, agent: 'now' }))
  ]
  const all = requesters.map((requester, at) => ask(String(at), { requester }))
  t.equal(await ask('at once', { tag: 'n', requester: requesters[0]! }), 'at once request_timeout')
  await sleep(longAgo + 1)
  await end('answer', 'a')
  await first
  while (begun.length < 2) await settle()
  await end('answer', '2')
  t.strictSame(await Promise.all(all), ['0 request_timeout', '1 unauthorized', '2 now'])
  t.strictSame(begun, ['a', '2'])
})

/** An answer of so many bytes. @returns the code of the refusal, or that it was read */
const answer = (reads: Reads, budget: Budget, bytes: number, maxBytes = 100) =>
  reads.run({ tenant: budget.tenant, tag: 'm', budget, maxBytes }, async () => Buffer.alloc(bytes)).then(() => 'read', error => error.code)

t.test('a tenant has half of the bytes, one request goes beyond it, and others wait for it', async t => {
  const reads = new Reads(masters, { bytes: 1000 })
  const [first, second, third] = [new Budget('a'), new Budget('a'), new Budget('b')]
  for (let at = 0; at < 20; at++) t.equal(await answer(reads, first, 100), 'read')
  t.equal(reads.held, 500)
  let ended = 0
  const waiting = [1, 2, 3].map(() => answer(reads, second, 100).finally(() => { ended++ }))
  t.equal(await answer(reads, third, 100), 'read', 'another tenant’s')
  t.equal(await answer(reads, first, 100), 'read', 'the first goes on')
  t.equal(ended, 0)
  reads.end(first)
  t.strictSame(await Promise.all(waiting), ['read', 'read', 'read'])
  t.equal(reads.held, 400)
  for (const budget of [second, third, third]) reads.end(budget)
  t.equal(reads.held, 0)
})

t.test('an answer counts as what it has once it is there, and nothing after the end; who waited too long is refused unread', async t => {
  const reads = new Reads(masters, { bytes: 1000, patience: 50 })
  const [first, beyond, third] = [new Budget('a'), new Budget('a'), new Budget('a')]
  t.equal(await answer(reads, first, 7), 'read')
  t.equal(reads.held, 7)
  await t.rejects(reads.run({ tenant: 'a', tag: 'm', budget: first, maxBytes: 100 }, async () => { throw new Error('x') }), { message: 'x' })
  t.equal(reads.held, 7)
  for (let at = 0; at < 5; at++) await answer(reads, first, 99)
  await answer(reads, beyond, 50)
  t.equal(await answer(reads, third, 1), 'unavailable')
  await reads.run({ tenant: 'a', tag: 'm', budget: beyond, maxBytes: 10 }, async () => { reads.end(first) })
  t.equal(reads.held, 0)
  t.equal(await answer(reads, third, 1), 'read')
})

t.test('who may go beyond the bytes is followed by another once it has its answer, also if nothing of it counted', async t => {
  const reads = new Reads(masters, { bytes: 200 })
  const [first, beyond, third] = [new Budget('a'), new Budget('a'), new Budget('a')]
  t.equal(await answer(reads, first, 100), 'read')
  t.equal(await answer(reads, beyond, 100), 'read')
  t.equal(reads.held, 100)
  const waiting = answer(reads, third, 100)
  await settle()
  reads.end(beyond)
  t.equal(await waiting, 'read')
})

t.test('a refusal says what there is too much of', async t => {
  const reads = new Reads(masters, { bytes: 200, slots: 1, patience: 20 })
  const refusal = (budget?: Budget) =>
    reads.run({ tenant: 'a', tag: 'm', budget, maxBytes: 100 }, async () => Buffer.alloc(100)).then(() => '', error => error.more.detail)
  for (const budget of [new Budget('a'), new Budget('a')]) await answer(reads, budget, 100)
  t.match(await refusal(new Budget('a')), /^The service holds as many large answers as it can/)
  reads.run({ tenant: 'a', tag: 'm' }, () => new Promise(() => {}))
  t.match(await refusal(), /^Too many large reads are going on/)
})

t.test('a refusal by Redis is the answer at once; who waits for a slot is no longer listened to afterwards', async t => {
  const reads = new Reads(masters)
  let [looks, listeners] = [0, 0]
  const requester = {
    ...here,
    onGone: () => {
      listeners++
      return () => { listeners-- }
    }
  }
  const look = async (maxBytes: number | undefined, error: Error) => {
    looks++
    if (maxBytes !== undefined) throw error
    return 'large'
  }
  const read = (error: Error) => reads.read({ tenant: 'acme', tag: 'm' }, requester, async maxBytes => {
    if (maxBytes === undefined) t.equal(listeners, 1)
    return look(maxBytes, error)
  })
  await t.rejects(read(new Problem('not_found')), { code: 'not_found' })
  t.equal(looks, 1)
  t.equal(await read(new TooLarge()), 'large')
  t.equal(listeners, 0)
})

t.test('what is small takes no slot; of many operations it counts in the budget', async t => {
  const reads = new Reads(masters, { slots: 1 })
  let letGo = () => {}
  const held = reads.run({ tenant: 'acme', tag: 'm' }, () => new Promise<void>(resolve => { letGo = resolve }))
  const budget = new Budget('acme')
  const look = async (maxBytes = Infinity) => {
    if (maxBytes < 70_000) throw new TooLarge()
    return Buffer.alloc(70_000)
  }
  t.equal(await reads.read({ tenant: 'acme', tag: 'm' }, here, async maxBytes => maxBytes), 4 * small, 'alone it may be four times as large')
  await reads.read({ tenant: 'acme', tag: 'm' }, { ...here, budget: () => budget, isOneOfMany: true }, async () => Buffer.alloc(10))
  t.equal(reads.held, 10)
  let isRead = false
  const large = reads.read({ tenant: 'acme', tag: 'm' }, { ...here, budget: () => budget }, look).then(() => { isRead = true })
  await settle()
  t.notOk(isRead)
  letGo()
  await Promise.all([large, held])
  t.equal(reads.held, 70_010)
})

t.test('who asks for the same before its read shares it, each with a budget of its own; who asks later gets another', async t => {
  const { reads, ask, end } = readsOf(1)
  let made = 0
  const look = async (maxBytes?: number) => {
    if (maxBytes !== undefined) throw new TooLarge()
    made++
    return Buffer.alloc(1000)
  }
  const share = async (requester: Requester, of = look) => (await reads.shared('one', { tenant: 'acme', tag: 'm' }, requester, of)).found
  const first = ask('a')
  const budgets = [new Budget('acme'), new Budget('acme')]
  const all = [...budgets.map(budget => share({ ...here, budget: () => budget })), share(requesterOf(async () => { throw new Problem('unauthorized') })).catch(error => error.code)]
  await settle()
  await end('answer', 'a')
  await first
  t.strictSame((await Promise.all(all)).map(found => found.length), [1000, 1000, 'unauthorized'.length])
  t.strictSame([made, reads.held, budgets.map(({ counted }) => counted)], [1, 2000, [1000, 1000]])
  await share(here)
  t.equal(made, 2)
  let letGo = () => {}
  const underWay = share(here, async maxBytes => {
    if (maxBytes !== undefined) throw new TooLarge()
    await new Promise<void>(resolve => { letGo = resolve })
    return Buffer.alloc(1)
  })
  await settle()
  await settle()
  const meanwhile = share(here)
  letGo()
  t.strictSame((await Promise.all([underWay, meanwhile])).map(found => found.length), [1, 1000], 'of a read under way')
  t.equal(made--, 3)
  await t.rejects(share(here, async maxBytes => { throw maxBytes === undefined ? new Problem('unavailable') : new TooLarge() }), { code: 'unavailable' })
  await share(here)
  t.equal(made, 3, 'a read that failed is nobody’s')
})

t.test('several small ones take a slot at each of their masters; few take none', async t => {
  const { reads, begun, ask, end } = readsOf(1)
  const all = Array.from({ length: 40 }, (_, at) => at)
  const tagOf = (at: number) => at % 3 === 0 ? 'm' : 'n'
  const several = (some: number[]) => reads.several('acme', some, tagOf, here, async at => {
    begun.push(tagOf(at))
    return at
  })
  const first = ask('a')
  t.strictSame(await several(all.slice(0, 8)), all.slice(0, 8))
  begun.length = 0
  const found = several(all)
  await settle()
  t.strictSame([...new Set(begun)], ['n'])
  await end('answer', 'a')
  t.strictSame(await found, all)
  await first
})

t.test('lists of which only some are wanted are searched two at a time, call by call and tenant by tenant', async t => {
  const calls: Array<{ tenant: string, end (): void }> = []
  const found = {
    tagsOf: ({ tenant }: { tenant: string }) => [homeTag(tenant)],
    waiting: ({ tenant }: { tenant: string }) => new Promise(resolve => {
      calls.push({ tenant, end: () => resolve({ items: [], next: { score: 1, id: 'x', includes: true }, now: 1 }) })
    })
  } as unknown as Lists
  const service = new ApprovalService(null as never, found, null as never, new Reads(), null)
  const lists = Array.from({ length: 10 }, () => service.list('many', undefined, 1, { inbox: 'reviewer' }))
  const other = service.list('other', undefined, 1, { labels: ['run:42'] })
  await settle()
  t.strictSame(calls.map(({ tenant }) => tenant), ['many', 'many'], 'the others wait')
  let others = 0
  for (let ended = 0; ended < calls.length;) {
    const { tenant, end } = calls[ended++]!
    if (tenant === 'other') others++
    end()
    await settle()
    t.ok(calls.length - ended <= 2, 'two at once')
    if (ended === 8) t.ok(others > 0, 'another tenant’s are among the next')
  }
  await Promise.all([...lists, other])
  t.equal(calls.length, 11, 'each list is read once')
})
