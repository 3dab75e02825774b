import t from 'tap'
import { testRedis } from '../helpers/redis.ts'
import { approve, catchIt, dumped, lifetimes, put, raw, refused, reject } from '../helpers/scripts.ts'
import { at, digest, payload, refusalIn, stateNames, states } from '../helpers/states.ts'
import type { Hash, State, StateName } from '../helpers/states.ts'

/** Where it is decided already, it was the approver's doing, by dectok. Nobody may decide what they passed themselves. */
const callers = [
  { agent: 'approver', token: 'dectok' }, { agent: 'approver', token: 'other' },
  { agent: 'B', token: 'other' }, { agent: 'passer', token: 'other' }, { agent: 'passer', token: 'dectok' },
]

const itIs = [['decided'], ['decided'], ['decided'], ['self_approval'], ['self_approval']]

/** What each of the callers is told, in their order, whichever way they decide; `decided` where it is so now. */
function repliesIn (name: StateName): unknown[][] {
  const state: State = states[name]
  const code = refusalIn('approve', name)
  if (code === null) return itIs.map(([reply]) => reply === 'decided' ? [reply] : refused(reply!, state))
  const reply = refused(code, state)
  // The token says whose operation it is; the passer is told of a decision that stands like anybody else.
  return callers.map(({ token }) => code === 'already_decided' && token === 'dectok' ? ['replayed', at.decided] : reply)
}

/** Without the task, which was for the list alone. */
function untold ({ t, ...kept }: Hash): Hash {
  return kept
}

const verdicts = {
  approved: {
    decide: approve,
    /** It waits no more, and goes on living as it did. */
    after: ({ now, hash, expires, due }: State, d: string): State => ({
      now, hash: { ...untold(hash!), s: hash!.s.replace('pending waiting', 'pending approved'), d }, expires: expires!, due: due!,
    }),
  },
  rejected: {
    decide: reject,
    /** It lives no more, and can be read, payload and all, for the retention. */
    after: ({ now, hash }: State, d: string): State => ({
      now, hash: { ...untold(hash!), s: hash!.s.replace('pending waiting', 'rejected rejected'), d }, expires: now + lifetimes.retention,
    }),
  },
}

for (const [verdict, { decide, after }] of Object.entries(verdicts)) {
  for (const name of stateNames) {
    t.test(`${verdict}: ${name}`, async t => {
      const test = testRedis(t)
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
    const test = testRedis(t)
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
  const test = testRedis(t)
  const on = raw(test)
  const one = { agent: 'approver', token: 'one', deadline: at.expires }
  const two = { agent: 'B', token: 'two', deadline: at.expires }
  const record = states['pending, waiting'].hash!.s

  await put(on, states['pending, waiting'])
  await approve(on, at.decided, one, '"go"')
  t.strictSame(await reject(on, at.decided, two), ['already_decided', at.decided, record.replace('waiting', 'approved'), null, `${at.decided} approver one "go"`])

  await put(on, states['pending, waiting'])
  await reject(on, at.decided, two, '"no"')
  t.strictSame(await approve(on, at.decided, one),
    ['already_decided', at.decided, record.replace('pending waiting', 'rejected rejected'), null, `${at.decided} B two "no"`])
})

t.test('a catch after the approval carries the decision, its note as the bytes that came', async t => {
  const test = testRedis(t)
  const on = raw(test)
  const note = Buffer.from('"a\\u0041 ä 𝄞  \\ud800 b"')
  await put(on, states['pending, waiting'])
  await approve(on, at.decided, { agent: 'approver', token: 'dectok', deadline: at.decided }, note)
  t.strictSame(await catchIt(on, at.caught, { agent: 'A', token: 'ctok', deadline: at.caught }),
    ['caught', at.passed, payload, `${at.decided} approver dectok ${note.toString()}`, null, null, null, null])
})

t.test('what was seen and is another by now is not decided, and that is told last', async t => {
  const test = testRedis(t)
  const on = raw(test)
  /** What was seen: what there is, once by when it was passed, once by its digest, and what there is no more. */
  const sights = (passed: number) => [
    { seen: passed, digest: '', is: true }, { seen: '', digest, is: true }, { seen: passed, digest, is: true },
    { seen: passed - 1, digest: '', is: false }, { seen: '', digest: 'another', is: false },
    { seen: passed - 1, digest, is: false }, { seen: passed, digest: 'another', is: false },
  ] as const
  for (const [verdict, { decide, after }] of Object.entries(verdicts)) {
    for (const name of stateNames) {
      const state: State = states[name]
      for (const [index, { agent, token }] of callers.entries()) {
        const [outcome] = repliesIn(name)[index] as [string]
        const asking = { agent, token, deadline: state.now }
        // Where nothing can be decided, what was seen makes no difference: one that is right and two that aren't show it.
        const seen = sights(at.passed)
        for (const sight of outcome === 'decided' ? seen : [seen[0], seen[3], seen[4]]) {
          const label = `${verdict} ${name}: ${agent}, ${token}; ${JSON.stringify(sight)}`
          await put(on, state)
          const decided = sight.is ? [verdict, state.now] : refused('content_changed', state)
          t.strictSame(await decide(on, state.now, asking, '"note"', sight.seen, sight.digest), outcome === 'decided' ? decided : repliesIn(name)[index], label)
          const itsToken = sight.digest === '' ? token : `${token}/${sight.digest}`
          const moves = outcome === 'decided' && sight.is
          t.strictSame(await test.dump(), dumped(moves ? after(state, `${state.now} ${agent} ${itsToken} "note"`) : state), label)
          if (moves) t.strictSame(await decide(on, state.now, asking, '"other"', sight.seen, sight.digest), ['replayed', state.now], `${label}, again`)
        }
      }
    }
  }
})

t.test('what a former version passed has no digest: by when it was passed it is told', async t => {
  const test = testRedis(t)
  const on = raw(test)
  const { h, ...hash } = (states['pending, waiting'] as State).hash!
  const state: State = { ...states['pending, waiting'], hash }
  const asking = { agent: 'B', token: 'other', deadline: state.now }
  for (const [verdict, { decide }] of Object.entries(verdicts)) {
    for (const [seen, replies] of [['', refused('content_changed', state)], [at.passed - 1, refused('content_changed', state)], [at.passed, [verdict, state.now]]] as const) {
      await put(on, state)
      t.strictSame(await decide(on, state.now, asking, '"note"', seen, digest), replies, `${verdict}, ${seen}`)
    }
  }
})
