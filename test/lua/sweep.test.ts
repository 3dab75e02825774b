import t from 'tap'
import { testRedis } from '../helpers/redis.ts'
import { dumped, lifetimes, member, put, raw, restore, sweep, tag, tenant } from '../helpers/scripts.ts'
import type { Raw } from '../helpers/scripts.ts'
import { T, at, payload, stateNames, states } from '../helpers/states.ts'
import type { State } from '../helpers/states.ts'

/** Swept, where nobody caught it: it is freed, the task and the places in the lists are gone, the rest stays. */
function expired ({ now, hash, expires }: State): State {
  const { t, ...kept } = hash!
  return { now, hash: { ...kept, s: kept.s.replace('pending', 'expired'), p: '' }, expires: expires! }
}

/** Those that end now, or go on to another attempt. */
const due = stateNames.filter(name => / ?overdue|stalled/.test(name) && states[name].due !== undefined)

/** Nothing lives in the partition, so nothing will be due. */
const none = [0, null, 0, 0, 0]

/** Puts a handoff of any tenant into the partition that is swept. */
async function place (on: Raw, member: string, state: State): Promise<void> {
  const tenant = member.split(':')[0]!
  await restore(on.redis, state, { handoff: on.keys.handoff(tag, member), due: on.keys.due(tag, tenant), waiting: on.keys.waiting(tag, tenant), member })
}

/** The handoffs in a sorted set, first to last. */
async function members (on: Raw, key: string): Promise<string[]> {
  return (await on.redis.zrange(key, '0', '-1')).filter(member => member !== '-')
}

t.test('what is left in the lists and is live no more is only taken off them', async t => {
  const test = testRedis(t)
  const on = raw(test)
  const hasEnded = ({ hash, due, next }: State) => hash !== undefined && due === undefined && next === undefined
  const ended = stateNames.filter(name => hasEnded(states[name]))
  for (const name of ended) {
    const state: State = states[name]
    const listed = / waiting /.test(state.hash!.s) ? { ...state, waiting: T } : state
    await put(on, { ...listed, due: state.now })
    t.strictSame(await sweep(on, state.now), ['swept', 1, 0, ...none], name)
    t.strictSame(await test.dump(), dumped(state), name)
  }
})

/** By when a key whose handoff was due at T has gone by itself. */
const gone = T + lifetimes.retention

t.test('a member whose handoff Redis has removed goes from the index, and from the waiting list', async t => {
  const test = testRedis(t)
  const on = raw(test)
  // The list has no TTL of its own, and once the index has forgotten it nobody looks.
  for (const state of [{ now: gone, due: T }, { now: gone, due: T, waiting: T }]) {
    await put(on, state)
    t.strictSame(await sweep(on, gone), ['swept', 1, 0, ...none])
    t.strictSame(await test.dump(), {})
  }
})

t.test('a handoff that isn’t there before its time is looked for again, in ever longer pauses, until it must be gone', async t => {
  const test = testRedis(t)
  const on = raw(test)
  const state: State = { now: T, due: T, waiting: T }
  await put(on, state)
  // 1 s, 2 s and 4 s: the last one is beyond the retention of 5 s.
  for (const [now, left] of [[T + 3, 1000], [T + 1004, 2000], [T + 3005, 4000]] as const) {
    t.strictSame(await sweep(on, now), ['swept', 1, 0, 1, left, 0, 0, 0])
    t.strictSame(await sweep(on, now + left), ['swept', 0, 0, 1, 0, 0, 0, 0], 'not before')
    t.strictSame(await members(on, on.keys.waiting(tag, tenant)), [member], 'and stays where it waits')
  }
  t.strictSame(await sweep(on, T + 7006), ['swept', 1, 0, ...none])
  t.strictSame(await test.dump(), {})
})

t.test('one that is there after all expires as it would have', async t => {
  const test = testRedis(t)
  const on = raw(test)
  const state: State = states['pending, waiting, overdue']
  await put(on, { now: state.now, due: state.now })
  t.strictSame(await sweep(on, state.now), ['swept', 1, 0, 1, 1000, 0, 0, 0])
  const again = Number(await on.redis.zscore(on.keys.due(tag, tenant), member))
  await put(on, { ...state, due: again })
  t.strictSame(await sweep(on, state.now + 1001), ['swept', 1, 1, ...none])
  t.strictSame(await test.dump(), dumped(expired(state)))
})

t.test('one that isn’t in its waiting list yet leaves it when it is', async t => {
  const test = testRedis(t)
  const on = raw(test)
  const { waiting, ...state }: State = states['pending, waiting, overdue']
  await put(on, state)
  t.strictSame(await sweep(on, state.now), ['swept', 1, 1, 1, 1000, 0, 0, 0], 'it has expired')
  await on.redis.zadd(on.keys.waiting(tag, tenant), waiting!, member)
  t.strictSame(await sweep(on, state.now + 1001), ['swept', 1, 0, ...none])
  t.strictSame(await test.dump(), dumped(expired(state)))
})

t.test('what isn’t there keeps none of the others from their turn', async t => {
  const test = testRedis(t)
  const on = raw(test)
  const now = at.workDeadline
  for (let n = 0; n < 6; n++) await place(on, `acme:missing${n}`, { now, due: now - 10 + n })
  await place(on, 'acme:there', { ...states['caught, overdue'], due: now })
  let expiredAfter = 0
  for (let calls = 1; expiredAfter === 0 && calls < 10; calls++) {
    const [, , expired] = await sweep(on, now, 2) as number[]
    if (expired === 1) expiredAfter = calls
  }
  t.equal(expiredAfter, 4, 'three calls for six, the next for it')
  t.equal((await members(on, on.keys.due(tag, tenant))).length, 6)
})

t.test('an index that was behind is set right', async t => {
  const test = testRedis(t)
  const on = raw(test)
  for (const name of ['pending', 'pending, waiting', 'pending, approved', 'caught', 'pending, its last millisecond', 'pending, waiting, its last millisecond', 'caught, its last millisecond'] as const) {
    const state: State = states[name]
    await put(on, { ...state, due: state.now - 10 })
    const due = name.startsWith('caught') ? at.workDeadline : at.expires
    t.strictSame(await sweep(on, state.now), ['swept', 1, 0, 1, due - state.now, 0, 0, 0], name)
    t.strictSame(await test.dump(), dumped({ ...state, due }), `${name}: the record is the truth`)
  }
})

t.test('between plain ones each is swept as it is alone, and so are they', async t => {
  const plain: State = states['pending, overdue']
  for (const name of [...due, 'caught', 'done', 'pending, waiting'] as const) {
    const state: State = states[name]
    const outcome = async (limit: number) => {
      const test = testRedis(t)
      const on = raw(test)
      const around = { ...plain, hash: { ...plain.hash!, s: plain.hash!.s.replace(/\d+ \d+/, `${T} ${state.now - 2}`) }, now: state.now }
      await place(on, 'acme:before', { ...around, due: state.now - 2 })
      await place(on, member, { ...state, due: state.now - 1 })
      await place(on, 'acme:behind', { ...around, due: state.now })
      const counts = [0, 0, 0, 0, 0]
      const named: string[] = []
      for (let calls = 0; calls < 3; calls += limit) {
        const [, looked, expired, , , stalled, stalledReissued, lateReissued, ...names] = await sweep(on, state.now, limit, state.now, 1) as any[]
        for (const [at, count] of [looked, expired, stalled, stalledReissued, lateReissued].entries()) counts[at]! += count
        named.push(...names)
      }
      return { counts, named, left: await test.dump() }
    }
    const together = await outcome(3)
    t.strictSame(together, await outcome(1), name)
    t.equal(together.counts[0], 3)
    t.strictSame([together.named[0], together.named.at(-1)], ['acme:before', 'acme:behind'], name)
  }
})

t.test('one call looks at no more than it may, the longest due first', async t => {
  const test = testRedis(t)
  const on = raw(test)
  const deadlines = [at.expires - 3, at.expires - 2, at.expires - 1, at.expires, at.expires + 1]
  for (const [index, deadline] of deadlines.entries()) {
    const s = `pending none ${T} ${deadline} passer ptok`
    await place(on, `acme:${index}`, { now: T, hash: { s, p: payload }, expires: deadline + 5000, due: deadline })
  }
  const left = () => members(on, on.keys.due(tag, tenant))
  t.strictSame(await sweep(on, at.expires, 3), ['swept', 3, 3, 2, 0, 0, 0, 0], 'the next is due at this very moment')
  t.strictSame(await left(), ['acme:3', 'acme:4'])
  t.strictSame(await sweep(on, at.expires + 100, 0), ['swept', 0, 0, 2, -100, 0, 0, 0], 'and is overdue later')
  t.strictSame(await sweep(on, at.expires, 3), ['swept', 1, 1, 1, 1, 0, 0, 0])
  t.strictSame(await left(), ['acme:4'], 'what is due a millisecond later stays')
  t.strictSame(await sweep(on, at.expires, 3), ['swept', 0, 0, 1, 1, 0, 0, 0])
  t.strictSame((await test.dump())[`{${tag}}:h:acme:4`],
    { type: 'hash', content: { s: `pending none ${T} ${at.expires + 1} passer ptok`, p: payload }, expires: at.expires + 5001 })
})

t.test('names with every character that a name may have, each in its own list', async t => {
  const test = testRedis(t)
  const on = raw(test)
  const every = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-'
  const tenants = [every.slice(0, 64), every.slice(-64), '.', '-', '_', 'a', 'a.b', 'a-b', 'A']
  const overdue: State = states['pending, waiting, overdue']
  const waiting: State = states['pending, waiting']
  for (const tenant of tenants) {
    await place(on, `${tenant}:over`, overdue)
    // Its own deadline is further off, so it must stay on its tenant's list.
    await place(on, `${tenant}:later`, { ...waiting, hash: { s: `pending waiting ${T} ${T + 9000} ${tenant} -`, p: payload }, due: T + 9000 })
  }
  t.strictSame(await sweep(on, at.expires, 100), ['swept', tenants.length, tenants.length, tenants.length, T + 9000 - at.expires, 0, 0, 0])
  for (const tenant of tenants) {
    t.strictSame(await members(on, on.keys.waiting(tag, tenant)), [`${tenant}:later`], tenant)
    t.strictSame(await on.redis.hgetall(on.keys.handoff(tag, `${tenant}:over`)), expired(overdue).hash, tenant)
    t.equal(Number(await on.redis.pexpiretime(on.keys.handoff(tag, `${tenant}:over`))), overdue.expires, tenant)
  }
  for (const tenant of tenants) t.strictSame(await members(on, on.keys.due(tag, tenant)), [`${tenant}:later`])
})

t.test('those that expire are named where that is asked, and no others', async t => {
  const test = testRedis(t)
  const on = raw(test)
  const now = states['caught, overdue'].now
  const expires = ['acme:one', 'acme:two', 'other:three']
  await place(on, expires[0]!, states['pending, overdue'])
  await place(on, expires[1]!, states['caught, overdue'])
  await place(on, expires[2]!, states['pending, waiting, overdue'])
  await place(on, 'acme:later', { now, hash: { s: `pending none ${T} ${now + 1} passer ptok`, p: payload }, expires: now + 5000, due: now })
  await place(on, 'acme:gone', { now, due: now - lifetimes.retention })
  const reply = await sweep(on, now, 10, now, 1) as unknown[]
  t.strictSame(reply.slice(0, 8), ['swept', 5, 3, 1, 1, 0, 0, 0])
  t.strictSame(reply.slice(8).sort(), expires)
})
