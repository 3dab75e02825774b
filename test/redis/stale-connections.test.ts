import { Redis } from 'ioredis'
import t from 'tap'
import { StaleConnections } from '../../src/redis/stale-connections.ts'
import { startRedisServer } from '../faults/fleet/redis.ts'

t.test('after a failover to another server and back, the first server still closes our stale connections', async t => {
  const [first, second] = await Promise.all([startRedisServer(t), startRedisServer(t)])
  const connections: Redis[] = []
  t.teardown(() => { for (const redis of connections) redis.disconnect() })
  const connect = (port: number) => {
    const redis = new Redis({ host: '127.0.0.1', port, retryStrategy: () => null })
    redis.on('error', () => {})
    connections.push(redis)
    return redis
  }
  const idsAt = async (port: number) => [...String(await connect(port).client('LIST')).matchAll(/^id=(\d+) /gm)].map(([, id]) => Number(id))

  const stale = new StaleConnections()
  // It stands for a connection that broke on the way: the server still has its end.
  const left = connect(first.port)
  await stale.end(left)
  const id = await left.client('ID')
  await stale.end(connect(second.port))
  t.ok((await idsAt(first.port)).includes(id), 'nobody there was told')
  await stale.end(connect(first.port))
  t.notOk((await idsAt(first.port)).includes(id))
})
