import slotOf from 'cluster-key-slot'
import t from 'tap'
import { buildApp } from '../../src/app.ts'
import { KeyRing } from '../../src/auth/key-ring.ts'
import { loadConfig } from '../../src/config.ts'
import { tagOf } from '../../src/core/ids.ts'
import { startCluster } from '../faults/fleet/cluster.ts'
import { startRedisServer } from '../faults/fleet/redis.ts'
import { startServiceReplica } from '../faults/fleet/service.ts'
import { secrets, testKeys } from '../helpers/app.ts'
import type { Who } from '../helpers/app.ts'
import { untilServing } from '../helpers/handoffs.ts'
import { logSink } from '../helpers/log-sink.ts'
import { beginMove } from '../helpers/moving-slot.ts'
import { receiver } from '../helpers/receiver.ts'
import type { Got } from '../helpers/receiver.ts'
import { fleetStore } from '../helpers/redis.ts'
import { until } from '../helpers/until.ts'
import { webhookSecret } from '../helpers/webhooks.ts'

t.setTimeout(300_000)

const settings = { ...testKeys, WEBHOOK_SECRET: webhookSecret, WEBHOOK_ALLOW: '127.0.0.0/8' }
const said = ({ body, headers }: Got) => {
  const { type, data, result } = JSON.parse(body)
  return { type, id: data.handoff_id, result, message: headers['webhook-id'] }
}

t.test('a callback in a Cluster, and of a handoff whose slot moves', async t => {
  const cluster = await startCluster(t, { replicas: 0, nodeTimeoutMs: 1000 })
  const config = loadConfig(settings)
  const { log } = logSink(t)
  const store = fleetStore(t, cluster.url, { log })
  await untilServing(store.handoffs)
  const keys = new KeyRing(config.apiKeys, store, log)
  const app = await buildApp(config, { store, keys, log, webhookSecret: config.webhookSecret })
  t.teardown(() => app.close())
  app.deliverer!.start()
  let count = 0
  /** Asks as often as the service is unavailable, as the same operation. */
  const call = (who: Who, method: 'GET' | 'POST', url: string, payload?: object, key = `k${++count}`): Promise<any> => until(async () => {
    const headers = { authorization: `Bearer ${secrets[who]}`, ...!url.startsWith('/api/status') && { 'idempotency-key': key } }
    const answer = await app.inject({ method, url, headers, ...payload && { payload } })
    if (answer.statusCode === 503) return null
    if (answer.statusCode >= 300) throw new Error(answer.body)
    return answer.json()
  })
  const to = await receiver(t)
  const callback = { url: to.url, result: true }
  const caught = async () => {
    const { handoff_id: id } = await call('alice', 'POST', '/api/pass', { task: 't', callback })
    await call('bob', 'GET', `/api/catch/${id}`)
    return id as string
  }
  const done = (id: string) => call('bob', 'POST', `/api/done/${id}`, { output: { id } })
  const quiet = (id: string) => until(async () => (await call('alice', 'GET', `/api/status/${id}`)).callback.pending === 0)
  const move = async (id: string) => {
    const slot = slotOf(tagOf(id))
    const owner = await cluster.ownerOf(slot)
    return { slot, owner, other: cluster.servers.find(server => server !== owner)! }
  }

  const first = await caught()
  await done(first)
  await until(() => to.got.length === 1)
  t.match(said(to.got[0]!), { type: 'handoff.done', id: first, result: { id: first } })
  await quiet(first)

  // One is tried, its slot moves, and it is tried again where it is then.
  to.answer = response => response.writeHead(500).end()
  const second = await caught()
  await done(second)
  await until(() => to.got.length === 2)
  await until(async () => (await call('alice', 'GET', `/api/status/${second}`)).callback.last_status === 500)
  const { slot, other } = await move(second)
  await cluster.moveSlot(slot, other)
  to.answer = response => response.writeHead(204).end()
  await until(() => to.got.length === 3, 60_000)
  t.strictSame(said(to.got[2]!), said(to.got[1]!))
  await quiet(second)
  t.match(await call('alice', 'GET', `/api/status/${second}`), { callback: { delivered: 1, failed: 0 } })

  // One that is done while its slot moves waits for that, and is told once.
  const third = await caught()
  const { slot: its, owner, other: next } = await move(third)
  await beginMove(its, owner, next)
  const doing = done(third)
  await new Promise(resolve => setTimeout(resolve, 500))
  t.equal(await owner.admin.hget(`handoff:{${tagOf(third)}}:h:default:${third}`, 'O'), null, 'nothing is half done')
  await cluster.moveSlot(its, next)
  await doing
  await until(() => to.got.length === 4, 60_000)
  t.match(said(to.got[3]!), { type: 'handoff.done', id: third, result: { id: third } })
  await quiet(third)
  t.equal(to.got.length, 4, 'once each, and one that failed')
})

t.test('a replica that is killed in the middle of a delivery loses none', async t => {
  const { url: REDIS_URL } = await startRedisServer(t)
  const env = { ...settings, REDIS_URL }
  const to = await receiver(t, () => {})
  const first = await startServiceReplica(t, { env })
  const ask = async (base: string, who: Who, method: string, path: string, body?: object): Promise<any> => {
    const answer = await fetch(`${base}${path}`, { method, headers: { authorization: `Bearer ${secrets[who]}`, ...body && { 'content-type': 'application/json' } }, ...body && { body: JSON.stringify(body) } })
    return await answer.json()
  }
  const { handoff_id: id } = await ask(first.url, 'alice', 'POST', '/api/pass', { task: 't', callback: { url: to.url, result: true } })
  await ask(first.url, 'bob', 'GET', `/api/catch/${id}`)
  await ask(first.url, 'bob', 'POST', `/api/done/${id}`, { output: { n: 1 } })
  await until(() => to.got.length === 1)
  await first.kill()
  to.answer = response => response.writeHead(204).end()
  const second = await startServiceReplica(t, { env })
  t.match(await ask(second.url, 'alice', 'GET', `/api/status/${id}`), { callback: { pending: 1, delivered: 0, last_at: null } }, 'nobody noted it')
  await until(() => to.got.length === 2, 60_000)
  t.strictSame(said(to.got[1]!), said(to.got[0]!))
  await until(async () => (await ask(second.url, 'alice', 'GET', `/api/status/${id}`)).callback.delivered === 1)
})
