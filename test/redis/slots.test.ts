import { EventEmitter, once } from 'node:events'
import { Redis } from 'ioredis'
import t from 'tap'
import { ClusterMasters, askSlots } from '../../src/redis/masters.ts'
import { startCluster } from '../faults/fleet/cluster.ts'
import { freePort } from '../faults/fleet/ports.ts'
import { loopback } from '../faults/fleet/process.ts'
import { startRedisServer } from '../faults/fleet/redis.ts'
import { skipInQuick } from '../helpers/extent.ts'
import { logSink } from '../helpers/log-sink.ts'
import { until } from '../helpers/until.ts'

t.test('asking an unreachable master again and again leaves no listeners behind', skipInQuick, async t => {
  const server = await startRedisServer(t)
  const [silent, away] = [new Redis(server.url), new Redis(await freePort(loopback), { retryStrategy: () => 50 })]
  t.teardown(() => [silent, away].forEach(redis => redis.disconnect()))
  for (const redis of [silent, away]) redis.on('error', () => {})
  const listeners = (redis: Redis) => ['ready', 'error', 'close'].map(name => redis.listenerCount(name))
  await once(silent, 'ready')
  server.pause()
  silent.disconnect(true)
  await once(silent, 'close')
  for (let look = 0; look < 5; look++) {
    const refused = await Promise.allSettled([silent, away].map(redis => askSlots(redis, { host: 'x', port: 1 })))
    t.ok(refused.every(({ status }) => status === 'rejected'))
  }
  // ioredis itself sometimes has one.
  for (const redis of [silent, away]) t.ok(listeners(redis).every(count => count <= 2), listeners(redis).join(', '))
  server.resume()
})

t.test('CLUSTER SLOTS is read when nodes announce host names', skipInQuick, async t => {
  const options = ['--cluster-preferred-endpoint-type', 'hostname']
  const { servers: [server] } = await startCluster(t, { masters: 1, replicas: 0, options })
  const { admin, port } = server!
  const asked = { host: 'asked', port: 1 }
  const hosts = async () => (await askSlots(admin, asked)).map(({ master }) => master)
  t.strictSame(await hosts(), [{ host: '127.0.0.1', port }], 'one without a name by its address')
  await admin.config('SET', 'cluster-announce-hostname', 'localhost')
  t.strictSame(await hosts(), [{ host: 'localhost', port }])
  await admin.config('SET', 'cluster-preferred-endpoint-type', 'unknown-endpoint')
  t.strictSame(await hosts(), [{ host: 'asked', port }], 'or as it was reached')
})

t.test('each reason why no node answers is logged once, also one that comes after another', async t => {
  const words = 'ERR max number of clients + cluster connections reached'
  const reasons = ['it took too long', words, 'it took too long', words, 'another']
  const open = () => {
    const redis = Object.assign(new EventEmitter(), { status: 'connecting', disconnect () {} })
    setImmediate(() => redis.emit('error', new Error(reasons.shift() ?? words)))
    return redis as unknown as Redis
  }
  const { log, lines } = logSink(t)
  const masters = new ClusterMasters({ kind: 'cluster', nodes: [{ host: 'x', port: 1 }], username: undefined, password: undefined, tls: false }, ['tag'], log, open)
  t.teardown(() => masters.close())
  await until(() => lines.some(line => line.includes('another')))
  t.strictSame(lines.map(line => JSON.parse(line).reason), ['it took too long', words, 'another'])
})
