import t from 'tap'
import { testRedis } from '../helpers/redis.ts'
import { raw, run, tag } from '../helpers/scripts.ts'
import type { Raw } from '../helpers/scripts.ts'
import { T } from '../helpers/states.ts'

type Given = number | '' | '-'

function set (on: Raw, agent: string, rate: Given, live: Given = '-', { deadline = T, most = 10 } = {}) {
  const keys = [on.keys.limits(tag), on.keys.liveLimits(tag), on.keys.apiKeysLog(tag)]
  return run(on, 'limit-set', T, keys, [deadline, 'acme', agent, rate, live, most, 'me@here'])
}

t.test('limits are set, changed and removed; what changes nothing leaves no trace', async t => {
  const test = testRedis(t)
  const on = raw(test)
  const unchanged = async (ask: () => Promise<unknown>) => {
    const before = await test.dump()
    const answer = await ask()
    t.strictSame(await test.dump(), before, 'nothing changed')
    return answer
  }
  const listener = test.redis.duplicate()
  t.teardown(() => listener.disconnect())
  const heard: string[] = []
  await listener.ssubscribe(on.keys.apiKeysLog(tag))
  listener.on('smessage', (_, message: string) => heard.push(message))
  const list = async () => (await run(on, 'limit-list', T, [on.keys.limits(tag), on.keys.liveLimits(tag)], []) as unknown[]).slice(1)
  t.strictSame(await list(), [[], []])
  t.strictSame(await unchanged(() => set(on, '', '', '')), ['set', null, null, null, null], 'there is none')
  t.strictSame(await unchanged(() => set(on, '', '-', '-')), ['set', null, null, null, null])
  t.strictSame(await unchanged(() => set(on, '', 5, 5, { deadline: T - 1 })), ['late'])
  t.strictSame(await set(on, '', 5), ['set', '5', null, null, null])
  t.strictSame(await unchanged(() => set(on, '', 5)), ['set', '5', null, '5', null], 'asked again')
  t.strictSame(await set(on, '', '-', 50), ['set', '5', '50', '5', null], 'each stays without the other')
  t.strictSame(await set(on, 'bob', 9_999_999, 8), ['set', '9999999', '8', null, null])
  t.strictSame(await set(on, '', 6), ['set', '6', '50', '5', '50'])
  t.strictSame(await list(), [['acme', '6', 'acme/bob', '9999999'], ['acme/bob', '8', 'acme', '50']])
  t.strictSame(await unchanged(() => set(on, 'alice', 7, '-', { most: 2 })), ['too_many'])
  t.strictSame(await unchanged(() => set(on, 'alice', '-', 7, { most: 2 })), ['too_many'])
  t.strictSame(await set(on, 'bob', 8, 9, { most: 2 }), ['set', '8', '9', '9999999', '8'], 'one that is there can be changed')
  t.strictSame(await set(on, '', '', '-', { most: 0 }), ['set', null, '50', '6', '50'])
  t.strictSame(await set(on, '', '-', '', { most: 0 }), ['set', null, null, null, '50'])
  t.strictSame(await list(), [['acme/bob', '8'], ['acme/bob', '9']])
  const log = await test.redis.xrange(on.keys.apiKeysLog(tag), '-', '+')
  const rate = (agent: string, limit: string) => ['action', limit === '' ? 'limit removed' : 'limit set', 'tenant', 'acme', 'agent', agent, 'limit', limit, 'by', 'me@here']
  // Version 0.2.0 would take another tenant's for one of requests a minute.
  const live = (of: string, limit: string) => ['action', limit === '' ? 'max_live removed' : 'max_live set', 'tenant', '', 'agent', '', 'of', of, 'max_live', limit, 'by', 'me@here']
  t.strictSame(log.map(([, fields]) => fields), [
    rate('', '5'), live('acme', '50'), rate('bob', '9999999'), live('acme/bob', '8'), rate('', '6'), rate('bob', '8'), live('acme/bob', '9'), rate('', ''), live('acme', '')
  ])
  await listener.ping()
  t.strictSame(heard, Array.from({ length: 7 }, () => 'limit'), 'each change is heard once')
})
