import { setTimeout as sleep } from 'node:timers/promises'
import slotOf from 'cluster-key-slot'
import t from 'tap'
import { buildApp } from '../../src/app.ts'
import { ApiKeys } from '../../src/auth/keys.ts'
import { StoredKeys } from '../../src/auth/key-cache.ts'
import { loadConfig } from '../../src/config.ts'
import { inboxTag } from '../../src/core/ids.ts'
import { startCluster } from '../faults/fleet/cluster.ts'
import { secrets, testKeys } from '../helpers/app.ts'
import { timeRun } from '../helpers/clock.ts'
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
  const pass = async (to = 'work'): Promise<string> => (await call('alice', '/api/pass', { task: 't', to })).json().handoff_id
  const next = async (inbox = 'work'): Promise<string[]> =>
    (await call('bob', '/api/catch?wait=60', { inbox })).json().items.map(({ handoff_id: id }: { handoff_id: string }) => id)
  const areWaiting = (count: number) => until(async () => new RegExp(`^handoff_inbox_waiters ${count}$`, 'm').test((await app.inject('/metrics')).body))
  await until(async () => (await app.inject('/readyz')).statusCode === 200)

  await t.test('to another master and back, before anybody has looked where it is', async t => {
    const all = [next(), next()]
    await areWaiting(2)
    const slot = slotOf(inboxTag('default', 'work'))
    const from = await cluster.ownerOf(slot)
    const to = cluster.servers.find(server => server !== from)!
    // The nodes believe the one with the higher epoch. Before, so that the slot is back at once.
    for (const { admin } of [to, from]) await admin.call('CLUSTER', 'BUMPEPOCH')
    for (const master of [to, from]) {
      const id = await master.admin.cluster('MYID')
      for (const { admin } of new Set([master, ...cluster.servers])) await admin.call('CLUSTER', 'SETSLOT', slot, 'NODE', id)
    }
    const passed = [await pass(), await pass()]
    const began = timeRun()
    t.strictSame((await Promise.all(all)).flat().sort(), passed.sort())
    t.ok(timeRun() - began < 30_000, 'not only when their time is over')
  })

  await t.test('to a master that points back, as it has not been told yet', async t => {
    const asked = async () => {
      const counts = await Promise.all(cluster.servers.map(async ({ admin }) => /cmdstat_ssubscribe:calls=(\d+).*rejected_calls=(\d+)/.exec(await admin.info('commandstats'))))
      return counts.reduce((sum, found) => sum + Number(found?.[1] ?? 0) + Number(found?.[2] ?? 0), 0)
    }
    const one = next('empty')
    await areWaiting(1)
    const slot = slotOf(inboxTag('default', 'empty'))
    const from = await cluster.ownerOf(slot)
    const to = cluster.servers.find(server => server !== from)!
    const id = await to.admin.cluster('MYID')
    await to.admin.call('CLUSTER', 'BUMPEPOCH')
    const before = await asked()
    await from.admin.call('CLUSTER', 'SETSLOT', slot, 'NODE', id)
    await sleep(2000)
    const often = await asked() - before
    t.ok(often > 0 && often < 100, `asked ${often} times in 2 s`)
    await to.admin.call('CLUSTER', 'SETSLOT', slot, 'NODE', id)
    const began = timeRun()
    const passed = await pass('empty')
    t.strictSame(await one, [passed])
    t.ok(timeRun() - began < 5000, 'heard soon')
  })
})
