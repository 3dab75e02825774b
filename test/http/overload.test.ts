import { EventEmitter, once } from 'node:events'
import { connect } from 'node:net'
import type { Socket } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import t from 'tap'
import { longAgo } from '../../src/handoffs/waiter.ts'
import { AnswerRoom } from '../../src/http/answer-room.ts'
import type { Answers } from '../../src/http/answer-room.ts'
import { isGone, onGone, onOver } from '../../src/http/connections.ts'
import { MasterTurns } from '../../src/http/overload.ts'
import { scriptCalls } from '../../src/redis/call.ts'
import type { ScriptCallMessage } from '../../src/redis/call.ts'
import { Problem, Unavailable } from '../../src/core/errors.ts'
import { callerOf } from '../../src/core/model.ts'
import { secrets, testApp } from '../helpers/app.ts'
import { grantOf } from '../helpers/stored-keys.ts'
import { ofOneReplica } from '../helpers/through.ts'
import { listen } from '../helpers/wire.ts'

/** What the answers of all batches hold at once is bounded, whoever asks for how much. */

/** Reads an answer of so many bytes. @returns the code of the refusal, or that it was read */
function read (batch: Answers, bytes: number): Promise<string> {
  return batch.read(100, async operation => await operation(), async () => ['read', bytes] as [string, number]).catch(error => error.code)
}

t.test('a tenant has half of the room, one batch goes beyond it, and others wait for it', async t => {
  const room = new AnswerRoom(1000, 60_000)
  const [first, second, third] = [room.open('a'), room.open('a'), room.open('b')]
  for (let at = 0; at < 20; at++) t.equal(await read(first, 100), 'read')
  t.equal(room.held, 500)
  let ended = 0
  const waiting = [1, 2, 3].map(() => read(second, 100).finally(() => { ended++ }))
  t.equal(await read(third, 100), 'read', 'another tenant’s')
  t.equal(await read(first, 100), 'read', 'the first goes on')
  t.equal(ended, 0)
  first.end()
  t.strictSame(await Promise.all(waiting), ['read', 'read', 'read'])
  t.equal(room.held, 400)
  second.end()
  third.end()
  third.end()
  t.equal(room.held, 0)
  for (const [bytes, counted] of [[500, 500], [501, 0]] as const) t.equal(new AnswerRoom(1000).take(room.open('a'), bytes), counted, `${bytes} of 1000`)
})

t.test('those that wait for room try one after the other', async t => {
  const room = new AnswerRoom(1000, 60_000)
  const [first, beyond] = [room.open('a'), room.open('a')]
  for (let at = 0; at < 5; at++) await read(first, 100)
  t.equal(await read(beyond, 100), 'read', 'the one that may go beyond it')
  let attempts = 0
  const waiting = Array.from({ length: 200 }, () => {
    const own = room.open('a')
    return own.read(100, async attempt => {
      attempts++
      return await attempt()
    }, async () => {
      await new Promise(resolve => setImmediate(resolve))
      return ['read', 50] as [string, number]
    }).finally(() => own.end())
  })
  await new Promise(resolve => setImmediate(resolve))
  t.equal(attempts, 200)
  first.end()
  t.strictSame([...new Set(await Promise.all(waiting))], ['read'])
  t.ok(attempts < 1200, `${attempts} attempts`)
})

t.test('one that is woken and gets no turn keeps none from what is free', async t => {
  const room = new AnswerRoom(1000, 60_000)
  const [first, beyond] = [room.open('a'), room.open('a')]
  for (let at = 0; at < 5; at++) await read(first, 100)
  await read(beyond, 100)
  let attempts = 0
  let letGo = () => {}
  const held = new Promise<void>(resolve => { letGo = resolve })
  const stuck = room.open('a').read(100, async attempt => {
    if (attempts++ > 0) await held
    return await attempt()
  }, async () => ['read', 100] as [string, number])
  const next = read(room.open('a'), 100)
  first.end()
  t.equal(await next, 'read')
  letGo()
  t.equal(await stuck, 'read')
})

t.test('what is read may be null, and who has no patience waits for no room', async t => {
  const room = new AnswerRoom(1000, 60_000)
  const [first, beyond, third] = [room.open('a'), room.open('a'), room.open('a')]
  t.equal(await first.read(500, attempt => attempt(), async () => [null, 500] as [null, number]), null)
  await read(beyond, 100)
  await t.rejects(third.read(100, attempt => attempt(), async () => ['read', 1] as [string, number], 0), { code: 'unavailable' })
})

t.test('an answer counts as what it has, once it is there, and nothing after the end', async t => {
  const room = new AnswerRoom(1000)
  const batch = room.open('a')
  t.equal(await read(batch, 7), 'read')
  t.equal(room.held, 7)
  await t.rejects(batch.read(100, async operation => await operation(), async () => { throw new Error('x') }), { message: 'x' })
  t.equal(room.held, 7)
  const late = batch.read(100, async operation => await operation(), async () => {
    t.equal(room.held, 107, 'while it is read, as the most that it can have')
    batch.end()
    return ['late', 50] as [string, number]
  })
  t.equal(await late, 'late')
  t.equal(await read(batch, 50), 'read')
  t.equal(room.held, 0)
})

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

t.test('what has waited long enough is refused unread', async t => {
  const room = new AnswerRoom(1000, 50)
  const [first, second] = [room.open('a'), room.open('a')]
  await Promise.all(Array.from({ length: 6 }, () => read(first, 100)))
  let runs = 0
  t.equal(await second.read(100, async operation => await operation(), async () => [runs++, 1]).catch(error => error.code), 'unavailable')
  t.equal(runs, 0)
  first.end()
  t.equal(await read(second, 100), 'read')
})

t.test('while a client does not read its batch’s large answer, another batch and a wait for many are read only when it is gone', { skip: ofOneReplica }, async t => {
  // One answer of these is more than what the system holds for a connection.
  const service = await testApp(t, { BODY_LIMIT: '300000', BATCH_LIMIT: '300000', BODIES_LIMIT: '600000' })
  const port = await listen(service.app)
  const connections: Socket[] = []
  service.app.server.on('connection', socket => connections.push(socket))
  const text = 'x'.repeat(250_000)
  // Different ones: statuses of the same one may share a read.
  const ids = await Promise.all(Array.from({ length: 100 }, async () => {
    const { handoff_id: id } = (await service.call('alice', 'POST', '/api/pass', { task: 't' })).json()
    await service.call('alice', 'GET', `/api/catch/${id}`)
    return id as string
  }))
  for (const id of ids) t.equal((await service.call('alice', 'POST', `/api/done/${id}`, { output: { text } })).statusCode, 200)
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

/** Operations that end when they are told to. */
function operations (turns: MasterTurns) {
  const begun: string[] = []
  const ends = new Map<string, { answer: () => void, fail: () => void }>()
  const ask = (name: string, { master = 'm', tenant = 'acme' } = {}) => turns.run(master, tenant, () => new Promise<string>((resolve, reject) => {
    begun.push(name)
    ends.set(name, { answer: () => resolve(name), fail: () => reject(new Unavailable('silent')) })
  })).catch((error: unknown) => error instanceof Unavailable ? `${name} refused` : Promise.reject(error))
  const settle = () => new Promise(resolve => setImmediate(resolve))
  return {
    begun,
    ask,
    settle,
    async end (how: 'answer' | 'fail', ...names: string[]) {
      for (const name of names) ends.get(name)![how]()
      await settle()
    },
  }
}

t.test('a few at a time, and tenants take turns', async t => {
  const { begun, ask, settle, end } = operations(new MasterTurns(2))
  const all = ['a1', 'a2', 'a3', 'a4', 'a5', 'a6'].map(name => ask(name))
  await settle()
  t.strictSame(begun, ['a1', 'a2'])
  all.push(ask('b1', { tenant: 'other' }))
  await end('answer', 'a1')
  t.strictSame(begun, ['a1', 'a2', 'b1'], 'before what came before it')
  all.push(ask('b2', { tenant: 'other' }))
  await end('answer', 'a2', 'b1')
  t.strictSame(begun.slice(3).sort(), ['a3', 'b2'])
  await end('answer', 'a3', 'b2')
  await end('answer', 'a4', 'a5')
  await end('answer', 'a6')
  t.strictSame((await Promise.all(all)).sort(), ['a1', 'a2', 'a3', 'a4', 'a5', 'a6', 'b1', 'b2'])
})

t.test('masters don’t wait for each other', async t => {
  const { begun, ask, settle, end } = operations(new MasterTurns(1))
  const all = [ask('a'), ask('b'), ask('c', { master: 'n' })]
  await settle()
  t.strictSame(begun, ['a', 'c'])
  await end('fail', 'a')
  await end('answer', 'c')
  t.strictSame(await Promise.all(all), ['a refused', 'b refused', 'c'])
})

t.test('what waited for a silent master is refused and not run, what comes later asks again', async t => {
  const { begun, ask, settle, end } = operations(new MasterTurns(2))
  const all = ['a', 'b', 'c', 'd', 'e'].map(name => ask(name))
  await settle()
  await end('answer', 'a')
  t.strictSame(begun, ['a', 'b', 'c'], 'it answered after those that wait had come, and then no more')
  await end('fail', 'b', 'c')
  t.strictSame(await Promise.all(all), ['a', 'b refused', 'c refused', 'd refused', 'e refused'])
  t.strictSame(begun, ['a', 'b', 'c'])
  const next = ask('f')
  await settle()
  await end('answer', 'f')
  t.equal(await next, 'f')
})

t.test('what waits for too long is refused and not run, and takes no turn', async t => {
  const turns = new MasterTurns(1, 20)
  const { begun, ask, settle, end } = operations(turns)
  const first = ask('a')
  const late = await Promise.all(['b', 'c'].map((name, at) => turns.run('m', at === 0 ? 'acme' : 'other', async () => begun.push(name)).catch(error => error)))
  for (const error of late) t.match(error, { code: 'unavailable', more: { headers: { 'retry-after': '1' } } })
  await end('answer', 'a')
  t.equal(await first, 'a', 'what has begun is not given up')
  const next = ask('d')
  await settle()
  t.strictSame(begun, ['a', 'd'])
  await end('answer', 'd')
  t.equal(await next, 'd')
})

t.test('nothing is run for a client that has gone, or whose key has ended, while it waited', async t => {
  const turns = new MasterTurns(1)
  const { begun, ask, settle, end } = operations(turns)
  const first = ask('a')
  const grant = grantOf(() => callerOf('acme', 'ann', ['status']))
  const ended = grantOf(() => Promise.reject(new Problem('unauthorized')))
  const askers = [{ isGone: () => true, grant: () => grant }, { isGone: () => false, grant: () => ended }, { isGone: () => false, grant: () => grant }]
  const all = askers.map((asker, at) => turns.run('m', 'acme', async () => begun.push(String(at)), asker).catch(error => error.code))
  await settle()
  await setTimeout(longAgo + 1)
  await end('answer', 'a')
  t.strictSame(await Promise.all([first, ...all]), ['a', 'request_timeout', 'unauthorized', 2])
  t.strictSame(begun, ['a', '2'])
})

t.test('one that alone isn’t answered ends no others', async t => {
  const { begun, ask, settle, end } = operations(new MasterTurns(2))
  const all = ['a', 'b', 'c', 'd'].map(name => ask(name))
  await settle()
  await end('answer', 'b')
  await end('fail', 'a')
  t.strictSame(begun, ['a', 'b', 'c', 'd'])
  await end('answer', 'c', 'd')
  t.strictSame(await Promise.all(all), ['a refused', 'b', 'c', 'd'])
})
