import t from 'tap'
import { isId, tags } from '../../src/handoff/id.ts'
import { attempts, fault, progress, reason, schema } from '../helpers/further-states.ts'
import { testRedis } from '../helpers/redis.ts'
import type { TestRedis } from '../helpers/redis.ts'
import { approve, cancel, catchIt, decline, done, dumped, fail, heartbeat, lifetimes, member, pass, put, raw, reissue, sweep, tag, tenant } from '../helpers/scripts.ts'
import type { Raw } from '../helpers/scripts.ts'
import { T, at, digest, id, nextId, note, payload, restore, states } from '../helpers/states.ts'
import type { Hash, State } from '../helpers/states.ts'
import { idBehind } from '../helpers/successors.ts'

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
  return await on.redis.zrange(on.keys.due(tag), '0', '-1', 'WITHSCORES')
}

t.test('ten attempts in a row, ever longer apart, and an eleventh that somebody asks for', async t => {
  for (const [delay, pauses] of [
    ['', [1, 2, 4, 8, 16, 32, 64, 128, 256]], [' d0', [0, 0, 0, 0, 0, 0, 0, 0, 0]], [' d60000', [60, 120, 240, 480, 960, 1920, 3600, 3600, 3600]],
  ] as const) {
    const test = testRedis(t)
    const on: Raw = { ...raw(test), member }
    await pass(on, T, asking(T, 'passer', 'ptok/00-trace'), false, payload, ` m10${delay}`)
    let [now, current, created] = [T, id, T]
    for (const [index, seconds] of [...pauses, null].entries()) {
      t.match(await catchIt(on, now, asking(now)), ['caught', created, payload, null, '00-trace'], `attempt ${index + 1}`)
      now += 100
      const end = index % 3
      const reply = end === 0 ? await fail(on, now, asking(now), fault) : end === 1 ? await decline(on, now, asking(now), reason) : await sweep(on, now += lifetimes.workTtl)
      const next = idBehind(current, created)
      const found = await handoffs(test)
      if (seconds === null) {
        t.match(reply, ['failed', now], 'the last one has none behind it')
        t.equal(found[next], undefined)
        t.strictSame(await dueIn(on), [])
        const moved = await reissue(on, now, { agent: 'passer', deadline: now }) as unknown[]
        t.strictSame(moved.slice(0, 2), ['reissued', next])
        t.match((await handoffs(test))[next], { x: ` n11 o${current} m10${delay}`, s: `2:pending none ${now} ${now + 1000} passer -/00-trace` })
        continue
      }
      t.ok(isId(tags[0]! + next.slice(3)), `${next} is one, of a partition that there is`)
      const available = now + seconds * 1000
      t.strictSame(found[next], {
        s: `2:pending none ${now} ${available + 1000} passer -/00-trace`,
        p: payload,
        x: ` n${index + 2} o${current}${seconds === 0 ? '' : ` a${available}`} m10${delay}`,
      }, 'with nothing but what was passed')
      t.match(found[current]!.x, new RegExp(` i${next}$`))
      t.strictSame(await dueIn(on), [`${tenant}:${next}`, String(available + 1000)])
      if (seconds > 0) t.match(await catchIt({ ...on, member: `${tenant}:${next}` }, available - 1, asking(available - 1)), ['not_yet'], 'not before its time');
      [current, created, now] = [next, now, available]
      on.member = `${tenant}:${next}`
    }
  }
})

t.test('what was told of an attempt stays with it, and what was passed goes on', async t => {
  const test = testRedis(t)
  const on = raw(test)
  const options = ` w1500 b300 m2 d200 pPARENT rROOT g2 cabcdefabcdef sitsschema z${schema.length}`
  await pass(on, at.passed, asking(at.passed, 'passer', 'ptok'), false, payload + schema, options)
  await catchIt(on, at.caught, asking(at.caught))
  await heartbeat(on, at.cancelled, { agent: 'A', deadline: at.cancelled }, 5000, progress)
  await cancel(on, at.cancelled, { agent: 'passer', deadline: at.cancelled }, 0, reason)
  t.match(await reissue(on, at.done, { agent: 'passer', deadline: at.done }), ['reissued', nextId])
  const found = await handoffs(test)
  const windows = ' w1500 b300 m2 d200 pPARENT rROOT g2 cabcdefabcdef sitsschema'
  t.strictSame(found[nextId], { s: `2:pending none ${at.done} ${at.done + 1000} passer -`, p: payload, r: schema, x: ` n2 o${id}${windows}` })
  t.strictSame(found[id], {
    s: `2:cancelled none ${T} ${at.expires} passer ptok ${at.caught} ${at.cancelled + 5000} A ctok`,
    x: `${windows} f1 h${at.cancelled + 300} q${at.cancelled} e${at.done} ypasser k- i${nextId}`,
    c: reason,
    g: `${at.cancelled} ${progress}`,
    r: schema,
  })
  // Its successor's own life has nothing of that: it fails, and its passer has it tried once more.
  const next = { ...on, member: `${tenant}:${nextId}` }
  await catchIt(next, T + 500, asking(T + 500))
  t.strictSame(await fail(next, T + 600, asking(T + 600), fault), ['failed', T + 600, null], 'two were enough')
  t.match(await reissue(next, T + 700, { agent: 'passer', deadline: T + 700 }), ['reissued', idBehind(nextId, at.done)])
  t.match(await handoffs(test), { [idBehind(nextId, at.done)]: { p: payload, r: schema, x: ` n3 o${nextId}${windows}` }, [nextId]: { e: fault } })
  t.equal((await handoffs(test))[idBehind(nextId, at.done)]!.e, undefined)
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
      handoff: on.keys.handoff(tag, `${tenant}:${name}`), due: on.keys.due(tag), waiting: on.keys.waiting(tag, tenant), member: `${tenant}:${name}`,
    })
    const next = `${tenant}:${idBehind(name, at.passed)}`
    if (kind === 'caught with attempts, overdue') after.push(next, String(now + 200 + 1000))
    if (kind === 'caught with attempts, stalled') after.push(next, String(now + 1000 + 1000))
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
    await approve(its, at.decided, asking(at.decided, 'approver', 'dectok'), note)
    await catchIt(its, at.caught, asking(at.caught))
    await heartbeat(its, at.caught, { agent: 'A', deadline: at.caught }, undefined, progress)
  }
  const now = at.caught + 300
  t.strictSame((await sweep(on, now, 40) as unknown[]).slice(0, 4), ['swept', 3, 3, 3])
  const found = await handoffs(test, 3)
  for (const name of names) {
    t.match(found[name], { d: / dectok/, h: digest, r: schema, g: `${at.caught} ${progress}` }, name)
    t.strictSame(Object.keys(found[idBehind(name, at.passed)]!).sort(), ['d', 'h', 'p', 'r', 's', 'x'], `${name}: no progress of another attempt`)
    t.match(found[idBehind(name, at.passed)], { d: found[name]!.d, h: digest, r: schema })
  }
})

t.test('a sweep and a reissue at once: whichever is first makes it, and both name the same', async t => {
  const test = testRedis(t)
  const on = raw(test)
  const { now }: State = states['caught with attempts, overdue']
  const again = () => reissue(on, now, { agent: 'passer', deadline: now })

  await put(on, states['caught with attempts, overdue'])
  t.strictSame((await sweep(on, now) as unknown[]).slice(0, 4), ['swept', 1, 1, 1])
  t.match(await again(), ['replayed', nextId])
  t.strictSame(await test.dump(), dumped(states['expired, tried again']))

  await put(on, states['caught with attempts, overdue'])
  t.match(await again(), ['reissued', nextId, `2:pending none ${now} ${now + 1000} passer -`, ` n2 o${id}${attempts}`, 0], 'it is there at once')
  const before = await test.dump()
  t.strictSame((await sweep(on, now) as unknown[]).slice(0, 4), ['swept', 0, 0, 1])
  t.strictSame(await test.dump(), before)

  // What was expired and stays is tried again when that is asked, for as long as it is there.
  await put(on, states['caught, overdue'])
  await sweep(on, now)
  t.match(await reissue(on, now + 4000, { agent: 'passer', deadline: now + 4000 }), ['reissued', nextId])
  t.equal(await test.redis.pexpiretime(on.keys.handoff(tag, member)), now + 4000 + lifetimes.retention, 'and whoever asks finds its successor as long as that')
})

t.test('an id that comes back has another successor than it had', async t => {
  const test = testRedis(t)
  const on = raw(test)
  await put(on, states['caught with attempts'])
  await fail(on, at.done, asking(at.done), fault)
  await test.redis.del(on.keys.handoff(tag, member))
  const again = at.done + lifetimes.retention + 1
  t.strictSame(await pass(on, again, asking(again, 'passer', 'ptok'), false, payload, attempts), ['passed', again, again + 1000])
  await catchIt(on, again, asking(again))
  t.strictSame(await fail(on, again + 1, asking(again + 1), fault), ['failed', again + 1, idBehind(id, again)])
  const found = await handoffs(test, 2)
  t.strictSame(Object.keys(found).sort(), [id, nextId, idBehind(id, again)].sort())
  t.strictSame((await dueIn(on)).filter((_, index) => index % 2 === 0).sort(), [nextId, idBehind(id, again)].map(id => `${tenant}:${id}`).sort())
})

t.test('what was taken from its catcher is no more of its business, and what was done stays done', async t => {
  const test = testRedis(t)
  const on = raw(test)
  await put(on, states['caught with attempts'])
  await reissue(on, at.done, { agent: 'passer', deadline: at.done })
  const before = await test.dump()
  for (const tell of [done, fail, decline, heartbeat]) t.match(await tell(on, at.done, asking(at.done, 'A', 'dtok') as never), ['cancelled', at.done])
  t.match(await cancel(on, at.done, asking(at.done, 'passer'), 1, reason), ['replayed', at.done])
  t.match(await catchIt(on, at.done, asking(at.done)), ['cancelled', at.done])
  t.strictSame(await test.dump(), before)
})
