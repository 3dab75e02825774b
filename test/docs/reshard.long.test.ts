import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import t from 'tap'
import { tags } from '../../src/core/ids.ts'
import { which } from '../../src/embedded/binary.ts'
import type { HandoffPlace } from '../../src/store/handoffs.ts'
import { startCluster } from '../faults/fleet/cluster.ts'
import type { RedisServer } from '../faults/fleet/redis.ts'
import { pass, placeIn, untilServing } from '../helpers/handoffs.ts'
import { fleetStore } from '../helpers/redis.ts'

const client = await which('redis-cli')

t.test('redis-cli moves slots to a master without any, under load', { skip: client === undefined && 'no redis-cli (Debian: redis-tools)', timeout: 180_000 }, async t => {
  const cluster = await startCluster(t, { masters: 2, empty: 1, nodeTimeoutMs: 5000 })
  const [source] = cluster.servers as [RedisServer]
  const [target] = cluster.empty as [RedisServer]
  const { handoffs } = fleetStore(t, cluster.url, { replicas: 1 })
  await untilServing(handoffs)
  const places = tags.flatMap(tag => [placeIn(tag), placeIn(tag)])
  await Promise.all(places.map(place => pass(handoffs, place)))
  const lost: HandoffPlace[] = []
  const look = async (place: HandoffPlace) => {
    if ((await handoffs.status(place)).outcome !== 'found') lost.push(place)
  }
  const over = new AbortController()
  const replies = Promise.all(Array.from({ length: 8 }, async (_, agent) => {
    for (let at = agent; !over.signal.aborted; at += 8) await look(places[(at * 37) % places.length]!)
  }))
  const [from, to] = await Promise.all([source, target].map(({ admin }) => admin.cluster('MYID')))
  const options = ['--cluster-from', String(from), '--cluster-to', String(to), '--cluster-slots', '2500', '--cluster-yes']
  await promisify(execFile)('redis-cli', ['--cluster', 'reshard', source.at, ...options], { maxBuffer: 1e8 })
  over.abort()
  await replies
  await Promise.all(places.map(look))
  t.strictSame(lost, [], 'each was found whenever somebody looked')
})
