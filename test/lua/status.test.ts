import t from 'tap'
import { loadScripts } from '../../src/redis/scripts.ts'
import { testRedis } from '../helpers/redis.ts'
import { dumped, member, put, raw, sourceAt, status, tag } from '../helpers/scripts.ts'
import { T, stateNames, states } from '../helpers/states.ts'
import type { State } from '../helpers/states.ts'

for (const name of stateNames) {
  t.test(name, async t => {
    const test = testRedis(t)
    const on = raw(test)
    const state: State = states[name]
    await put(on, state)
    // The record as it is: what is overdue at `now` is for the reader to see.
    const { s, p, d = null, x, e = null, c = null, g = null } = state.hash ?? { s: null }
    const plain = ['found', state.now, s, /^(2:)?done /.test(s ?? '') && p ? p : null, d]
    const expected = x === undefined ? plain : [...plain, x, e, c, g]
    t.strictSame(await status(on, state.now), s === null ? ['not_found'] : expected)
    t.strictSame(await test.dump(), dumped(state), 'nothing changed')
  })
}

t.test('Redis itself refuses a write from it', async t => {
  const test = testRedis(t)
  const { keys } = raw(test)
  const source = sourceAt('status', T)
  t.match(source, /^#!lua flags=no-writes\n/)
  t.equal(loadScripts().status.writes, false)

  const written = `${test.prefix}:{${tag}}:written`
  const [flags, ...rest] = source.split('\n')
  const writing = [flags, `redis.call('SET', '${written}', '1')`, ...rest].join('\n')
  await t.rejects(test.redis.eval(writing, 1, keys.handoff(tag, member)), /Write commands are not allowed from read-only scripts/)
  t.strictSame(await test.dump(), {})

  const unflagged = writing.replace('flags=no-writes', 'flags=allow-oom')
  t.strictSame(await test.redis.eval(unflagged, 1, keys.handoff(tag, member)), ['not_found'], 'it is the flag that does it')
  t.equal(await test.redis.get(written), '1')
})
