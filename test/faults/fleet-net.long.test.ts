import { once } from 'node:events'
import t from 'tap'
import { run as execute } from '../../src/embedded/programs.ts'
import { until } from '../helpers/until.ts'
import { asked } from './fleet/ask.ts'
import { startNet, whyNoNamespaces, type NetHost } from './fleet/net.ts'
import { run } from './fleet/process.ts'
import { startRedisServer, type RedisServer } from './fleet/redis.ts'
import { startServiceReplica } from './fleet/service.ts'

const skip = await whyNoNamespaces() ?? false

/** Tries to connect from a host: 'open', or 'late' if nothing happened within half a second. */
async function connection (from: NetHost, { host, port }: RedisServer): Promise<string> {
  const code = `const socket = require('net').connect(${port}, '${host.address}', () => end('open'))
    socket.on('error', error => end(error.code))
    setTimeout(() => end('late'), 500)
    const end = how => { process.stdout.write(how); process.exit() }`
  const client = run(from, process.execPath, ['-e', code], { stdio: ['ignore', 'pipe', 'inherit'] })
  const [said] = await once(client.child.stdout!, 'data')
  await client.ended
  return String(said)
}

/** Whether a datagram arrives. UDP, because TCP would need packets in both directions. */
async function arrives (from: NetHost, to: NetHost): Promise<boolean> {
  const start = async (host: NetHost, program: string) => {
    const code = `const socket = require('dgram').createSocket('udp4'); ${program}`
    const peer = run(host, process.execPath, ['-e', code], { stdio: ['ignore', 'pipe', 'inherit'] })
    const [said] = await once(peer.child.stdout!, 'data')
    return { peer, said: String(said) }
  }
  const { peer, said: port } = await start(to, `socket.bind(0, '${to.address}', () => process.stdout.write(String(socket.address().port)))
    socket.on('message', () => { process.exit(0) })`)
  await start(from, `socket.send('x', ${port}, '${to.address}', () => { process.stdout.write('sent'); socket.close() })`)
  const late = setTimeout(() => peer.kill(), 500)
  const how = await peer.ended
  clearTimeout(late)
  return how === 0
}

t.test('hosts of a private network can be cut off and healed', { skip }, async t => {
  const net = await startNet(t, 3)
  const [a, b, c] = net.hosts as [NetHost, NetHost, NetHost]
  const master = await startRedisServer(t, { host: a, options: ['--notify-keyspace-events', 'Ex'] })
  const replica = await startRedisServer(t, { host: b, options: ['--replicaof', `${a.address} ${master.port}`] })
  const onReplica = (key: string, within: number) => until(async () => await replica.admin.get(key), within).catch(() => null)
  await master.admin.set('before', 'x')
  t.equal(await onReplica('before', 5000), 'x')
  t.equal(await connection(b, master), 'open')

  await t.test('two groups are cut off from each other in both directions', async t => {
    await net.cut([a, c], [b])
    const pairs = [[a, b], [b, a], [c, b], [b, c], [a, c], [c, a]] as const
    t.strictSame(await Promise.all(pairs.map(pair => arrives(...pair))), [false, false, false, false, true, true])
    t.equal(await connection(b, master), 'late')
    t.equal(await connection(c, master), 'open', 'within a group it goes on')
    await master.admin.set('cut', 'x')
    t.equal(await onReplica('cut', 500), null)
    await net.heal()
    t.equal(await connection(b, master), 'open')
    t.equal(await onReplica('cut', 10_000), 'x')
  })

  await t.test('a host’s replies are lost, requests to it are not', async t => {
    await net.cutOneWay([a], [net.here])
    t.strictSame(await Promise.all([arrives(a, net.here), arrives(net.here, a)]), [false, true])
    const answer = master.admin.set('unanswered', 'x')
    t.equal(await onReplica('unanswered', 2000), 'x')
    t.equal(await asked(answer, 300), undefined)
    await net.heal()
    t.equal(await answer, 'OK')
  })

  await t.test('requests to a host are lost, its own messages are not', async t => {
    const listener = master.admin.duplicate({ lazyConnect: false })
    t.teardown(() => listener.disconnect())
    await listener.subscribe('__keyevent@0__:expired')
    await master.admin.set('short', 'x', 'PX', 300)
    await net.cutOneWay([net.here], [a])
    const question = master.admin.set('lost', 'x')
    t.strictSame(await once(listener, 'message', { signal: AbortSignal.timeout(5000) }), ['__keyevent@0__:expired', 'short'])
    t.equal(await onReplica('lost', 500), null)
    await net.heal()
    t.equal(await question, 'OK', 'TCP sends it again')
    t.equal(await onReplica('lost', 5000), 'x')
  })

  await t.test('a service on a host uses the private network', async t => {
    const service = await startServiceReplica(t, { host: c, env: { REDIS_URL: master.url } })
    t.match(service.url, `http://${c.address}:`)
    const ready = async () => (await fetch(`${service.url}/readyz`, { signal: AbortSignal.timeout(4000) })).status
    await until(async () => await ready() === 200)
    await net.cut([c], [a])
    t.ok(await until(async () => await ready() === 503, 10_000))
    await net.heal()
    t.ok(await until(async () => await ready() === 200, 10_000))
  })
})

t.test('nothing of a private network is left behind', { skip }, async t => {
  const left = async () => {
    const { stdout } = await execute('ip', ['-o', 'link'])
    return stdout.includes(`ah${process.pid}-`) || (await execute('ip', ['netns'])).stdout.includes(`ah${process.pid}-`)
  }
  await t.test('a run', async t => {
    await startNet(t, 1)
    t.ok(await left())
  })
  t.ok(await until(async () => !await left()))
})
