/** Replicas of two versions run side by side while a fleet is updated: what a newer one will have written these leave alone. */
import t from 'tap'
import { testRedis } from '../helpers/redis.ts'
import { approve, cancel, catchIt, decline, done, fail, heartbeat, lineage, member, pass, put, raw, read, reissue, reject, status, sweep, tag, waiting } from '../helpers/scripts.ts'
import type { Raw } from '../helpers/scripts.ts'
import { at, payload, stateNames, states } from '../helpers/states.ts'
import type { State } from '../helpers/states.ts'

const asks = (agent: string, token: string, now: number) => ({ agent, token, deadline: now })

/** What asks for a handoff and is told {'newer'}. */
const steps: Array<(on: Raw) => Promise<unknown>> = [
  on => pass(on, at.passed, asks('passer', 'ptok', at.passed), false, payload),
  on => catchIt(on, at.caught, asks('A', 'ctok', at.caught)),
  on => done(on, at.done, asks('A', 'dtok', at.done)),
  on => approve(on, at.decided, asks('approver', 'dectok', at.decided), 'null', at.passed),
  on => reject(on, at.decided, asks('approver', 'dectok', at.decided)),
  on => heartbeat(on, at.done, asks('A', '', at.done)),
  on => fail(on, at.done, asks('A', 'dtok', at.done)),
  on => decline(on, at.done, asks('A', 'dtok', at.done)),
  on => cancel(on, at.done, asks('passer', '', at.done), 1),
  on => reissue(on, at.done, asks('passer', '', at.done)),
  on => lineage(on, at.done),
  on => read(on, at.done, 'A'),
]

t.test('what a newer version wrote is left as it is, whoever asks', async t => {
  const test = testRedis(t)
  const on = raw(test)
  // Each status, with the approval and without.
  const seen = new Set<string>()
  for (const name of stateNames.filter(name => name !== 'absent')) {
    const kind = /^(2:)?\S+ \S+/.exec(states[name].hash!.s)![0]
    if (seen.has(kind)) continue
    seen.add(kind)
    const { next, ...state }: State = states[name]
    await put(on, { ...state, hash: { ...state.hash, s: `6:${state.hash!.s.replace('2:', '')} more` } })
    const before = await test.dump()
    for (const step of steps) t.strictSame(await step(on), ['newer'], name)
    const [found] = await status(on, at.done) as [string]
    t.equal(found, 'found', 'the service sees by the record itself that it can’t read it')
    t.match(await waiting(on, at.decided, 10), ['listed', at.decided, null, null])
    t.strictSame(await test.dump(), before, name)

    if (state.due === undefined) continue
    t.strictSame((await sweep(on, at.workDeadline + 5000) as unknown[]).slice(0, 5), ['swept', 1, 0, 1, 10_000], 'a sweep leaves it due, for a sweep of that version')
    const after = await test.dump()
    t.match(after[`{${tag}}:due:acme`], { content: [member, String(at.workDeadline + 15_000)] })
    for (const key of Object.keys(before).filter(key => !/:due:/.test(key))) t.strictSame(after[key], before[key], key)
  }
})
