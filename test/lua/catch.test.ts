import t from 'tap'
import { testStore } from '../helpers/redis.ts'
import { catchIt, done, dumped, lifetimes, put, raw } from '../helpers/scripts.ts'
import { at, decision, payload, refusalIn, stateNames, states } from '../helpers/states.ts'
import type { State, StateName } from '../helpers/states.ts'

/** In a caught handoff it is A that caught it, by ctok. */
const callers = [{ agent: 'A', token: 'ctok' }, { agent: 'A', token: 'other' }, { agent: 'B', token: 'ctok' }, { agent: 'B', token: 'other' }]

const caught = ['caught', at.passed, payload, null]
const replayed = ['replayed', at.passed, payload, null]
const everyone = (reply: unknown[]) => [reply, reply, reply, reply]

/** What each of the callers is told, in their order: where the table of states refuses it that, and what goes with it. */
function repliesIn (name: StateName): unknown[][] {
  const { now, hash }: State = states[name]
  const code = refusalIn('catch', name)
  const stands = hash?.d === undefined ? null : decision
  if (code === null) return everyone(['caught', at.passed, payload, stands])
  if (code === 'approval_required') return everyone([code, at.expires - now])
  const refused = everyone([code])
  return code === 'already_caught' ? [['replayed', at.passed, payload, stands], ...refused.slice(1)] : refused
}

/** A pending one after its catch: the record has grown, the TTL is the work's, the rest stays, for a second asking and until the sweep looks at it. */
function afterCatch (state: State, { agent, token }: { agent: string, token: string }, workTtl: number = lifetimes.workTtl): State {
  const s = `${state.hash!.s.replace('pending', 'caught')} ${state.now} ${state.now + workTtl} ${agent} ${token}`
  return { now: state.now, hash: { ...state.hash!, s }, expires: state.now + workTtl + lifetimes.retention, due: state.due! }
}

for (const name of stateNames) {
  t.test(name, async t => {
    const test = await testStore(t)
    const on = raw(test)
    const state: State = states[name]
    for (const [index, caller] of callers.entries()) {
      const label = `${caller.agent}, ${caller.token}`
      const reply = repliesIn(name)[index]!

      await put(on, state)
      t.strictSame(await catchIt(on, state.now, { ...caller, deadline: state.now - 1 }), ['late'], `${label}, late`)
      t.strictSame(await test.dump(), dumped(state), `${label}, late: nothing changed`)

      // At its very deadline the call still runs.
      t.strictSame(await catchIt(on, state.now, { ...caller, deadline: state.now }), reply, label)
      const moved = reply[0] === 'caught'
      const after = moved ? afterCatch(state, caller) : state
      t.strictSame(await test.dump(), dumped(after), `${label}: ${moved ? 'caught' : 'nothing changed'}`)
    }
  })
}

t.test('work that is over before the time for picking it up would be is looked at then', async t => {
  const test = await testStore(t)
  const on = raw(test)
  const caller = { agent: 'A', token: 'ctok', deadline: at.caught }
  const left = at.expires - at.caught
  for (const workTtl of [1, left - 1, left, left + 1]) {
    const state: State = { ...states.pending, now: at.caught }
    await put(on, state)
    t.strictSame(await catchIt(on, at.caught, caller, workTtl), caught)
    t.strictSame(await test.dump(), dumped({ ...afterCatch(state, caller, workTtl), due: Math.min(at.caught + workTtl, at.expires) }), `${workTtl} ms of work`)
  }
})

t.test('one of two wins, and only it is answered again', async t => {
  const test = await testStore(t)
  const on = raw(test)
  const [A, , , B] = callers.map(caller => ({ ...caller, deadline: at.caught }))
  await put(on, states.pending)
  t.strictSame(await catchIt(on, at.caught, A!), caught)
  t.strictSame(await catchIt(on, at.caught, B!), ['already_caught'])
  t.strictSame(await catchIt(on, at.caught, A!), replayed)
})

t.test('a trace that was passed is given back, at each asking, whatever else there is', async t => {
  const test = await testStore(t)
  const on = raw(test)
  const [A, , , B] = callers.map(caller => ({ ...caller, deadline: at.caught }))
  const expected: Array<[state: State, decision: string | null]> = [[states.pending, null], [states['pending, approved'], decision]]
  for (const [state, decided] of expected) {
    await put(on, { ...state, hash: { ...state.hash!, s: `${state.hash!.s}/00-trace` } })
    t.strictSame(await catchIt(on, at.caught, A!), ['caught', at.passed, payload, decided, '00-trace'])
    t.strictSame(await catchIt(on, at.caught, A!), ['replayed', at.passed, payload, decided, '00-trace'])
    t.strictSame(await catchIt(on, at.caught, B!), ['already_caught'])
    t.match(await done(on, at.caught, A!), ['done', at.caught], 'and done finds its words')
  }
})
