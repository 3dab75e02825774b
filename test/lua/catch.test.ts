import t from 'tap'
import { testRedis } from '../helpers/redis.ts'
import { catchIt, done, dumped, lifetimes, put, raw, refused } from '../helpers/scripts.ts'
import { unsweptOf } from '../helpers/further-states.ts'
import { at, payload, refusalIn, stateNames, states } from '../helpers/states.ts'
import type { Hash, State, StateName } from '../helpers/states.ts'

/** In a caught handoff it is A that caught it, by ctok. */
const callers = [{ agent: 'A', token: 'ctok' }, { agent: 'A', token: 'other' }, { agent: 'B', token: 'ctok' }, { agent: 'B', token: 'other' }]

/** What a catch gives: the decision, the trace, and where the handoff isn't plain its record, its extra and its schema. */
function given (reply: string, hash: Partial<Hash>, trace: string | null = null): unknown[] {
  const { s, x = null, d = null, r = null } = hash
  return [reply, Number(s!.split(' ')[2]), payload, d, trace, x === null ? null : s, x, r]
}

/** What each of the callers is told, in their order: where the table of states refuses it that, and what goes with it. */
function repliesIn (name: StateName): unknown[][] {
  const state: State = states[name]
  const code = refusalIn('catch', name)
  if (code === null) return callers.map(caller => given('caught', afterCatch(state, caller).hash!))
  const reply = refused(code, state)
  return [code === 'already_caught' ? given('replayed', state.hash!) : reply, reply, reply, reply]
}

/**
 * A pending one after its catch: the record has grown, the TTL is the work's, the rest stays, for a second asking and until the sweep looks
 * at it. Whoever is to be heard of has a first deadline for that.
 */
function afterCatch (state: State, { agent, token }: { agent: string, token: string }, workTtl: number = lifetimes.workTtl): State {
  const { now, hash, due } = state
  const word = (letter: string) => new RegExp(` ${letter}(\\d+)`).exec(hash!.x ?? '')?.[1]
  const deadline = now + Number(word('w') ?? workTtl)
  const heard = word('b') === undefined ? deadline : Math.min(deadline, now + Number(word('b')))
  const s = `${hash!.s.replace('pending', 'caught')} ${now} ${deadline} ${agent} ${token}`
  return {
    ...state, hash: { ...hash!, s, ...word('b') !== undefined && { x: `${hash!.x} h${heard}` } }, expires: deadline + lifetimes.retention + unsweptOf(hash!.x ?? ''), due: Math.min(heard, due!),
  }
}

for (const name of stateNames) {
  t.test(name, async t => {
    const test = testRedis(t)
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
  const test = testRedis(t)
  const on = raw(test)
  const caller = { agent: 'A', token: 'ctok', deadline: at.caught }
  const left = at.expires - at.caught
  for (const workTtl of [1, left - 1, left, left + 1]) {
    const state: State = { ...states.pending, now: at.caught }
    await put(on, state)
    t.strictSame(await catchIt(on, at.caught, caller, workTtl), given('caught', state.hash!))
    t.strictSame(await test.dump(), dumped({ ...afterCatch(state, caller, workTtl), due: Math.min(at.caught + workTtl, at.expires) }), `${workTtl} ms of work`)
  }
})

t.test('one of two wins, and only it is answered again', async t => {
  const test = testRedis(t)
  const on = raw(test)
  const [A, , , B] = callers.map(caller => ({ ...caller, deadline: at.caught }))
  await put(on, states.pending)
  const after = afterCatch({ ...states.pending, now: at.caught }, A!)
  t.strictSame(await catchIt(on, at.caught, A!), given('caught', after.hash!))
  t.strictSame(await catchIt(on, at.caught, B!), refused('already_caught', after))
  t.strictSame(await catchIt(on, at.caught, A!), given('replayed', after.hash!))
})

t.test('a trace that was passed is given back, at each asking, whatever else there is', async t => {
  const test = testRedis(t)
  const on = raw(test)
  const [A, , , B] = callers.map(caller => ({ ...caller, deadline: at.caught }))
  for (const name of ['pending', 'pending, approved'] as const) {
    const before: State = states[name]
    const state = { ...before, now: at.caught, hash: { ...before.hash!, s: `${before.hash!.s}/00-trace` } }
    await put(on, state)
    t.strictSame(await catchIt(on, at.caught, A!), given('caught', state.hash, '00-trace'))
    t.strictSame(await catchIt(on, at.caught, A!), given('replayed', state.hash, '00-trace'))
    t.strictSame(await catchIt(on, at.caught, B!), refused('already_caught', afterCatch(state, A!)))
    t.strictSame(await done(on, at.caught, A!), ['done', at.caught], 'and done finds its words')
  }
})
