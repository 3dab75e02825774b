import t from 'tap'
import { testRedis } from '../helpers/redis.ts'
import { member, put, raw, run, tag, tenant, waiting } from '../helpers/scripts.ts'
import type { Raw } from '../helpers/scripts.ts'
import { T, at, stateNames, states, task } from '../helpers/states.ts'
import type { State } from '../helpers/states.ts'

type Place = [created: number, member: string, includes?: '1']

const recordOf = (created: number, expires = at.expires) => `pending waiting ${created} ${expires} passer ptok`

/** Puts one that waits into the list, or only its place there. */
async function add (on: Raw, name: string, created: number, { expires = at.expires as number, hash = true } = {}): Promise<void> {
  const member = `${tenant}:${name}`
  await on.redis.zadd(on.keys.waiting(tag, tenant), created, member)
  if (hash) await on.redis.hset(on.keys.handoff(tag, member), { s: recordOf(created, expires), p: `"task":"${name}"`, t: `"${name}"` })
}

async function remove (on: Raw, name: string): Promise<void> {
  await on.redis.zrem(on.keys.waiting(tag, tenant), `${tenant}:${name}`)
  await on.redis.del(on.keys.handoff(tag, `${tenant}:${name}`))
}

/** `last` is where the next one is to go on. */
interface Page { names: string[], more: boolean, last: Place }

async function page (on: Raw, limit: number, after?: Place, now: number = T + 500): Promise<Page> {
  const [outcome, , since, behind, ...parts] = await waiting(on, now, limit, after) as [string, number, string | null, string | null, ...string[]]
  if (outcome !== 'listed' || parts.length % 6 !== 0) throw new Error(`${outcome}, ${parts.length} parts`)
  const names: string[] = []
  for (let i = 0; i < parts.length; i += 6) {
    const [member, , , , task] = parts.slice(i, i + 6) as [string, string, null, null, string]
    names.push(JSON.parse(task))
    if (member !== `${tenant}:${names.at(-1)}`) throw new Error(`${member} with the task ${task}`)
  }
  return { names, more: behind !== null, last: [Number(since), behind ?? '', '1'] }
}

/** All pages from the start, each told where the one before ended. @param full must each but the last have as many as there may be? */
async function pages (on: Raw, limit: number, full = true): Promise<string[][]> {
  const all: string[][] = []
  for (let after: Place | undefined; ;) {
    const { more, names, last } = await page(on, limit, after)
    all.push(names)
    if (all.length > 300) throw new Error('pages without end')
    if (!more) return all
    if (full && names.length !== limit) throw new Error(`a page of ${names.length} that is not the last`)
    after = last
  }
}

t.test('what is left behind in the list, by whatever way, is not shown unless it waits', async t => {
  const on = raw(testRedis(t))
  for (const name of stateNames) {
    const state: State = states[name]
    await put(on, { ...state, waiting: at.passed })
    const listed = state.waiting !== undefined && state.now < at.expires ? [member, state.hash!.s, state.hash!.x ?? null, state.hash!.h ?? null, task, state.hash!.p!.length] : []
    t.strictSame(await waiting(on, state.now, 10), ['listed', state.now, null, null, ...listed], name)
  }
})

t.test('oldest first, and of one millisecond by name', async t => {
  const on = raw(testRedis(t))
  for (const [name, created] of [['b', T + 2], ['z', T + 1], ['a', T + 2], ['c', T + 2], ['y', T + 3]] as const) await add(on, name, created)
  const order = ['z', 'a', 'b', 'c', 'y']
  for (let limit = 1; limit <= 6; limit++) t.strictSame((await pages(on, limit)).flat(), order, `${limit} at a time`)
  t.match(await page(on, 10, [T + 2, `${tenant}:b`]), { names: ['c', 'y'], more: false }, 'from inside a millisecond on')
  t.match(await page(on, 10, [T + 2, `${tenant}:bb`]), { names: ['c', 'y'] }, 'from a place where nothing is')
  t.match(await page(on, 10, [T + 3, `${tenant}:y`]), { names: [], more: false }, 'behind the last')
})

t.test('a whole millisecond of more than a page', async t => {
  const on = raw(testRedis(t))
  // By their bytes; a locale would have another order.
  const names = ['-', '-a', '-b', '0', '1A', '1_', '1a', 'A', 'A-', 'A_', 'Aa', 'B', 'C', 'Z', '_', '_A', '_a', 'a', 'aA', 'a_', 'aa', 'b', 'c', 'y', 'z']
  for (const name of names.toReversed()) await add(on, name, T)
  for (const limit of [1, 3, 10, 24, 25, 26]) t.strictSame((await pages(on, limit)).flat(), names, `${limit} at a time`)
})

t.test('a page that is just full says whether there is more', async t => {
  const on = raw(testRedis(t))
  for (const name of ['a', 'b', 'c']) await add(on, name, T)
  t.match(await page(on, 3), { names: ['a', 'b', 'c'], more: false })
  t.match(await page(on, 2), { names: ['a', 'b'], more: true })
  await add(on, 'd', T + 1, { expires: T + 400 })
  t.match(await page(on, 3), { names: ['a', 'b', 'c'], more: false }, 'what is over is no more')
  await add(on, 'e', T + 2)
  t.match(await page(on, 3), { names: ['a', 'b', 'c'], more: true }, 'what is behind that is')
})

t.test('what is over or gone fills no page, however much of it there is', async t => {
  const on = raw(testRedis(t))
  for (let i = 0; i < 30; i++) {
    await add(on, `over${i}`, T + i, { expires: T + 500 })
    await add(on, `gone${i}`, T + i, { hash: false })
  }
  for (const [i, name] of ['a', 'b', 'c'].entries()) await add(on, name, T + 10 * i + 5)
  t.strictSame(await pages(on, 2), [['a', 'b'], ['c']])
  t.strictSame((await page(on, 100, undefined, T + 499)).names.length, 33, 'a millisecond before, those still wait')
})

/** Very many, or only their places, at once. */
async function addMany (on: Raw, names: readonly string[], created: (index: number) => number, t?: string): Promise<void> {
  const all = on.redis.pipeline()
  for (const [index, name] of names.entries()) {
    const member = `${tenant}:${name}`
    all.zadd(on.keys.waiting(tag, tenant), created(index), member)
    if (t !== undefined) all.hset(on.keys.handoff(tag, member), { s: recordOf(created(index)), t: t || `"${name}"` })
  }
  await all.exec()
}

t.test('of what is over or gone one call passes a thousand by, and says where it was', async t => {
  const on = raw(testRedis(t))
  const gone = Array.from({ length: 2500 }, (_, i) => `gone${String(i).padStart(4, '0')}`)
  await addMany(on, gone, i => T + Math.floor(i / 3))
  for (const [i, name] of ['a', 'b', 'c'].entries()) await add(on, name, T + 5000 + i)
  for (const limit of [1, 2, 100]) {
    const first = await page(on, limit)
    t.strictSame(first, { names: [], more: true, last: [T + 333, `${tenant}:${gone[1000]}`, '1'] }, `${limit} at a time`)
    const all = await pages(on, limit, false)
    t.strictSame(all.flat(), ['a', 'b', 'c'])
    t.ok(all.length <= 2 + Math.ceil(3 / limit) + 1, `${all.length} calls`)
  }
  // They are behind the last that is listed, too.
  await remove(on, 'c')
  await addMany(on, gone.map(name => `late${name}`), () => T + 9000)
  t.match(await page(on, 2), { names: [], more: true })
  t.strictSame((await pages(on, 2, false)).flat(), ['a', 'b'])
})

t.test('of what isn’t wanted one call passes a thousand by as well', async t => {
  const on = raw(testRedis(t))
  await addMany(on, Array.from({ length: 1200 }, (_, i) => `other${String(i).padStart(4, '0')}`), i => T + i, '')
  const words = ['', ' tw', ' jrun:42', ' tw jrun:42 jteam:red', ' jteam:red a5 tw jrun:42', ' tw2 jrun:420', ' jx:jrun:42 jy:tw']
  for (const [i, extra] of words.entries()) {
    await add(on, `x${i}`, T + 5000 + i)
    if (extra !== '') await on.redis.hset(on.keys.handoff(tag, `${tenant}:x${i}`), { s: `2:${recordOf(T + 5000 + i)}`, x: extra })
  }
  const found = async (wanted: string, after: Place) => {
    const [, , since, behind, ...parts] = await waiting(on, T + 500, 100, after, wanted) as [string, number, string | null, string | null, ...string[]]
    return { names: parts.filter((_, i) => i % 6 === 4).map(text => JSON.parse(text) as string), at: [Number(since), behind ?? '', '1'] as Place }
  }
  const first = await found('jrun:42', [0, ''])
  t.strictSame(first, { names: [], at: [T + 1000, `${tenant}:other1000`, '1'] })
  t.strictSame(await waiting(on, T + 500, 100, [0, ''], 'jrun:42', 128), ['listed', T + 500, String(T + 128), `${tenant}:other0128`], 'of fewer where it is told so')
  for (const [wanted, names] of [
    ['jrun:42', ['x2', 'x3', 'x4']], ['tw', ['x1', 'x3', 'x4']], ['tw jrun:42', ['x3', 'x4']], ['jteam:red tw jrun:42', ['x3', 'x4']], ['jteam:blue jrun:42', []], ['jrun:4', []], ['run:42', []],
  ] as const) t.strictSame((await found(wanted, first.at)).names, names, wanted)
})

t.test('more in one millisecond than one call looks at', async t => {
  const on = raw(testRedis(t))
  const names = Array.from({ length: 2300 }, (_, i) => `n${String(i).padStart(4, '0')}`)
  await addMany(on, names, () => T, '')
  t.strictSame((await pages(on, 100)).flat(), names)
})

t.test('a call gives half a megabyte of tasks at the most', async t => {
  const on = raw(testRedis(t))
  const names = Array.from({ length: 100 }, (_, i) => `n${String(i).padStart(2, '0')}`)
  await addMany(on, names, () => T, `"${'x'.repeat(12_011)}"`)
  const sizes: number[] = []
  for (let after: Place | undefined, more = true; more;) {
    const [, , since, behind, ...parts] = await waiting(on, T, 100, after) as string[]
    sizes.push(parts.length / 6)
    t.ok(parts.join('').length < 550_000)
    more = behind !== null
    after = [Number(since), behind!, '1']
  }
  t.strictSame(sizes, [43, 43, 14])
})

t.test('a call that reads tasks reads so many bytes of payloads, or one payload', async t => {
  const on = raw(testRedis(t))
  const due = on.keys.due(tag, tenant)
  for (let n = 0; n < 5; n++) {
    await on.redis.hset(on.keys.handoff(tag, `${tenant}:n${n}`), { s: `pending none ${T} ${at.expires} passer ptok`, p: `"task":"${'x'.repeat(900_000)}"` })
    await on.redis.zadd(due, T + n, `${tenant}:n${n}`)
  }
  const list = async (tasks: 0 | 2) => {
    const [, , , [score, name, isWanted, ...items]] = await run(on, 'list', T, [due],
      ['live', 100, 1000, '', '', '', '', '', '', '', tasks, '', '', '', '0']) as [string, number, number, unknown[]]
    return [items.length, score, name, isWanted]
  }
  t.strictSame(await list(0), [5, null, null, 0])
  t.strictSame(await list(2), [2, String(T + 2), `${tenant}:n2`, 1], 'and it goes on there')
})

t.test('pages stay in place while handoffs come and go', async t => {
  const on = raw(testRedis(t))
  for (const [i, name] of ['a', 'b', 'c', 'd', 'e', 'f'].entries()) await add(on, name, T + i)
  const first = await page(on, 2)
  t.strictSame(first.names, ['a', 'b'])
  // Those seen are decided, the last one of them too; one ahead is; a new one comes.
  for (const name of ['a', 'b', 'd']) await remove(on, name)
  await add(on, 'g', T + 6)
  const second = await page(on, 2, first.last)
  t.match(second, { names: ['c', 'e'], more: true })
  t.match(await page(on, 2, second.last), { names: ['f', 'g'], more: false })
})

t.test('250 of them, and not another tenant’s', async t => {
  const test = testRedis(t)
  const on = raw(test)
  const names = Array.from({ length: 250 }, (_, i) => `n${String(i).padStart(3, '0')}`)
  await Promise.all(names.map((name, i) => add(on, name, T + Math.floor(i / 7))))
  await test.redis.zadd(on.keys.waiting(tag, 'other'), T, 'other:x')
  await test.redis.hset(on.keys.handoff(tag, 'other:x'), { s: recordOf(T), t: '"x"' })
  t.strictSame(await run(on, 'count', T, [on.keys.waiting(tag, tenant), on.keys.waiting(tag, 'other')], []), ['counted', 251], 'all are counted')
  for (const [limit, sizes] of [[20, [...Array(12).fill(20), 10]], [100, [100, 100, 50]], [125, [125, 125]]] as const) {
    const all = await pages(on, limit)
    t.strictSame(all.map(({ length }) => length), sizes)
    t.strictSame(all.flat(), names)
  }
})
