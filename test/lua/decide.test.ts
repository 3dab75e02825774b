import t from 'tap'
import { testStore } from '../helpers/redis.ts'
import { approve, catchIt, dumped, lifetimes, put, raw, reject } from '../helpers/scripts.ts'
import { at, decision, payload, refusalIn, stateNames, states } from '../helpers/states.ts'
import type { State, StateName } from '../helpers/states.ts'

/** Where it is decided already, it was the approver's doing, by dectok. Nobody may decide what they passed themselves. */
const callers = [
  { agent: 'approver', token: 'dectok' }, { agent: 'approver', token: 'other' },
  { agent: 'B', token: 'other' }, { agent: 'passer', token: 'other' }, { agent: 'passer', token: 'dectok' },
]

const everyone = (reply: unknown[]) => [reply, reply, reply, reply, reply]

/** The token says whose operation it is; the passer is told of a decision that stands like anybody else. */
function decided (name: StateName): unknown[][] {
  const { now, hash }: State = states[name]
  const stands = ['already_decided', now, hash!.s, decision]
  return [['replayed', at.decided], stands, stands, stands, ['replayed', at.decided]]
}

const itIs = [['decided'], ['decided'], ['decided'], ['self_approval'], ['self_approval']]

/** What each of the callers is told, in their order, whichever way they decide; `decided` where it is so now. */
function repliesIn (name: StateName): unknown[][] {
  const code = refusalIn('approve', name)
  if (code === null) return itIs
  return code === 'already_decided' ? decided(name) : everyone([code])
}

const verdicts = {
  approved: {
    decide: approve,
    /** It waits no more, and goes on living as it did. */
    after: ({ now, hash, expires, due }: State, d: string): State => ({
      now, hash: { s: hash!.s.replace('pending waiting', 'pending approved'), p: payload, d }, expires: expires!, due: due!,
    }),
  },
  rejected: {
    decide: reject,
    /** It lives no more, and can be read, payload and all, for the retention. */
    after: ({ now, hash }: State, d: string): State => ({
      now, hash: { s: hash!.s.replace('pending waiting', 'rejected rejected'), p: payload, d }, expires: now + lifetimes.retention,
    }),
  },
}

for (const [verdict, { decide, after }] of Object.entries(verdicts)) {
  for (const name of stateNames) {
    t.test(`${verdict}: ${name}`, async t => {
      const test = await testStore(t)
      const on = raw(test)
      const state: State = states[name]
      for (const [index, { agent, token }] of callers.entries()) {
        const label = `${agent}, ${token}`
        const reply = repliesIn(name)[index]!
        const moves = reply[0] === 'decided'

        await put(on, state)
        t.strictSame(await decide(on, state.now, { agent, token, deadline: state.now - 1 }), ['late'], `${label}, late`)
        t.strictSame(await test.dump(), dumped(state), `${label}, late: nothing changed`)

        // At its very deadline the call still runs.
        t.strictSame(await decide(on, state.now, { agent, token, deadline: state.now }, '"n o te"'), moves ? [verdict, state.now] : reply, label)
        t.strictSame(await test.dump(), dumped(moves ? after(state, `${state.now} ${agent} ${token} "n o te"`) : state),
          `${label}: ${moves ? verdict : 'nothing changed'}`)
      }
    })
  }

  t.test(`${verdict}: the same operation again is told the same, and its own note stays`, async t => {
    const test = await testStore(t)
    const on = raw(test)
    const asking = { agent: 'approver', token: 'dectok', deadline: at.expires }
    await put(on, states['pending, waiting'])
    t.strictSame(await decide(on, at.decided, asking, '"first"'), [verdict, at.decided])
    const before = await test.dump()
    for (const now of [at.decided + 1, at.expires - 1, at.expires]) {
      t.strictSame(await decide(on, now, asking, '"second"'), ['replayed', at.decided])
      t.strictSame(await test.dump(), before)
    }
  })
}

t.test('of two that decide otherwise the first one stands, and the other is told of it', async t => {
  const test = await testStore(t)
  const on = raw(test)
  const one = { agent: 'approver', token: 'one', deadline: at.expires }
  const two = { agent: 'B', token: 'two', deadline: at.expires }
  const record = states['pending, waiting'].hash!.s

  await put(on, states['pending, waiting'])
  await approve(on, at.decided, one, '"go"')
  t.strictSame(await reject(on, at.decided, two), ['already_decided', at.decided, record.replace('waiting', 'approved'), `${at.decided} approver one "go"`])

  await put(on, states['pending, waiting'])
  await reject(on, at.decided, two, '"no"')
  t.strictSame(await approve(on, at.decided, one),
    ['already_decided', at.decided, record.replace('pending waiting', 'rejected rejected'), `${at.decided} B two "no"`])
})

t.test('a catch after the approval carries the decision, its note as the bytes that came', async t => {
  const test = await testStore(t)
  const on = raw(test)
  const note = Buffer.from('"a\\u0041 ä 𝄞  \\ud800 b"')
  await put(on, states['pending, waiting'])
  await approve(on, at.decided, { agent: 'approver', token: 'dectok', deadline: at.decided }, note)
  t.strictSame(await catchIt(on, at.caught, { agent: 'A', token: 'ctok', deadline: at.caught }),
    ['caught', at.passed, payload, `${at.decided} approver dectok ${note.toString()}`])
})

t.test('what was seen and is another by now is not decided, and that is told last', async t => {
  const test = await testStore(t)
  const on = raw(test)
  for (const [verdict, { decide, after }] of Object.entries(verdicts)) {
    for (const name of stateNames) {
      const state: State = states[name]
      for (const [index, { agent, token }] of callers.entries()) {
        const [outcome] = repliesIn(name)[index] as [string]
        const asking = { agent, token, deadline: state.now }
        await put(on, state)
        const expected = outcome === 'decided' ? ['content_changed'] : repliesIn(name)[index]
        t.strictSame(await decide(on, state.now, asking, '"note"', at.passed - 1), expected, `${verdict} ${name}: ${agent}, ${token}`)
        t.strictSame(await test.dump(), dumped(state), 'nothing changed')
        if (outcome !== 'decided') continue
        t.strictSame(await decide(on, state.now, asking, '"note"', at.passed), [verdict, state.now], 'it is what was seen')
        t.strictSame(await test.dump(), dumped(after(state, `${state.now} ${agent} ${token} "note"`)))
      }
    }
  }
})
