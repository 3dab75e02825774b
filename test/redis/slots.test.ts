import { EventEmitter, once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import slotOf from 'cluster-key-slot'
import { Redis } from 'ioredis'
import t from 'tap'
import type { Host } from '../../src/core/redis-url.ts'
import { ClusterMasters, askSlots } from '../../src/redis/masters.ts'
import { startCluster } from '../faults/fleet/cluster.ts'
import { freePort } from '../faults/fleet/ports.ts'
import { loopback } from '../faults/fleet/process.ts'
import { startRedisServer } from '../faults/fleet/redis.ts'
import { skipInQuick } from '../helpers/extent.ts'
import { logSink } from '../helpers/log-sink.ts'
import { quiet } from '../helpers/redis.ts'
import { until } from '../helpers/until.ts'
import { inVirtualTime } from '../helpers/virtual-time.ts'

const address = { kind: 'cluster', username: undefined, password: undefined, tls: false } as const

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
  const masters = new ClusterMasters({ ...address, nodes: [{ host: 'x', port: 1 }] }, ['tag'], log, open)
  t.teardown(() => masters.close())
  await until(() => lines.some(line => line.includes('another')))
  t.strictSame(lines.map(line => JSON.parse(line).reason), ['it took too long', words, 'another'])
})

/** What a node says of the slots: the last of each range, and the address of its master. */
type Says = Array<[end: number, name: string]>

/** A Cluster whose nodes all say the same, in virtual time: when which is asked, and which are left. */
function clusterIn (says: { now: Says }) {
  const asked: Array<[time: number, node: string]> = []
  const open = ({ host, port }: Host) => {
    const name = `${host}:${port}`
    return Object.assign(new EventEmitter(), {
      status: 'ready',
      name,
      isLeft: false,
      disconnect () { this.isLeft = true },
      async cluster () {
        asked.push([Math.round(performance.now()), name])
        const of = (name: string) => [name.slice(0, -2), Number(name.slice(-1)), 'id']
        return says.now.map(([end, name], at) => [(says.now[at - 1]?.[0] ?? -1) + 1, end, of(name)])
      }
    }) as unknown as Redis & { name: string, isLeft: boolean }
  }
  const masters = new ClusterMasters({ ...address, nodes: [{ host: 'seed', port: 1 }] }, ['aaa', 'bbb'], quiet, open)
  const calls = (tag: string) => masters.of(tag)!.calls as ReturnType<typeof open>
  return { masters, asked, calls, names: () => ['aaa', 'bbb'].map(tag => masters.of(tag)?.name) }
}

const [first, second] = ['aaa', 'bbb'].map(slotOf).sort((a, b) => a - b) as [number, number]
const [lower, upper] = slotOf('aaa') === first ? ['aaa', 'bbb'] : ['bbb', 'aaa']

t.test('the map has each range’s first and last slot; a master that has none any more is left', async t => {
  const seen = await inVirtualTime(async () => {
    const says: { now: Says } = { now: [[first, 'a:1'], [second - 1, 'c:3'], [16_383, 'b:2']] }
    const { masters, asked, calls, names } = clusterIn(says)
    let changes = 0
    masters.onChange(() => { changes++ })
    await sleep(1)
    const before = [names(), calls(lower), calls(upper)] as const
    says.now = [[16_383, 'b:2']]
    await sleep(300)
    const all = [...masters.all()].map(({ name, tags }) => [name, ...tags])
    const left = before.slice(1).map(calls => (calls as { isLeft: boolean }).isLeft)
    masters.close()
    return { names: before[0], all, left, changes, asked }
  })
  t.strictSame(seen, {
    names: lower === 'aaa' ? ['a:1', 'b:2'] : ['b:2', 'a:1'],
    all: [['b:2', 'aaa', 'bbb']],
    left: [true, false],
    changes: 2,
    asked: [[0, 'seed:1'], [200, 'c:3']]
  })
})

t.test('MOVED changes the map at once, ASK doesn’t; the nodes are asked often while the map is in doubt', async t => {
  const seen = await inVirtualTime(async () => {
    const { masters, asked, calls, names } = clusterIn({ now: [[16_383, 'a:1']] })
    let changes = 0
    masters.onChange(() => { changes++ })
    /** How often they are asked within so many milliseconds. */
    const askedIn = async (milliseconds: number) => {
      const before = asked.length
      await sleep(milliseconds)
      return asked.length - before
    }
    const begun = [await askedIn(2001), await askedIn(50_000)]
    const asks = [masters.redirected('ASK 1 ::1:6'), masters.redirected('MOVED 1 :6')].map(master => master?.name)
    const after = { ask: [names(), changes] as unknown[], moved: [] as unknown[] }
    await sleep(50_000)
    masters.redirected('ASK 1 d:4')
    const quiet = await askedIn(1000)
    masters.redirected(`MOVED ${slotOf('aaa')} d:4`)
    after.moved.push(names(), changes, [...masters.all()].map(({ name, tags }) => [name, ...tags]))
    const moved = [await askedIn(2001), await askedIn(50_000)]
    calls('bbb').emit('close')
    const closed = await askedIn(1)
    const one = masters.of('aaa')!
    one.calls.emit('error', new Error('away'))
    const troubles = [one.trouble?.message]
    one.calls.emit('ready')
    troubles.push(one.trouble?.message)
    masters.close()
    return { begun, asks, after, quiet, moved, closed, troubles }
  })
  t.strictSame(seen, {
    begun: [11, 5],
    asks: ['::1:6', undefined],
    after: { ask: [['a:1', 'a:1'], 1], moved: [['d:4', 'a:1'], 3, [['a:1', 'bbb'], ['d:4', 'aaa']]] },
    quiet: 0,
    moved: [11, 5],
    closed: 1,
    troubles: ['away', undefined]
  })
})

t.test('a node without a host name is known by its address, and else as it was reached', async t => {
  const said = (...node: unknown[]) => ({ status: 'ready', cluster: async () => [[0, 16_383, node]] }) as unknown as Redis
  const at = async (redis: Redis) => (await askSlots(redis, { host: 'asked', port: 1 }))[0]!.master
  t.strictSame(await at(said('?', 7000, 'id', ['ip', '10.0.0.1'])), { host: '10.0.0.1', port: 7000 })
  t.strictSame(await at(said(null, 7000, 'id', [])), { host: 'asked', port: 7000 })
})
