import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import t from 'tap'
import type { Test } from 'tap'
import { inboxTag } from '../../src/core/ids.ts'
import { secrets, testApp } from '../helpers/app.ts'
import type { TestApp, Who } from '../helpers/app.ts'
import { inboxWaiters } from '../helpers/metrics.ts'
import { ownRedis } from '../helpers/own-redis.ts'
import { isProblem } from '../helpers/problems.ts'
import { bearer, newKey } from '../helpers/stored-keys.ts'
import { until } from '../helpers/until.ts'
import { listen, wire } from '../helpers/wire.ts'

/** Where two things meet at an inbox or in a batch: two requests with one key, a replay and a waiter, a client that leaves too early. */

const pass = async ({ call }: TestApp, to: string, more: object = {}): Promise<string> =>
  (await call('alice', 'POST', '/api/pass', { task: 't', to, ...more })).json().handoff_id
const next = ({ call }: TestApp, inbox: string, wait = 0, key?: string, who: Who = 'bob') =>
  call(who, 'POST', wait === 0 ? '/api/catch' : `/api/catch?wait=${wait}`, { inbox }, key === undefined ? {} : { 'idempotency-key': key })
const idsOf = (answer: { json (): { items: { handoff_id: string }[] } }) => answer.json().items.map(({ handoff_id: id }) => id)
const areWaiting = (service: TestApp, count: number) => until(async () => await inboxWaiters(service.app) === count)
/** Has the replica listen to the inbox, as it does for some seconds after each request. */
const heard = async (service: TestApp, inbox: string) => { t.strictSame(idsOf(await next(service, inbox, 1)), []) }

/** A way to Redis that breaks a connection instead of passing on a reply that contains a word. */
async function losing (t: Test, path: string): Promise<{ url: string, loseNext (word: string): void, isLost (): boolean }> {
  let lose: string | undefined
  const server = createServer(client => {
    const redis = connect(path)
    const end = () => { client.destroy(); redis.destroy() }
    for (const side of [client, redis]) side.on('error', end).on('close', end)
    client.pipe(redis)
    redis.on('data', some => {
      if (lose === undefined || !some.includes(lose)) return client.write(some)
      lose = undefined
      end()
    })
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => server.close())
  return { url: `redis://127.0.0.1:${(server.address() as AddressInfo).port}`, loseNext: word => { lose = word }, isLost: () => lose === undefined }
}

const inboxes = ['a', 'b', 'c', 'd', 'e']

t.test('a replay says nothing about what is left: who waits next gets that', async t => {
  const service = await testApp(t)
  // Which of the three is answered last isn't known; one of the inboxes may go well.
  for (const inbox of inboxes) {
    await heard(service, inbox)
    for (let i = 0; i < 3; i++) await pass(service, inbox)
    const three = await Promise.all([1, 2, 3].map(() => next(service, inbox, 0, `${inbox}-key`)))
    t.equal(new Set(three.flatMap(idsOf)).size, 1)
    t.equal(idsOf(await next(service, inbox, 1)).length, 1, `inbox ${inbox}: two are in it`)
  }
})

t.test('a reply that is lost, and asked for again, says nothing about what is left', async t => {
  const redis = await ownRedis(t)
  const { url, loseNext, isLost } = await losing(t, redis.url)
  const service = await testApp(t, {}, { url })
  await heard(service, 'work')
  const all = [await pass(service, 'work'), await pass(service, 'work')]
  loseNext('taken')
  const first = idsOf(await next(service, 'work'))
  t.ok(isLost())
  t.strictSame([...first, ...idsOf(await next(service, 'work', 1))], all)
})

t.test('two that wait with one key get the same', async t => {
  const service = await testApp(t)
  const first = next(service, 'work', 30, 'key')
  await areWaiting(service, 1)
  const second = next(service, 'work', 2, 'key')
  await areWaiting(service, 2)
  const id = await pass(service, 'work')
  t.strictSame(idsOf(await first), [id])
  t.strictSame(idsOf(await second), [id])
})

t.test('who asks again with wait gets the same again, also after another with that key was answered without', async t => {
  const service = await testApp(t)
  const first = next(service, 'work', 30, 'key')
  await areWaiting(service, 1)
  const shorter = next(service, 'work', 1, 'key')
  t.strictSame(idsOf(await shorter), [])
  const id = await pass(service, 'work')
  t.strictSame(idsOf(await first), [id])
  isProblem(t, await next(service, 'other', 0, 'key'), 422, 'idempotency_key_reused')
  t.strictSame(idsOf(await next(service, 'work', 1, 'key')), [id])
})

t.test('two with one key catch once, also where the first one’s turn has what a person approved', async t => {
  const service = await testApp(t)
  for (const inbox of inboxes) {
    const approved = await pass(service, inbox, { require_human: true })
    await service.call('approver', 'POST', `/api/approve/${approved}`)
    await pass(service, inbox)
    const answers = await Promise.all(Array.from({ length: 30 }, async (_, i) => {
      // Each begins a turn of the event loop later, so that some look while others take.
      for (let turn = 0; turn < i; turn++) await setImmediate()
      return next(service, inbox, i % 2, inbox)
    }))
    for (const answer of answers) t.strictSame(idsOf(answer), [approved], `inbox ${inbox}`)
    t.equal(answers.filter(({ headers }) => headers['idempotency-replayed'] === undefined).length, 1, 'one acted')
  }
})

t.test('while a replica of version 0.2.0 takes by a key, nobody else does', async t => {
  const { store: { inboxes }, call, setClock, redis, prefix } = await testApp(t)
  const now = Date.now()
  await setClock(now)
  const id = (await call('alice', 'POST', '/api/pass', { task: 't', to: 'work', expires_in: 7200 })).json().handoff_id
  const place = { tenant: 'default', inbox: 'work', tag: inboxTag('default', 'work') }
  const take = () => inboxes.take(place, { token: 'token', agent: 'bob', max: 1, lifetime: 60_000, request: 'request' })
  // It looks at its other list first.
  const note = `${prefix}:{${place.tag}}:n:token`
  await redis.set(note, `request 1 @one ${now}`)
  t.match(await take(), { outcome: 'left' })
  await setClock(now + 9000)
  t.match(await take(), { outcome: 'left' }, 'it may still be there')
  await redis.set(note, `request 1 @one ${now + 3_600_000}`)
  t.match(await take(), { outcome: 'unsettled', taker: 'one' }, 'the clock was set back since')
  await redis.del(note)
  t.match(await take(), { outcome: 'taken', items: [{ id }] })
  t.match(await take(), { outcome: 'replayed', items: [{ id }] })
  await redis.set(note, `request 1 default:${id}/17`)
  t.match(await take(), { outcome: 'replayed', items: [{ id }] }, 'its notes have positions')
})

t.test('what a person approved has its turn before a flood that fills the answers', async t => {
  const service = await testApp(t)
  const output = { text: 'x'.repeat(1_000_000) }
  const approved = await pass(service, 'work', { require_human: true, output })
  await service.call('approver', 'POST', `/api/approve/${approved}`)
  const others = []
  for (let i = 0; i < 5; i++) others.push(await pass(service, 'work', { output }))
  const caught = async () => idsOf(await service.call('bob', 'POST', '/api/catch', { inbox: 'work', max: 100 }))
  t.strictSame(await caught(), [approved, ...others.slice(0, 3)])
  t.strictSame(await caught(), others.slice(3))
})

t.test('a key that was answered without a handoff stands for nothing, also where the reply to its claim was lost or a key ended', async t => {
  const redis = await ownRedis(t)
  const { url, loseNext, isLost } = await losing(t, redis.url)
  const service = await testApp(t, {}, { url })
  loseNext('claimed')
  t.strictSame(idsOf(await next(service, 'work', 0, 'lost')), [])
  t.ok(isLost())
  t.strictSame(idsOf(await next(service, 'other', 0, 'lost')), [])
  const { id, key } = await newKey(service.store.keyRecords, { agent: 'bob' })
  const ended = service.app.inject({ method: 'POST', url: '/api/catch?wait=30', headers: { ...bearer(key), 'idempotency-key': 'ended' } })
  await areWaiting(service, 1)
  await service.store.keyRecords.revoke(id, 'me')
  isProblem(t, await ended, 401, 'unauthorized')
  t.strictSame(idsOf(await next(service, 'other', 0, 'ended')), [])
})

t.test('who has left before its request was read catches nothing', async t => {
  const service = await testApp(t)
  const port = await listen(service.app)
  await heard(service, 'work')
  const id = await pass(service, 'work')
  const body = '{"inbox":"work"}'
  const empty = async () => Number(/^handoff_inbox_empty_total (\d+)$/m.exec((await service.app.inject('/metrics')).body)![1])
  const before = await empty()
  for (const key of ['', 'Idempotency-Key: key\r\n']) {
    const { socket, send } = await wire(t, port)
    send(`POST /api/catch?wait=60 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${secrets.bob}\r\n${key}Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`)
    socket.destroy()
  }
  t.ok(await until(async () => await empty() === before + 2), 'both were read')
  t.strictSame(idsOf(await next(service, 'work')), [id])
})

t.test('all that wait on one connection are gone with it', async t => {
  const service = await testApp(t)
  const { socket, send } = await wire(t, await listen(service.app))
  const body = '{"inbox":"work"}'
  const request = `POST /api/catch?wait=60 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${secrets.bob}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`
  // Without waiting for an answer, as HTTP/1.1 allows.
  send(request.repeat(3))
  await areWaiting(service, 3)
  const theirs = once(socket, 'close')
  socket.destroy()
  await theirs
  t.ok(await areWaiting(service, 0), 'nobody waits any more')
  const id = await pass(service, 'work')
  t.strictSame(idsOf(await next(service, 'work')), [id])
})

t.test('an envelope that is wrong is not read further than it has to be', async t => {
  const { call } = await testApp(t)
  const envelopes = {
    'operations that are empty': `{"operations":[${'{},'.repeat(1000)}`,
    'operations that are numbers': `{"operations":[${'1,'.repeat(1000)}`,
    'operations, more than 100': `{"operations":[${'{"op":"pass"},'.repeat(101)}`,
    'repeated members': `{${'"":1,'.repeat(1000)}`,
    'unknown members': `{"operations":[{${'"a":1,'.repeat(1000)}`,
  }
  for (const [name, envelope] of Object.entries(envelopes)) {
    const answer = await call('bob', 'POST', '/api/batch', `${envelope} what is this?}]}`)
    const { errors } = isProblem(t, answer, 400, 'invalid_request', name)
    t.ok(errors.length <= 100, `${name}: ${errors.length} errors`)
    t.notMatch(answer.body, /not valid JSON/, `${name}: nobody has read the end`)
  }
})
