/**
 * Replicas of two versions run side by side while a fleet is updated. test/lua/former/ has the scripts of the version before, as they
 * were released: whatever step of a handoff's life is taken by which version, what lies in Redis and what is replied is the same. And what
 * a still newer version will have written these leave alone.
 */
import { readFileSync } from 'node:fs'
import t from 'tap'
import type { ScriptName } from '../../src/redis/scripts.ts'
import { testStore } from '../helpers/redis.ts'
import { approve, catchIt, done, inspect, member, pass, put, raw, reject, status, sweep, tag, waiting } from '../helpers/scripts.ts'
import type { Raw } from '../helpers/scripts.ts'
import { at, note, payload, result, states } from '../helpers/states.ts'
import type { State } from '../helpers/states.ts'

const formerFile = (path: string) => readFileSync(new URL(`former/${path}.lua`, import.meta.url), 'utf8')

/** As scripts were put together then. */
function formerAt (name: ScriptName, now: number): string {
  const [flags, ...text] = formerFile(name).split('\n')
  const shared = formerFile('lib/late') + `local function clock() return ${now} end\n` + formerFile('lib/record') + (name === 'waiting' ? formerFile('lib/place') : '')
  return `${flags}\n${shared}${text.join('\n')}`
}

type Step = (on: Raw) => Promise<unknown>

const asks = (agent: string, token: string, now: number) => ({ agent, token, deadline: now })
const passed: Step = on => pass(on, at.passed, asks('passer', 'ptok', at.passed), false, payload)
const passedForPerson: Step = on => pass(on, at.passed, asks('passer', 'ptok', at.passed), true, payload)
const approved: Step = on => approve(on, at.decided, asks('approver', 'dectok', at.decided), note, at.passed)
const rejected: Step = on => reject(on, at.decided, asks('approver', 'dectok', at.decided), note)
const caught: Step = on => catchIt(on, at.caught, asks('A', 'ctok', at.caught))
const finished: Step = on => done(on, at.done, asks('A', 'dtok', at.done), result)
const swept: Step = on => sweep(on, at.workDeadline)
const sweptEarly: Step = on => sweep(on, at.expires)
const listed: Step = on => waiting(on, at.decided, 10)
const read: Step = async on => [await status(on, at.done), await inspect(on, at.done)]

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
    const test = await testStore(t)
    const versions = [raw(test), { ...raw(test), sourceAt: formerAt }]
    /** @param byFormer a bit a step */
    const live = async (byFormer: number) => {
      await put(versions[0]!, states.absent)
      const replies: unknown[] = []
      for (const [index, step] of steps.entries()) replies.push(await step(versions[byFormer >> index & 1]!))
      return { replies, left: await test.dump() }
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

t.test('what a newer version wrote is left as it is, whoever asks', async t => {
  const test = await testStore(t)
  const on = raw(test)
  for (const name of ['pending', 'pending, waiting', 'pending, approved', 'caught', 'done', 'rejected'] as const) {
    const state: State = states[name]
    await put(on, { ...state, hash: { ...state.hash, s: `2:${state.hash!.s} more` } })
    const before = await test.dump()
    for (const step of [passed, caught, finished, approved, rejected]) t.strictSame(await step(on), ['newer'], name)
    const [found] = await status(on, at.done) as [string]
    t.equal(found, 'found', 'the service sees by the record itself that it can’t read it')
    t.strictSame(await listed(on), ['listed', null, null])
    t.strictSame(await test.dump(), before, name)
  }
})

t.test('nor does the sweep forget it: it stays due, for a sweep of that version', async t => {
  const test = await testStore(t)
  const on = raw(test)
  const { hash: written } = states.pending as State
  await put(on, { ...states.pending, hash: { ...written, s: `2:${written!.s}` } })
  const { hash } = (await test.dump())[`{${tag}}:h:${member}`] as never as { hash: unknown }
  t.match(await sweep(on, at.expires), ['swept', 1, 0, 1, 10_000])
  const after = await test.dump()
  t.strictSame((after[`{${tag}}:h:${member}`] as never as { hash: unknown }).hash, hash)
  t.match(after[`{${tag}}:due`], { content: [member, String(at.expires + 10_000)] })
})
