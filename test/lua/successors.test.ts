import t from 'tap'
import { isId, tags } from '../../src/core/ids.ts'
import { successorOf as idBehind } from '../helpers/modelled.ts'
import { testRedis } from '../helpers/redis.ts'
import type { TestRedis } from '../helpers/redis.ts'
import { approve, catchIt, decline, fail, heartbeat, lifetimes, lineage, member, pass, put, raw, reissue, restore, sweep, tag, tenant } from '../helpers/scripts.ts'
import type { Raw } from '../helpers/scripts.ts'
import { T, at, digest, id, nextId, payload, schema, states } from '../helpers/states.ts'
import type { Hash, State } from '../helpers/states.ts'

const asking = (now: number, agent = 'A', token = 'ctok') => ({ agent, token, deadline: now })

/** All handoffs there are, by their ids. Each key has a TTL, and no payload is in two places or in none. */
async function handoffs (test: TestRedis, payloads = 1): Promise<Record<string, Hash>> {
  const all: Record<string, Hash> = {}
  for (const [key, { type, content, expires }] of Object.entries(await test.dump()) as Array<[string, { type: string, content: Hash, expires: number }]>) {
    if (type !== 'hash') continue
    if (!(expires > T)) throw new Error(`${key} has no TTL`)
    all[key.slice(key.lastIndexOf(':') + 1)] = content
  }
  const kept = Object.values(all).filter(({ p }) => p !== undefined)
  if (kept.length !== payloads || kept.some(({ p }) => p !== payload)) throw new Error(`${kept.length} payloads`)
  return all
}

/** The due index as it is: members and scores. */
async function dueIn (on: Raw): Promise<string[]> {
  return (await on.redis.zrange(on.keys.due(tag, tenant), '0', '-1', 'WITHSCORES')).slice(0, -2)
}

t.test('ten attempts in a row, ever longer apart, and an eleventh that somebody asks for', async t => {
  for (const [delay, pauses] of [
    ['', [1, 2, 4, 8, 16, 32, 64, 128, 256]], [' d0', [0, 0, 0, 0, 0, 0, 0, 0, 0]], [' d60000', [60, 120, 240, 480, 960, 1920, 3600, 3600, 3600]],
  ] as const) {
    const test = testRedis(t)
    const on: Raw = { ...raw(test), member }
    await pass(on, T, asking(T, 'passer', 'ptok/00-trace'), false, payload, ` m10${delay}`)
    const markOfFirst = async () => (await lineage({ ...on, member }, T) as unknown[])[4]
    const mark = await markOfFirst()
    t.match(mark, /^[\da-f]{12}$/)
    let [now, current, created] = [T, id, T]
    for (const [index, seconds] of [...pauses, null].entries()) {
      t.match(await catchIt(on, now, asking(now)), ['caught', created, payload, null, '00-trace'], `attempt ${index + 1}`)
      now += 100
      const end = index % 3
      const reply = end === 0 ? await fail(on, now, asking(now), '{}') : end === 1 ? await decline(on, now, asking(now), '"no"') : await sweep(on, now += lifetimes.workTtl)
      const next = idBehind(current, created)
      t.equal(await markOfFirst(), mark, 'what comes below the first one is known by the payload, wherever it is')
      const found = await handoffs(test)
      if (seconds === null) {
        t.match(reply, ['failed', now], 'the last one has none behind it')
        t.equal(found[next], undefined)
        t.strictSame(await dueIn(on), [])
        const moved = await reissue(on, now, { agent: 'passer', deadline: now }) as unknown[]
        t.strictSame(moved.slice(0, 2), ['reissued', next])
        t.match((await handoffs(test))[next], { x: ` n11 o${current} m10${delay} F${id}`, s: `2:pending none ${now} ${now + 1000} passer -/00-trace` })
        continue
      }
      t.ok(isId(tags[0]! + next.slice(3)), `${next} is one, of a partition that there is`)
      const available = now + seconds * 1000
      t.strictSame(found[next], {
        s: `2:pending none ${now} ${available + 1000} passer -/00-trace`,
        p: payload,
        x: ` n${index + 2} o${current}${seconds === 0 ? '' : ` a${available}`} m10${delay} F${id}`,
      }, 'with nothing but what was passed')
      t.match(found[current]!.x, new RegExp(` i${next}$`))
      t.strictSame(await dueIn(on), [`${tenant}:${next}`, String(seconds === 0 ? available + 1000 : available)], 'due at the end of its delay')
      if (seconds > 0) t.match(await catchIt({ ...on, member: `${tenant}:${next}` }, available - 1, asking(available - 1)), ['not_yet'], 'not before its time');
      [current, created, now] = [next, now, available]
      on.member = `${tenant}:${next}`
    }
  }
})

t.test('what is not to be tried again has no successor', async t => {
  const test = testRedis(t)
  const on = raw(test)
  await put(on, states['caught with attempts'])
  t.strictSame(await fail(on, at.done, asking(at.done), '{}', 0), ['failed', at.done, null])
  t.strictSame(Object.keys(await handoffs(test)), [id])
  t.strictSame(await dueIn(on), [])
})

t.test('behind a first attempt that was delayed the next has all the time that was passed', async t => {
  const test = testRedis(t)
  const on: Raw = { ...raw(test), member }
  await pass(on, T, asking(T, 'passer', 'ptok'), false, payload, ' m2 d0 a500')
  await catchIt(on, T + 500, asking(T + 500))
  await fail(on, T + 600, asking(T + 600), '{}')
  t.equal((await handoffs(test))[idBehind(id, T)]!.s, `2:pending none ${T + 600} ${T + 1600} passer -`)
})

t.test('what expired in an inbox is reissued as long as its payload is there: an older version’s sweep freed it', async t => {
  const test = testRedis(t)
  const on = raw(test)
  const passer = { agent: 'passer', deadline: at.expires }
  await pass(on, T, asking(T, 'passer', 'ptok'), false, payload, ' tdesk')
  await sweep(on, at.expires)
  await test.redis.hset(on.keys.handoff(tag, member), 'p', '')
  t.match(await reissue(on, at.expires, passer), ['expired'])
  await test.redis.hset(on.keys.handoff(tag, member), 'p', payload)
  t.match(await reissue(on, at.expires, passer), ['reissued'])
})

t.test('one batch of those that have successors and of those that haven’t', async t => {
  const test = testRedis(t)
  const on = raw(test)
  const now = at.workDeadline
  const kinds = ['caught with attempts, overdue', 'caught, overdue', 'pending, overdue', 'caught with attempts, stalled', 'caught with windows, stalled', 'pending, waiting, overdue',
    'caught', 'done'] as const
  const after: string[] = []
  for (let n = 0; n < 40; n++) {
    const name = `T_g${String(n).padStart(21, '0')}A`
    const kind = kinds[n % kinds.length]!
    const state: State = kind === 'caught' ? { ...states.caught, hash: { s: `${states.caught.hash!.s.replace(String(at.workDeadline), String(now + n))}`, p: payload } } : states[kind]
    const due = state.due ?? now - n
    await restore(test.redis, { ...state, due }, {
      handoff: on.keys.handoff(tag, `${tenant}:${name}`), due: on.keys.due(tag, tenant), waiting: on.keys.waiting(tag, tenant), member: `${tenant}:${name}`,
    })
    const next = `${tenant}:${idBehind(name, at.passed)}`
    if (kind === 'caught with attempts, overdue') after.push(next, String(now + 200))
    if (kind === 'caught with attempts, stalled') after.push(next, String(now + 1000))
    if (kind === 'caught') after.push(`${tenant}:${name}`, String(now + n))
  }
  const live = after.length / 2
  t.equal(live, 15)
  const [code, looked, expired, left, , stalled, stalledAgain, lateAgain, ...named] = await sweep(on, now, 40, now, 1) as number[]
  t.strictSame([code, looked, expired, left, stalled, stalledAgain, lateAgain, named.length], ['swept', 40, 30, live, 10, 5, 5, 30])
  const pairs = (flat: string[]) => flat.flatMap((name, index) => index % 2 === 0 ? [`${flat[index + 1]} ${name}`] : []).sort()
  t.strictSame(pairs(await dueIn(on)), pairs(after), 'the index has what lives, and nothing else')
  t.equal(await test.redis.zcard(on.keys.waiting(tag, tenant)), 0)
  const before = await test.dump()
  t.strictSame((await sweep(on, now, 40) as unknown[]).slice(0, 4), ['swept', 0, 0, live], 'a second one has nothing to do')
  t.strictSame(await test.dump(), before)
})

t.test('in a batch each of those that are alike leaves to its successor what the first one does', async t => {
  const test = testRedis(t)
  const on = raw(test)
  const names = ['0', '1', '2'].map(n => `T_g${n.repeat(22)}`)
  const options = ' w1500 b300 m2 d200 sitsschema'
  for (const name of names) {
    const its = { ...on, member: `${tenant}:${name}` }
    await pass(its, at.passed, asking(at.passed, 'passer', `ptok${name}`), true, payload + schema, `${options} z${schema.length}`)
    await approve(its, at.decided, asking(at.decided, 'approver', 'dectok'), 'null')
    await catchIt(its, at.caught, asking(at.caught))
    await heartbeat(its, at.caught, { agent: 'A', deadline: at.caught }, undefined, '{"percent":5}')
  }
  const now = at.caught + 300
  t.strictSame((await sweep(on, now, 40) as unknown[]).slice(0, 4), ['swept', 3, 3, 3])
  const found = await handoffs(test, 3)
  for (const name of names) {
    t.match(found[name], { d: / dectok/, h: digest, r: schema, g: `${at.caught} {"percent":5}` }, name)
    t.strictSame(Object.keys(found[idBehind(name, at.passed)]!).sort(), ['d', 'h', 'p', 'r', 's', 'x'], `${name}: no progress of another attempt`)
    t.match(found[idBehind(name, at.passed)], { d: found[name]!.d, h: digest, r: schema })
  }
})

t.test('what comes after an attempt that the sweep ends comes after the next one', async t => {
  const on = raw(testRedis(t))
  const state: State = states['caught with attempts, overdue']
  await put(on, { ...state, hash: { ...state.hash!, x: `${state.hash!.x} W1` } })
  await on.redis.sadd(on.keys.dependents(tag, member), `other/${id}`)
  t.match(await sweep(on, state.now), ['swept', 1, 1, 1])
  t.strictSame((await dueIn(on)).filter((_, at) => at % 2 === 0), [`${tenant}:${nextId}`], 'the one that ended needs no further look')
  t.strictSame(await on.redis.smembers(on.keys.dependents(tag, `${tenant}:${nextId}`)), [`other/${id}`])
})

t.test('an id that comes back has another successor than it had', async t => {
  const test = testRedis(t)
  const on = raw(test)
  await put(on, states['caught with attempts'])
  await fail(on, at.done, asking(at.done), '{}')
  await test.redis.del(on.keys.handoff(tag, member))
  const again = at.done + lifetimes.retention + 1
  t.strictSame(await pass(on, again, asking(again, 'passer', 'ptok'), false, payload, ' m3 d200'), ['passed', again, again + 1000])
  await catchIt(on, again, asking(again))
  t.strictSame(await fail(on, again + 1, asking(again + 1), '{}'), ['failed', again + 1, idBehind(id, again)])
  const found = await handoffs(test, 2)
  t.strictSame(Object.keys(found).sort(), [id, nextId, idBehind(id, again)].sort())
  t.strictSame((await dueIn(on)).filter((_, index) => index % 2 === 0).sort(), [nextId, idBehind(id, again)].map(id => `${tenant}:${id}`).sort())
})
