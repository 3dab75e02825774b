import fc from 'fast-check'
import t from 'tap'
import { testRedis } from '../helpers/redis.ts'
import type { TestRedis } from '../helpers/redis.ts'
import { approve, cancel, catchIt, decline, done, fail, heartbeat, lifetimes, pass, put, raw, reissue, reject, sweep, tag, tenant } from '../helpers/scripts.ts'
import type { Raw } from '../helpers/scripts.ts'
import { T, payload, states } from '../helpers/states.ts'
import type { Hash } from '../helpers/states.ts'

/** Whatever is asked in whatever order, by whomever: no script fails, and nothing is lost or left over. */

type Ask = (on: Raw, now: number, who: string) => Promise<unknown>

/** What is asked of the handoff, or of an attempt behind it, and how often beside the others: what goes on more than what ends it. */
const asked: Record<string, [times: number, ask: Ask]> = {
  catch: [8, (on, now, who) => catchIt(on, now, asking(now, who, 'c'))],
  approve: [3, (on, now) => approve(on, now, asking(now, 'B', 'd'))],
  reject: [1, (on, now) => reject(on, now, asking(now, 'B', 'd'))],
  beat: [2, (on, now, who) => heartbeat(on, now, asking(now, who, ''))],
  extend: [4, (on, now, who) => heartbeat(on, now, asking(now, who, ''), 3000, '{"percent":1}')],
  done: [1, (on, now, who) => done(on, now, asking(now, who, 'e'), '{}')],
  fail: [3, (on, now, who) => fail(on, now, asking(now, who, 'f'))],
  failForGood: [1, (on, now, who) => fail(on, now, asking(now, who, 'g'), '{}', 0)],
  decline: [2, (on, now, who) => decline(on, now, asking(now, who, 'h'))],
  cancel: [1, (on, now) => cancel(on, now, asking(now, 'passer', ''), 0, '"why"')],
  cancelByForce: [1, (on, now) => cancel(on, now, asking(now, 'passer', ''), 1)],
  reissue: [3, (on, now) => reissue(on, now, asking(now, 'passer', ''))],
  sweep: [4, (on, now) => sweep(on, now)],
}
const asking = (now: number, agent: string, token: string) => ({ agent, token: agent + token, deadline: now })

const step = fc.record({
  what: fc.constantFrom(...Object.entries(asked).flatMap(([name, [times]]) => Array<string>(times).fill(name))),
  who: fc.constantFrom('A', 'A', 'A', 'B'),
  later: fc.constantFrom(0, 0, 0, 0, 1, 1, 1, 50, 50, 100, 250, 1000),
  which: fc.nat(3),
})
const options = fc.tuple(
  fc.constantFrom('', ' w1500'), fc.constantFrom('', ' b300'), fc.constantFrom('', ' a80'), fc.constantFrom('', ' m2', ' m10'), fc.constantFrom('', ' d0', ' d200')
).map(words => words.join(''))

type Dump = Record<string, { type: string, content: Hash | string[], expires: number }>

/** What is wrong with what lies there: nothing, where all is well. @param isOver is nothing to happen any more? */
function faultsOf (dump: Dump, isOver: boolean): string[] {
  const entries = Object.entries(dump)
  const hashes = entries.flatMap(([key, { type, content, expires }]) => type === 'hash' ? [{ member: key.slice(key.indexOf(':h:') + 3), hash: content as Hash, expires }] : [])
  const list = (shape: string) => (dump[`{${tag}}:${shape}`]?.content ?? []) as string[]
  const due = new Map(list('due').flatMap((name, at, all) => at % 2 === 0 ? [[name, Number(all[at + 1])] as const] : []))
  const waiting = list(`w:${tenant}`).filter((_, at) => at % 2 === 0)
  const faults: string[] = []
  for (const { member, hash, expires } of hashes) {
    const { s, x = '', p } = hash
    const [mark, approval, , pickedUpBy, , , , workedUntil] = s.split(' ')
    const status = mark!.replace('2:', '')
    const word = (letter: string) => new RegExp(` ${letter}(\\S+)`).exec(x)?.[1]
    const deadline = Number(status === 'pending' ? pickedUpBy : word('h') ?? workedUntil)
    const isLive = status === 'pending' || status === 'caught'
    if (!(expires > T)) faults.push(`${member}: no TTL`)
    if (isLive && !(expires >= deadline + lifetimes.retention)) faults.push(`${member}: it goes before its end`)
    if (isLive && !((due.get(member) ?? Infinity) <= deadline)) faults.push(`${member}: nobody looks at it in time`)
    if (!isLive && due.has(member)) faults.push(`${member}: it has ended and is due`)
    if (waiting.includes(member) !== (status === 'pending' && approval === 'waiting')) faults.push(`${member}: its place in the list`)
    const next = word('i')
    if (next !== undefined && p !== undefined) faults.push(`${member}: its payload was copied`)
    if (next !== undefined && !isFollowed(hashes, next)) faults.push(`${member}: no successor`)
    const isFreed = status === 'cancelled' || (status === 'expired' && workedUntil === undefined)
    if (next === undefined && p !== (isFreed ? '' : status === 'done' ? '{}' : payload)) faults.push(`${member}: ${status} with the payload ${p}`)
    if ((x !== '' || !/^(pending|caught|done|expired|rejected)/.test(status)) && mark === status) faults.push(`${member}: isn’t marked`)
  }
  for (const name of due.keys()) if (!hashes.some(({ member }) => member === name)) faults.push(`${name}: due and not there`)
  if (isOver && due.size + waiting.length > 0) faults.push('something is left in the lists')
  return faults
}

/** Is this attempt there, and does it say of which one it is the successor? */
function isFollowed (hashes: Array<{ member: string, hash: Hash }>, next: string): boolean {
  const before = hashes.find(({ hash }) => hash.x?.includes(` i${next}`))!.member.split(':')[1]!
  return hashes.some(({ member, hash }) => member === `${tenant}:${next}` && hash.x!.includes(` o${before}`))
}

/** The members of all attempts there are, the first one first. */
async function attemptsIn (test: TestRedis): Promise<string[]> {
  const all = Object.entries(await test.dump() as Dump).flatMap(([key, { type, content }]) => type === 'hash' ? [{ member: key.slice(key.indexOf(':h:') + 3), x: (content as Hash).x ?? '' }] : [])
  const number = (x: string) => Number(/ n(\d+)/.exec(x)?.[1] ?? 1)
  return all.sort((a, b) => number(a.x) - number(b.x)).map(({ member }) => member)
}

t.test('walks', async t => {
  const test = testRedis(t)
  const on = raw(test)
  const met = new Map<string, number>()
  await fc.assert(fc.asyncProperty(options, fc.boolean(), fc.array(step, { minLength: 12, maxLength: 25, size: 'max' }), async (options, requireHuman, steps) => {
    await put(on, states.absent)
    for (const member of await attemptsIn(test)) await test.redis.del(on.keys.handoff(tag, member))
    let now: number = T
    await pass(on, now, { agent: 'passer', token: 'ptok', deadline: now }, requireHuman, payload, options)
    for (const { what, who, later, which } of steps) {
      now += later
      const attempts = await attemptsIn(test)
      // Mostly the newest.
      const [outcome] = await asked[what]![1]({ ...on, member: attempts.at(which === 3 ? 0 : -1)! }, now, who) as [string]
      met.set(`${what} ${outcome}`, (met.get(`${what} ${outcome}`) ?? 0) + 1)
      const faults = faultsOf(await test.dump() as Dump, false)
      if (faults.length > 0) throw new Error(`${what}, ${outcome}: ${faults.join('; ')}`)
    }
    // Left alone it comes to its end by itself, attempts and all.
    for (let round = 0; round < 12; round++) await sweep(on, now += 3_600_000)
    const faults = faultsOf(await test.dump() as Dump, true)
    if (faults.length > 0) throw new Error(`in the end: ${faults.join('; ')}`)
  }), { numRuns: 120, seed: 2 })
  const outcomes = [...met.keys()].sort()
  for (const each of [
    'catch caught', 'beat caught', 'extend caught', 'done done', 'fail failed', 'decline declined', 'cancel requested', 'cancel cancelled', 'cancelByForce cancelled', 'reissue reissued',
    'reissue replayed', 'sweep swept', 'approve approved', 'reject rejected', 'catch not_yet', 'catch expired', 'done cancelled',
  ]) t.ok(met.has(each), `${each} came about`, { outcomes })
})
