import t from 'tap'
import { testStore } from '../helpers/redis.ts'
import { done, dumped, lifetimes, put, raw } from '../helpers/scripts.ts'
import { at, refusalIn, stateNames, states } from '../helpers/states.ts'
import type { State, StateName } from '../helpers/states.ts'

/** In a caught handoff it is A that caught it; in a done one A did it by dtok. */
const callers = [{ agent: 'A', token: 'dtok' }, { agent: 'A', token: 'other' }, { agent: 'B', token: 'dtok' }, { agent: 'B', token: 'other' }]

const everyone = (reply: unknown[]) => [reply, reply, reply, reply]
const notB = (same: unknown[], other: unknown[]) => [same, other, ['not_the_catcher'], ['not_the_catcher']]

/** What each of the callers is told, in their order: where the table of states refuses it that, and what goes with it. */
function repliesIn (name: StateName): unknown[][] {
  const code = refusalIn('done', name)
  if (code === null) return notB(['done', states[name].now], ['done', states[name].now])
  return code === 'already_done' ? notB(['replayed', at.done], [code, at.done]) : everyone([code])
}

/** A caught one after its done: the result in the payload's place, a decision stays, and it is live no more. */
function afterDone (state: State, token: string, result: string): State {
  const s = `${state.hash!.s.replace('caught', 'done')} ${state.now} ${token}`
  return { now: state.now, hash: { ...state.hash!, s, p: result }, expires: state.now + lifetimes.retention }
}

for (const name of stateNames) {
  t.test(name, async t => {
    const test = await testStore(t)
    const on = raw(test)
    const state: State = states[name]
    for (const [index, caller] of callers.entries()) {
      for (const result of ['', '{"new":1}']) {
        const label = `${caller.agent}, ${caller.token}, ${result || 'no result'}`
        const reply = repliesIn(name)[index]!

        await put(on, state)
        t.strictSame(await done(on, state.now, { ...caller, deadline: state.now - 1 }, result), ['late'], `${label}, late`)
        t.strictSame(await test.dump(), dumped(state), `${label}, late: nothing changed`)

        // At its very deadline the call still runs.
        t.strictSame(await done(on, state.now, { ...caller, deadline: state.now }, result), reply, label)
        const after = reply[0] === 'done' ? afterDone(state, caller.token, result) : state
        t.strictSame(await test.dump(), dumped(after), `${label}: ${reply[0] === 'done' ? 'done' : 'nothing changed'}`)
      }
    }
  })
}
