import t from 'tap'
import { testStore } from '../helpers/redis.ts'

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
