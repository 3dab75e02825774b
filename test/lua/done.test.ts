import t from 'tap'
import { testStore } from '../helpers/redis.ts'
import { done, dumped, lifetimes, put, raw } from '../helpers/scripts.ts'
import { at, stateNames, states } from '../helpers/states.ts'
import type { State, StateName } from '../helpers/states.ts'

/** In a caught handoff it is A that caught it; in a done one A did it by dtok. */
const callers = [{ agent: 'A', token: 'dtok' }, { agent: 'A', token: 'other' }, { agent: 'B', token: 'dtok' }, { agent: 'B', token: 'other' }]

const everyone = (reply: unknown[]) => [reply, reply, reply, reply]
const notB = (same: unknown[], other: unknown[]) => [same, other, ['not_the_catcher'], ['not_the_catcher']]
const itIs = (now: number) => notB(['done', now], ['done', now])

/** What each of the callers is told, in their order. */
const replies: Record<StateName, unknown[][]> = {
  absent: everyone(['not_found']),
  pending: everyone(['not_caught']),
  'pending, its last millisecond': everyone(['not_caught']),
  'pending, waiting': everyone(['not_caught']),
  'pending, waiting, its last millisecond': everyone(['not_caught']),
  'pending, approved': everyone(['not_caught']),
  'pending, overdue': everyone(['expired']),
  'pending, waiting, overdue': everyone(['expired']),
  'pending, approved, overdue': everyone(['expired']),
  caught: itIs(states.caught.now),
  'caught, its last millisecond': itIs(at.workDeadline - 1),
  'caught after approval': itIs(states.caught.now),
  'caught, overdue': everyone(['expired']),
  done: notB(['replayed', at.done], ['already_done', at.done]),
  'done without a result': notB(['replayed', at.done], ['already_done', at.done]),
  'done after approval': notB(['replayed', at.done], ['already_done', at.done]),
  expired: everyone(['expired']),
  'expired after approval': everyone(['expired']),
  'expired from caught, after approval': everyone(['expired']),
  'expired while waiting': everyone(['expired']),
  'expired from caught': everyone(['expired']),
  rejected: everyone(['rejected']),
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
        const reply = replies[name][index]!

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
