import { request } from 'node:http'
import { setImmediate, setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import type { Test } from 'tap'
import { Unavailable } from '../../src/core/errors.ts'
import { digestToken, homeTag, tagOfDigest } from '../../src/core/ids.ts'
import { secrets, testApp } from '../helpers/app.ts'
import type { TestApp, Who } from '../helpers/app.ts'
import { inboxWaiters } from '../helpers/metrics.ts'
import { isProblem } from '../helpers/problems.ts'
import { bearer, newKey } from '../helpers/stored-keys.ts'
import { until } from '../helpers/until.ts'
import { timed } from '../helpers/waits.ts'
import { connectionsOf, listen } from '../helpers/wire.ts'

/** Catching from the first of several inboxes that has something. On one Redis, and as in a Cluster. */

const one = await testApp(t)
const spread = await testApp(t, {}, { isSpread: true })

let count = 0
/** What a test does with inboxes of its own: a, b and c. */
function work (service: TestApp) {
  const name = `work-${++count}`
  const { call } = service
  const full = (inbox: string) => `${name}-${inbox}`
  const pass = async (inbox: string, more: object = {}): Promise<string> => (await call('alice', 'POST', '/api/pass', { task: 't', to: full(inbox), ...more })).json().handoff_id
  const approved = async (inbox: string) => {
    const id = await pass(inbox, { require_human: true })
    await call('approver', 'POST', `/api/approve/${id}`)
    return id
  }
  const next = (inboxes: string, { wait = 0, max = 1, key, who = 'bob' }: { wait?: number, max?: number, key?: string | undefined, who?: Who } = {}) =>
    call(who, 'POST', `/api/catch?wait=${wait}`, { inboxes: [...inboxes].map(full), max }, key === undefined ? {} : { 'idempotency-key': `${name}-${key}` })
  const taken = async (...asked: Parameters<typeof next>) => idsOf(await next(...asked))
  const set = async (inbox: string, settings: object) => await call('operator', 'PUT', `/api/inboxes/${full(inbox)}`, settings)
  const done = (id: string) => call('bob', 'POST', `/api/done/${id}`)
  /** Each request that waits counts once, however many inboxes it names. */
  const areWaiting = (number: number) => until(async () => await inboxWaiters(service.app) === number)
  return { name, full, pass, approved, next, taken, set, done, areWaiting }
}
/**
 * @returns what resolves once all that wait sleep. A request that still looks has its wake, so what enters then is the next one's. Between two calls to
 * Redis there may be a pause of 100 ms; its timer is over before ours, however busy the machine is.
 */
function looksOf (t: Test, { store: { inboxes, subscriptions } }: TestApp): () => Promise<void> {
  let [begun, underWay] = [0, 0]
  const count = <O extends object>(of: O, name: keyof O) => {
    const own = of[name] as (...args: unknown[]) => Promise<unknown>
    t.intercept(of, name, {
      value: (...args: unknown[]) => {
        begun++
        underWay++
        return own.apply(of, args).finally(() => underWay--)
      }
    })
  }
  for (const name of ['take', 'claim', 'unclaim'] as const) count(inboxes, name)
  count(subscriptions, 'listen')
  const isQuiet = async () => {
    const before = begun
    await sleep(110)
    return before === begun && underWay === 0
  }
  return async () => { await until(isQuiet) }
}
const idsOf = (answer: { json (): { items: { handoff_id: string }[] } }) => answer.json().items.map(({ handoff_id: id }) => id)

t.test('what can’t be asked', async t => {
  const { full, pass, taken } = work(one)
  const refused = (body: object | string) => one.call('bob', 'POST', '/api/catch', body)
  const names = (number: number) => Array.from({ length: number }, (_, n) => full(String(n)))
  for (const inboxes of [[], names(11), ['a b'], [''], ['x'.repeat(65)], [7], [null], [['a']], 'a', {}, 1, true]) {
    isProblem(t, await refused({ inboxes }), 400, 'invalid_request', JSON.stringify(inboxes))
  }
  t.match(isProblem(t, await refused({ inbox: 'a', inboxes: ['a'] }), 400, 'invalid_request'), { errors: [{ pointer: '/inboxes' }] })
  isProblem(t, await refused('{"inboxes":["a"],"inboxes":["b"]}'), 400, 'invalid_request')
  t.equal((await refused({ inboxes: names(10) })).body, '{"items":[]}')
  const [id, other] = [await pass('a'), await pass('b')]
  t.strictSame(idsOf(await refused({ inbox: null, inboxes: [full('a')] })), [id], 'null is absent')
  t.strictSame(idsOf(await refused({ inbox: full('b'), inboxes: null })), [other])
  const [again, last] = [await pass('a'), await pass('b')]
  t.strictSame(await taken('bba', { max: 5 }), [last], 'a name that comes again has its place already')
  t.strictSame(await taken('bba', { max: 5 }), [again])
})

t.test('a key that is held to inboxes must be allowed each of them', async t => {
  const { full, pass } = work(one)
  const { key } = await newKey(one.store.keyRecords, { agent: 'bob', inboxes: [full('a'), full('b')] })
  const ask = (inboxes: string) => one.app.inject({ method: 'POST', url: '/api/catch', headers: bearer(key), payload: { inboxes: [...inboxes].map(full) } })
  const id = await pass('b')
  isProblem(t, await ask('bc'), 403, 'not_addressee')
  isProblem(t, await ask('cb'), 403, 'not_addressee')
  t.strictSame(idsOf(await ask('ab')), [id])
})

for (const [where, service] of [['one Redis', one], ['spread', spread]] as const) {
  t.test(`the first that has something gives all items: ${where}`, async t => {
    const { full, pass, approved, taken, next, set } = work(service)
    const [b1, b2, c1] = [await pass('b'), await pass('b'), await pass('c')]
    t.match((await next('abc', { max: 5 })).json().items, [{ handoff_id: b1, to: full('b') }, { handoff_id: b2 }])
    t.strictSame(await taken('abc', { max: 5 }), [c1])
    t.strictSame(await taken('abc', { max: 5 }), [])
    const [a, paused] = [await approved('a'), await pass('b')]
    await set('b', { paused: true })
    t.strictSame(await taken('ba', { key: 'one' }), [a], 'a paused one is passed over, and one that has what a person approved isn’t')
    await set('b', { paused: false, max_caught: 2 })
    const c = await approved('c')
    t.strictSame(await taken('bc', { key: 'two' }), [c], 'and so is one of which as many are caught as may be')
    await set('b', { max_caught: null })
    t.strictSame(await taken('bc'), [paused])
  })

  t.test(`a key gives again what it took, whatever came since: ${where}`, async t => {
    const { pass, approved, taken, next, done } = work(service)
    t.strictSame(await taken('abc', { key: 'k', max: 2 }), [])
    t.strictSame(await taken('ab', { key: 'k', max: 2 }), [], 'an answer without items isn’t kept')
    const ids = [await approved('b'), await pass('b')]
    const first = await next('abc', { key: 'k', max: 2 })
    t.strictSame(idsOf(first), ids)
    t.notOk(first.headers['idempotency-replayed'])
    const since = [await pass('a'), await approved('a'), await pass('b'), await pass('c')]
    const again = await next('abc', { key: 'k', max: 2 })
    t.equal(again.headers['idempotency-replayed'], 'true')
    t.equal(again.body, first.body)
    t.equal((await next('abc', { key: 'k', max: 2, wait: 1 })).body, first.body)
    isProblem(t, await next('acb', { key: 'k', max: 2 }), 422, 'idempotency_key_reused')
    isProblem(t, await service.call('bob', 'GET', `/api/catch/${ids[0]}`, undefined, { 'idempotency-key': 'k' }), 409, 'already_caught')
    for (const id of ids) await done(id)
    t.match(await next('abc', { key: 'k', max: 2, wait: 1 }), { body: '{"items":[]}', headers: { 'idempotency-replayed': 'true' } })
    t.strictSame(await taken('abc', { key: 'k', max: 2, who: 'alice' }), since.slice(0, 2), 'another agent’s key is another')
  })

  t.test(`many at once with one key catch once: ${where}`, async t => {
    for (let round = 0; round < 4; round++) {
      const { pass, approved, next, taken } = work(service)
      if (round % 2 === 0) await approved('b')
      await pass('b')
      await pass('c')
      const asking = Array.from({ length: 20 }, async (_, n) => {
        // Each begins a turn of the event loop later, so that some look while others take.
        for (let turn = 0; turn < n; turn++) await setImmediate()
        return next('abc', { key: 'k', wait: n % 2 })
      })
      // What comes first now may come too late.
      await pass('a')
      const answers = await Promise.all(asking)
      const [first] = idsOf(answers[0]!)
      for (const answer of answers) t.strictSame(idsOf(answer), [first])
      t.equal(answers.filter(({ headers }) => headers['idempotency-replayed'] === undefined).length, 1, 'one acted')
      const left = [...await taken('a', { max: 9 }), ...await taken('b', { max: 9 }), ...await taken('c', { max: 9 })]
      t.equal(left.length, round % 2 === 0 ? 3 : 2, 'the rest is there')
    }
  })

  t.test(`two that wait with one key get the same, whichever inbox it comes to: ${where}`, async t => {
    for (const inbox of 'ab') {
      const { pass, taken, areWaiting } = work(service)
      const first = taken('ab', { key: 'k', wait: 30 })
      await areWaiting(1)
      const second = taken('ab', { key: 'k', wait: 30 })
      await areWaiting(2)
      t.strictSame(await taken('ab', { key: 'k' }), [], 'one that doesn’t wait changes nothing')
      const id = await pass(inbox)
      t.strictSame(await Promise.all([first, second]), [[id], [id]])
    }
  })

  t.test(`who waits is woken by each of them, and by what an operator lets go on: ${where}`, async t => {
    for (const key of [undefined, 'k']) {
      const { pass, approved, taken, set, done, areWaiting } = work(service)
      let n = 0
      /** Waits, and gets what comes of it. */
      const served = async (come: () => Promise<unknown>) => {
        const waiting = taken('abc', { wait: 60, key: key && `${key}${n++}` })
        await areWaiting(1)
        const came = await come()
        const [ids, after] = await timed(() => waiting)
        t.ok(after < 4000, `after ${after} ms`)
        return { ids, came }
      }
      const caught: string[] = []
      for (const come of [() => pass('a'), () => approved('a'), () => pass('b'), () => approved('b'), () => pass('c')]) {
        const { ids, came } = await served(come)
        t.strictSame(ids, [came])
        caught.push(...ids)
      }
      await set('b', { paused: true })
      const held = await pass('b')
      t.strictSame((await served(() => set('b', { paused: false }))).ids, [held], 'resumed')
      // Two of it are caught.
      await set('a', { max_caught: 2 })
      const next = await pass('a')
      t.strictSame((await served(() => done(caught[0]!))).ids, [next], 'one of as many as may be has ended')
    }
  })

  t.test(`of those who wait for an inbox the one that has waited longest is served, whatever else it waits for: ${where}`, async t => {
    const { pass, taken, areWaiting } = work(service)
    const areAsleep = looksOf(t, service)
    const served: number[] = []
    const waiting: Array<Promise<string[]>> = []
    for (const [n, inboxes] of ['b', 'ab', 'a', 'ba', 'ab', 'b'].entries()) {
      waiting.push(taken(inboxes, { wait: 60, ...n % 2 === 1 && { key: `${n}` } }).finally(() => served.push(n)))
      await areWaiting(waiting.length)
    }
    const passed: string[] = []
    for (const [n, inbox] of ['b', 'b', 'a', 'a', 'b', 'b'].entries()) {
      await areAsleep()
      passed.push(await pass(inbox))
      await until(() => served.length === n + 1)
    }
    t.strictSame(served, [0, 1, 2, 3, 4, 5])
    t.strictSame((await Promise.all(waiting)).flat(), passed)
  })
}

t.test('a turn that was not needed is another’s', async t => {
  const { pass, taken, areWaiting } = work(one)
  // The replica listens to both, and knows that they are empty.
  t.strictSame(await taken('ab', { wait: 1 }), [])
  for (const key of ['k', undefined]) {
    const [a, b] = [await pass('a'), await pass('b')]
    t.strictSame(await taken('ab', { key, wait: 60 }), [a])
    const [ids, after] = await timed(() => taken('b', { wait: 60 }))
    t.strictSame(ids, [b])
    t.ok(after < 4000, `after ${after} ms`)
  }
  // The first gets one of the two that come at once, and the second the other one.
  for (const key of ['l', undefined]) {
    const both = taken('ab', { key, wait: 60 })
    await areWaiting(1)
    const second = taken('b', { wait: 60 })
    await areWaiting(2)
    const passed = await Promise.all([pass('b'), pass('a'), pass('b')])
    const [caught, after] = await timed(() => Promise.all([both, second]))
    t.ok(after < 4000, `after ${after} ms`)
    const left = [...await taken('a', { max: 9 }), ...await taken('b', { max: 9 })]
    t.strictSame([...caught.flat(), ...left].sort(), passed.sort())
  }
})

t.test('the turn of a request that fails after its look is another’s', async t => {
  const { pass, taken, next } = work(one)
  t.strictSame(await taken('ab', { wait: 1 }), [])
  const ids = [await pass('a'), await pass('b')]
  const { inboxes } = one.store
  const claim = inboxes.claim.bind(inboxes)
  t.intercept(inboxes, 'claim', {
    value: async (...asked: Parameters<typeof claim>) => {
      if (asked[2]) throw new Unavailable('Redis did not answer in time')
      return await claim(...asked)
    }
  })
  isProblem(t, await next('ab', { key: 'k', wait: 60 }), 503, 'unavailable', 'it may not choose')
  for (const [at, inbox] of ['a', 'b'].entries()) {
    const [caught, after] = await timed(() => taken(inbox, { wait: 20 }))
    t.strictSame(caught, [ids[at]])
    t.ok(after < 4000, `after ${after} ms`)
  }
})

t.test('bursts into several inboxes, for workers that serve them in different orders, leave nothing behind', async t => {
  const other = await testApp(t, {}, { prefix: one.prefix })
  const { full, name, pass, approved } = work(one)
  const caught = new Set<string>()
  const isDone = new AbortController()
  let keys = 0
  const serve = async ({ call }: TestApp, inboxes: string, max: number, isKeyed: boolean) => {
    while (!isDone.signal.aborted) {
      const headers: Record<string, string> = isKeyed ? { 'idempotency-key': `${name}-${keys++}` } : {}
      for (const id of idsOf(await call('bob', 'POST', '/api/catch?wait=5', { inboxes: [...inboxes].map(full), max }, headers))) {
        t.notOk(caught.has(id), 'caught once')
        caught.add(id)
      }
    }
  }
  const working = [
    serve(one, 'abc', 1, false), serve(one, 'cba', 3, true), serve(one, 'b', 1, false), serve(other, 'bc', 1, true), serve(other, 'ac', 2, false), serve(other, 'cab', 1, true)
  ]
  for (let burst = 0; burst < 6; burst++) {
    const ids = await Promise.all(Array.from({ length: 15 }, (_, n) => n % 5 === 0 ? approved('abc'[n % 3]!) : pass('abc'[n % 3]!)))
    const [, after] = await timed(() => until(() => ids.every(id => caught.has(id))))
    t.ok(after < 4000, `after ${after} ms`)
  }
  isDone.abort()
  await Promise.all(working)
})

t.test('a key that ends, a client that goes and a drain leave nothing caught, and nobody’s turn lost', async t => {
  const service = await testApp(t)
  const { full, name, pass, taken, areWaiting } = work(service)
  const { id, key } = await newKey(service.store.keyRecords, { agent: 'bob' })
  const asked = { method: 'POST' as const, url: '/api/catch?wait=60', payload: { inboxes: [full('a'), full('b')] } }
  const ended = [{}, { 'idempotency-key': `${name}-ended` }].map(headers => service.app.inject({ ...asked, headers: { ...bearer(key), ...headers } }))
  await areWaiting(2)
  const later = [taken('ba', { wait: 60 }), taken('b', { wait: 60, key: 'later' })]
  await areWaiting(4)
  await service.store.keyRecords.revoke(id, 'me')
  for (const answer of await Promise.all(ended)) isProblem(t, answer, 401, 'unauthorized')
  const passed = [await pass('b'), await pass('b')]
  t.strictSame((await Promise.all(later)).flat().sort(), passed.sort())
  // What a key didn't take by isn't kept: other bytes are another request.
  t.strictSame(idsOf(await service.call('bob', 'POST', '/api/catch', { inboxes: [full('c')] }, { 'idempotency-key': `${name}-ended` })), [])
  const waiting = [taken('abc', { wait: 60 }), taken('abc', { wait: 60, key: 'drained' })]
  await areWaiting(2)
  service.app.draining.start()
  t.strictSame(await Promise.all(waiting), [[], []])
})

t.test('for a client that goes between two calls of its look nothing is taken', async t => {
  const service = await testApp(t, {}, { isSpread: true })
  const { full, pass, taken } = work(service)
  const { inboxes } = service.store
  const port = await listen(service.app)
  const id = await pass('a')
  const take = inboxes.take.bind(inboxes)
  let goes: Promise<unknown> | undefined
  inboxes.take = async (...asked) => {
    const found = await take(...asked)
    if (goes === undefined && asked[0].inbox === full('a') && asked[0].tag === homeTag('default')) {
      client.destroy()
      await (goes = until(async () => await connectionsOf(service.app) === 0))
    }
    return found
  }
  const headers = { ...bearer(secrets.bob), 'content-type': 'application/json' }
  const client = request({ port, host: '127.0.0.1', method: 'POST', path: '/api/catch?wait=60', headers, agent: false })
  client.on('error', () => {}).end(JSON.stringify({ inboxes: ['b', 'a'].map(full) }))
  await until(() => goes !== undefined)
  await goes
  t.strictSame(await taken('ba'), [id])
})

t.test('a request that broke off after its choice keeps the key from taking elsewhere, until it is gone', async t => {
  const service = await testApp(t)
  const { full, name, pass, next, taken } = work(service)
  const { inboxes } = service.store
  const scope = 'default bob'
  const bytes = Buffer.from(JSON.stringify({ inboxes: ['a', 'b'].map(full), max: 1 }))
  const claimOf = (key: string) => ({
    token: digestToken(`catch-next ${scope}`, `${name}-${key}`, undefined), request: digestToken('request', '', bytes), requester: 'broken', tag: tagOfDigest(`key ${scope} ${name}-${key}`)
  })
  const now = Date.now()
  await service.setClock(now)
  t.match(await inboxes.claim(claimOf('k'), 60_000, full('b')), { outcome: 'claimed' })
  const id = await pass('a')
  const waiting = taken('ab', { key: 'k', wait: 30 })
  await service.setClock(now + 9_999)
  isProblem(t, await next('ab', { key: 'k' }), 503, 'unavailable', 'it may be taking, or have taken')
  await service.setClock(now + 10_000)
  t.strictSame(await waiting, [id])
  t.strictSame(await taken('ab', { key: 'k' }), [id])
  await service.call('bob', 'POST', `/api/done/${id}`)
  // The clock was set back.
  t.match(await inboxes.claim(claimOf('l'), 60_000, full('b')), { outcome: 'claimed' })
  await service.setClock(now)
  const other = await pass('a')
  t.strictSame(await taken('ab', { key: 'l' }), [other])
  // Another request with the key never makes the claim shorter.
  await inboxes.claim(claimOf('m'), 600_000)
  await inboxes.claim({ ...claimOf('m'), requester: 'other' }, 1000)
  const [claim] = await service.redis.keys(`${service.prefix}:*${claimOf('m').token}*`)
  t.ok(await service.redis.pexpiretime(claim!) >= now + 600_000)
})

t.test('of those with one key, one at a time chooses', async t => {
  const { store: { inboxes }, setClock } = await testApp(t)
  const now = Date.now()
  await setClock(now)
  const claim = (requester: string, inbox = '', gone = '', request = 'request') => inboxes.claim({ token: 'token', request, requester, tag: 'tag' }, 60_000, inbox, gone)
  const mine = { outcome: 'claimed', chosen: '', gone: '' }
  const theirs = { outcome: 'left', chosen: 'a', gone: '' }
  t.strictSame(await claim('one'), mine)
  t.strictSame(await claim('other'), { ...theirs, outcome: 'known', chosen: '' })
  t.strictSame(await claim('other', 'a'), mine, 'who came first needn’t choose first')
  t.strictSame(await claim('one', 'b'), theirs)
  t.strictSame(await claim('one'), { ...theirs, outcome: 'known' })
  await inboxes.unclaim({ token: 'token', request: 'request', requester: 'one', tag: 'tag' })
  t.strictSame(await claim('one', 'b'), theirs, 'not for another to release')
  t.match(await claim('one', 'b', '', 'another'), { outcome: 'reused' })
  t.strictSame(await claim('other'), mine)
  t.strictSame(await claim('one', 'b'), mine)
  await setClock(now + 10_000)
  const { gone } = await claim('other', 'a')
  t.ok(gone)
  t.match(await claim('other'), { outcome: 'known', chosen: 'b', gone })
  t.strictSame(await claim('one', 'b'), mine, 'it isn’t gone')
  t.strictSame(await claim('other', 'a', gone), { ...theirs, chosen: 'b' })
  await setClock(now + 20_000)
  t.match(await claim('other', 'a', gone), { outcome: 'left', chosen: 'b' }, 'what was looked after is another choice')
  t.strictSame(await claim('other', 'a', (await claim('other', 'a')).gone), mine)
})
