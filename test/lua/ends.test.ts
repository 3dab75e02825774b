import t from 'tap'
import { testRedis } from '../helpers/redis.ts'
import { cancel, decline, dumped, fail, lifetimes, put, raw, refused, reissue } from '../helpers/scripts.ts'
import type { Asking, Raw } from '../helpers/scripts.ts'
import { heldBy, nextOf, refusalIn, stateNames, states } from '../helpers/states.ts'
import type { State, StateName } from '../helpers/states.ts'
import { endedBy, pauseBehind } from '../helpers/successors.ts'

/** Fail, decline, cancel and reissue: each in each state, by whom it may be asked and by another. */

/** In a caught handoff it is A that caught it; where it has failed or is declined, by ftok. */
const catchers = [{ agent: 'A', token: 'ftok' }, { agent: 'A', token: 'other' }, { agent: 'B', token: 'ftok' }, { agent: 'passer', token: 'other' }]
const passers = [{ agent: 'passer', token: '' }, { agent: 'A', token: '' }, { agent: 'B', token: '' }]

/** When its catcher's time is over. */
const heard = (state: State) => Number(/ h(\d+)/.exec(state.hash!.x ?? '')?.[1] ?? state.hash!.s.split(' ')[7])

/** What is replied, and what lies there then. */
interface Expected { reply: unknown[], after: State }

function said (status: 'failed' | 'declined', state: State, { agent, token }: { agent: string, token: string }, pause: number | null): Expected {
  const after = endedBy(state, { status, words: ` e${state.now} y${agent} k${token}`, expires: state.now + lifetimes.retention, e: '"new"', pause })
  return { reply: [status, state.now, after.next ? nextOf(after) : null], after }
}

const both = [
  ['failed', (on: Raw, now: number, asking: Asking) => fail(on, now, asking, '"new"')],
  ['declined', (on: Raw, now: number, asking: Asking) => decline(on, now, asking, '"new"')],
] as const

for (const [status, tell] of both) {
  const operation = status === 'failed' ? 'fail' : 'decline'
  const expected = (name: StateName, caller: typeof catchers[0]): Expected => {
    const state: State = states[name]
    const code = refusalIn(operation, name)
    const isTheirs = caller.agent === 'A'
    if (code === null && isTheirs) return said(status, state, caller, pauseBehind(state))
    const isReplay = isTheirs && caller.token === 'ftok' && (code === 'already_failed' || code === 'already_declined')
    return { reply: refused(isReplay ? 'replayed' : heldBy(name) && !isTheirs ? 'not_the_catcher' : code!, state), after: state }
  }
  for (const name of stateNames) {
    t.test(`${operation}: ${name}`, async t => {
      const test = testRedis(t)
      const on = raw(test)
      const state: State = states[name]
      for (const caller of catchers) {
        const label = `${caller.agent}, ${caller.token}`
        await put(on, state)
        t.strictSame(await tell(on, state.now, { ...caller, deadline: state.now - 1 }), ['late'], `${label}, late`)
        t.strictSame(await test.dump(), dumped(state), `${label}, late: nothing changed`)

        const { reply, after } = expected(name, caller)
        t.strictSame(await tell(on, state.now, { ...caller, deadline: state.now }), reply, label)
        t.strictSame(await test.dump(), dumped(after), `${label}: ${reply[0]}`)
        if (after === state) continue
        t.match(await tell(on, state.now + 1, { ...caller, deadline: state.now + 1 }), ['replayed', state.now + 1, after.hash!.s, after.hash!.x], `${label}, again`)
        t.match(await tell(on, state.now + 1, { ...caller, agent: 'B', deadline: state.now + 1 }), ['not_the_catcher', state.now + 1, after.hash!.s], `${label}, by another`)
        t.match(await tell(on, state.now + 1, { ...caller, token: 'more', deadline: state.now + 1 }), [`already_${status}`, state.now + 1, after.hash!.s], `${label}, another time`)
        t.strictSame(await test.dump(), dumped(after), `${label}: nothing changed`)
      }
    })
  }
}

/** A state after its cancel. */
function cancelled (state: State, force: boolean, reason: string): Expected {
  const { now, hash } = state
  const { t, ...kept } = hash!
  const isCaught = kept.s.includes('caught ')
  const x = `${kept.x ?? ''}${isCaught && !/ q/.test(kept.x ?? '') ? ` q${now}` : ''}`
  const c = reason === '' ? {} : { c: reason }
  if (isCaught && !force) {
    const after = { ...state, hash: { ...kept, ...c, s: kept.s.replace(/^caught/, '2:caught'), x } }
    return { reply: ['requested', now, after.hash.s, x], after }
  }
  const ended = { ...kept, ...c, s: kept.s.replace(/^(2:)?\w+/, '2:cancelled'), x: `${x} e${now} ypasser k-`, p: '' }
  return { reply: ['cancelled', now, ended.s, ended.x], after: { now, hash: ended, expires: now + lifetimes.retention } }
}

for (const name of stateNames) {
  t.test(`cancel: ${name}`, async t => {
    const test = testRedis(t)
    const on = raw(test)
    const state: State = states[name]
    for (const { agent } of passers) {
      for (const [force, reason] of [[0, ''], [0, '"why"'], [1, ''], [1, '"why"']] as const) {
        const label = `${agent}, ${force}, ${reason}`
        await put(on, state)
        t.strictSame(await cancel(on, state.now, { agent, deadline: state.now - 1 }, force, reason), ['late'])
        t.strictSame(await test.dump(), dumped(state), `${label}, late: nothing changed`)

        const code = refusalIn('cancel', name)
        const is = name.startsWith('cancelled') ? 'replayed' : code
        const { reply, after } = agent !== 'passer' && code !== 'not_found'
          ? { reply: refused('not_the_passer', state), after: state }
          : is === null ? cancelled(state, force === 1, reason) : { reply: refused(is, state), after: state }
        t.strictSame(await cancel(on, state.now, { agent, deadline: state.now }, force, reason), reply, label)
        t.strictSame(await test.dump(), dumped(after), `${label}: ${reply[0]}`)
        if (after === state) continue
        // Asked again it is told what stands; another reason takes the place of the one before while it is caught, none leaves it.
        const goesOn = reply[0] === 'requested'
        t.match(await cancel(on, state.now, { agent, deadline: state.now }, 0, ''), [goesOn ? 'requested' : 'replayed', state.now, after.hash!.s, after.hash!.x])
        t.strictSame(await test.dump(), dumped(after), `${label}, again: nothing changed`)
        await cancel(on, state.now, { agent, deadline: state.now }, 0, '"another"')
        t.strictSame(await test.dump(), dumped(goesOn ? { ...after, hash: { ...after.hash!, c: '"another"' } } : after), `${label}, again, with another reason`)
      }
    }
  })

  t.test(`reissue: ${name}`, async t => {
    const test = testRedis(t)
    const on = raw(test)
    const state: State = states[name]
    for (const { agent } of passers) {
      await put(on, state)
      t.strictSame(await reissue(on, state.now, { agent, deadline: state.now - 1 }), ['late'])
      t.strictSame(await test.dump(), dumped(state), `${agent}, late: nothing changed`)

      const { reply, after } = reissued(name, agent)
      t.strictSame(await reissue(on, state.now, { agent, deadline: state.now }), reply, agent)
      t.strictSame(await test.dump(), dumped(after), `${agent}: ${reply[0]}`)
      if (after === state) continue
      t.strictSame(await reissue(on, state.now + 1, { agent, deadline: state.now + 1 }), ['replayed', nextOf(after), after.next!.hash.s, after.next!.hash.x], 'again')
      t.strictSame(await test.dump(), dumped(after), 'nothing changed')
    }
  })
}

function reissued (name: StateName, agent: string): Expected {
  const state: State = states[name]
  const code = refusalIn('reissue', name)
  if (code === 'not_found') return { reply: [code], after: state }
  if (agent !== 'passer') return { reply: refused('not_the_passer', state), after: state }
  if (state.next) return { reply: ['replayed', nextOf(state), state.next.hash.s, state.next.hash.x], after: state }
  if (code !== null) return { reply: refused(code, state), after: state }
  const [, status] = /^(?:2:)?(\w+)/.exec(state.hash!.s)!
  const isTaken = status === 'caught' && state.now < heard(state)
  const end = isTaken
    ? { status: 'cancelled', words: ` e${state.now} ypasser k-`, expires: state.now + lifetimes.retention }
    : { status: status === 'caught' ? 'expired' : status!, words: '', expires: state.now + lifetimes.retention }
  const after = endedBy(state, { ...end, pause: 0 })
  return { reply: ['reissued', nextOf(after), after.next!.hash.s, after.next!.hash.x, isTaken ? 1 : 0], after }
}
