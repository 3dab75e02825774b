import { EventEmitter, once } from 'node:events'
import { connect } from 'node:net'
import type { Socket } from 'node:net'
import t from 'tap'
import type { Test } from 'tap'
import { isGone, onGone, onOver } from '../../src/http/connections.ts'
import { scriptCalls } from '../../src/redis/call.ts'
import type { ScriptCallMessage } from '../../src/redis/call.ts'
import { secrets, testApp } from '../helpers/app.ts'
import { ofOneReplica } from '../helpers/through.ts'
import { scrape } from '../helpers/metrics.ts'
import { listen, wire } from '../helpers/wire.ts'
import type { Wire } from '../helpers/wire.ts'

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
  let gone = 0
  onGone.call({ raw: { socket: Object.assign(new EventEmitter(), { destroyed: true }) } } as never, () => { gone++ })
  t.equal(gone, 1, 'who listens for a client that has gone already hears of it at once')
})

/** Keeps this process busy, as too many requests do. */
function work (milliseconds: number): void {
  const end = performance.now() + milliseconds
  while (performance.now() < end);
}

/** Sends a request on each connection within one long turn of the loop: the next turn finds them all. */
function sendTogether (all: readonly Wire[], request: string): void {
  for (const { send } of all) send(request)
  work(150)
}

async function connected (t: Test, port: number, count: number): Promise<Wire[]> {
  const all: Wire[] = []
  for (let at = 0; at < count; at++) {
    const one = await wire(t, port)
    one.send('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n')
    t.equal((await one.answer()).statusCode, 200)
    all.push(one)
  }
  return all
}

t.test('after a long turn, a turn that is long too serves the first requests, and holds back its refusal of the others', { skip: ofOneReplica }, async t => {
  const { app } = await testApp(t)
  const all = await connected(t, await listen(app), 80)
  let isBusy = true
  app.server.prependListener('request', () => { if (isBusy) work(3) })
  sendTogether(all, `GET /api/status/x HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${secrets.alice}\r\n\r\n`)
  const sent = performance.now()
  const answers = await Promise.all(all.map(async ({ answer }) => ({ ...await answer(), after: performance.now() - sent })))
  isBusy = false
  const shed = answers.filter(({ statusCode }) => statusCode === 503)
  t.strictSame([answers.filter(({ statusCode }) => statusCode === 404).length, shed.length], [64, 16])
  for (const { headers, after } of shed) {
    t.equal(headers['retry-after'], '1')
    t.ok(after > 990, `who doesn’t wait for Retry-After has waited for the answer: ${Math.round(after)} ms`)
  }
  t.equal((await scrape(app)).get('handoff_requests_refused_total{reason="shed"}'), 16)
  all[79]!.send('GET /api/status/x HTTP/1.1\r\nHost: x\r\n\r\n')
  t.equal((await all[79]!.answer()).statusCode, 401, 'afterwards all are served')
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
