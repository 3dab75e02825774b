import slotOf from 'cluster-key-slot'
import { Cluster } from 'ioredis'
import t, { type Test } from 'tap'
import { until } from '../helpers/until.ts'
import { info } from './fleet/ask.ts'
import { startCluster, type ClusterFleet } from './fleet/cluster.ts'
import { latestView, owns, viewOf } from './fleet/nodes.ts'
import type { RedisServer } from './fleet/redis.ts'
import { startSentinelFleet, type SentinelFleet } from './fleet/sentinel.ts'

const replication = async (server: RedisServer) => await info(server, 'replication')

async function isWhole (t: Test, fleet: SentinelFleet): Promise<void> {
  const master = await fleet.master()
  for (const replica of await fleet.replicas()) {
    t.match(await replication(replica), { role: 'slave', master_port: String(master.port), master_link_status: 'up' })
  }
  await master.admin.set('whole', 'x')
  t.equal(await master.admin.wait(2, 1000), 2)
}

t.test('a Sentinel fleet', async t => {
  const fleet = await startSentinelFleet(t, { options: ['--min-replicas-to-write', '1'] })
  const [first, ...others] = fleet.servers as [RedisServer, ...RedisServer[]]
  const masters = await Promise.all(fleet.servers.map(async server => (await replication(server)).role))
  t.strictSame(masters, ['master', 'slave', 'slave'])
  t.equal(await fleet.master(), first)
  t.strictSame((await fleet.replicas()).map(({ at }) => at), others.map(({ at }) => at))
  t.equal(fleet.url, `redis+sentinel://${fleet.sentinels.map(({ at }) => at).join(',')}/handoffs`)
  t.strictSame(await first.admin.config('GET', 'min-replicas-to-write'), ['min-replicas-to-write', '1'])

  await t.test('a killed master is replaced, with a killed Sentinel', async t => {
    await first.admin.set('kept', 'x')
    t.equal(await first.admin.wait(2, 1000), 2)
    const switched = fleet.switched()
    await Promise.all([first.kill(), fleet.sentinels[0]!.kill()])
    const second = await switched
    t.not(second, first)
    t.equal((await replication(second)).role, 'master')
    t.equal(await fleet.master(), second, 'another sentinel is asked')
    t.equal(await second.admin.get('kept'), 'x')
    await first.restart()
    t.equal((await replication(first)).role, 'master', 'it takes itself for the master at first')
    await t.rejects(fleet.switched(2000), { message: 'no failover within 2000 ms' }, 'what others say of the same one later is no news')
    await t.rejects(fleet.untilWhole(500), /first sentinel knows no master/)
    await fleet.sentinels[0]!.restart()
    await fleet.untilWhole()
    await isWhole(t, fleet)
  })

  await t.test('a paused master is replaced', async t => {
    const master = await fleet.master()
    const switched = fleet.switched()
    master.pause()
    const next = await switched
    t.not(next, master)
    t.equal(await fleet.master(), next)
  })
})

t.test('a Cluster', async t => {
  const fleet = await startCluster(t)
  const [master] = await fleet.masters() as [RedisServer]
  const [replica] = await fleet.replicasOf(master) as [RedisServer]
  t.equal((await fleet.masters()).length, 3)
  t.strictSame(new Set([...await fleet.masters(), ...await fleet.replicas()]), new Set(fleet.servers))
  t.equal((await replication(replica)).master_port, String(master.port))

  await t.test('a killed master is replaced', async t => {
    const slot = (await viewOf(master)).find(({ at }) => at === master.at)!.ranges[0]![0]
    t.equal(await fleet.ownerOf(slot), master)
    await master.kill()
    await fleet.untilMaster(replica)
    t.equal(await fleet.ownerOf(slot), replica)
    t.notOk((await fleet.masters()).includes(master))
    await master.restart()
    await fleet.untilWhole()
    t.match(await replication(master), { role: 'slave', master_port: String(replica.port), master_link_status: 'up' })
  })

  await t.test('a failover by hand works', async t => {
    await fleet.failover(master)
    t.equal((await replication(master)).role, 'master')
    await fleet.untilWhole()
    t.strictSame(await fleet.replicasOf(master), [replica])
  })

  await t.test('a slot with 500 keys moves while it is written to', async t => {
    await moveUnderLoad(t, fleet)
  })
})

async function moveUnderLoad (t: Test, fleet: ClusterFleet): Promise<void> {
  const slot = slotOf('{moving}')
  const client = new Cluster(fleet.servers.map(({ host, port }) => ({ host: host.address, port })))
  t.teardown(() => client.disconnect())
  const counts = new Map<string, number>()
  const write = async (key: string) => {
    const count = await client.incr(key)
    if (count !== (counts.get(key) ?? 0) + 1) t.fail(`${key} is ${count} after ${counts.get(key)}`)
    counts.set(key, count)
  }
  await Promise.all(Array.from({ length: 500 }, (_, n) => write(`{moving}:${n}`)))
  const over = new AbortController()
  let written = 0
  const writers = Promise.all(Array.from({ length: 8 }, async (_, writer) => {
    // Existing keys and new ones; each writer has its own.
    for (let n = writer; !over.signal.aborted; n += 8) {
      await write(`{moving}:${n % 600}`)
      written++
    }
  }))
  const from = await fleet.ownerOf(slot)
  const to = (await fleet.masters()).find(server => server !== from)!
  t.ok(await fleet.moveSlot(slot, to) >= 500)
  t.ok(written > 0, `${written} writes meanwhile`)
  await until(() => counts.size >= 600)
  over.abort()
  await writers
  t.equal(await fleet.ownerOf(slot), to)
  t.equal(await from.admin.cluster('COUNTKEYSINSLOT', slot), 0)
  t.equal(await to.admin.cluster('COUNTKEYSINSLOT', slot), counts.size)
  for (const [key, count] of counts) if (Number(await to.admin.get(key)) !== count) t.fail(`${key} isn't ${count}`)
  await fleet.untilWhole()
  for (const server of fleet.servers) t.ok(owns((await viewOf(server)).find(({ at }) => at === to.at)!, slot))
  t.notMatch(String(await from.admin.cluster('NODES')), '->-', 'nothing is on the move any more')
  t.equal(await fleet.moveSlot(slot, to), 0, 'it is there already')
}

t.test('clusters without replicas start', async t => {
  const [one, two] = await Promise.all([1, 2].map(masters => startCluster(t, { masters, replicas: 0 }))) as [ClusterFleet, ClusterFleet]
  t.equal((await one.masters())[0], one.servers[0])
  t.equal(await one.ownerOf(16383), one.servers[0])
  t.equal(await two.ownerOf(16383), two.servers[1])
  // Two separate clusters, because a stale view lasts only milliseconds. The larger one has the higher epoch.
  for (const servers of [[...one.servers, ...two.servers], [...two.servers, ...one.servers]]) t.equal((await latestView(servers))?.length, 2)
})
