import t from 'tap'
import { loadScripts } from '../../src/redis/scripts.ts'
import { testRedis } from '../helpers/redis.ts'
import { dumped, inspect, put, raw } from '../helpers/scripts.ts'
import { stateNames, states } from '../helpers/states.ts'
import type { State } from '../helpers/states.ts'

for (const name of stateNames) {
  t.test(name, async t => {
    const test = testRedis(t)
    const on = raw(test)
    const state: State = states[name]
    await put(on, state)
    const { s, p = null, d = null, h = null, x = null, r = null } = state.hash ?? { s: null }
    const payload = /^(2:)?done /.test(s ?? '') || p === '' ? null : p
    t.strictSame(await inspect(on, state.now), s === null ? ['not_found'] : ['found', state.now, s, payload, d, h, x, r])
    t.strictSame(await test.dump(), dumped(state), 'nothing changed')
  })
}

t.test('neither it nor the list may write: Redis itself refuses (status.test.ts)', async t => {
  const { inspect, waiting } = loadScripts()
  for (const { source, writes } of [inspect, waiting]) {
    t.match(source, /^#!lua flags=no-writes\n/)
    t.equal(writes, false)
  }
})
