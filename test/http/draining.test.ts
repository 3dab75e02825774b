import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { secrets, testApp } from '../helpers/app.ts'
import { ofOneReplica } from '../helpers/through.ts'
import { until } from '../helpers/until.ts'
import { asleep, passed } from '../helpers/waits.ts'
import { deaf, listen, wire } from '../helpers/wire.ts'

const as = (who: keyof typeof secrets) => `Host: x\r\nAuthorization: Bearer ${secrets[who]}\r\n`
const get = (path: string, who: keyof typeof secrets = 'bob') => `GET ${path} HTTP/1.1\r\n${as(who)}\r\n`
/** More than all buffers between the two ends of a connection hold. */
const large = JSON.stringify({ task: 't', output: { text: 'x'.repeat(20_000_000) } })

t.test('a waiter from before the drain is told that the connection closes, and it does', async t => {
  const service = await testApp(t)
  const id = await passed(service)
  const { send, answer, ended } = await wire(t, await listen(service.app))
  send(get(`/api/status/${id}?wait=30`))
  await asleep(service, id)
  service.app.draining.start()
  const heard = await answer()
  t.equal(heard.statusCode, 200)
  t.equal(heard.headers.connection, 'close')
  await ended
})

t.test('closing ends idle and stuck connections by itself, and nothing under way', { skip: ofOneReplica }, async t => {
  // Longer than the test takes on any machine: nothing is cut because it is late.
  const { app } = await testApp(t, { DRAIN_TIMEOUT: '60000' })
  // Not from Redis: on a busy machine that doesn't answer with so much in time.
  app.get('/large', { schema: { hide: true } }, (_, reply) => reply.send(large))
  const port = await listen(app)
  const silent = await wire(t, port)
  const idle = await wire(t, port)
  idle.send(get('/healthz'))
  await idle.answer()
  const half = await wire(t, port)
  const [first, rest] = ['{"task"', ':"t"}']
  half.send(`POST /api/pass HTTP/1.1\r\n${as('alice')}Content-Type: application/json\r\nContent-Length: ${first.length + rest.length}\r\n\r\n${first}`)
  const slow = await deaf(t, port, get('/large'))
  await until(() => slow.readableLength > 0)

  app.draining.start()
  const closed = app.close()
  // Longer than the interval between checks of the connections, and longer than closing would take to cut them.
  await sleep(600)
  let read = 0
  slow.on('data', some => { read += some.length })
  await once(slow, 'close')
  t.ok(read > large.length, `the slow one has read ${read} bytes, all of them`)
  half.send(rest)
  const heard = await half.answer()
  t.equal(heard.statusCode, 201)
  t.equal(heard.headers.connection, 'close')
  await Promise.all([closed, silent.ended, idle.ended])
  t.equal(app.draining.cut, 0, 'closed without having cut anybody, whoever sent nothing')
})

t.test('a connection whose answer had begun before the drain ends with that answer', { skip: ofOneReplica, timeout: 20_000 }, async t => {
  const { app } = await testApp(t, { DRAIN_TIMEOUT: '60000' })
  let held: ServerResponse | undefined
  app.get('/held', { schema: { hide: true } }, (_, reply) => { held = reply.hijack().raw.writeHead(200, { 'content-length': 2 }) })
  const { send, answer, ended } = await wire(t, await listen(app))
  send(get('/held'))
  await until(() => held !== undefined)
  app.draining.start()
  const closed = app.close()
  await until(() => !app.server.listening)
  held!.end('ok')
  t.notHas((await answer()).headers, { connection: 'close' })
  await Promise.all([closed, ended])
  t.equal(app.draining.cut, 0)
})
