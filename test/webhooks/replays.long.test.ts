import type { ChannelListener } from 'node:diagnostics_channel'
import { setTimeout } from 'node:timers/promises'
import t from 'tap'
import type { Test } from 'tap'
import { tags } from '../../src/core/ids.ts'
import { scriptCalls } from '../../src/redis/call.ts'
import type { ScriptCallMessage } from '../../src/redis/call.ts'
import { homeTagOf } from '../../src/store/partitions.ts'
import { receiver } from '../helpers/receiver.ts'
import type { Receiver } from '../helpers/receiver.ts'
import { until } from '../helpers/until.ts'
import { webhookApp } from '../helpers/webhooks.ts'
import type { WebhookApp } from '../helpers/webhooks.ts'

const someId = 'AVHdDBR3Ox_T_H9gltuUjYVhg'

/** Calls `told` at each call of this script. */
function onCall (t: Test, script: string, told: () => void): void {
  const listener: ChannelListener = call => { if ((call as ScriptCallMessage).script === script) told() }
  scriptCalls.subscribe(listener)
  t.teardown(() => scriptCalls.unsubscribe(listener))
}

/** Writes so many events into the tenant's feed, one of `every` of which is handoff.done. @returns the ids of these */
async function fill ({ redis, prefix }: WebhookApp, count: number, every: number): Promise<string[]> {
  const wanted: string[] = []
  for (let from = 0; from < count; from += 500) {
    const pipeline = redis.pipeline()
    for (let at = from; at < from + 500; at++) pipeline.xadd(`${prefix}:e:default`, '*', 'e', `${at % every === 0 ? 'done done' : 'caught caught'} ${someId} alice bob`)
    for (const [at, [, id]] of (await pipeline.exec())!.entries()) if ((from + at) % every === 0) wanted.push(id as string)
  }
  return wanted
}

const hookKey = ({ prefix }: WebhookApp, id: string, tenant = 'default') => `${prefix}:{${homeTagOf(tenant, tags)}}:hook:${tenant}:${id}`
const idsOf = ({ got }: Receiver) => got.map(({ headers }) => String(headers['webhook-id']))

t.test('a replay of a long feed is answered at once, and ends, although something happens at each step', async t => {
  const service = await webhookApp(t, { EVENTS_RETENTION: '3600' })
  const { make, hooks, redis, prefix } = service
  const wanted = await fill(service, 12_000, 1000)
  const target = await receiver(t)
  const { id } = await make(target.url, { types: ['handoff.done'] })
  let reads = 0
  let isBusy = true
  const meanwhile: Array<Promise<string | null>> = []
  onCall(t, 'feed', () => {
    reads++
    if (isBusy) meanwhile.push(redis.xadd(`${prefix}:e:default`, '*', 'e', `done done ${someId} alice bob`))
  })
  const answer = await Promise.race([hooks('POST', `/${id}/replay`, { since: '0-0' }), until(() => reads > 200)])
  t.not(answer, true, 'answered, and not for ever counting again')
  if (typeof answer === 'boolean') return
  t.equal(answer.statusCode, 202)
  t.match(answer.json(), { replayed: 5, more: true }, 'of the first 5,000')
  await until(async () => await redis.hexists(hookKey(service, id), 'replay') === 0)
  isBusy = false
  const later = await Promise.all(meanwhile) as string[]
  await until(() => new Set(idsOf(target)).size >= wanted.length + later.length)
  t.strictSame(new Set(idsOf(target)), new Set([...wanted, ...later]))
  t.ok(wanted.every(id => idsOf(target).filter(one => one === id).length === 1), 'each once')
})

t.test('what one replica began to replay another goes on with', async t => {
  const service = await webhookApp(t, { EVENTS_RETENTION: '3600' })
  const { make, hooks, redis, prefix, app } = service
  const wanted = await fill(service, 6000, 500)
  const target = await receiver(t)
  const { id } = await make(target.url, { types: ['handoff.done'] })
  await hooks('POST', `/${id}/replay`, { since: '0-0' })
  const key = hookKey(service, id)
  await until(async () => !['0-0', null].includes(await redis.hget(key, 'replay')))
  await app.deliverer!.stop()
  const place = await redis.hget(key, 'replay')
  t.ok(place !== null && place !== '0-0', `it was at ${place}, and stopped there`)
  const other = await webhookApp(t, { EVENTS_RETENTION: '3600' }, { prefix })
  await until(() => new Set(idsOf(target)).size === wanted.length)
  t.strictSame(idsOf(target).sort(), wanted.sort(), 'each once')
  await until(async () => await redis.hexists(key, 'replay') === 0)
  t.ok(other)
})

t.test('a replay ends when its webhook is deleted, and when it is disabled', async t => {
  const service = await webhookApp(t, { EVENTS_RETENTION: '3600' })
  const { make, hooks, redis, dump } = service
  await fill(service, 5000, 50)
  const target = await receiver(t, response => response.writeHead(410).end())
  const [deleted, disabled] = [await make('http://127.0.0.1:1/', { types: ['handoff.declined'] }), await make(target.url)]
  await hooks('POST', `/${deleted.id}/replay`, { since: '0-0' })
  await until(async () => await redis.hget(hookKey(service, deleted.id), 'replay') !== '0-0')
  await hooks('DELETE', `/${deleted.id}`)
  await hooks('POST', `/${disabled.id}/replay`, { since: '0-0' })
  await until(async () => !(await hooks('GET', `/${disabled.id}`)).json().enabled)
  await hooks('POST', `/${disabled.id}/enable`)
  t.equal(await redis.hexists(hookKey(service, disabled.id), 'replay'), 0, 'enabling begins anew')
  t.strictSame(Object.keys(await dump()).filter(key => key.includes(deleted.id)), [], 'and nothing of the other comes back')
})

t.test('what happens now is delivered although a replay has as much pending as it may', async t => {
  const service = await webhookApp(t, { EVENTS_RETENTION: '3600' })
  const { make, hooks, redis, pass } = service
  await fill(service, 6000, 1)
  const target = await receiver(t, response => response.writeHead(503, { 'retry-after': '3600' }).end())
  const { id } = await make(target.url)
  await hooks('POST', `/${id}/replay`, { since: '0-0' })
  const key = hookKey(service, id)
  await until(async () => await redis.zcard(`${key}:due`) >= 5000)
  await pass()
  await until(async () => (await redis.hvals(`${key}:pending`)).some(text => text.includes(' passed pending ')))
  t.ok(await redis.zcard(`${key}:due`) < 5500)
  t.equal(await redis.hexists(key, 'replay'), 1, 'the rest waits')
})

t.test('two replays of one webhook become one, from the earlier on; replays of many webhooks all end', async t => {
  const service = await webhookApp(t, { EVENTS_RETENTION: '3600' })
  const { make, hooks, redis } = service
  const wanted = await fill(service, 3000, 300)
  const targets = await Promise.all(Array.from({ length: 5 }, () => receiver(t)))
  const made = []
  for (const { url } of targets) made.push(await make(url, { types: ['handoff.done'] }))
  await Promise.all(made.map(async ({ id }) => {
    await hooks('POST', `/${id}/replay`, { since: wanted[5] })
    await hooks('POST', `/${id}/replay`, { since: wanted[0] })
  }))
  for (const [at, { id }] of made.entries()) {
    await until(async () => await redis.hexists(hookKey(service, id), 'replay') === 0)
    await until(() => new Set(idsOf(targets[at]!)).size === wanted.length)
  }
})

t.test('a replay whose master does not answer holds up no other tenant’s', async t => {
  const service = await webhookApp(t, { EVENTS_RETENTION: '3600' })
  const { make, hooks, redis, prefix, store } = service
  const wanted = await fill(service, 2000, 200)
  const foreign = await redis.xadd(`${prefix}:e:other`, '*', 'e', `done done ${someId} alice bob`)
  const [target, other] = [await receiver(t), await receiver(t)]
  const [{ id }, { id: otherId }] = [await make(target.url, { types: ['handoff.done'] }), await make(other.url, {}, 'other')]
  const events = store.events!
  const read = events.read.bind(events)
  let isAsked = false
  let answer = () => {}
  const untilAnswered = new Promise<void>(resolve => { answer = resolve })
  t.teardown(() => answer())
  events.read = async (tenant, after, most) => {
    // A step of a replay alone reads so many.
    if (tenant === 'other' && most === 250) {
      isAsked = true
      await untilAnswered
    }
    return await read(tenant, after, most)
  }
  await hooks('POST', `/${otherId}/replay`, { since: '0-0' }, 'other')
  await until(() => isAsked)
  await hooks('POST', `/${id}/replay`, { since: '0-0' })
  await until(async () => await redis.hexists(hookKey(service, id), 'replay') === 0)
  await until(() => new Set(idsOf(target)).size === wanted.length)
  t.equal(await redis.hget(hookKey(service, otherId, 'other'), 'replay'), '0-0')
  answer()
  await until(() => idsOf(other).includes(foreign!))
})

t.test('while too many deliveries are pending, the feed is not read over and over', async t => {
  const service = await webhookApp(t)
  const { make, pass, store, redis } = service
  const { id } = await make((await receiver(t, response => response.writeHead(503, { 'retry-after': '3600' }).end())).url)
  const tag = tags[5]!
  const passed = `passed pending ${await pass()} alice -`
  for (let from = 0; from < 11_400; from += 200) {
    const numbers = Array.from({ length: 200 }, (_, at) => from + at + 1)
    await store.events!.relay('default', [{ tag, from: String(from), events: numbers.map(number => `${number} ${passed}`) }])
  }
  await until(async () => await redis.zcard(`${hookKey(service, id)}:due`) >= 10_000)
  let plans = 0
  onCall(t, 'webhook-plan', () => { plans++ })
  await setTimeout(1000)
  t.ok(plans < 10, `planned ${plans} times in a second`)
})
