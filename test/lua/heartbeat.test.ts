import t from 'tap'
import { testRedis } from '../helpers/redis.ts'
import { dumped, heartbeat, lifetimes, put, raw, refused } from '../helpers/scripts.ts'
import { heldBy, refusalIn, stateNames, states } from '../helpers/states.ts'
import { unsweptOf } from '../helpers/further-states.ts'
import type { State } from '../helpers/states.ts'

const { retention, mostWork } = lifetimes

/** A caught one after a heartbeat: deadlines only ever move on, and progress replaces what was said before. */
function after (state: State, extendBy: number | '', progress: string): State {
  const { now, hash, expires } = state
  const words = hash!.s.replace(/^2:/, '').split(' ')
  const [caught, before] = [Number(words[6]), Number(words[7])]
  const deadline = extendBy === '' ? before : Math.max(before, Math.min(now + extendBy, caught + mostWork))
  words[7] = String(deadline)
  let x = hash!.x ?? ''
  if (deadline > before && !x.includes(' f1')) x += ' f1'
  const within = / b(\d+)/.exec(x)?.[1]
  if (within !== undefined) x = `${x.replace(/ h\d+/, '')} h${Math.min(now + Number(within), deadline)}`
  const changes = deadline > before || within !== undefined || progress !== ''
  const kept = changes ? { ...hash!, s: `2:${words.join(' ')}`, x } : hash!
  return { ...state, hash: { ...kept, ...progress === '' ? {} : { g: `${now} ${progress}` } }, expires: deadline > before ? deadline + retention + unsweptOf(x) : expires! }
}

for (const name of stateNames) {
  t.test(name, async t => {
    const test = testRedis(t)
    const on = raw(test)
    const state: State = states[name]
    const code = refusalIn('heartbeat', name)
    for (const agent of ['A', 'B', 'passer']) {
      for (const extendBy of ['', 1, 3000, mostWork, 100 * mostWork] as const) {
        for (const progress of ['', '{"message":"new"}']) {
          const label = `${agent}, ${extendBy}, ${progress}`
          await put(on, state)
          t.strictSame(await heartbeat(on, state.now, { agent, deadline: state.now - 1 }, extendBy, progress), ['late'])
          t.strictSame(await test.dump(), dumped(state), `${label}, late: nothing changed`)

          const counts = code === null && agent === 'A'
          const now = counts ? after(state, extendBy, progress) : state
          const found = await heartbeat(on, state.now, { agent, deadline: state.now }, extendBy, progress) as unknown[]
          if (counts) {
            const beat = / h(\d+)/.exec(now.hash!.x ?? '')?.[1]
            const deadline = Number(now.hash!.s.split(' ')[7])
            t.strictSame(found, ['caught', deadline, beat === undefined ? null : Number(beat), / q/.test(now.hash!.x ?? '') ? 1 : 0, now.hash!.c ?? null], label)
          } else {
            t.strictSame(found, refused(heldBy(name) && agent !== 'A' ? 'not_the_catcher' : code!, state), label)
          }
          t.strictSame(await test.dump(), dumped(now), `${label}: ${found[0]}`)
        }
      }
    }
  })
}
