import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import type { Test } from 'tap'
import { callerOf } from '../../src/core/model.ts'
import { WorkerService } from '../../src/handoffs/inbox/workers.ts'
import { Reads } from '../../src/store/reads.ts'
import { testApp } from '../helpers/app.ts'
import type { TestApp, Who } from '../helpers/app.ts'
import { isProblem } from '../helpers/problems.ts'
import { bearer, newKey } from '../helpers/stored-keys.ts'
import { through } from '../helpers/through.ts'
import { until } from '../helpers/until.ts'

/** What a catcher says of its worker (Handoff-Worker), and who works on an inbox. */

const by = (worker: string) => ({ 'handoff-worker': worker })
const ofOneReplica = through === undefined ? {} : { skip: 'what one replica knows' }

function at (service: TestApp) {
  const { call, pass } = service
  const status = async (id: string) => (await call('alice', 'GET', `/api/status/${id}`)).json()
  const post = async (path: string, body: unknown, worker?: string, more = {}) =>
    await call('bob', 'POST', path, body, { ...worker !== undefined && by(worker), ...more })
  const caught = async (body: object, worker?: string) => {
    const id = await pass(body)
    const answer = await call('bob', 'GET', `/api/catch/${id}`, undefined, worker === undefined ? {} : by(worker))
    return { id, answer }
  }
  const workers = async (inbox: string, who: Who = 'alice') => (await call(who, 'GET', `/api/inboxes/${inbox}/workers`)).json()
  const inbox = async (name: string) => (await call('alice', 'GET', `/api/inboxes/${name}`)).json()
  return { status, post, caught, workers, inbox }
}

for (const [where, service] of [['one Redis', await testApp(t)], ['spread', await testApp(t, {}, { isSpread: true })]] as const) {
  const { call, pass } = service
  const { status, post, caught, workers, inbox } = at(service)

  t.test(`the latest worker stands, whatever was passed, in all that a catcher calls: ${where}`, async t => {
    for (const [what, body] of Object.entries({
      plain: {}, 'for an inbox': { to: 'box' }, 'with windows': { heartbeat_within: 60, labels: { run: '1' } }, 'of two attempts': { max_attempts: 2, retry_delay: 0 },
    })) {
      const plain = await caught(body)
      const { id, answer } = await caught(body, 'host-1:1')
      t.equal(answer.statusCode, 200)
      const ofId = (of: object) => JSON.stringify(of).replaceAll(/AV?[\w-]{24}/g, '')
      t.equal(Object.keys(answer.json()).join(), Object.keys(plain.answer.json()).join(), `${what}: the answer of catch is as without`)
      t.ok(ofId(answer.json()))
      t.equal((await status(id)).worker, 'host-1:1', what)
      t.notOk('worker' in await status(plain.id))
      t.match((await call('alice', 'GET', '/api/handoffs?caught_by=bob&limit=100')).json().items.filter(({ handoff_id: one }: { handoff_id: string }) => one === id), [{ worker: 'host-1:1' }], 'in lists')
      t.equal((await post(`/api/heartbeat/${id}`, { progress: { percent: 1 } })).statusCode, 200)
      t.equal((await status(id)).worker, 'host-1:1', 'a call without it changes nothing')
      await post(`/api/heartbeat/${id}`, {}, 'host-2:2')
      t.equal((await status(id)).worker, 'host-2:2')
      await post(`/api/ask/${id}`, { question: 'q', of: 'passer' }, 'a@b/c.d_e-3')
      t.match(await status(id), { worker: 'a@b/c.d_e-3', ask: { state: 'open' } })
      t.equal((await post(`/api/done/${id}`, { output: { n: 1 } }, 'host-4:4')).statusCode, 200)
      t.match(await status(id), { status: 'done', worker: 'host-4:4', result: { n: 1 }, ask: { state: 'withdrawn' } })
      t.equal((await post(`/api/done/${plain.id}`, { output: { n: 2 } }, 'late:1')).statusCode, 200)
      t.match(await status(plain.id), { status: 'done', worker: 'late:1', result: { n: 2 } }, 'also if only done says so')
      for (const [path, told] of [['fail', { error: { message: 'm' } }], ['decline', { reason: 'r' }]] as const) {
        const { id } = await caught(body, 'host-5:5')
        const { reissued_as: next } = (await post(`/api/${path}/${id}`, told, 'host-6:6')).json()
        t.equal((await status(id)).worker, 'host-6:6', path)
        if (next !== undefined) t.notOk('worker' in await status(next), 'the next attempt has none yet')
      }
    }
    const id = await pass({ to: 'next' })
    await post('/api/catch', { inbox: 'next' }, 'host-7:7')
    t.equal((await status(id)).worker, 'host-7:7', 'from an inbox')
    const approved = await pass({ to: 'next', require_human: true })
    await call('approver', 'POST', `/api/approve/${approved}`)
    await post('/api/catch', { inbox: 'next' }, 'host-7:8')
    t.equal((await status(approved)).worker, 'host-7:8', 'what a person approved')
    const both = await Promise.all([pass(), pass()])
    const { results } = (await post('/api/batch', { operations: both.map(id => ({ op: 'catch', id })) }, 'batch:1')).json()
    t.match(results, [{ status: 200 }, { status: 200 }])
    for (const id of both) t.equal((await status(id)).worker, 'batch:1', 'in a batch')
  })

  t.test(`no key compares it: ${where}`, async t => {
    const key = { 'idempotency-key': 'one' }
    const id = await pass()
    const first = await call('bob', 'GET', `/api/catch/${id}`, undefined, { ...key, ...by('a:1') })
    const again = await call('bob', 'GET', `/api/catch/${id}`, undefined, { ...key, ...by('b:2') })
    t.equal(again.body, first.body)
    t.equal(again.headers['idempotency-replayed'], 'true')
    t.equal((await status(id)).worker, 'a:1', 'a replay changes nothing')
    await post(`/api/heartbeat/${id}`, {}, 'b:2')
    t.equal((await status(id)).worker, 'b:2')
    t.equal((await call('bob', 'GET', `/api/catch/${id}`, undefined, key)).body, first.body)
    const plain = await pass()
    const unnamed = await call('bob', 'GET', `/api/catch/${plain}`, undefined, key)
    t.equal((await call('bob', 'GET', `/api/catch/${plain}`, undefined, { ...key, ...by('c:3') })).body, unnamed.body)
    t.notOk('worker' in await status(plain))
    for (const worker of ['d:4', 'e:5']) t.equal((await post(`/api/done/${plain}`, {}, worker, key)).statusCode, 200)
    await pass({ to: 'keyed' })
    const taken = await post('/api/catch', { inbox: 'keyed' }, 'a:1', key)
    t.equal(taken.json().items.length, 1)
    t.equal((await post('/api/catch', { inbox: 'keyed' }, 'b:2', key)).body, taken.body)
  })

  t.test(`a malformed one is refused, and changes nothing: ${where}`, async t => {
    const { id } = await caught({ to: 'box' })
    // Without feeds: with TEST_EVENTS=on the relay may still be writing there what happened before.
    const stored = async () => Object.entries(await service.dump()).filter(([key]) => !key.includes('}:e:'))
    const before = await stored()
    for (const worker of ['', 'a b', 'é', 'x'.repeat(101), 'a,b', 'a=b']) {
      for (const path of ['/api/catch', `/api/heartbeat/${id}`, `/api/done/${id}`, '/api/batch']) {
        const { errors } = isProblem(t, await post(path, path === '/api/batch' ? { operations: [{ op: 'done', id }] } : {}, worker), 400, 'invalid_request', `${path} ${worker}`)
        t.match(errors, [{ pointer: '/handoff-worker' }])
      }
    }
    t.strictSame(await stored(), before)
  })

  t.test(`who works on an inbox, and how many listen: ${where}`, ofOneReplica, async t => {
    t.strictSame(await workers('lone'), { items: [], more: false })
    const names = async () => (await call('alice', 'GET', '/api/inboxes?limit=100')).json().items.map(({ inbox }: { inbox: string }) => inbox)
    t.notOk((await names()).includes('lone'))
    const waits = [post('/api/catch?wait=30', { inbox: 'lone' }, 'host:1'), post('/api/catch?wait=30', { inboxes: ['other', 'lone', 'other'] }, 'host:1'), post('/api/catch?wait=30', { inbox: 'lone' })]
    await until(async () => (await inbox('lone')).listening === 3)
    t.equal((await inbox('other')).listening, 1, 'one request, which names it twice')
    t.match((await names()).filter((name: string) => ['lone', 'other'].includes(name)), ['lone', 'other'], 'it is in the list though nothing is in it')
    const first = (await call('alice', 'GET', '/api/inboxes?limit=1')).json()
    const second = (await call('alice', 'GET', `/api/inboxes?limit=1&cursor=${first.next_cursor}`)).json()
    t.ok(first.items[0].inbox < second.items[0].inbox, 'in order, page by page')
    t.match(await workers('lone'), { items: [{ agent: 'bob', waiting: Number, caught: 0, last_caught_at: null }, { agent: 'bob', caught: 0 }], more: false })
    t.strictSame((await workers('lone')).items.map(({ worker, waiting }: { worker: string | null, waiting: number }) => [worker, waiting]).sort(), [[null, 1], ['host:1', 2]])
    const passed = [await pass({ to: 'lone' }), await pass({ to: 'lone' }), await pass({ to: 'lone' })]
    await Promise.all(waits)
    t.equal((await inbox('lone')).listening, 0)
    const { items } = await workers('lone')
    t.same(items.reduce((sum: number, { caught }: { caught: number }) => sum + caught, 0), 3)
    for (const { waiting, last_seen_at: seen, last_caught_at: caughtAt } of items) {
      t.equal(waiting, 0)
      t.match([seen, caughtAt], [/^\d{4}-.*Z$/, /^\d{4}-.*Z$/])
    }
    for (const id of passed) await post(`/api/done/${id}`, {})
    t.strictSame((await workers('lone')).items.map(({ worker, caught }: { worker: string | null, caught: number }) => [worker, caught]).sort(), [[null, 0], ['host:1', 0]], 'they asked within a minute')
    t.strictSame(await workers('lone', 'foreignAlice'), { items: [], more: false }, 'another tenant’s')
    isProblem(t, await call('alice', 'GET', '/api/inboxes/a%20b/workers'), 404, 'not_found')
    const { id } = await caught({ to: 'by-id' }, 'host:9')
    t.match((await workers('by-id')).items, [{ agent: 'bob', worker: 'host:9', caught: 1, waiting: 0 }], 'who has caught by id')
    await post(`/api/fail/${id}`, { error: { message: 'm' } })
    t.strictSame((await workers('by-id')).items, [])
    const { key } = await newKey(service.store.keyRecords, { agent: 'held', inboxes: ['mine'] })
    isProblem(t, await service.app.inject({ method: 'POST', url: '/api/catch', headers: { ...bearer(key), 'content-type': 'application/json' }, payload: '{"inbox":"lone"}' }), 403, 'not_addressee')
    t.notOk((await workers('lone')).items.some(({ agent }: { agent: string }) => agent === 'held'), 'who may not catch there doesn’t work there')
  })
}

/** Another replica's view of the same Redis. */
function replica (t: Test, { store }: Pick<TestApp, 'store'>): WorkerService {
  return new WorkerService(store.listeners, new Reads(), error => t.fail(String(error)))
}

t.test('what a replica notes is seen by others; of one that died nothing stays', ofOneReplica, async t => {
  const service = await testApp(t)
  const bob = callerOf('default', 'bob', ['catch'])
  const notes = new Map([['far', [{ agent: 'bob', worker: 'away:1', waiting: 2, seen: 0, caught: 1500 }, { agent: 'eve', worker: null, waiting: 0, seen: 59_000, caught: null }]]])
  const there = await testApp(t, {}, { prefix: service.prefix })
  await there.store.listeners.note('default', notes)
  const here = at(service)
  await until(async () => (await here.inbox('far')).listening === 2)
  t.match((await here.workers('far')).items, [{ agent: 'bob', worker: 'away:1', waiting: 2, last_caught_at: String }, { agent: 'eve', worker: null, waiting: 0, last_caught_at: null }])
  await there.store.listeners.note('default', new Map())
  await until(async () => (await here.inbox('far')).listening === 0)
  await there.store.listeners.note('default', notes)
  await until(async () => (await here.inbox('far')).listening === 2)
  const keys = await service.redis.keys(`${service.prefix}:*:l:default*`)
  for (const key of keys) t.ok(await service.redis.pttl(key) <= 10_000, `${key} is gone 10 s later`)
  t.equal(keys.length, 2)

  const mine = replica(t, there)
  const end = mine.asks(bob, { inboxes: ['near'], worker: 'w:1' }, true)
  t.equal(await mine.listening('default', 'near'), 1, 'it knows its own at once')
  await sleep(5200)
  await until(async () => (await here.inbox('near')).listening === 1)
  end('near')
  await mine.close()
  await until(async () => (await here.inbox('near')).listening === 0)
})

t.test('a thousand inboxes and four thousand workers are known, and the idle make room', async t => {
  const { store } = await testApp(t)
  const workers = new WorkerService(store.listeners, new Reads(), error => t.fail(String(error)))
  t.teardown(() => workers.close())
  const caller = callerOf('many', 'bob', ['catch'])
  for (let n = 0; n < 1100; n++) workers.asks(caller, { inboxes: [`i${n}`] }, true)
  t.equal((await workers.waitedFor('many')).length, 1000)
  for (let n = 0; n < 1500; n++) workers.asks(caller, { inboxes: ['i1'], worker: `w:${n}` }, false)
  const { items, more } = await workers.list(caller, 'i1')
  t.equal(items.length, 1000)
  t.equal(more, true)
})

t.test('a look at them waits for its turn once, however many partitions it reads', async t => {
  const { store } = await testApp(t, {}, { isSpread: true })
  const reads = new Reads(undefined, { patience: 2000 })
  const workers = new WorkerService(store.listeners, reads, error => t.fail(String(error)))
  t.teardown(() => workers.close())
  let letGo = () => {}
  const held = new Promise<void>(resolve => { letGo = resolve })
  const pages = [reads.page('first', ['m'], () => held)]
  const ends = reads.page('second', ['m'], () => sleep(50))
  const looked = workers.list(callerOf('many', 'bob', ['catch']), 'in')
  await sleep(10)
  pages.push(reads.page('third', ['m'], () => held))
  await ends
  t.strictSame(await looked, { items: [], more: false })
  letGo()
  await Promise.all(pages)
})
