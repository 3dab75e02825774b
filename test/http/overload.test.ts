import { EventEmitter, once } from 'node:events'
import { connect } from 'node:net'
import type { Socket } from 'node:net'
import t from 'tap'
import { isGone, onGone, onOver } from '../../src/http/connections.ts'
import { scriptCalls } from '../../src/redis/call.ts'
import type { ScriptCallMessage } from '../../src/redis/call.ts'
import { secrets, testApp } from '../helpers/app.ts'
import { ofOneReplica } from '../helpers/through.ts'
import { listen } from '../helpers/wire.ts'

/** What the answers of all batches hold at once is bounded, whoever asks for how much. */

t.test('a request is over once, when its answer is sent or its client has gone, also before', async t => {
  for (const how of ['sent', 'gone', 'gone before'] as const) {
    const [socket, response] = [Object.assign(new EventEmitter(), { destroyed: how === 'gone before' }), new EventEmitter()]
    const request = { raw: { socket }, response, isGone, onGone } as never
    let ends = 0
    onOver.call(request, () => { ends++ })
    if (how === 'sent') response.emit('close')
    socket.emit('close')
    response.emit('close')
    t.strictSame([ends, socket.listenerCount('close'), response.listenerCount('close')], [1, 0, 0], how)
  }
})

t.test('while a client does not read its batch’s large answer, another batch and a wait for many are read only when it is gone', { skip: ofOneReplica }, async t => {
  // One answer of these is more than what the system holds for a connection.
  const service = await testApp(t, { BODY_LIMIT: '300000', BATCH_LIMIT: '300000', BODIES_LIMIT: '600000' })
  const text = 'x'.repeat(250_000)
  // Different ones: statuses of the same one may share a read.
  const ids = await Promise.all(Array.from({ length: 100 }, async () => {
    const { handoff_id: id } = (await service.call('alice', 'POST', '/api/pass', { task: 't' })).json()
    await service.call('alice', 'GET', `/api/catch/${id}`)
    return id as string
  }))
  for (const id of ids) t.equal((await service.call('alice', 'POST', `/api/done/${id}`, { output: { text } })).statusCode, 200)
  // Only now: a service that listens sheds some of a hundred requests at once on a busy machine.
  const port = await listen(service.app)
  const connections: Socket[] = []
  service.app.server.on('connection', socket => connections.push(socket))
  const [id, other] = ids as [string, string]
  const body = JSON.stringify({ operations: ids.map(id => ({ op: 'status', id })) })
  let read = 0
  const afterwards: boolean[] = []
  const count = (message: unknown) => {
    const { script, answer } = message as ScriptCallMessage
    if (script !== 'status') return
    // Each is asked first whether it is large, which reads nothing.
    answer.then(reply => {
      if ((reply as { longer: number | null }).longer === null && ++read > 100) afterwards.push(connections[0]!.destroyed)
    }, () => {})
  }
  scriptCalls.subscribe(count)
  t.teardown(() => scriptCalls.unsubscribe(count))

  const deaf = connect({ port, host: '127.0.0.1' })
  t.teardown(() => deaf.destroy())
  deaf.on('error', () => {})
  deaf.write(`POST /api/batch HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${secrets.alice}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`)
  await once(deaf, 'readable')
  t.equal(read, 100, 'the first batch is read')
  const second = service.call('alice', 'POST', '/api/batch', body)
  const waited = service.call('alice', 'POST', '/api/wait', { ids: [id, other] })
  // Other requests go on meanwhile. Few: these two wait for 5 s at most.
  for (let at = 0; at < 5; at++) t.equal((await service.call('alice', 'GET', `/api/catch/${id}`)).statusCode, 409)
  deaf.destroy()
  const { results } = (await second).json() as { results: { status: number, body: { result: unknown } }[] }
  t.strictSame([...new Set(results.map(({ status }) => status))], [200])
  t.same((await waited).json().items.map((item: { result: unknown }) => item.result), [{ text }, { text }])
  t.ok(results.every(({ body }) => JSON.stringify(body.result) === JSON.stringify({ text })), 'each answer is whole')
  t.strictSame([...new Set(afterwards)], [true], 'nothing of it was read before the first connection was closed')
})

t.test('while clients do not read what they caught, another large one is caught only when one of them is gone', { skip: ofOneReplica }, async t => {
  // One answer of these is more than what the system holds for a connection.
  const service = await testApp(t, { BODY_LIMIT: '20000000', BATCH_LIMIT: '20000000', BODIES_LIMIT: '48000000' })
  const port = await listen(service.app)
  const output = { text: 'x'.repeat(12_000_000) }
  const ids: string[] = []
  for (let at = 0; at < 3; at++) ids.push((await service.call('alice', 'POST', '/api/pass', { task: 't', output })).json().handoff_id)
  let caught = 0
  const afterwards: boolean[] = []
  const deaf: Socket[] = []
  const count = (message: unknown) => {
    const { script, answer } = message as ScriptCallMessage
    // Each is asked first whether it is large, which catches nothing.
    if (script === 'catch') answer.then(() => { if (++caught > 2) afterwards.push(deaf[0]!.destroyed) }, () => {})
  }
  scriptCalls.subscribe(count)
  t.teardown(() => scriptCalls.unsubscribe(count))
  // The second goes beyond the room.
  for (const id of ids.slice(0, 2)) {
    const socket = connect({ port, host: '127.0.0.1' })
    deaf.push(socket)
    t.teardown(() => socket.destroy())
    socket.on('error', () => {})
    socket.write(`GET /api/catch/${id} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${secrets.alice}\r\n\r\n`)
    await once(socket, 'readable')
  }
  t.equal(caught, 2)
  const last = service.call('alice', 'GET', `/api/catch/${ids[2]}`)
  // What is small isn't held up.
  for (let at = 0; at < 5; at++) t.equal((await service.call('alice', 'GET', `/api/status/${ids[0]}`)).statusCode, 200)
  deaf[0]!.destroy()
  t.same((await last).json().output, output)
  t.strictSame(afterwards, [true])
})
