import t from 'tap'
import { tags } from '../../src/core/ids.ts'
import { KeyNames, homeTagOf } from '../../src/store/key-names.ts'
import { testStore } from '../helpers/redis.ts'
import { raw, run } from '../helpers/scripts.ts'

const text = '{"type":"handoff.done"}'

t.test('a claim that is repeated takes what it took before, and a new one only what is left', async t => {
  const { store } = await testStore(t, { eventsRetention: 3_600_000 })
  const webhooks = store.webhooks!
  const id = 'wh_0123456789abcdefghijkl'
  await webhooks.create('default', id, { url: 'https://example.com/', types: null, inbox: null })
  const plan = (ids: string[]) => webhooks.plan('default', id, null, '0-0', ids.map(id => ({ id, text })))
  await plan(['1-0', '2-0', '3-0'])
  const claim = async (token: string, most = 2) => (await webhooks.claim('default', id, most, 30_000, token))!.deliveries.map(({ id }) => id)

  t.strictSame(await claim('one'), ['1-0', '2-0'])
  t.strictSame(await claim('one'), ['1-0', '2-0'], 'its answer may have been lost')
  await webhooks.tried('default', id, { id: '1-0', attempts: 0 } as never, { outcome: 'delivered', status: 200, error: null }, 1000)
  t.strictSame(await claim('one'), ['2-0'], 'what has been delivered meanwhile is not delivered again')
  t.strictSame(await claim('two'), ['3-0'])
  const failed = { outcome: 'again', status: 500, error: null, after: 60_000 } as const
  for (let n = 0; n < 2; n++) await webhooks.tried('default', id, { id: '3-0', attempts: 0 } as never, failed, 1000)
  t.match(await webhooks.pending('default', id, ['3-0']), [{ attempts: 1 }], 'an attempt that is noted twice is one')
  t.strictSame(await claim('three'), [], 'everything is claimed')
  await plan(['4-0'])
  t.strictSame(await claim('three'), ['4-0'], 'an empty claim is not kept')
})

t.test('a replay that is asked for while a step of another is under way moves the end on, and the step does not end it', async t => {
  const { store } = await testStore(t, { eventsRetention: 3_600_000 })
  const webhooks = store.webhooks!
  const id = 'wh_0123456789abcdefghijkl'
  await webhooks.create('default', id, { url: 'https://example.com/', types: null, inbox: null })
  const replay = async () => (await webhooks.list('default'))[0]!.replay
  await webhooks.plan('default', id, '0-0', '5-0', [])
  await webhooks.replay('default', id, '0-0')
  const before = (await replay())!
  t.strictSame(before, { from: '0-0', to: '5-0' })
  await webhooks.plan('default', id, '5-0', '9-0', [])
  await webhooks.replay('default', id, '3-0')

  t.match(await webhooks.planReplay('default', id, before, '2-0', [{ id: '2-0', text }]), { outcome: 'moved' })
  t.match(await webhooks.planReplay('default', id, before, null, [{ id: '2-0', text }]), { outcome: 'moved' }, 'its last step')
  t.strictSame(await replay(), { from: '0-0', to: '9-0' })
  t.match(await webhooks.planReplay('default', id, { from: '0-0', to: '9-0' }, null, [{ id: '2-0', text }]), { outcome: 'planned' })
  t.equal(await replay(), null)
})

t.test('a clock that is set back an hour keeps no delivery waiting for an hour', async t => {
  const { store, redis, prefix } = await testStore(t, { eventsRetention: 3_600_000 })
  const webhooks = store.webhooks!
  const id = 'wh_0123456789abcdefghijkl'
  await webhooks.create('default', id, { url: 'https://example.com/', types: null, inbox: null })
  const [seconds] = await redis.time()
  const now = Number(seconds) * 1000
  const tag = homeTagOf('default', tags)
  const names = new KeyNames(prefix)
  const keys = [names.webhook(tag, 'default', id), names.webhookDue(tag, 'default', id), names.deliveries(tag, 'default', id, 'pending')]
  const at = (time: number, script: 'webhook-plan' | 'webhook-claim', ...args: Array<string | number>) => run(raw({ redis, prefix }), script, time, keys, [time + 1000, ...args])
  const claim = async (time: number, token: string) => {
    const [, , first, , , , ...deliveries] = await at(time, 'webhook-claim', 2, 30_000, token) as string[]
    return { first: Number(first) - time, ids: deliveries.filter((_, at) => at % 2 === 0) }
  }
  const before = now + 3_600_000
  await at(before, 'webhook-plan', '', '', 100, `1-0 ${text}\n2-0 ${text}\n3-0 ${text}\n4-0 ${text}\n`, 'cursor', '')
  t.strictSame(await claim(before, 'one'), { first: 0, ids: ['1-0', '2-0'] })
  await redis.zadd(keys[1]!, before + 120_000, '4-0')

  t.strictSame(await claim(now, 'two'), { first: 29_999, ids: ['3-0'] }, 'what was due is due')
  t.strictSame(await claim(now + 5, 'two'), { first: 29_994, ids: ['3-0'] }, 'also to a repeat')
  t.strictSame(await claim(now + 30_000, 'three'), { first: 0, ids: ['1-0', '2-0'] }, 'what was claimed is due again as soon as it would have been')
  t.equal(await redis.zscore(keys[1]!, '4-0'), String(now + 119_999), 'and what was to be tried later')
  t.strictSame(await claim(now + 29_000, 'four'), { first: 1000, ids: [] }, 'set back by a second')
  t.equal(await redis.zscore(keys[1]!, '4-0'), String(now + 118_998))
  t.strictSame(await claim(now + 29_000, 'five'), { first: 1000, ids: [] }, 'and not again')
  t.strictSame(await claim(now + 28_001, 'six'), { first: 1999, ids: [] }, 'less is left as it is')
  t.equal(await redis.zscore(keys[1]!, '4-0'), String(now + 118_998))
})
