import t from 'tap'
import { tags } from '../../src/core/ids.ts'
import { KeyNames } from '../../src/store/key-names.ts'
import { homeTagOf } from '../../src/store/partitions.ts'
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
  const claim = async (token: string, most = 2) => (await webhooks.claim('default', { id, format: 'standard' }, most, 30_000, token))!.deliveries.map(({ id }) => id)

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

t.test('a delivery whose text is gone is left out, and thousands may be pending', async t => {
  const { store, redis, prefix } = await testStore(t, { eventsRetention: 3_600_000 })
  const webhooks = store.webhooks!
  const id = 'wh_0123456789abcdefghijkl'
  const made = await webhooks.create('default', id, { url: 'https://example.com/', types: null, inbox: null, withTask: true })
  t.equal(made!.withTask, true)
  const plan = (ids: number[]) => webhooks.plan('default', id, null, '0-0', ids.map(n => ({ id: `${n}-0`, text })))
  await plan([1, 2])
  await redis.hdel(new KeyNames(prefix).deliveries(homeTagOf('default', tags), 'default', id, 'pending'), '1-0')
  const claimed = await webhooks.claim('default', { id, format: 'standard' }, 2, 30_000, 'one')
  t.strictSame(claimed!.deliveries.map(({ id }) => id), ['2-0'])
  await plan(Array.from({ length: 5000 }, (_, at) => at + 3))
  t.match(await plan([9000]), { outcome: 'planned' })
})

t.test('a replay that is asked for while a step of another is under way moves the end on, and the step does not end it', async t => {
  const { store, redis, prefix } = await testStore(t, { eventsRetention: 3_600_000 })
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
  await webhooks.plan('default', id, '9-0', '9-5', [])
  await webhooks.replay('default', id, '9-5')
  t.equal(await replay(), null, 'there is nothing after it')
  await webhooks.replay('default', id, '9-3')
  t.strictSame(await replay(), { from: '9-3', to: '9-5' })
  await webhooks.planReplay('default', id, { from: '9-3', to: '9-5' }, null, [])
  t.strictSame(await redis.hmget(new KeyNames(prefix).webhook(homeTagOf('default', tags), 'default', id), 'replay', 'replay_to'), [null, null])
})

t.test('what comes again makes one webhook, one new secret and one delivery', async t => {
  const { store, redis, prefix } = await testStore(t, { eventsRetention: 3_600_000 })
  const webhooks = store.webhooks!
  const id = 'wh_0123456789abcdefghijkl'
  await redis.xadd(`${prefix}:e:default`, '4-0', 'e', text)
  const create = () => webhooks.create('default', id, { url: 'https://example.com/', types: null, inbox: null })
  t.match(await create(), { generation: 1, cursor: '4-0' }, 'it begins behind what is in the feed')
  for (const token of ['one', 'one', 'two']) t.equal((await webhooks.rotate('default', id, token, 1000))!.generation, token === 'one' ? 2 : 3)
  await webhooks.plan('default', id, '4-0', '5-0', [{ id: '5-0', text }])
  t.match(await create(), { generation: 3, cursor: '5-0' })
  await webhooks.tried('default', id, { id: '5-0', attempts: 0 } as never, { outcome: 'again', status: 500, error: null, after: 60_000 }, 1000)
  const events = [{ id: '5-0', text }, { id: '6-0', text }]
  t.match(await webhooks.plan('default', id, '4-0', '6-0', events), { outcome: 'moved', place: '5-0' }, 'by a deliverer that was left behind')
  t.match(await webhooks.plan('default', id, null, '', events), { outcome: 'planned' })
  const [again, fresh] = await webhooks.pending('default', id, ['5-0', '6-0'])
  t.match([again, fresh], [{ attempts: 1 }, { attempts: 0 }])
  t.ok(again!.nextAt! - fresh!.nextAt! > 50_000, 'and what failed waits for its time')
})

t.test('of what is over the newest hundred stay, and nothing is due', async t => {
  const { store } = await testStore(t, { eventsRetention: 3_600_000 })
  const webhooks = store.webhooks!
  const id = 'wh_0123456789abcdefghijkl'
  await webhooks.create('default', id, { url: 'https://example.com/', types: null, inbox: null })
  const ids = Array.from({ length: 101 }, (_, at) => `${at + 1}-0`)
  await webhooks.plan('default', id, null, '', ids.map(id => ({ id, text })))
  for (const one of ids) await webhooks.tried('default', id, { id: one, attempts: 0 } as never, { outcome: 'delivered', status: 200, error: null }, 1000)
  const { due, over } = await webhooks.deliveries('default', id)
  t.strictSame(due, [])
  t.strictSame(over.map(({ id }) => id), ids.slice(1))
})

t.test('one that is disabled says so at once, replays nothing, and begins anew once it is enabled', async t => {
  const { store, redis, prefix } = await testStore(t, { eventsRetention: 3_600_000 })
  const webhooks = store.webhooks!
  const id = 'wh_0123456789abcdefghijkl'
  await webhooks.create('default', id, { url: 'https://example.com/', types: null, inbox: null })
  const listener = redis.duplicate()
  t.teardown(() => listener.disconnect())
  const heard: string[] = []
  await listener.ssubscribe(`${prefix}:e:default`)
  listener.on('smessage', (_, message: string) => heard.push(message))
  const tried = async (delivery: string, attempts: number, outcome: 'again' | 'delivered') => {
    await webhooks.plan('default', id, null, '', [{ id: delivery, text }])
    return webhooks.tried('default', id, { id: delivery, attempts } as never, { outcome, status: 500, error: null, after: 60_000 }, 0)
  }
  const fails = (delivery: string, attempts: number) => tried(delivery, attempts, 'again')
  t.equal(await fails('1-0', 0), null)
  await tried('1-1', 0, 'delivered')
  t.equal(await fails('1-0', 1), null, 'the first since one was delivered')
  t.equal(await fails('1-0', 2), 'failing')
  await listener.ping()
  t.equal(heard.length, 1)
  t.equal(await webhooks.replay('default', id, '0-0'), 'disabled')
  t.equal((await webhooks.enable('default', id))!.cursor, heard[0])
  t.equal(await fails('2-0', 0), null, 'what failed before no longer counts')
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
  t.strictSame(await at(before, 'webhook-plan', '', '', 0, `1-0 ${text}\n`, 'cursor', ''), ['deliveries_full'])
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

t.test('five messages to people go out in any minute, and the rest as one at its end', async t => {
  const { store, redis, prefix } = await testStore(t, { eventsRetention: 3_600_000 })
  const webhooks = store.webhooks!
  const id = 'wh_0123456789abcdefghijkl'
  await webhooks.create('default', id, { url: 'https://example.com/', types: null, inbox: null, format: 'slack' })
  const [seconds] = await redis.time()
  const now = Number(seconds) * 1000
  const tag = homeTagOf('default', tags)
  const names = new KeyNames(prefix)
  const [hook, due, pending, summarised] = [names.webhook(tag, 'default', id), names.webhookDue(tag, 'default', id), names.deliveries(tag, 'default', id, 'pending'), names.deliveries(tag, 'default', id, 'summarised')] as const
  const at = (after: number, script: 'webhook-plan' | 'webhook-claim', keys: string[], ...args: Array<string | number>) => run(raw({ redis, prefix }), script, now + after, keys, [now + after + 1000, ...args])
  const plan = (after: number, ...lines: string[]) => at(after, 'webhook-plan', [hook, due, pending], '', '', 100_000, lines.map(line => `${line}\n`).join(''), 'cursor', '')
  const claim = async (after: number, token = `at ${after}`, max = 16) => {
    const [, , first, , , , ...deliveries] = await at(after, 'webhook-claim', [hook, due, pending, summarised], max, 30_000, token, 5) as string[]
    return { first: first === '' ? null : Number(first) - now, got: Object.fromEntries(Array.from({ length: deliveries.length / 2 }, (_, at) => [deliveries[2 * at]!, deliveries[2 * at + 1]!])) }
  }
  const event = (n: number, name = 'failed', inbox = 'box') => `${n}-0 ${name} failed handoff${n} writer reader${inbox === '' ? '' : ` t${inbox}`} jrun:t4`
  const over = async (ids: string[]) => {
    await redis.hdel(pending, ...ids)
    await redis.zrem(due, ...ids)
  }

  await plan(0, event(1), event(2))
  t.strictSame(Object.keys((await claim(0)).got), ['1-0', '2-0'])
  await over(['1-0', '2-0'])
  await plan(10_000, ...Array.from({ length: 300 }, (_, at) => event(at + 103, at % 3 === 0 ? 'expired' : 'failed', at % 2 === 0 ? 'box' : '')), 'test_5_x webhook.test wh')
  const burst = await claim(10_000, 'burst')
  t.strictSame(Object.keys(burst.got), ['103-0', '104-0', '105-0'])
  t.strictSame(Object.keys((await claim(10_000, 'burst')).got), ['103-0', '104-0', '105-0'], 'a repeat takes the same')
  t.strictSame(Object.keys((await claim(10_001)).got), ['test_5_x'], 'a test isn’t counted, and waits for nothing')
  t.equal(await redis.llen(summarised!), 100)
  await over(['103-0', '104-0', '105-0', 'test_5_x'])
  t.strictSame(await claim(11_000), { first: 60_000, got: {} })
  await plan(50_000, event(900, 'asked', 'other'))
  t.strictSame(await claim(50_000), { first: 60_000, got: {} })
  const [summaryId] = await redis.zrange(due, '0', '-1')
  t.strictSame((await claim(60_000)).got, { [summaryId!]: `0 - - - webhook.summary ${id} expired/=50 failed/box=99 failed/=99 expired/box=49 asked/other=1` })
  t.equal(summaryId, `summary_${now + 60_000}`)
  await plan(60_000, event(901))
  t.strictSame(Object.keys((await claim(60_001)).got), ['901-0'], 'both of the first two are a minute old')
  await plan(60_002, event(902))
  t.strictSame((await claim(60_002)).got, {}, 'the summary counts')
  await redis.hset(pending, '901-0', (await redis.hget(pending, '901-0'))!.replace('0', '1'))
  await redis.zadd(due, now + 60_003, '901-0')
  t.strictSame(Object.keys((await claim(60_003)).got), ['901-0'], 'another attempt isn’t')
  await over(['901-0', summaryId!])
  await plan(60_004, ...Array.from({ length: 15 }, (_, at) => event(1000 + at, 'passed', `box${at}`)))
  await claim(60_004)
  t.match(Object.values((await claim(70_000)).got), [/ more\/=6$/], 'no summary grows without end')
  await redis.hset(hook, 'sent', `${now + 9_000_000} ${now + 9_000_000} ${now + 9_000_000} ${now + 9_000_000} ${now + 9_000_000}`)
  await plan(200_000, event(2000))
  t.match(Object.keys((await claim(200_000)).got), /2000-0/, 'a clock that was set back holds up nothing')
})
