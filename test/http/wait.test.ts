import t from 'tap'
import { randomId, tagOf } from '../../src/core/ids.ts'
import { secrets, testApp } from '../helpers/app.ts'
import type { TestApp, Who } from '../helpers/app.ts'
import { scrape } from '../helpers/metrics.ts'
import { patiently } from '../helpers/patiently.ts'
import { isProblem } from '../helpers/problems.ts'
import { until } from '../helpers/until.ts'
import { asleep, nobody } from '../helpers/waits.ts'
import { listen, wire } from '../helpers/wire.ts'

/** POST /api/wait: many handoffs in one answer. */

const service = await testApp(t)
const { call, pass, caught } = service

const waitFor = (ids: unknown, more: object = {}, query = '', who: Who = 'alice') =>
  call(who, 'POST', `/api/wait${query}`, { ids, ...more })
const done = async (more: object = {}, output: object = { n: 1 }) => {
  const id = await caught(more)
  await call('bob', 'POST', `/api/done/${id}`, { output })
  return id
}
const reads = async () => (await scrape(service.app)).get('handoff_redis_call_duration_seconds_count{script="status"}') ?? 0
const end = ({ call }: TestApp, id: string) => call('bob', 'POST', `/api/done/${id}`, {})

t.test('each is answered in the order asked, a repeated one each time; what isn’t there is unknown, and counts as ended', async t => {
  const id = await done()
  const strange = 'no id "at" all'
  const gone = 'AVHdDBR3Ox_T_H9gltuUjYVhg'
  const { statusCode, body } = await waitFor([strange, id, gone, id])
  t.equal(statusCode, 200)
  const status = (await call('alice', 'GET', `/api/status/${id}`)).body
  const unknown = (of: string) => JSON.stringify({ handoff_id: of, status: 'unknown' })
  t.equal(body, `{"items":[${[unknown(strange), status, unknown(gone), status].join()}],"complete":true}`, 'results as they were sent')
  const all = Array.from({ length: 100 }, randomId)
  t.same((await waitFor(all, {}, '?wait=60')).json(), { items: all.map(id => ({ handoff_id: id, status: 'unknown' })), complete: true }, 'a hundred that are gone: at once')
  const others = await waitFor([id], {}, '?wait=60', 'foreignAlice')
  t.same(others.json(), { items: [{ handoff_id: id, status: 'unknown' }], complete: true }, 'another tenant’s')
})

t.test('without results the items have none, and until=any is complete when one has ended', async t => {
  const [open, ended] = [await pass(), await done()]
  const { items, complete } = (await waitFor([open, ended], { until: 'any', results: false })).json()
  t.ok(complete)
  t.same(items.map((item: object) => 'result' in item), [false, false])
  t.notOk((await waitFor([open, ended])).json().complete)
  t.notOk((await waitFor([open], { until: 'any' }, '?wait=1')).json().complete, 'the wait is over')
})

t.test('attempts that many ids lead to are read once', async t => {
  const ids = [await caught()]
  for (let n = 0; n < 9; n++) {
    ids.push((await call('alice', 'POST', `/api/reissue/${ids.at(-1)}`, {})).json().handoff_id)
    await call('bob', 'GET', `/api/catch/${ids.at(-1)}`)
  }
  const before = await reads()
  const { items, complete } = (await waitFor([...ids, ...ids])).json()
  t.notOk(complete)
  t.strictSame(items.map((item: { handoff_id: string }) => item.handoff_id), Array(20).fill(ids.at(-1)))
  t.strictSame(items.map((item: { asked_as?: string }) => item.asked_as), [...ids, ...ids].map(id => id === ids.at(-1) ? undefined : id))
  // The last one is read for each item, but those who ask in one turn share a reply.
  const used = await reads() - before
  t.ok(used > 10 && used <= 10 + 19, `${used} reads`)
  await service.redis.del(`${service.prefix}:{${tagOf(ids.at(-1)!)}}:h:default:${ids.at(-1)}`)
  t.match((await waitFor([...ids, ...ids])).json(), {
    items: [...ids, ...ids].map(id => id === ids.at(-1) ? { handoff_id: id, status: 'unknown' } : { handoff_id: ids.at(-2), status: 'cancelled' })
  }, 'the last that is there')
})

t.test('it waits until all have ended for good, and counts as one request', async t => {
  const first = await caught({ max_attempts: 2, retry_delay: 0 })
  const second = await caught()
  const waiting = waitFor([first, second], {}, '?wait=60')
  await asleep(service, second)
  await asleep(service, first)
  await end(service, second)
  const { reissued_as: next } = (await call('bob', 'POST', `/api/fail/${first}`, { error: { message: 'm' } })).json()
  await asleep(service, next)
  t.equal((await call('bob', 'GET', `/api/catch/${next}`)).statusCode, 200)
  await call('bob', 'POST', `/api/done/${next}`, { output: { again: true } })
  const { items, complete } = (await waiting).json()
  t.ok(complete)
  t.match(items, [{ handoff_id: next, asked_as: first, status: 'done', result: { again: true } }, { handoff_id: second, status: 'done' }])
  t.notOk('asked_as' in items[1])
  for (const id of [first, second, next]) t.ok(await nobody(service, id))
})

t.test('while it waits nothing is read but what has changed, and there is one waiter', async t => {
  const ids = await Promise.all(Array.from({ length: 10 }, () => caught()))
  const before = await reads()
  const waiting = waitFor([...ids, ...ids], { results: false }, '?wait=60')
  for (const id of ids) await asleep(service, id)
  t.match((await service.app.inject('/metrics')).body, /^handoff_waiters 1$/m)
  t.equal(await reads() - before, 20, 'each before and after it listened')
  for (const [n, id] of ids.slice(1).entries()) {
    await end(service, id)
    await until(async () => await reads() - before === 21 + n)
  }
  await end(service, ids[0]!)
  t.ok((await waiting).json().complete)
  t.equal(await reads() - before, 20 + 10 + 20, 'each that ended, and all for the answer')
})

t.test('an id that comes back while others are waited for is waited for', async t => {
  const again = () => call('alice', 'POST', '/api/pass', { task: 't' }, { 'idempotency-key': 'comes-back' })
  const back = (await again()).json().handoff_id
  await service.redis.del(`${service.prefix}:{${tagOf(back)}}:h:default:${back}`)
  const other = await caught()
  const waiting = waitFor([back, other], {}, '?wait=60')
  await asleep(service, other)
  t.equal((await again()).json().handoff_id, back)
  await end(service, other)
  await asleep(service, back)
  await call('bob', 'GET', `/api/catch/${back}`)
  await end(service, back)
  t.match((await waiting).json(), { complete: true, items: [{ handoff_id: back, status: 'done' }, { status: 'done' }] })
  t.ok(await nobody(service, back))
})

t.test('with any, the first end ends all waits; a rejection and a cancel are ends too', async t => {
  for (const [who, operation, body, status] of [['alice', 'cancel', {}, 'cancelled'], ['approver', 'reject', { note: 'n' }, 'rejected']] as const) {
    const ids = [await pass({ require_human: true }), await pass()]
    const waiting = waitFor(ids, { until: 'any' }, '?wait=60')
    for (const id of ids) await asleep(service, id)
    await call(who, 'POST', `/api/${operation}/${ids[0]}`, body)
    t.match((await waiting).json(), { complete: true, items: [{ status }, { status: 'pending' }] })
    for (const id of ids) t.ok(await nobody(service, id))
  }
})

t.test('results beyond 4 MiB together are left out', async t => {
  const large = { text: 'x'.repeat(900_000) }
  const ids = await Promise.all(Array.from({ length: 6 }, () => done({}, large)))
  const { items, complete } = (await waitFor(ids)).json()
  t.ok(complete)
  t.same(items.map(({ result, result_omitted: omitted }: { result?: object, result_omitted?: true }) => [result !== undefined, omitted === true]), [
    ...Array(4).fill([true, false]), ...Array(2).fill([false, true])
  ])
})

t.test('errors count too, and ids that repeat', async t => {
  const id = await caught()
  await call('bob', 'POST', `/api/fail/${id}`, { error: { message: 'm', data: { text: 'x'.repeat(900_000) } } })
  for (const results of [true, false]) {
    const { body } = await patiently(() => waitFor(Array(12).fill(id), { results }))
    t.ok(body.length < 5_000_000, `${body.length} characters`)
    const items: Array<{ error?: object, result_omitted?: true }> = JSON.parse(body).items
    t.same([items.filter(({ error }) => error !== undefined).length, items.filter(({ result_omitted: omitted }) => omitted).length], [4, 8])
  }
})

t.test('no more results are read than the answer has room for, and none while it waits', async t => {
  const { handoffs } = service.store
  const status = handoffs.status.bind(handoffs)
  let read = 0
  handoffs.status = async (...asked) => {
    const found = await status(...asked)
    if (found.outcome === 'found') read += found.result?.length ?? 0
    return found
  }
  t.teardown(() => { handoffs.status = status })
  const id = await done({}, { text: 'x'.repeat(900_000) })
  const open = await caught()
  const waiting = waitFor([...Array(98).fill(id), open], { results: false }, '?wait=60')
  await asleep(service, open)
  await end(service, open)
  t.ok((await waiting).json().complete)
  t.equal(read, 0)
  const { items } = (await waitFor(Array(99).fill(id))).json()
  t.equal(items.filter(({ result_omitted: omitted }: { result_omitted?: true }) => omitted).length, 95)
  // Sixteen are read at once.
  t.ok(read < 20 * 900_100, `${read} bytes`)
})

t.test('a request has one listener on its connection, and its place is free when its client has gone', async t => {
  const warnings: string[] = []
  const note = ({ message }: Error) => { warnings.push(message) }
  process.on('warning', note)
  t.teardown(() => process.off('warning', note))
  const port = await listen(service.app)
  const ids = await Promise.all(Array.from({ length: 20 }, () => pass()))
  const request = (body: string) =>
    `POST /api/wait?wait=60 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${secrets.alice}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`
  const { send, socket } = await wire(t, port)
  send(request(JSON.stringify({ ids })))
  for (const id of ids) await asleep(service, id)
  socket.destroy()
  for (const id of ids) t.ok(await nobody(service, id), 'its client has gone')
  t.same(warnings, [])
  const one = JSON.stringify({ ids: [ids[0]] })
  const more = await Promise.all(Array.from({ length: 20 }, () => wire(t, port)))
  for (const { send } of more) send(request(one))
  await until(async () => /^handoff_waiters 20$/m.test((await service.app.inject('/metrics')).body))
  const isFull = async () => (await waitFor([ids[0]], {}, '?wait=1')).statusCode === 429
  t.ok(await isFull())
  more[0]!.socket.destroy()
  await until(async () => !await isFull())
})

t.test('a draining service answers with what is true, and a key may have 20 that wait', async t => {
  const service = await testApp(t)
  const id = await service.pass()
  const waits = Array.from({ length: 20 }, () => service.call('alice', 'POST', '/api/wait?wait=60', { ids: [id] }))
  await asleep(service, id)
  const refused = await service.call('alice', 'POST', '/api/wait?wait=60', { ids: [id] })
  isProblem(t, refused, 429, 'rate_limited')
  t.ok(Number(refused.headers['retry-after']) > 0)
  t.equal((await service.call('alice', 'POST', '/api/wait', { ids: [id] })).statusCode, 200, 'what doesn’t wait isn’t counted')
  const other = service.call('bob', 'POST', '/api/wait?wait=60', { ids: [id] })
  await end(service, id)
  t.equal((await service.call('bob', 'GET', `/api/catch/${id}`)).statusCode, 200)
  await end(service, id)
  for (const { statusCode } of await Promise.all([...waits, other])) t.equal(statusCode, 200)
  const next = await service.pass()
  const waiting = service.call('alice', 'POST', '/api/wait?wait=60', { ids: [next] })
  await asleep(service, next)
  service.app.draining.start()
  t.match((await waiting).json(), { complete: false, items: [{ status: 'pending' }] })
})

t.test('a wrong body is refused, with few errors however long it is', async t => {
  const id = 'AVHdDBR3Ox_T_H9gltuUjYVhg'
  for (const [body, pointer] of [
    [{}, '/ids'], [{ ids: [] }, '/ids'], [{ ids: Array(101).fill(id) }, '/ids'], [{ ids: id }, '/ids'], [{ ids: { 0: id } }, '/ids'], [{ ids: [id, 5] }, '/ids/1'],
    [{ ids: [id], until: 'one' }, '/until'], [{ ids: [id], results: 'no' }, '/results'], [{ ids: [id], more: 1 }, '/more']
  ] as const) {
    const { errors } = isProblem(t, await call('alice', 'POST', '/api/wait', body), 400, 'invalid_request', JSON.stringify(body).slice(0, 60)) as { errors: Array<{ pointer: string }> }
    t.equal(errors[0]!.pointer, pointer)
  }
  const long = await call('alice', 'POST', '/api/wait', { ids: Array(200_000).fill(1) })
  t.ok(JSON.parse(long.body).errors.length <= 102)
  isProblem(t, await waitFor([id], {}, '?wait=61'), 400, 'invalid_request')
})
