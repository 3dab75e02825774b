/**
 * Replicas of two versions run side by side while a fleet is updated. test/lua/former/ has the scripts of the version before, as they
 * were released: whatever step of a plain handoff's life is taken by which version, what lies in Redis and what is replied is the same. What
 * isn't plain the former ones leave alone, and what a still newer version will have written these.
 */
import { readFileSync } from 'node:fs'
import t from 'tap'
import type { Test } from 'tap'
import type { ScriptName } from '../../src/redis/scripts.ts'
import { furtherStates } from '../helpers/further-states.ts'
import { testRedis } from '../helpers/redis.ts'
import type { TestRedis } from '../helpers/redis.ts'
import { approve, cancel, catchIt, decline, done, fail, heartbeat, inspect, lifetimes, lineage, member, pass, put, raw, read as readAgain, reissue, reject, status, sweep, tag, waiting } from '../helpers/scripts.ts'
import type { Raw } from '../helpers/scripts.ts'
import { at, digest, note, payload, result, stateNames, states } from '../helpers/states.ts'
import type { Hash, State, StateName } from '../helpers/states.ts'

const formerFile = (path: string) => readFileSync(new URL(`former/${path}.lua`, import.meta.url), 'utf8')

/** What today's steps give a script, as it was asked then: without what a decision or a result is held to, and with one option alone. */
const askedThen: Partial<Record<ScriptName, string>> = {
  pass: `local by, token, options = string.match(ARGV[2], '^%S+'), string.match(ARGV[2], '%S+$'), ARGV[5] and ARGV[4] or ''
    local ARGV = { ARGV[1], token, by, ARGV[3], '${lifetimes.retention}', string.sub(KEYS[1], #KEYS[2]), string.match(options, ' l(%d+)') or '0', ARGV[5] or ARGV[4] }`,
  catch: `local ARGV = { ARGV[1], string.match(ARGV[2], '%S+$'), string.match(ARGV[2], '^%S+'), '${lifetimes.workTtl}', '${lifetimes.retention}', string.sub(KEYS[1], #KEYS[2]) }`,
  done: `local ARGV = { ARGV[1], ARGV[3], ARGV[2], '${lifetimes.retention}', string.sub(KEYS[1], #KEYS[2]), ARGV[4] }`,
  approve: 'table.remove(ARGV, 6)',
  reject: 'table.remove(ARGV, 7)',
}
/** What few scripts shared. */
const sharedThen: Partial<Record<ScriptName, string>> = { waiting: 'lib/place', approve: 'lib/decision', reject: 'lib/decision' }

/** As scripts were put together then. */
function formerAt (name: ScriptName, now: number): string {
  const [flags, ...text] = formerFile(name).split('\n')
  const shared = formerFile('lib/late') + `local function clock() return ${now} end\n` + formerFile('lib/record') + (name in sharedThen ? formerFile(sharedThen[name]!) : '')
  return `${flags}\n${askedThen[name] ?? ''}\n${shared}${text.join('\n')}`
}

/** A step by either version, and its reply as it was then: what was judged by came to go along since, and what wasn't known then. */
type Step = (on: Raw) => Promise<unknown>
const either = (step: Step): Step => async on => on.sourceAt === undefined ? asThen(await step(on)) : await step(on)

function asThen (reply: unknown): unknown {
  const parts = reply as [string, ...unknown[]]
  const [outcome, now, record, , decision] = parts
  if (outcome === 'listed') return parts.toSpliced(1, 1).filter((_, index) => index < 3 || index % 4 !== 2)
  if (outcome === 'swept') return [...parts.slice(0, 5), ...parts.slice(8)]
  if (outcome === 'found') return parts.slice(0, 5)
  if (outcome === 'already_decided') return [outcome, now, record, decision]
  if (parts.length === 8) return parts.slice(0, parts[4] === null ? 4 : 5)
  if (typeof record !== 'string') return reply
  return outcome === 'replayed' ? [outcome, Number(record.split(' ')[10])] : [outcome]
}

const asks = (agent: string, token: string, now: number) => ({ agent, token, deadline: now })
const passed = either(on => pass(on, at.passed, asks('passer', 'ptok', at.passed), false, payload))
const passedForPerson = either(on => pass(on, at.passed, asks('passer', 'ptok', at.passed), true, payload))
const approved = either(on => approve(on, at.decided, asks('approver', 'dectok', at.decided), note, at.passed))
const rejected = either(on => reject(on, at.decided, asks('approver', 'dectok', at.decided), note))
const caught = either(on => catchIt(on, at.caught, asks('A', 'ctok', at.caught)))
const finished = either(on => done(on, at.done, asks('A', 'dtok', at.done), result))
const swept = either(on => sweep(on, at.workDeadline))
const sweptEarly = either(on => sweep(on, at.expires))
const listed = either(on => waiting(on, at.decided, 10))
const read: Step = async on => [await either(on => status(on, at.done))(on), await either(on => inspect(on, at.done))(on)]

/** A life in steps; each operation that carries a token comes twice. */
const lives: Record<string, Step[]> = {
  done: [passed, passed, caught, read, caught, finished, finished, read],
  'after approval': [passedForPerson, listed, approved, approved, read, caught, finished, read],
  rejected: [passedForPerson, rejected, rejected, read, caught],
  expired: [passed, sweptEarly, read, caught],
  'expired while it waits': [passedForPerson, sweptEarly, listed, approved],
  'expired while worked on': [passed, caught, swept, finished, read],
}

/** Which of so many steps the former version takes, a bit a step: all, one alone, all but one, and all up to each or from each on. */
function mixes (steps: number): Set<number> {
  const all = 2 ** steps - 1
  const each = Array.from({ length: steps }, (_, at) => [1 << at, all - (1 << at), (1 << at) - 1, all - (1 << at) + 1])
  return new Set([all, ...each.flat()])
}

for (const [name, steps] of Object.entries(lives)) {
  t.test(`a handoff that is ${name}: each step by either version`, async t => {
    const test = testRedis(t)
    const versions = [raw(test), { ...raw(test), sourceAt: formerAt }]
    /** @param byFormer a bit a step */
    const live = async (byFormer: number) => {
      await put(versions[0]!, states.absent)
      const replies: unknown[] = []
      for (const [index, step] of steps.entries()) replies.push(await step(versions[byFormer >> index & 1]!))
      const left = await test.dump()
      const { content } = left[`{${tag}}:h:${member}`] as { content: Hash }
      const byThese = (step: Step) => steps.includes(step) && (byFormer >> steps.indexOf(step) & 1) === 0
      // Since then the digest of what a person decides on is kept.
      if (byThese(passedForPerson)) t.equal(content.h, digest)
      delete content.h
      // And what was caught is, when its time is over.
      if (byThese(swept)) {
        const [, inspected] = replies.at(-1) as [unknown, unknown[]]
        t.strictSame([content.p, inspected[3]], [payload, payload])
        content.p = ''
        inspected[3] = null
      }
      return { replies, left }
    }
    const these = await live(0)
    for (const byFormer of mixes(steps.length)) {
      const found = await live(byFormer)
      // Hundreds of ways: only one that differs is worth a line.
      if (JSON.stringify(found) !== JSON.stringify(these)) return t.strictSame(found, these, `former ones: ${byFormer.toString(2)}`)
    }
    t.ok(these.replies.length > 0)
  })
}

/** What asks for a handoff and is told {'newer'}. */
const asked: Step[] = [passed, caught, finished, approved, rejected]
const askedNow: Step[] = [
  on => heartbeat(on, at.done, asks('A', '', at.done)), on => fail(on, at.done, asks('A', 'dtok', at.done)), on => decline(on, at.done, asks('A', 'dtok', at.done)),
  on => cancel(on, at.done, asks('passer', '', at.done), 1), on => reissue(on, at.done, asks('passer', '', at.done)), on => lineage(on, at.done),
  on => readAgain(on, at.done, 'A'),
]

/** Whoever asks, it is left as it is. */
async function staysFor (t: Test, test: TestRedis, on: Raw, name: string, steps: Step[]): Promise<void> {
  const before = await test.dump()
  for (const step of steps) t.strictSame(await step(on), ['newer'], name)
  const [found] = await status(on, at.done) as [string]
  t.equal(found, 'found', 'the service sees by the record itself that it can’t read it')
  t.strictSame(await listed(on), ['listed', null, null])
  t.strictSame(await test.dump(), before, name)
}

/** Nor does a sweep forget it: where it is due it stays so, for a sweep of that version. */
async function staysDue (t: Test, test: TestRedis, on: Raw, { due }: State): Promise<void> {
  if (due === undefined) return
  const before = await test.dump()
  t.strictSame((await sweep(on, at.workDeadline + 5000) as unknown[]).slice(0, 5), ['swept', 1, 0, 1, 10_000])
  const after = await test.dump()
  t.match(after[`{${tag}}:due`], { content: [member, String(at.workDeadline + 15_000)] })
  for (const key of Object.keys(before).filter(key => !key.endsWith(':due'))) t.strictSame(after[key], before[key], key)
}

t.test('what a newer version wrote is left as it is, whoever asks', async t => {
  const test = testRedis(t)
  const on = raw(test)
  for (const name of stateNames.filter(name => name !== 'absent')) {
    const { next, ...state }: State = states[name]
    const written = { ...state, hash: { ...state.hash, s: `3:${state.hash!.s.replace('2:', '')} more` } }
    await put(on, written)
    await staysFor(t, test, on, name, [...asked, ...askedNow])
    await staysDue(t, test, on, written)
  }
})

t.test('what these wrote of what isn’t plain the former ones leave as it is', async t => {
  const test = testRedis(t)
  const former = { ...raw(test), sourceAt: formerAt }
  for (const name of Object.keys(furtherStates) as StateName[]) {
    const { next, ...state }: State = states[name]
    await put(former, state)
    await staysFor(t, test, former, name, asked)
    await staysDue(t, test, former, state)
  }
})

t.test('a sweep of these takes up what one of the former put off', async t => {
  const test = testRedis(t)
  const on = raw(test)
  const { now }: State = states['caught with attempts, overdue']
  await put(on, states['caught with attempts, overdue'])
  await sweep({ ...on, sourceAt: formerAt }, now)
  t.strictSame((await sweep(on, now + 9999) as unknown[]).slice(0, 4), ['swept', 0, 0, 1])
  t.strictSame(await sweep(on, now + 10_000), ['swept', 1, 1, 1, 1200, 0, 0, 1])
})

t.test('what a former sweep freed can’t be tried again', async t => {
  const test = testRedis(t)
  const on = raw(test)
  for (const name of ['caught, overdue', 'pending, overdue'] as const) {
    const { now }: State = states[name]
    await put(on, states[name])
    await sweep({ ...on, sourceAt: formerAt }, now)
    const before = await test.dump()
    const { content } = before[`{${tag}}:h:${member}`] as { content: Hash }
    t.equal(content.p, '')
    t.strictSame(await reissue(on, now, asks('passer', '', now)), ['expired', now, content.s, null], name)
    t.strictSame(await test.dump(), before)
  }
})
