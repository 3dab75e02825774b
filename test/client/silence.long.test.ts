import { connect, createServer } from 'node:net'
import type { AddressInfo, Socket } from 'node:net'
import { once } from 'node:events'
import t from 'tap'
import type { Test } from 'tap'
import { clientTest } from '../helpers/client.ts'
import { HandoffClient } from '../../src/clients/typescript/index.ts'
import { secrets } from '../helpers/app.ts'
import { until } from '../helpers/until.ts'

/** A network that drops packets and closes nothing, as after a change of network or behind a NAT that has forgotten. */

interface Connection { inner: Socket, outer: Socket, dead: boolean, requests: string[] }

async function network (t: Test, address: string) {
  const connections: Connection[] = []
  const state = { drops: false }
  const server = createServer(outer => {
    const inner = connect(Number(new URL(address).port), '127.0.0.1')
    const connection: Connection = { inner, outer, dead: state.drops, requests: [] }
    connections.push(connection)
    for (const socket of [inner, outer]) socket.on('error', () => {})
    outer.on('data', chunk => {
      // A request's body may come alone.
      connection.requests.push(...chunk.toString().split('\r\n', 1).filter(line => /^(GET|POST) /.test(line)))
      if (!connection.dead) inner.write(chunk)
    })
    inner.on('data', chunk => { if (!connection.dead) outer.write(chunk) })
    outer.on('close', () => inner.destroy())
    inner.on('close', () => { if (!connection.dead) outer.destroy() })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    for (const { inner, outer } of connections) for (const socket of [inner, outer]) socket.destroy()
    server.close()
  })
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const lost = () => connections.filter(({ dead }) => dead).flatMap(({ requests }) => requests)
  const kill = () => { for (const connection of connections) Object.assign(connection, { dead: true, requests: [] }) }
  return { baseUrl, connections, state, lost, kill }
}

t.test('after an attempt that nobody answered the next goes out on a new connection', async t => {
  const service = await clientTest(t)
  const { baseUrl, connections, lost, kill } = await network(t, service.address)
  const alice = new HandoffClient({ baseUrl, key: secrets.alice, attemptTimeout: 2000 })
  const { handoff_id: id } = await alice.pass({ task: 't' })
  const asks = (path: RegExp) => until(() => connections.some(({ requests }) => requests.some(line => path.test(line))))
  // Two kept connections; the first is free when the network drops, and the second isn't.
  const first = alice.status(id, { wait: 1 })
  await asks(/wait=1 /)
  const second = alice.status(id, { wait: 6 })
  await asks(/wait=6 /)
  await first
  kill()
  t.match(await second, { status: 'pending' })
  t.strictSame(lost(), [], 'nothing went out on the first, which is as dead')
  t.ok(connections.length > 2)
})

t.test('a long wait is asked for only where somebody answers', async t => {
  const service = await clientTest(t)
  const { baseUrl, lost, kill, state } = await network(t, service.address)
  const bob = new HandoffClient({ baseUrl, key: secrets.bob, attemptTimeout: 1000, retryFor: 60_000 })
  await bob.inbox('w')
  kill()
  state.drops = true
  const next = bob.catchNext({ inbox: 'w', wait: 1 })
  const [waits, probes] = [/^POST \/api\/catch\?wait=1 /, /^GET \/healthz /]
  await until(() => lost().filter(line => probes.test(line)).length >= 3)
  t.equal(lost().filter(line => waits.test(line)).length, 1, 'the first; then short requests look whether there is somebody')
  state.drops = false
  const { handoff_id: id } = await service.client('alice').pass({ task: 't', to: 'w' })
  t.match(await next, [{ handoff_id: id }])
  t.equal(lost().filter(line => waits.test(line)).length, 1)
})
