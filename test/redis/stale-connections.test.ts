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

/** Connections one after another: which former ones each has closed. @param end what becomes of a request to close one */
function story () {
  const stale = new StaleConnections()
  let last = 0
  return async (server: string, end: (id: number) => Promise<unknown> = async () => 1) => {
    const closed: number[] = []
    const id = ++last
    const call = async (_: string, what: string, __: string, former: string) => {
      if (what === 'INFO') return `id=${id} addr=us:${id} laddr=${server} fd=8`
      closed.push(Number(former))
      return end(Number(former))
    }
    await stale.end({ call } as unknown as Redis)
    return closed
  }
}

t.test('a stale connection is closed until its server has answered, whatever it said', async t => {
  const connect = story()
  const refuses = () => Promise.reject(Object.assign(new Error('ERR No such client'), { name: 'ReplyError' }))
  const breaks = () => Promise.reject(new Error('Connection is closed.'))
  t.strictSame([await connect('here'), await connect('here', breaks), await connect('here', refuses), await connect('here')], [[], [1], [1, 2], [3]])
})

t.test('of servers that don’t come back, the latest are remembered', async t => {
  const connect = story()
  for (let n = 1; n < 12; n++) await connect(`server-${n}`)
  t.strictSame(await connect('the last'), [3, 4, 5, 6, 7, 8, 9, 10, 11])
})
