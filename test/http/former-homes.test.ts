import t from 'tap'
import { scriptCalls } from '../../src/redis/call.ts'
import type { ScriptCallMessage } from '../../src/redis/call.ts'
import { derivedId, digestToken, homeTag, inboxTag, randomHomeId, tagOf, tags } from '../../src/core/ids.ts'
import { testApp } from '../helpers/app.ts'
import type { TestApp } from '../helpers/app.ts'
import { inboxWaiters } from '../helpers/metrics.ts'
import { isProblem } from '../helpers/problems.ts'
import { until } from '../helpers/until.ts'

/**
 * Version 0.2.0 kept what a person decides on in the tenant's home partition, also what is for an inbox. What it left
 * there, and what its replicas pass there beside those of this version, goes on.
 */
const more = { RATE_LIMIT_PER_MINUTE: '10000000' }
const one = await testApp(t, more)
const spread = await testApp(t, more, { isSpread: true })

function work (service: TestApp, name: string) {
  const { call } = service
  /** As a replica of version 0.2.0 passes it. */
  const former = async (id = randomHomeId('default'), token = '-', output = 'null', words = '') => {
    const payload = Buffer.from(`"task":"old","output":${output},"context":null,"constraints":null`)
    const reply = await service.store.handoffs.pass({
      tenant: 'default', id, tag: homeTag('default'), token, passedBy: 'alice', requireHuman: true, to: name, expiresIn: 3_600_000, options: ` t${name}${words} l4 hdigest n4`, payload
    })
    t.match(reply, { outcome: 'passed' })
    return id
  }
  const approve = (id: string) => call('approver', 'POST', `/api/approve/${id}`)
  const approved = async () => {
    const id = await former()
    await approve(id)
    return id
  }
  const pass = async (more: object = {}) => (await call('alice', 'POST', '/api/pass', { task: 't', to: name, ...more })).json().handoff_id as string
  const take = async (max = 1, headers: Record<string, string> = {}, wait = 0) => {
    const answer = await call('bob', 'POST', `/api/catch?wait=${wait}`, { inbox: name, max }, headers)
    return (answer.json().items as Array<{ handoff_id: string }>).map(({ handoff_id: id }) => id)
  }
  const set = (settings: object) => call('operator', 'PUT', `/api/inboxes/${name}`, settings)
  const look = async () => (await call('alice', 'GET', `/api/inboxes/${name}`)).json()
  const done = (id: string) => call('bob', 'POST', `/api/done/${id}`)
  return { former, approve, approved, pass, take, set, look, done }
}

for (const [where, service] of [['one Redis', one], ['spread', spread]] as const) {
  let names = 0
  const inbox = () => work(service, `former-${++names}`)

  t.test(`it is listed, decided, caught and done: ${where}`, async t => {
    const { former, approve, pass, take, look, done } = inbox()
    const old = await former()
    const young = await pass({ require_human: true })
    t.equal(tagOf(young), inboxTag('default', `former-${names}`), 'this version keeps all of an inbox in its partition')
    t.match(await look(), { waiting_approval: 2, pending: 0 })
    const listed = async (query = '') => (await service.call('approver', 'GET', `/api/approvals${query}`)).json().items.map((item: { handoff_id: string }) => item.handoff_id)
    t.strictSame(await listed(), [old, young])
    t.strictSame(await listed(`?inbox=former-${names}`), [old, young])
    await approve(young)
    await approve(old)
    t.strictSame(await listed(), [])
    t.match(await look(), { waiting_approval: 0, pending: 2 })
    t.strictSame([...await take(10), ...await take(10)].sort(), [old, young].sort())
    t.match(await look(), { pending: 0, caught: 2 })
    for (const id of [old, young]) t.equal((await done(id)).statusCode, 200)
    t.match(await look(), { pending: 0, caught: 0 })
  })

  t.test(`who waits is woken, at whichever of the two it is approved: ${where}`, async t => {
    const { former, approve, pass, take } = inbox()
    for (const make of [former, () => pass({ require_human: true }), former]) {
      const id = await make()
      const waiting = take(1, {}, 30)
      await approve(id)
      t.strictSame(await waiting, [id])
    }
  })

  t.test(`the settings hold for both: ${where}`, async t => {
    const { approved, pass, take, set, done, look } = inbox()
    await set({ paused: true })
    const [old, young] = [await approved(), await pass()]
    t.strictSame(await take(10), [])
    await set({ paused: false, max_caught: 1 })
    t.strictSame(await take(10), [old])
    t.strictSame(await take(10), [], 'it counts for what the other partition has, too')
    await done(old)
    t.strictSame(await take(10, {}, 5), [young])
    const next = await approved()
    t.strictSame(await take(10), [], 'nor does the other give one')
    const waiting = take(10, {}, 4)
    await done(young)
    t.strictSame(await waiting, [next], 'until one has ended, whichever of the two had it')
    await set({ max_caught: null })
    t.match(await look(), { caught: 1, max_caught: null })
  })

  t.test(`while one request takes at home by a key, and once it did, no other takes elsewhere by it: ${where}`, async t => {
    const { former, approve, approved, pass, take } = inbox()
    const name = `former-${names}`
    const own = { tenant: 'default', inbox: name, tag: inboxTag('default', name), other: homeTag('default') }
    const keyed = { token: digestToken('catch-next default bob', name, undefined), request: digestToken('request', '', Buffer.from(JSON.stringify({ inbox: name, max: 1 }))) }
    const { room } = service.store.inboxes
    const nothing = { taken: 0, at: where === 'spread' ? 0 : null, keptFor: 60_000 }
    const key = { 'idempotency-key': name }
    const beside = where === 'spread' ? { caught: 0, at: Date.now() } : null
    t.equal(await room.keep(own, 'one', 1, beside, keyed), 1)
    t.equal(await room.keep(own, 'one', 1, beside, keyed), 1, 'a call that is sent again')
    t.equal(await room.keep(own, 'two', 1, beside, keyed), 'left')
    t.equal(await room.keep(own, 'two', 1, beside, { ...keyed, request: 'another' }), 'reused')
    const young = await pass()
    t.strictSame(await take(1, key), [])
    await room.give(own, 'two', nothing, keyed)
    t.equal(await room.keep(own, 'two', 1, beside, keyed), 'left', 'only who noted it takes it back')
    await room.give(own, 'one', nothing, keyed)
    t.strictSame(await take(1, key), [young])
    t.equal(await room.keep(own, 'two', 1, beside, keyed), 'known')
    const old = await approved()
    const another = { 'idempotency-key': `${name}-2` }
    t.strictSame(await take(1, another), [old])
    const asked = { ...keyed, token: digestToken('catch-next default bob', `${name}-2`, undefined), agent: 'bob', max: 1, lifetime: 60_000 }
    t.match(await service.store.inboxes.take(own, asked), { outcome: 'elsewhere' })
    await pass()
    t.strictSame(await take(1, another), [old])
    t.ok(await service.redis.pttl(`${service.prefix}:{${own.tag}}:n:${asked.token}`) > 80_000_000, 'for as long as the work may last')
    const short = await former(undefined, undefined, undefined, ' w1000')
    await approve(short)
    const third = { 'idempotency-key': `${name}-3` }
    t.strictSame(await take(1, third), [short])
    const note = digestToken('catch-next default bob', `${name}-3`, undefined)
    t.ok(await service.redis.pttl(`${service.prefix}:{${own.tag}}:n:${note}`) > 80_000_000, 'or as the key counts')
  })

  t.test(`who waits with a key gets what a replica took at home that was killed then: ${where}`, async t => {
    const service = await testApp(t, more, { isSpread: where === 'spread' })
    const { approved, pass, take } = work(service, 'killed')
    const { inboxes } = service.store
    const own = { tenant: 'default', inbox: 'killed', tag: inboxTag('default', 'killed'), other: homeTag('default') }
    const home = { ...own, tag: own.other, other: own.tag }
    const keyOf = (name: string) => ({ token: digestToken('catch-next default bob', name, undefined), request: digestToken('request', '', Buffer.from(JSON.stringify({ inbox: 'killed', max: 1 }))) })
    const beside = () => where === 'spread' ? { caught: 0, at: Date.now() } : null
    /** @param took before it was killed */
    const afterKill = async (name: string, took: boolean) => {
      const asked = { ...keyOf(name), agent: 'bob', max: 1, lifetime: 60_000, caughtElsewhere: 'room' as const }
      t.equal(await inboxes.room.keep(own, 'dead', 1, beside(), keyOf(name)), 1)
      const old = took ? await approved() : null
      if (took) t.match(await inboxes.take(home, asked), { outcome: 'taken', items: [{ id: old }] })
      const young = await pass()
      const waiting = take(1, { 'idempotency-key': name }, 30)
      await until(async () => await inboxWaiters(service.app) === 1)
      t.match(await inboxes.take(own, asked), { outcome: 'left' })
      const note = `${service.prefix}:{${own.tag}}:n:${asked.token}`
      t.ok(await service.redis.pttl(note) > 100_000, 'longer than a request waits')
      const [digest, count, call, since] = (await service.redis.get(note))!.split(' ')
      await service.redis.set(note, `${digest} ${count} ${call} ${Number(since) - 10_000}`)
      return { old, young, taken: await waiting, again: await take(1, { 'idempotency-key': name }) }
    }
    const one = await afterKill('one', true)
    t.strictSame(one.taken, [one.old])
    t.strictSame(one.again, [one.old])
    t.strictSame(await take(5), [one.young], 'nothing else was taken')
    const two = await afterKill('two', false)
    t.strictSame(two.taken, [two.young], 'if that took nothing, this takes')
    t.strictSame(two.again, [two.young])
    t.strictSame(await take(5), [])
    t.equal(await service.redis.pttl(`${service.prefix}:{${own.tag}}:i:default:killed:places`), -2, 'and gives back its room')
  })

  t.test(`requests that wait with one key take one for both, whichever partition has it first: ${where}`, async t => {
    const other = await testApp(t, more, { isSpread: where === 'spread', prefix: service.prefix })
    for (let n = 0; n < 12; n++) {
      const name = `one-key-${n}`
      const [here, there] = [work(service, name), work(other, name)]
      const old = await here.former()
      const key = { 'idempotency-key': name }
      const pair = Promise.all([here.take(1, key, 20), there.take(1, key, 20)])
      await until(async () => await inboxWaiters(service.app) + await inboxWaiters(other.app) === 2)
      const [, young] = await Promise.all([here.approve(old), there.pass()])
      const [one, two] = await pair
      t.strictSame(one, two)
      t.ok(one!.length === 1 && [old, young].includes(one![0]!))
      t.strictSame(await there.take(1, key), one, 'and so do those that come later')
      t.match(await here.look(), { pending: 1, caught: 1 })
    }
  })

  t.test(`a key gives again what it took: ${where}`, async t => {
    const { approved, pass, take } = inbox()
    const old = await approved()
    const key = { 'idempotency-key': `former-${names}` }
    t.strictSame(await take(1, key), [old])
    const young = await pass()
    t.strictSame(await take(1, key), [old], 'also when the other partition has something')
    t.strictSame(await take(), [young])
  })

  t.test(`the same pass again gets the handoff that it made: ${where}`, async t => {
    const { former, pass, look } = inbox()
    const name = `former-${names}`
    const body = { task: 'old', to: name, require_human: true }
    const id = homeTag('default') + derivedId('default', 'alice', true, name, name).slice(3)
    await former(id, digestToken('pass', name, Buffer.from(JSON.stringify(body))))
    const again = (body: object) => service.call('alice', 'POST', '/api/pass', body, { 'idempotency-key': name })
    const answer = await again(body)
    t.equal(answer.statusCode, 201)
    t.match(answer.json(), { handoff_id: id, approval_url: new RegExp(`${id}$`) })
    t.equal(answer.headers['idempotency-replayed'], 'true')
    isProblem(t, await again({ ...body, task: 'another' }), 422, 'idempotency_key_reused')
    t.match(await look(), { waiting_approval: 1 })
    t.ok(await pass())
  })

  t.test(`it is cancelled, rejected and reissued where it is: ${where}`, async t => {
    const { former, approved, take, look } = inbox()
    const [cancelled, rejected, failed] = [await former(), await former(), await approved()]
    t.equal((await service.call('alice', 'POST', `/api/cancel/${cancelled}`)).statusCode, 200)
    t.equal((await service.call('approver', 'POST', `/api/reject/${rejected}`, { note: 'no' })).statusCode, 200)
    t.strictSame(await take(), [failed])
    t.equal((await service.call('bob', 'POST', `/api/fail/${failed}`, { error: { message: 'm' } })).statusCode, 200)
    const next = (await service.call('alice', 'POST', `/api/reissue/${failed}`)).json().handoff_id
    t.equal(tagOf(next), homeTag('default'))
    t.match(await look(), { waiting_approval: 0, pending: 1, failed: 0 })
    t.strictSame(await take(), [next])
  })
}

t.test('no more are caught than may be, of both partitions together, however many take at once', async t => {
  const other = await testApp(t, more, { isSpread: true, prefix: spread.prefix })
  const [here, there] = [work(spread, 'crowded'), work(other, 'crowded')]
  await here.set({ max_caught: 3 })
  const left = new Set<string>()
  for (let n = 0; n < 12; n++) left.add(n % 2 === 0 ? await here.approved() : await here.pass())
  const counts: number[] = []
  while (left.size > 0) {
    const taken = (await Promise.all([1, 2, 1, 3].flatMap(max => [here.take(max), there.take(max)]))).flat()
    counts.push((await here.look()).caught)
    t.equal(counts.at(-1), taken.length)
    for (const id of taken) {
      t.ok(left.delete(id))
      await here.done(id)
    }
  }
  t.ok(Math.max(...counts) === 3, `${counts.join(', ')}`)
})

t.test('what was caught in one of the two since the other last asked counts there', async t => {
  const { former, approve, approved, pass, take, set, done, look } = work(spread, 'lately')
  await set({ max_caught: 1 })
  t.strictSame(await take(), [], 'from now on it is known that the home partition has nothing')
  const old = await approved()
  t.strictSame(await take(), [old])
  const own = await pass()
  t.strictSame(await take(), [], 'one is caught there')
  await done(old)
  t.strictSame(await take(), [own])
  await done(own)
  const asked = await former()
  t.strictSame(await take(), [], 'it waits for a person')
  await approve(asked)
  t.equal((await spread.call('bob', 'GET', `/api/catch/${asked}`)).statusCode, 200)
  await pass()
  t.strictSame(await take(), [], 'what is caught by its id counts at once')
  t.match(await look(), { pending: 1, caught: 1 })
})

t.test('what failed at home and is reissued there counts at once when it is caught by its id', async t => {
  const { approved, pass, take, set } = work(spread, 'reissued')
  const failed = await approved()
  t.strictSame(await take(), [failed])
  await spread.call('bob', 'POST', `/api/fail/${failed}`, { error: { message: 'm' } })
  await set({ max_caught: 1 })
  t.strictSame(await take(), [])
  const next = (await spread.call('alice', 'POST', `/api/reissue/${failed}`)).json().handoff_id
  t.equal((await spread.call('bob', 'GET', `/api/catch/${next}`)).statusCode, 200)
  await pass()
  t.strictSame(await take(), [])
})

t.test('requests at once with one key get the same, and those without get something while there is room', async t => {
  const other = await testApp(t, more, { isSpread: true, prefix: spread.prefix })
  for (let n = 0; n < 15; n++) {
    const [here, there] = [work(spread, `at-once-${n}`), work(other, `at-once-${n}`)]
    await here.set({ max_caught: 10 })
    const ids = [await here.approved(), await here.pass()]
    const key = { 'idempotency-key': `at-once-${n}` }
    const [one, two] = await Promise.all([here.take(1, key), there.take(1, key)])
    t.strictSame(one, two)
    t.equal(one.length, 1)
    t.strictSame(await here.take(1, key), one)
    for (let at = 0; at < 4; at++) ids.push(await here.approved())
    const taken = (await Promise.all([here, there, here, there].map(({ take }) => take()))).flat()
    t.equal(taken.length, 4)
    t.equal(new Set([...one, ...taken]).size, 5)
    t.ok([...one, ...taken].every(id => ids.includes(id)))
  }
})

t.test('a large one is taken too, since a look that finds it too large gives its room back', async t => {
  const { former, approve, take, set } = work(spread, 'large')
  await set({ max_caught: 1 })
  const id = await former(undefined, undefined, JSON.stringify({ text: 'x'.repeat(100_000) }))
  await approve(id)
  t.strictSame(await take(), [id])
})

t.test('it counts again if others took there meanwhile, and keeps no more room than there is', async t => {
  const { approved, pass, take, set } = work(spread, 'again')
  await set({ max_caught: 3 })
  const { inboxes } = spread.store
  const { room } = inboxes
  const [count, keep] = [inboxes.count.bind(inboxes), room.keep.bind(room)]
  const wanted: number[] = []
  room.keep = (...given) => {
    wanted.push(given[2])
    return keep(...given)
  }
  let counts = 0
  inboxes.count = async place => ({ ...await count(place), ...counts++ === 0 ? { at: 1 } : {} })
  t.teardown(() => Object.assign(inboxes, { count }) && Object.assign(room, { keep }))
  await room.give({ tenant: 'default', inbox: 'again', tag: inboxTag('default', 'again') }, 'other', { taken: 1, at: 2, keptFor: 0 }, null)
  const old = await approved()
  const young = await pass()
  t.strictSame(await take(3), [old], 'the first count is too old, the second isn’t')
  t.strictSame(wanted, [1, 1])
  t.strictSame(await take(3), [young])
})

t.test('a look costs few calls: at an inbox that is full, and where nothing is at home', async t => {
  const { approved, pass, take, set } = work(spread, 'cheap')
  const calls: string[] = []
  const count = (message: unknown) => { calls.push((message as ScriptCallMessage).script) }
  scriptCalls.subscribe(count)
  t.teardown(() => scriptCalls.unsubscribe(count))
  const callsOf = async (look: () => Promise<unknown>) => {
    calls.length = 0
    await look()
    return calls.filter(script => ['take', 'inbox', 'inbox-room'].includes(script))
  }
  await set({ max_caught: 1 })
  t.strictSame(await callsOf(take), ['take', 'inbox', 'take', 'inbox', 'take'], 'at first it looks at both')
  const old = await approved()
  await pass()
  t.strictSame(await callsOf(async () => t.strictSame(await take(), [old])), ['take', 'inbox', 'inbox-room', 'take', 'inbox-room'])
  await approved()
  let last: string[] = []
  // A message tells of the approval.
  await until(async () => {
    last = await callsOf(async () => t.strictSame(await take(), []))
    return last.includes('inbox-room')
  })
  t.strictSame(last, ['take', 'inbox', 'inbox-room', 'take', 'inbox', 'inbox', 'take'], 'one look where the limit is reached')
})

t.test('while room is kept for what is taken at home, or was since one counted there, nothing else takes it', async t => {
  const { set, pass, take, look, done } = work(spread, 'room')
  const { room } = spread.store.inboxes
  const keep = (call: string, max: number, elsewhere: { caught: number, at: number }) => room.keep(own, call, max, elsewhere, null)
  const give = (call: string, at: number) => room.give(own, call, { taken: at === 0 ? 0 : 1, at, keptFor: 0 }, null)
  const own = { tenant: 'default', inbox: 'room', tag: inboxTag('default', 'room') }
  const at = Date.now()
  t.equal(await keep('one', 5, { caught: 1, at }), 5, 'without a limit all that it wants')
  await give('one', 0)
  await set({ max_caught: 3 })
  t.equal(await keep('one', 5, { caught: 1, at }), 2)
  t.equal(await keep('one', 5, { caught: 1, at }), 2, 'a call that is sent again keeps no more')
  t.equal(await keep('two', 1, { caught: 1, at }), 'closed')
  const ids = [await pass(), await pass()]
  t.match(await take(2), [ids[0]], 'none is caught in the other, so one is left beside the two')
  t.strictSame(await take(2), [])
  await give('one', at)
  t.equal(await keep('two', 1, { caught: 0, at }), 'limited', 'what was counted before isn’t true any more')
  t.equal(await keep('two', 1, { caught: 2, at: at + 1 }), 'closed')
  t.equal(await keep('two', 1, { caught: 1, at: at + 1 }), 1)
  t.strictSame(await take(), [ids[1]], 'what was known to be empty is counted again')
  t.match(await look(), { caught: 2 })
  await give('two', at + 9)
  await give('gone', at + 5)
  t.equal(await keep('two', 1, { caught: 0, at: at + 7 }), 'limited', 'the latest time counts')
  const keptFor = await spread.redis.pttl(`${spread.prefix}:{${own.tag}}:i:default:room:places`)
  t.ok(keptFor > 10_000 && keptFor <= 20_000, `all of it goes by itself, in ${keptFor} ms`)
  t.equal(await keep('two', 1, { caught: 0, at: at + 10 }), 1)
  const third = await pass()
  const waiting: string[] = []
  take(1, {}, 60).then(ids => waiting.push(...ids))
  await until(async () => await inboxWaiters(spread.app) === 1)
  t.strictSame(await take(), [])
  await give('two', 0)
  // Not only when the wait is over.
  await until(() => waiting.length > 0)
  t.strictSame(waiting, [third], 'who waits is woken when room is given back')
  await done(third)
  t.equal(await keep('four', 3, { caught: 0, at: 1e15 }), 1)
  await spread.setClock(Date.now() - 15_000)
  t.equal(await keep('five', 1, { caught: 0, at: 1e15 }), 'closed', 'it counts too after the clock went back a little')
  await spread.setClock(Date.now() + 20_001)
  t.equal(await keep('three', 1, { caught: 0, at: 1 }), 1, 'room whose call is gone ends')
  await spread.setClock(Date.now() - 60_000)
  t.equal(await keep('four', 1, { caught: 0, at: 1 }), 1, 'that of a clock that was set back doesn’t count')
})

t.test('on one Redis, what a replica of version 0.2.0 decided leaves the list of what waits', async t => {
  const { pass } = work(one, 'tidied')
  const id = await pass({ require_human: true })
  const list = `${one.prefix}:{${homeTag('default')}}:w:default`
  t.type(await one.redis.zscore(list, `default:${id}`), 'string', 'it is in the home partition, wherever the handoff is')
  await one.call('approver', 'POST', `/api/approve/${id}`)
  t.equal(await one.redis.zscore(list, `default:${id}`), null)
  await one.redis.zadd(list, 1, `default:${id}`)
  t.strictSame((await one.call('approver', 'GET', '/api/approvals?inbox=tidied')).json(), { items: [], next_cursor: null })
  await until(async () => {
    await one.store.inboxes.tidy({ tenant: 'default', inbox: '', tag: homeTag('default') })
    return await one.redis.zscore(list, `default:${id}`) === null
  })
})

for (const [where, isSpread] of [['one Redis', false], ['spread', true]] as const) {
  t.test(`while replicas of version 0.2.0 run, a pass with a key is made where they would find it: ${where}`, async t => {
    const service = await testApp(t, more, { isSpread })
    const pass = async (key: string) => (await service.call('alice', 'POST', '/api/pass', { task: 't', to: 'beside', require_human: true }, { 'idempotency-key': key })).json().handoff_id as string
    const own = await pass('alone')
    t.equal(tagOf(own), inboxTag('default', 'beside'))
    await service.redis.set(`${service.prefix}:{${tags[0]}}:sweeper`, 'replica 1', 'PX', 60_000)
    let at = 0
    await until(async () => tagOf(await pass(`beside-${at++}`)) === homeTag('default'))
    t.equal(await pass('alone'), own, 'what was made before them is found')
    const beside = await pass(`beside-${at}`)
    await service.redis.del(`${service.prefix}:{${tags[0]}}:sweeper`)
    t.equal(await pass(`beside-${at}`), beside)
  })
}

for (const [way, isSpread] of [['from one Redis to a Cluster', true], ['from a Cluster to one Redis', false]] as const) {
  t.test(`what waits for a person is found after its data has moved ${way}`, async t => {
    const from = await testApp(t, more, { isSpread: !isSpread })
    const inbox = [0, 1, 2, 3].map(n => `moved-${n}`).find(name => inboxTag('default', name) !== homeTag('default'))!
    const { pass } = work(from, inbox)
    const ids = [await pass({ require_human: true }), await pass({ require_human: true }), await pass({ require_human: true, expires_in: 60 })]
    const there = await pass({ to: undefined, require_human: true })
    const { call, store, redis, prefix, setClock, dump } = await testApp(t, more, { isSpread, prefix: from.prefix })
    const listed = async (query = '') => ((await call('approver', 'GET', `/api/approvals${query}`)).json().items as Array<{ handoff_id: string }>).map(({ handoff_id: id }) => id)
    t.strictSame(await listed(), [there], 'what is for no inbox is at home in both')
    await store.indexer.round()
    // Those of one millisecond are in the order of their ids.
    t.strictSame((await listed()).sort(), [...ids, there].sort())
    const before = await dump()
    await store.indexer.round()
    t.strictSame(await dump(), before, 'what is right stays so')
    t.strictSame((await listed(`?inbox=${inbox}`)).sort(), [...ids].sort(), 'each is there once')
    t.equal((await call('approver', 'POST', `/api/approve/${ids[0]}`)).statusCode, 200)
    t.equal((await call('approver', 'POST', `/api/reject/${ids[1]}`, { note: 'no' })).statusCode, 200)
    await setClock(Date.now() + 61_000)
    await store.handoffs.sweep(inboxTag('default', inbox), 100)
    const next = (await call('alice', 'POST', `/api/reissue/${ids[2]}`)).json().handoff_id as string
    t.strictSame(await listed(), [there, next], 'a later attempt is in the right list at once')
    await call('approver', 'POST', `/api/approve/${next}`)
    const lists = async () => {
      const found: string[] = []
      for await (const keys of redis.scanStream({ match: `${prefix}:{*}:w:default`, count: 10_000 })) {
        for (const key of keys as string[]) found.push(...await redis.zrange(key, '0', '-1'))
      }
      return found
    }
    await until(async () => {
      await store.inboxes.tidy({ tenant: 'default', inbox: '', tag: homeTag('default') })
      return (await lists()).join() === `default:${there}`
    })
    t.strictSame((await call('bob', 'POST', '/api/catch', { inbox, max: 10 })).json().items.map((item: { handoff_id: string }) => item.handoff_id).sort(), [ids[0], next].sort())
  })
}
