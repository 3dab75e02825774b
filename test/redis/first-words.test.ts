import { once } from 'node:events'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import type { Redis } from 'ioredis'
import t from 'tap'
import type { Test } from 'tap'
import { Unavailable } from '../../src/core/errors.ts'
import { reasonOf } from '../../src/cli/redis.ts'
import { tags } from '../../src/core/ids.ts'
import { parseRedisUrl } from '../../src/core/redis-url.ts'
import type { Standalone } from '../../src/core/redis-url.ts'
import { connect } from '../../src/redis/connect.ts'
import { openStore } from '../../src/store/store.ts'
import { freePort } from '../faults/fleet/ports.ts'
import { loopback } from '../faults/fleet/process.ts'
import { startRedisServer } from '../faults/fleet/redis.ts'
import { skipInQuick } from '../helpers/extent.ts'
import { logSink } from '../helpers/log-sink.ts'
import { until } from '../helpers/until.ts'

function open (t: Test, url: string) {
  const { log, lines } = logSink(t)
  const store = openStore({ url, keyPrefix: 'x', tags, workTtl: 1000, retention: 1000, replicas: 0, log })
  t.teardown(() => store.close())
  return { store, seen: (text: string) => lines.filter(line => line.includes(text)).length }
}

const meaning = 'Redis has as many clients as its maxclients allows; raise it, or close other clients.'

/** @param admin the only client that this Redis lets in @param full its words */
async function tellsFull (t: Test, url: string, admin: Redis, full = 'max number of clients reached'): Promise<void> {
  await admin.config('SET', 'maxclients', '1')
  const { store, seen } = open(t, url)
  await until(() => seen(full) > 0)
  // Whoever connects is told now and again that the connection was reset; the words come with the next attempt.
  await until(async () => await store.whyNotReady() === meaning)
  await until(async () => (await reasonOf(store, new Unavailable('it is away'))) === `${meaning} (ERR ${full})`)
  t.ok(seen(full) <= 2, 'once per connection, not per attempt')
  await admin.config('SET', 'maxclients', '100')
  await until(async () => await store.whyNotReady() === null)
}

t.test('at maxclients Redis’s own words are told, over TCP', async t => {
  const { url, admin } = await startRedisServer(t)
  await tellsFull(t, url, admin)
})

t.test('a server’s own words are told also when they take a while to come', async t => {
  // It ends what writes first.
  const server = createServer(socket => {
    const timer = setTimeout(() => socket.end('-ERR so it is\r\n'), 50)
    socket.once('data', () => socket.resetAndDestroy()).on('error', () => {}).on('close', () => clearTimeout(timer))
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => server.close())
  const { log, lines } = logSink(t)
  const redis = connect(parseRedisUrl(`redis://127.0.0.1:${(server.address() as AddressInfo).port}`) as Standalone, log)
  t.teardown(() => redis.disconnect())
  await until(() => lines.some(line => JSON.parse(line).reason === 'ERR so it is'))
})

t.test('at maxclients Redis’s own words are told, by the Sentinels’ master', skipInQuick, async t => {
  const { port, admin } = await startRedisServer(t)
  const sentinelPort = await freePort(loopback)
  await startRedisServer(t, { sentinel: true, port: sentinelPort, options: ['--sentinel', `monitor handoffs 127.0.0.1 ${port} 1`] })
  // The Sentinel has two connections of its own, which maxclients doesn't end.
  await tellsFull(t, `redis+sentinel://127.0.0.1:${sentinelPort}/handoffs`, admin)
})

t.test('at maxclients Redis’s own words are told, by a node of a Cluster', skipInQuick, async t => {
  const bus = await freePort(loopback)
  const { port, admin } = await startRedisServer(t, { options: ['--cluster-enabled', 'yes', '--cluster-port', String(bus)] })
  await admin.call('CLUSTER', 'ADDSLOTSRANGE', 0, 16383)
  await tellsFull(t, `redis+cluster://127.0.0.1:${port}`, admin, 'max number of clients + cluster connections reached')
})
