/** The scripts against the model: each request in each state, and whatever is asked in whatever order. */
import fc from 'fast-check'
import { isDeepStrictEqual } from 'node:util'
import t from 'tap'
import type { Test } from 'tap'
import { withClock } from '../helpers/lua-clock.ts'
import { isWhole, skipInQuick } from '../helpers/extent.ts'
import { loadScripts } from '../../src/redis/scripts.ts'
import type { Model } from '../helpers/model.ts'
import { testRedis } from '../helpers/redis.ts'
import type { TestRedis } from '../helpers/redis.ts'
import {
  beating, cancelling, catching, deciding, declining, failing, finishing, passing, passingAgain, readings, reissuing, sweeping,
} from '../helpers/requests.ts'
import type { Request } from '../helpers/requests.ts'
import { lifetimes, raw, tag, tenant } from '../helpers/scripts.ts'
import type { Raw } from '../helpers/scripts.ts'
import { T, at, digest, id, lived, lives, newModel, secondLives } from '../helpers/states.ts'
import { stored } from '../helpers/stored.ts'

/** The words of field x have no order. */
function inOrder (found: unknown): unknown {
  if (typeof found === 'string') return /^( [a-zA-Z]\S+)+$/.test(found) ? found.split(' ').sort().join(' ') : found
  if (Array.isArray(found)) return found.map(inOrder)
  return found !== null && typeof found === 'object' ? Object.fromEntries(Object.entries(found).map(([name, value]) => [name, inOrder(value)])) : found
}

const pairs = (set: Array<[score: number, member: string]>) =>
  set.sort(([a, one], [b, other]) => a - b || (one < other ? -1 : 1)).flatMap(([score, member]) => [member, String(score)])

/** What lies in Redis: by the model, and in fact. */
function expectedIn (model: Model): Record<string, unknown> {
  const all = model.all().map(handoff => ({ member: `${tenant}:${handoff.first.id}`, ...stored(handoff, model.now) }))
  const set = (name: 'due' | 'waiting' | 'failed') => pairs(all.flatMap(state => state[name] === undefined ? [] : [[state[name], state.member]]))
  return {
    ...Object.fromEntries(all.map(({ member, hash, expires }) => [member, { hash: inOrder(hash), expires }])),
    due: set('due'),
    waiting: set('waiting'),
    failed: set('failed'),
  }
}

async function foundIn ({ redis, keys }: Raw, model: Model): Promise<Record<string, unknown>> {
  const members = model.all().map(({ first }) => `${tenant}:${first.id}`)
  const reads = redis.pipeline()
  for (const list of listsOf(keys)) reads.zrange(list, '0', '-1', 'WITHSCORES')
  for (const member of members) reads.hgetall(keys.handoff(tag, member)).pexpiretime(keys.handoff(tag, member))
  const [due, waiting, failed, ...hashes] = (await reads.exec())!.map(([error, found]) => error ?? found)
  const each = members.map((member, n) => [member, { hash: inOrder(hashes[2 * n]), expires: hashes[2 * n + 1] }])
  return { ...Object.fromEntries(each), due: (due as string[]).slice(0, -2), waiting, failed }
}

const listsOf = (keys: Raw['keys']) => [keys.due(tag, tenant), keys.waiting(tag, tenant), keys.failed(tag, tenant)]

/** Puts what the model has into Redis, and nothing else. */
async function put ({ redis, keys }: Raw, model: Model, before: Model | undefined): Promise<void> {
  const all = redis.pipeline().del(...listsOf(keys), keys.tenants(tag), ...before?.all().map(({ first }) => keys.handoff(tag, `${tenant}:${first.id}`)) ?? [])
  for (const handoff of model.all()) {
    const member = `${tenant}:${handoff.first.id}`
    const { hash, expires, due, waiting, failed } = stored(handoff, model.now)
    all.hset(keys.handoff(tag, member), hash!).pexpireat(keys.handoff(tag, member), expires!)
    if (due !== undefined) all.zadd(keys.due(tag, tenant), due, member, 'inf', '-').zadd(keys.tenants(tag), 'LT', due, tenant)
    if (waiting !== undefined) all.zadd(keys.waiting(tag, tenant), waiting, member)
    if (failed !== undefined) all.zadd(keys.failed(tag, tenant), failed, member)
  }
  await all.exec()
}

/** Fails with what differs; where nothing does, it costs much less than an assertion. */
function same (t: Test, found: unknown, wanted: unknown, label: string): void {
  if (!isDeepStrictEqual(found, wanted)) t.strictSame(found, wanted, label)
}

/** Asks both, and compares the replies, and what lies there then. */
async function step (t: Test, on: Raw, model: Model, request: Request, label: string): Promise<unknown> {
  const about = on.member!.slice(tenant.length + 1)
  const reply = await request.ask(on, model.now)
  same(t, inOrder(reply), inOrder(request.told(model, about)), label)
  same(t, await foundIn(on, model), expectedIn(model), `${label}: what lies there`)
  return reply
}

/** Nothing lies there that the model doesn't know of. */
async function nothingElse (t: Test, test: TestRedis, model: Model): Promise<void> {
  const names = Object.entries(expectedIn(model)).flatMap(([name, content]) => {
    const list = { due: `due:${tenant}`, waiting: `w:${tenant}`, failed: `f:${tenant}` }[name]
    if (list !== undefined) return (content as unknown[]).length === 0 ? [] : [`{${tag}}:${list}`]
    return [`{${tag}}:h:${name}`]
  })
  // The tenant's name stays after what waited for a person has left, and what was decided last is kept (http/decisions.test.ts), as is what
  // has ended (http/ended.test.ts).
  const found = Object.keys(await test.dump()).filter(key => key !== `{${tag}}:inboxes` && !key.startsWith(`{${tag}}:decisions:${tenant}`) && key !== `{${tag}}:ended:${tenant}`)
  same(t, found.sort(), names.sort(), 'nothing else lies there')
}

const agents = ['A', 'B', 'passer']
const decisions = (verdict: 'approve' | 'reject') => [
  deciding(verdict), deciding(verdict, 'B', 'other', 'null'), deciding(verdict, 'passer', 'other'), deciding(verdict, 'passer'),
  deciding(verdict, 'B', 'other', '"n"', at.passed), deciding(verdict, 'B', 'other', '"n"', '', digest), deciding(verdict, 'B', 'other', '"n"', at.passed, digest),
  deciding(verdict, 'B', 'other', '"n"', at.passed - 1), deciding(verdict, 'B', 'other', '"n"', '', 'another'), deciding(verdict, 'B', 'other', '"n"', at.passed - 1, digest),
  deciding(verdict, 'B', 'other', '"n"', at.passed, 'another'), deciding(verdict, 'passer', 'other', '"n"', '', 'another'),
]
/** Whatever may be asked, by those who may and by others, for the first time and again. */
const requests: readonly Request[] = [
  passingAgain('ptok', false), passingAgain('ptok', true), passingAgain('other', false),
  catching(), catching('A', 'other'), catching('B'),
  ...decisions('approve'), ...decisions('reject'),
  ...agents.map(agent => beating(agent)), beating('A', 1), beating('A', 3000, '{"message":"new"}'), beating('A', 100 * lifetimes.maxWorkTtl), beating('A', '', '{"message":"new"}'),
  beating('B', 3000, '{"message":"new"}'),
  finishing(), finishing('A', 'other', ''), finishing('B'), finishing('passer', 'ptok'), finishing('ctok'),
  failing(), failing('A', 'other'), failing('A', 'other', false), failing('B'), failing('passer', 'other'),
  declining(), declining('A', 'other'), declining('B'),
  ...[...agents, 'operator'].flatMap(agent => [cancelling(agent), cancelling(agent, true, '"why"')]), cancelling('passer', false, '"why"'), cancelling('passer', true),
  ...[...agents, 'operator'].map(reissuing),
  sweeping,
]
/** What changes something is asked again, by the same and by others. */
const again = [catching(), catching('B'), deciding('approve'), deciding('reject', 'B', 'other'), finishing(), failing(), declining(), cancelling(), cancelling('passer', false, '"another"'), reissuing(), sweeping]

const test = testRedis(t)
const inEach = Object.entries({ ...lives, ...secondLives })

t.test('each request in each state', async t => {
  let before: Model | undefined
  let count = 0
  for (const [n, [name, life]] of inEach.entries()) {
    const on: Raw = { ...raw(test), member: `${tenant}:${lived(life).all().filter(() => name in secondLives).at(-1)?.first.id ?? id}` }
    const about = on.member!.slice(tenant.length + 1)
    const ahead = name === 'absent' ? [passing(), ...requests.slice(3)] : requests
    const untouched = expectedIn(lived(life))
    for (const [at, request] of ahead.entries()) {
      // A sample in npm test: a third in each state, and the others in the next ones.
      if (!isWhole && at > 0 && request !== sweeping && (n + at) % 3 !== 0) continue
      const label = `${name}: ${request.name}`
      const model = lived(life)
      await put(on, model, before)
      before = model
      if (at === 0) {
        for (const late of ahead) same(t, await late.ask(on, model.now, model.now - 1), ['late'], `${label}, late`)
        same(t, await foundIn(on, model), expectedIn(model), `${name}: what is late changes nothing`)
        for (const read of readings) same(t, inOrder(await read.ask(on, model.now)), inOrder(read.told(model, about)), `${name}: ${read.name}`)
      }
      await step(t, on, model, request, label)
      count++
      if (isDeepStrictEqual(expectedIn(model), untouched)) continue
      for (const next of again.filter((_, which) => isWhole || (which + n + at) % again.length === 0)) {
        model.now++
        await step(t, on, model, next, `${label}, then ${next.name}`)
      }
    }
    await nothingElse(t, test, before!)
  }
  await put(raw(test), newModel(T), before)
  t.pass(`${count} requests`)
})

/** What is asked in a walk, and how often beside the others: what goes on more than what ends it. */
const asked: ReadonlyArray<[times: number, ...of: Request[]]> = [
  [8, catching(), catching('B', 'other')],
  [3, deciding('approve')],
  [1, deciding('reject')],
  [6, beating(), beating('A', 3000, '{"percent":1}'), beating('B', 3000)],
  [1, finishing(), finishing('B')],
  [4, failing(), failing('B'), failing('A', 'gtok', false)],
  [2, declining(), declining('B')],
  [2, cancelling('passer', false, '"why"'), cancelling('passer', true)],
  [3, reissuing()],
  [4, sweeping],
]
const one = <T> (...values: T[]) => fc.constantFrom(...values)
const steps = fc.array(fc.record({
  request: fc.oneof(...asked.map(([weight, ...of]) => ({ weight, arbitrary: one(...of) }))), later: one(0, 0, 0, 0, 1, 1, 1, 50, 50, 100, 250, 1000), isFirst: one(false, false, false, true),
}), { minLength: 12, maxLength: 25, size: 'max' })
const options = fc.record({
  require_human: fc.boolean(),
  work_within: one(undefined, 1.5),
  heartbeat_within: one(undefined, 0.3),
  delay: one(undefined, 0.08),
  max_attempts: one(undefined, 2, 10),
  retry_delay: one(undefined, 0, 0.2),
})

const walks = isWhole ? 600 : 60
t.test(`${walks} walks`, skipInQuick, async t => {
  const outcomes = new Set<string>()
  let before: Model | undefined
  await fc.assert(fc.asyncProperty(options, steps, async (options, steps) => {
    const model = newModel(T)
    const on: Raw = { ...raw(test), member: `${tenant}:${id}` }
    await put(on, model, before)
    before = model
    const given = Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined))
    await step(t, on, model, passing(given), 'pass')
    for (const { request, later, isFirst } of steps) {
      model.now += later
      // Mostly the newest.
      on.member = `${tenant}:${model.all().at(isFirst ? 0 : -1)!.first.id}`
      const [outcome] = await step(t, on, model, request, request.name) as [string]
      outcomes.add(`${request.name.split(' ')[0]} ${outcome}`)
      if (!t.passing()) throw new Error(request.name)
    }
    // Left alone it comes to its end by itself, attempts and all.
    for (let round = 0; round < 12; round++) {
      model.now += 3_600_000
      await step(t, on, model, sweeping, 'sweep')
    }
    if (!t.passing() || model.all().some(({ isLive }) => isLive)) throw new Error('it isn’t over')
  }), { numRuns: walks, seed: 2 })
  await nothingElse(t, test, before!)
  for (const each of [
    'catch caught', 'heartbeat caught', 'done done', 'fail failed', 'decline declined', 'cancel requested', 'cancel cancelled', 'reissue reissued', 'reissue replayed', 'sweep swept',
    'approve approved', 'reject rejected', 'catch not_yet', 'catch expired', 'done cancelled',
  ]) t.ok(outcomes.has(each), each, { outcomes: [...outcomes].sort() })
})

/** A clock for both, in microseconds. What is sent with others sees it go on by 10 with each pass that isn't plain. */
const turning = `local function clock()
  local set = redis.call('GET', 'clock-' .. string.match(KEYS[1], '^[^:]*'))
  local formatted = string.sub(set, 1, -4)
  return formatted + 0, string.sub(set, 1, -7), string.sub(set, -6), formatted
end
`
const call = fc.record({
  of: fc.nat(5),
  who: one('A', 'B'),
  token: one('t1', 't2', 't3'),
  inbox: one('i1', 'i2'),
  isLate: fc.nat(9).map(n => n === 0),
  extend: one('', '700'),
  options: one('', '', ' u3', ' m2 d0', ' w500 b100', ' a50', ' j1:x'),
  size: one(1, 20, 150_000),
  worker: one('', '', 'w:1', 'w:2'),
})
const parts = fc.array(fc.record({
  name: one<'pass' | 'catch' | 'take' | 'done' | 'heartbeat' | 'sweep'>('pass', 'pass', 'catch', 'catch', 'take', 'done', 'heartbeat', 'sweep'), later: one(1, 60, 600), calls: fc.array(call, { minLength: 2, maxLength: 8 }),
}), { minLength: 4, maxLength: 12, size: 'max' })
type Part = typeof parts extends fc.Arbitrary<Array<infer P>> ? P : never

function callOf ({ keys }: Raw, name: Part['name'], { of, who, token, inbox, options, size, isLate, extend, worker }: Part['calls'][number]) {
  const [key, due, list, deadline] = [keys.handoff(tag, `${tenant}:h${of}`), keys.due(tag, tenant), keys.inbox(tag, tenant, inbox), isLate ? 1 : 2 * T]
  const { expiresIn, workTtl, retention } = lifetimes
  const [asked, args]: [string[], Array<string | number>] = {
    pass: [options === '' ? [key, due] : [key, due, list], [`${who} ${token}`, expiresIn, ...options === '' ? [] : [`${options} t${inbox}`], 'p'.repeat(size)]],
    catch: [[key, due], [`${who} ${token}`, ' i1 ', ...worker === '' ? [] : [1e9, worker]]],
    take: [[list, due, keys.taken(tag, token)], [token, who, workTtl, retention, keys.handoff(tag, ''), 1, 0, '', '-', '', 'requester', '', ...worker === '' ? [] : [1e9, worker]]],
    done: [[key, due], [who, token, ...worker === '' ? [] : ['', worker], 'r'.repeat(size % 1000)]],
    heartbeat: [[key], [who, retention, extend, 10_000, worker, '']],
    sweep: [[keys.tenants(tag)], [keys.partition(tag), size, 1, retention, 'few']],
  }[name] as never
  return { keys: asked, args: [deadline, ...args], advances: name === 'pass' && options !== '' }
}

for (const [where, events] of Object.entries({ direct: { feeds: '@prefix:f:', retention: 60_000 }, relayed: 'outbox' } as const)) {
  t.test(`what is sent together is as if each had been sent alone; events: ${where}`, async t => {
    const scripts = loadScripts({ edit: withClock(turning), events, lifetimes, isOneRedis: where === 'direct' })
    const [alone, together] = [testRedis(t), testRedis(t)]
    const evaluate = async ({ redis, prefix }: TestRedis, source: string, micros: number, keys: string[], args: Array<string | number>) => {
      await redis.set(`clock-${prefix}`, micros)
      return await redis.eval(source.replaceAll('@prefix', prefix), keys.length, ...keys, ...args).catch((error: Error) => error)
    }
    const texts = (replies: unknown[]) => replies.map(reply => String(reply).replace(/ script: .*/s, ''))
    const left = async ({ dump }: TestRedis) => JSON.stringify(await dump()).replace(/\["\d+-\d+",/g, '[').replace(/("- \d[^}]*|"stream"[^}]*)"expires":\d+/g, '$1')
    await fc.assert(fc.asyncProperty(parts, async parts => {
      for (const { redis, prefix } of [alone, together]) {
        const found = await redis.keys(`${prefix}:*`)
        if (found.length > 0) await redis.del(found)
        // What asks for this one fails.
        await redis.set(raw({ redis, prefix }).keys.handoff(tag, `${tenant}:h0`), 'no hash')
      }
      let micros = T * 1000 + 5
      for (const { name, later, calls } of parts) {
        micros += later * 1000
        const expected: unknown[] = []
        let now = micros
        for (const { keys, args, advances } of calls.map(each => callOf(raw(alone), name, each))) {
          if (advances) now += 10
          expected.push(await evaluate(alone, scripts[name].source, now, keys, args))
        }
        const replies: unknown[] = []
        const all = calls.map(each => callOf(raw(together), name, each))
        while (replies.length < all.length) {
          const open = all.slice(replies.length)
          const shape = open.map(({ keys, args }) => String.fromCharCode(48 + keys.length, 48 + args.length)).join('')
          // Those that got no reply, since those before them returned much, are sent again.
          const now = micros + 10 * all.slice(0, replies.length).filter(({ advances }) => advances).length
          const some = await evaluate(together, scripts[name].several!.source, now, open.flatMap(({ keys }) => keys), [shape, ...open.flatMap(({ args }) => args)])
          if (!Array.isArray(some) || some.length === 0) throw new Error(String(some))
          replies.push(...some)
        }
        if (!isDeepStrictEqual(texts(replies), texts(expected))) throw new Error(`${name}: ${texts(replies)}; alone: ${texts(expected)}`)
      }
      const [ours, theirs] = [await left(together), await left(alone)]
      if (ours !== theirs) throw new Error(`it left ${ours}; alone: ${theirs}`)
    }), { numRuns: isWhole ? 100 : 8, seed: 1 })
    t.pass('same replies, and the same left')
  })
}
