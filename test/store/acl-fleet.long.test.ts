import slotOf from 'cluster-key-slot'
import t from 'tap'
import { randomToken, tags } from '../../src/core/ids.ts'
import { isReplicated } from '../faults/fleet/ask.ts'
import { startCluster } from '../faults/fleet/cluster.ts'
import type { RedisServer } from '../faults/fleet/redis.ts'
import { startSentinelFleet } from '../faults/fleet/sentinel.ts'
import { asOptions, denials, setUser, usersOf } from '../helpers/acl.ts'
import { newPlace, pass, placeIn, untilServing } from '../helpers/handoffs.ts'
import { beginMove } from '../helpers/moving-slot.ts'
import { fleetStore } from '../helpers/redis.ts'
import { until } from '../helpers/until.ts'

const password = 'secret'

/** The users of the current connections. */
async function signedIn ({ admin }: RedisServer): Promise<Set<string>> {
  const clients = String(await admin.client('LIST'))
  return new Set([...clients.matchAll(/ user=(\S+)/g)].map(([, user]) => user!))
}

t.test('Sentinel: service, replication and Sentinels each work as their own user, through a failover', { timeout: 60_000 }, async t => {
  const fleet = await startSentinelFleet(t, {
    downAfterMs: 600,
    failoverTimeoutMs: 2000,
    options: ['--masteruser', 'handoff-replica', '--masterauth', password, ...asOptions('users.acl', password)],
    sentinelOptions: [
      ...['auth-user handoffs handoff-sentinel', `auth-pass handoffs ${password}`, 'sentinel-user sentinel', `sentinel-pass ${password}`].flatMap(own => ['--sentinel', own]),
      ...asOptions('sentinel-users.acl', password),
    ],
  })
  const url = fleet.url.replace('://', `://handoff:${password}@`) + `?sentinel_username=handoff&sentinel_password=${password}`
  const store = fleetStore(t, url, { replicas: 1 })
  await untilServing(store.handoffs)
  const place = newPlace()
  await pass(store.handoffs, place)
  const master = await fleet.master()
  t.strictSame([...await signedIn(master)].filter(user => user !== 'default').sort(), ['handoff', 'handoff-replica', 'handoff-sentinel'])

  const switched = fleet.switched()
  await master.kill()
  await switched
  await untilServing(store.handoffs)
  t.match(await store.handoffs.catch(place, randomToken(), 'bob'), { outcome: 'caught' })
  await master.restart()
  await fleet.untilWhole()
  // On a busy machine there may be another failover, and another master.
  await until(async () => isReplicated(await fleet.master(), 2).catch(() => false), 15_000)
  t.equal(await store.whyNotReady(), null)
  for (const { admin } of fleet.servers) for (const user of usersOf('users.acl').keys()) t.strictSame(await denials(admin, user), [], user)
  for (const { admin } of fleet.sentinels) for (const user of usersOf('sentinel-users.acl').keys()) t.strictSame(await denials(admin, user), [], user)
})

t.test('Cluster: the service’s user works while a slot moves', { timeout: 60_000 }, async t => {
  const cluster = await startCluster(t, { replicas: 0, nodeTimeoutMs: 1000 })
  for (const { admin } of cluster.servers) await setUser(admin, { user: 'handoff', password })
  const store = fleetStore(t, cluster.url.replace('://', `://handoff:${password}@`))
  const tag = tags[0]!
  await untilServing(store.handoffs, placeIn(tag))
  const slot = slotOf(tag)
  const from = await cluster.ownerOf(slot)
  const to = (await cluster.masters()).find(server => server !== from)!
  await beginMove(slot, from, to)
  // A missing key is looked for at the new owner, with ASKING.
  t.match(await store.handoffs.status(placeIn(tag)), { outcome: 'not_found' })
  await cluster.moveSlot(slot, to)
  t.match(await pass(store.handoffs, placeIn(tag)), { outcome: 'passed' })
  await store.subscriptions.listen(store.handoffs.channelOf(placeIn(tag)), () => {})
  t.equal(await store.whyNotReady(), null)
  const stats = await Promise.all(cluster.servers.map(({ admin }) => admin.info('commandstats')))
  for (const name of ['asking', 'cluster|slots']) t.ok(stats.some(text => text.includes(`cmdstat_${name}:`)), `${name} was asked`)
  for (const { admin } of cluster.servers) t.strictSame(await denials(admin, 'handoff'), [])
})
