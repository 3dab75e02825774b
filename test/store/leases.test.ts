import t from 'tap'
import { tags } from '../../src/core/ids.ts'
import { startCluster } from '../faults/fleet/cluster.ts'
import { skipInQuick } from '../helpers/extent.ts'
import { placeIn, untilServing } from '../helpers/handoffs.ts'
import { fleetStore } from '../helpers/redis.ts'
import { until } from '../helpers/until.ts'

t.test('a master that is connected and acknowledges nothing doesn’t keep a lease from its replicas', skipInQuick, async t => {
  const { servers: [first, second, replicaOfFirst], url } = await startCluster(t, { masters: 2, replicas: 1 })
  const [one, other] = [fleetStore(t, url, { replicas: 1 }), fleetStore(t, url, { replicas: 1 })]
  for (const { handoffs } of [one, other]) for (const tag of [tags[0]!, tags.at(-1)!]) await untilServing(handoffs, placeIn(tag))
  t.equal(await one.takeDelivering(100), true)
  await replicaOfFirst!.kill()
  await until(async () => /^connected_slaves:0\r$/m.test(await first!.admin.info('replication')))
  await Promise.all([one, other].map(store => t.rejects(store.takeDelivering(60_000), { name: 'Unavailable' })))
  t.equal(await one.takeDelivering(60_000), true)
  t.equal(await other.takeDelivering(60_000), false, 'one holds it')
  t.equal((await second!.admin.keys('*deliverer')).length, 1)
})
