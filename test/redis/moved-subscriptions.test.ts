import slotOf from 'cluster-key-slot'
import t from 'tap'
import { buildApp } from '../../src/app.ts'
import { ApiKeys } from '../../src/auth/api-keys.ts'
import { StoredKeys } from '../../src/auth/stored-keys.ts'
import { loadConfig } from '../../src/config.ts'
import { inboxTag } from '../../src/handoff/id.ts'
import { startCluster } from '../faults/fleet/cluster.ts'
import { secrets, testKeys } from '../helpers/app.ts'
import { logSink } from '../helpers/log-sink.ts'
import { fleetStore } from '../helpers/redis.ts'
import { until } from '../helpers/until.ts'

/** Workers that wait for an inbox whose slot moves: Redis ends their subscription. */

t.setTimeout(300_000)

t.test('on a Cluster', async t => {
  const cluster = await startCluster(t, { replicas: 0, nodeTimeoutMs: 1000 })
  const config = loadConfig(testKeys)
  const { log } = logSink(t)
  const store = fleetStore(t, cluster.url, { log })
  const app = await buildApp(config, { store, keys: new ApiKeys(config.apiKeys, new StoredKeys(store.keyRecords, store.subscriptions, log)), log })
  t.teardown(() => app.close())
  const call = async (who: 'alice' | 'bob', path: string, payload: object) =>
    await app.inject({ method: 'POST', url: path, payload, headers: { authorization: `Bearer ${secrets[who]}` } })
  const pass = async (): Promise<string> => (await call('alice', '/api/pass', { task: 't', to: 'work' })).json().handoff_id
  const next = async (): Promise<string[]> =>
    (await call('bob', '/api/catch?wait=60', { inbox: 'work' })).json().items.map(({ handoff_id: id }: { handoff_id: string }) => id)
  const areWaiting = (count: number) => until(async () => new RegExp(`^handoff_inbox_waiters ${count}$`, 'm').test((await app.inject('/metrics')).body))
  await until(async () => (await app.inject('/readyz')).statusCode === 200)

  await t.test('to another master and back, before anybody has looked where it is', async t => {
    const all = [next(), next()]
    await areWaiting(2)
    const slot = slotOf(inboxTag('default', 'work'))
    const from = await cluster.ownerOf(slot)
    const to = cluster.servers.find(server => server !== from)!
    for (const master of [to, from]) {
      const id = await master.admin.cluster('MYID')
      for (const { admin } of new Set([master, ...cluster.servers])) await admin.call('CLUSTER', 'SETSLOT', slot, 'NODE', id)
    }
    const passed = [await pass(), await pass()]
    const began = performance.now()
    t.strictSame((await Promise.all(all)).flat().sort(), passed.sort())
    t.ok(performance.now() - began < 30_000, 'not only when their time is over')
  })
})
