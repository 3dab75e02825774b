import t from 'tap'
import { testRedis } from '../helpers/redis.ts'
import { dumped, put, raw, read, refused } from '../helpers/scripts.ts'
import { heldBy, refusalIn, stateNames, states } from '../helpers/states.ts'
import type { State } from '../helpers/states.ts'

for (const name of stateNames) {
  t.test(name, async t => {
    const test = testRedis(t)
    const on = raw(test)
    const state: State = states[name]
    const code = refusalIn('heartbeat', name)
    await put(on, state)
    for (const agent of ['A', 'B', 'passer']) {
      const { s, p, d = null, x = null, r = null } = state.hash ?? {}
      const wanted = code === null && agent === 'A'
        ? ['caught', Number(/^\S+ \S+ (\d+)/.exec(s!)![1]), p, d, null, x === null ? null : s, x, r]
        : refused(heldBy(name) && agent !== 'A' ? 'not_the_catcher' : code!, state)
      t.strictSame(await read(on, state.now, agent), wanted, agent)
      const to = / t(\S+)/.exec(x ?? '')?.[1]
      const own = await read(on, state.now, agent, ['first', to ?? 'desk', 'last'])
      t.strictSame(own, wanted, `${agent}, with a key that is limited to its inbox, or to any where it has none`)
      const elsewhere = to === undefined ? wanted : refused('not_addressee', state)
      t.strictSame(await read(on, state.now, agent, ['elsewhere', `${to}2`]), elsewhere, `${agent}, with a key that is limited to others`)
    }
    t.strictSame(await test.dump(), dumped(state), 'nothing changed')
  })
}
