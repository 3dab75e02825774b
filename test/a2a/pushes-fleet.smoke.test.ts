import slotOf from 'cluster-key-slot'
import t from 'tap'
import { buildApp } from '../../src/app.ts'
import { KeyRing } from '../../src/auth/key-ring.ts'
import { loadConfig } from '../../src/config.ts'
import { tagOf } from '../../src/core/ids.ts'
import { KeyNames } from '../../src/store/key-names.ts'
import { startCluster } from '../faults/fleet/cluster.ts'
import { card } from '../helpers/a2a.ts'
import { secrets, testKeys } from '../helpers/app.ts'
import type { Who } from '../helpers/app.ts'
import { untilServing } from '../helpers/handoffs.ts'
import { logSink } from '../helpers/log-sink.ts'
import { beginMove, migrate } from '../helpers/moving-slot.ts'
import { sendsPushes } from '../helpers/pushes.ts'
import { receiver } from '../helpers/receiver.ts'
import { fleetStore } from '../helpers/redis.ts'
import { until } from '../helpers/until.ts'

t.setTimeout(300_000)

const names = new KeyNames('handoff')

t.test('A2A tasks end while their slot moves, whichever keys went ahead, and their push configs are sent it once', async t => {
  const cluster = await startCluster(t, { replicas: 0, nodeTimeoutMs: 1000 })
  const config = loadConfig({ ...testKeys, ...sendsPushes })
  const { log } = logSink(t)
  const store = fleetStore(t, cluster.url, { log })
  await untilServing(store.handoffs)
  const keys = new KeyRing(config.apiKeys, store, log)
  const app = await buildApp(config, { store, keys, log, webhookSecret: config.webhookSecret })
  t.teardown(() => app.close())
  app.deliverer!.start()
  let count = 0
  /** Asks as often as the service is unavailable, as the same operation. */
  const call = (who: Who, method: 'GET' | 'POST' | 'PUT', url: string, payload?: object, headers: object = { 'idempotency-key': `k${++count}` }): Promise<any> => until(async () => {
    const answer = await app.inject({ method, url, headers: { authorization: `Bearer ${secrets[who]}`, ...headers }, ...payload && { payload } })
    if (answer.statusCode === 503) return null
    if (answer.statusCode >= 300) throw new Error(answer.body)
    return answer.json()
  })
  const a2a = (method: 'GET' | 'POST', path: string, body?: object) => call('alice', method, `/a2a/default/desk/${path}`, body, { 'a2a-version': '1.0' })
  const to = await receiver(t, (response, { body }) => response.writeHead(body.includes('"TASK_STATE_WORKING"') ? 500 : 204).end())
  await call('operator', 'PUT', '/api/inboxes/desk', { card }, {})
  const ends = (id: string) => to.got.filter(({ body }) => body.includes(id) && body.includes('"TASK_STATE_COMPLETED"'))

  const aheads: Record<string, (id: string, tag: string) => string[]> = {
    'the handoff': (id, tag) => [names.handoff(tag, `default:${id}`)],
    'the task': (id, tag) => [names.task(tag, `default:${id}`)],
    'its changes': (id, tag) => [`${names.task(tag, `default:${id}`)}:changes`],
    'the list of tasks': (_, tag) => [names.tasks(tag, 'default', 'desk', 'alice')],
    'the tenants with callbacks': (_, tag) => [names.callbackTenants(tag)],
    'what is to be sent': (_, tag) => [names.callbacks(tag, 'default')],
    'all but the handoff': (id, tag) => [names.task(tag, `default:${id}`), `${names.task(tag, `default:${id}`)}:changes`, names.tasks(tag, 'default', 'desk', 'alice'), names.callbackTenants(tag), names.callbacks(tag, 'default')],
  }
  for (const [what, aheadOf] of Object.entries(aheads)) {
    const { task: { id } } = await a2a('POST', 'message:send', {
      message: { messageId: what, role: 'ROLE_USER', parts: [{ text: what }] }, configuration: { returnImmediately: true, taskPushNotificationConfig: { url: to.url } }
    })
    await call('bob', 'GET', `/api/catch/${id}`)
    // That one fails, so all of these keys are there.
    await until(() => to.got.some(({ body }) => body.includes(id)))
    const slot = slotOf(tagOf(id))
    const from = await cluster.ownerOf(slot)
    const other = cluster.servers.find(server => server !== from)!
    await beginMove(slot, from, other)
    const ahead = aheadOf(id, tagOf(id))
    t.equal(await from.admin.exists(...ahead), ahead.length, `${what} is there`)
    await migrate(from, other, ...ahead)
    let isDone = false
    const doing = call('bob', 'POST', `/api/done/${id}`, { output: { text: 'Fine.' } }).then(() => { isDone = true })
    await new Promise(resolve => setTimeout(resolve, 300))
    t.equal(isDone, false, `${what} went ahead: nothing is done`)
    await cluster.moveSlot(slot, other)
    await doing
    await until(() => ends(id).length === 1, 60_000)
    t.match(await a2a('GET', `tasks/${id}`), { status: { state: 'TASK_STATE_COMPLETED' }, artifacts: [{ parts: [{ text: 'Fine.' }] }] }, what)
    t.match((await a2a('GET', 'tasks?pageSize=1')).tasks, [{ id, status: { state: 'TASK_STATE_COMPLETED' } }])
    t.equal(ends(id).length, 1, 'once')
  }
})
