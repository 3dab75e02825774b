import t from 'tap'
import { testRedis } from '../helpers/redis.ts'
import { done, dumped, lifetimes, put, raw, refused } from '../helpers/scripts.ts'
import { schema } from '../helpers/further-states.ts'
import { heldBy, refusalIn, stateNames, states } from '../helpers/states.ts'
import type { State, StateName } from '../helpers/states.ts'

/** In a caught handoff it is A that caught it; in a done one A did it by dtok. */
const callers = [{ agent: 'A', token: 'dtok' }, { agent: 'A', token: 'other' }, { agent: 'B', token: 'dtok' }, { agent: 'B', token: 'other' }]

/** What each of the callers is told, in their order: where the table of states refuses it that, and what goes with it. */
function repliesIn (name: StateName): unknown[][] {
  const state: State = states[name]
  const code = refusalIn('done', name)
  const reply = code !== null ? refused(code, state) : ['done', state.now]
  const notTheirs = heldBy(name) ? refused('not_the_catcher', state) : reply
  return [code === 'already_done' ? refused('replayed', state) : reply, reply, notTheirs, notTheirs]
}

/** A caught one after its done: the result in the payload's place, a decision stays, and it is live no more. */
function afterDone (state: State, token: string, result: string): State {
  const s = `${state.hash!.s.replace('caught', 'done')} ${state.now} ${token}`
  return { now: state.now, hash: { ...state.hash!, s, p: result }, expires: state.now + lifetimes.retention }
}

for (const name of stateNames) {
  t.test(name, async t => {
    const test = testRedis(t)
    const on = raw(test)
    const state: State = states[name]
    // What it is to satisfy is asked last.
    const satisfied = state.hash?.r === undefined ? '' : 'itsschema'
    for (const [index, caller] of callers.entries()) {
      for (const result of ['', '{"new":1}']) {
        const label = `${caller.agent}, ${caller.token}, ${result || 'no result'}`
        const reply = repliesIn(name)[index]!

        await put(on, state)
        t.strictSame(await done(on, state.now, { ...caller, deadline: state.now - 1 }, result), ['late'], `${label}, late`)
        t.strictSame(await test.dump(), dumped(state), `${label}, late: nothing changed`)

        // At its very deadline the call still runs.
        t.strictSame(await done(on, state.now, { ...caller, deadline: state.now }, result, satisfied), reply, label)
        const after = reply[0] === 'done' ? afterDone(state, caller.token, result) : state
        t.strictSame(await test.dump(), dumped(after), `${label}: ${reply[0] === 'done' ? 'done' : 'nothing changed'}`)
      }
    }
  })
}

t.test('a result is to be held to the schema first, and to that one: nothing happens before', async t => {
  const test = testRedis(t)
  const on = raw(test)
  const state: State = states['caught with schema']
  const asking = { agent: 'A', token: 'dtok', deadline: state.now }
  await put(on, state)
  for (const satisfied of ['', 'another', 'itsschema2']) {
    t.strictSame(await done(on, state.now, asking, '', satisfied), ['unchecked', 'itsschema', schema], satisfied)
    t.strictSame(await test.dump(), dumped(state), 'nothing changed')
  }
  t.strictSame(await done(on, state.now, { ...asking, agent: 'B' }), refused('not_the_catcher', state), 'who may not ask is told that')
  // One that it doesn't want is no hindrance: none was passed.
  await put(on, states.caught)
  t.strictSame(await done(on, states.caught.now, { ...asking, deadline: states.caught.now }, '', 'itsschema'), ['done', states.caught.now])
})

t.test('a name that another word of the record has is not the catcher’s', async t => {
  const test = testRedis(t)
  const on = raw(test)
  const { now, hash }: State = states.caught
  const [, , , , passedBy, token, caught, deadline] = hash!.s.split(' ') as string[]
  for (const agent of [passedBy!, token!, caught!, deadline!, 'ctok']) {
    await put(on, states.caught)
    t.strictSame(await done(on, now, { agent, token: 'dtok', deadline: now }), refused('not_the_catcher', states.caught), agent)
    const itself: State = { ...states.caught, hash: { ...hash!, s: hash!.s.replace(' A ', ` ${agent} `) } }
    await put(on, itself)
    t.strictSame(await done(on, now, { agent, token: 'dtok', deadline: now }), ['done', now], `${agent}, who caught it`)
  }
})
