import t from 'tap'
import { testRedis } from '../helpers/redis.ts'
import { raw, run, tag } from '../helpers/scripts.ts'
import type { Raw } from '../helpers/scripts.ts'
import { T } from '../helpers/states.ts'

function set (on: Raw, agent: string, limit: number | '', { deadline = T, most = 10 } = {}) {
  return run(on, 'limit-set', T, [on.keys.limits(tag), on.keys.apiKeysLog(tag)], [deadline, 'acme', agent, limit, most, 'me@here'])
}

t.test('a limit is set, changed and removed; what changes nothing leaves no trace', async t => {
  const test = testRedis(t)
  const on = raw(test)
  const unchanged = async (ask: () => Promise<unknown>) => {
    const before = await test.dump()
    const answer = await ask()
    t.strictSame(await test.dump(), before, 'nothing changed')
    return answer
  }
  const list = async () => (await run(on, 'limit-list', T, [on.keys.limits(tag)], []) as unknown[])[1]
  t.strictSame(await list(), [])
  t.strictSame(await unchanged(() => set(on, '', '')), ['set', null], 'there is none')
  t.strictSame(await unchanged(() => set(on, '', 5, { deadline: T - 1 })), ['late'])
  t.strictSame(await set(on, '', 5), ['set', null])
  t.strictSame(await unchanged(() => set(on, '', 5)), ['set', '5'], 'asked again')
  t.strictSame(await set(on, 'bob', 9_999_999), ['set', null])
  t.strictSame(await set(on, '', 6), ['set', '5'])
  t.strictSame(await list(), ['acme', '6', 'acme/bob', '9999999'])
  t.strictSame(await unchanged(() => set(on, 'alice', 7, { most: 2 })), ['full'])
  t.strictSame(await set(on, 'bob', 8, { most: 2 }), ['set', '9999999'], 'one that is there can be changed')
  t.strictSame(await set(on, '', '', { most: 0 }), ['set', '6'])
  t.strictSame(await list(), ['acme/bob', '8'])
  const log = await test.redis.xrange(on.keys.apiKeysLog(tag), '-', '+')
  t.strictSame(log.map(([, fields]) => fields), [
    ['action', 'limit set', 'tenant', 'acme', 'agent', '', 'limit', '5', 'by', 'me@here'],
    ['action', 'limit set', 'tenant', 'acme', 'agent', 'bob', 'limit', '9999999', 'by', 'me@here'],
    ['action', 'limit set', 'tenant', 'acme', 'agent', '', 'limit', '6', 'by', 'me@here'],
    ['action', 'limit set', 'tenant', 'acme', 'agent', 'bob', 'limit', '8', 'by', 'me@here'],
    ['action', 'limit removed', 'tenant', 'acme', 'agent', '', 'limit', '', 'by', 'me@here'],
  ])
})
