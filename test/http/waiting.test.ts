import t from 'tap'
import type { Test } from 'tap'
import { randomId, tagOf } from '../../src/core/ids.ts'
import { statusText } from '../../src/handoffs/lifecycle/answers.ts'
import { testApp } from '../helpers/app.ts'
import type { TestApp, Who } from '../helpers/app.ts'
import { scrape } from '../helpers/metrics.ts'
import { isProblem } from '../helpers/problems.ts'
import { callsOf } from '../helpers/redis.ts'
import { ofOneReplica } from '../helpers/through.ts'
import { until } from '../helpers/until.ts'
import { asleep, nobody, passed, timed } from '../helpers/waits.ts'

/** Of all that needs no service of its own. */
const service = await testApp(t)

/** Two replicas on one Redis. */
async function two (t: Test, env: Record<string, string> = {}): Promise<[TestApp, TestApp]> {
  const first = await testApp(t, env)
  return [first, await testApp(t, env, { prefix: first.prefix })]
}

/** Far below the wait, far above the time of a wake-up. */
const soon = 5000

const status = (service: TestApp, id: string, query: string) => service.call('alice', 'GET', `/api/status/${id}?${query}`)
const catchIt = (service: TestApp, id: string, query = '', key?: string, who: Who = 'bob') =>
  service.call(who, 'GET', `/api/catch/${id}${query && '?'}${query}`, undefined, key === undefined ? {} : { 'idempotency-key': key })
const approve = (service: TestApp, id: string) => service.call('approver', 'POST', `/api/approve/${id}`, { note: 'go' })
const reject = (service: TestApp, id: string) => service.call('approver', 'POST', `/api/reject/${id}`, { note: 'no' })
const done = (service: TestApp, id: string) => service.call('bob', 'POST', `/api/done/${id}`, { output: { x: 1.0 } })

t.test('an invalid wait is refused, and other operations take none', async t => {
  const id = await passed(service)
  for (const wait of ['-1', '61', 'abc', '1.5', '', '1e1', '0x1', '%201', '1&wait=2', 'NaN', 'null', 'true', '99999999999999999999']) {
    for (const path of ['status', 'catch']) {
      const document = isProblem(t, await service.call('alice', 'GET', `/api/${path}/${id}?wait=${wait}`), 400, 'invalid_request', `${path} wait=${wait}`)
      t.equal(document.errors[0].pointer, '/wait')
    }
  }
  for (const until of ['pending', 'expired', 'rejected', 'Done', '', 'done&until=caught', 'approved']) {
    isProblem(t, await status(service, id, `wait=1&until=${until}`), 400, 'invalid_request', `until=${until}`)
  }
  isProblem(t, await catchIt(service, id, 'wait=1&until=caught'), 400, 'invalid_request', 'a catch waits for the decision and for nothing else')
  for (const [method, path] of [['POST', `approve/${id}`], ['POST', `done/${id}`], ['POST', 'pass'], ['GET', `approvals/${id}`]] as const) {
    isProblem(t, await service.call(path.startsWith('a') ? 'approver' : 'alice', method, `/api/${path}?wait=1`, method === 'POST' ? {} : undefined), 400, 'invalid_request', path)
  }
})

t.test('a wait of 0, or for what is true already, is answered at once', async t => {
  const [waiting, free, caught, finished, rejected] = await Promise.all(
    [passed(service), ...[1, 2, 3].map(() => passed(service, { require_human: false })), passed(service)]) as [string, string, string, string, string]
  for (const id of [caught, finished]) await catchIt(service, id)
  await done(service, finished)
  await reject(service, rejected)
  const [, after] = await timed(async () => {
    t.equal((await status(service, waiting, 'wait=0')).json().status, 'pending')
    t.equal((await status(service, waiting, 'until=caught')).json().status, 'pending')
    isProblem(t, await catchIt(service, waiting, 'wait=0'), 409, 'approval_required')
    t.equal((await status(service, caught, 'wait=60&until=caught')).json().status, 'caught')
    t.equal((await status(service, finished, 'wait=60&until=caught')).json().status, 'done', 'a later one')
    t.equal((await status(service, finished, 'wait=60')).json().status, 'done')
    t.equal((await status(service, rejected, 'wait=60')).json().status, 'rejected')
    t.equal((await status(service, rejected, 'wait=60&until=caught')).json().status, 'rejected')
    isProblem(t, await catchIt(service, rejected, 'wait=60'), 409, 'rejected')
    isProblem(t, await catchIt(service, caught, 'wait=60'), 409, 'already_caught')
    isProblem(t, await catchIt(service, finished, 'wait=60'), 409, 'already_done')
    t.equal((await catchIt(service, free, 'wait=60')).statusCode, 200, 'where nobody has to decide')
    for (const [who, id] of [['alice', randomId()], ['alice', 'x'], ['foreignAlice', waiting]] as Array<[Who, string]>) {
      isProblem(t, await service.call(who, 'GET', `/api/status/${id}?wait=60`), 404, 'not_found')
      isProblem(t, await service.call(who, 'GET', `/api/catch/${id}?wait=60`), 404, 'not_found')
    }
  })
  t.ok(after < soon, `all of it in ${Math.round(after)} ms`)
})

t.test('a waiting status is told of changes on any replica', async t => {
  const [one, other] = await two(t)
  const woken = async (id: string, query: string, change: () => Promise<unknown>, expected: object) => {
    const waits = status(one, id, `wait=30&${query}`)
    await asleep(one, id)
    const [, after] = await timed(async () => {
      await change()
      t.match((await waits).json(), expected, `${query} ${JSON.stringify(expected)}`)
    })
    t.ok(after < soon, `after ${Math.round(after)} ms`)
  }
  const free = await passed(one, { require_human: false })
  await woken(free, 'until=caught', () => catchIt(other, free), { status: 'caught', caught_by: 'bob', result: null })
  await woken(free, 'until=done', () => done(other, free), { status: 'done', result: { x: 1 } })
  for (const until of ['until=caught', 'until=done', '']) {
    const no = await passed(one)
    await woken(no, until, () => reject(other, no), { status: 'rejected', approval: { state: 'rejected', note: 'no', decided_by: 'carol' } })
  }
  // A change that it doesn't wait for doesn't end the wait.
  const all = await passed(one)
  const waits = status(one, all, 'wait=30')
  await asleep(one, all)
  let answered = false
  waits.then(() => { answered = true })
  await approve(other, all)
  await asleep(one, all)
  t.notOk(answered, 'an approval is not the end of it')
  await catchIt(other, all)
  await asleep(one, all)
  t.notOk(answered, 'nor is its catch')
  await done(other, all)
  t.match((await waits).json(), { status: 'done', approval: { state: 'approved' } })
})

t.test('expiry ends a wait at its millisecond, without a sweep', async t => {
  const service = await testApp(t, { WORK_TTL: '1' })
  const [free, human, work] = [await passed(service, { require_human: false, expires_in: 1 }), await passed(service, { expires_in: 1 }), await passed(service, { require_human: false })]
  await catchIt(service, work)
  const { expires_at: expiresAt } = (await status(service, human, '')).json()
  const { expires_at: freeExpiresAt } = (await status(service, free, '')).json()
  const { caught_at: caughtAt } = (await status(service, work, '')).json()
  const inTime = async (name: string, ask: ReturnType<TestApp['call']>, at: number) => {
    const answer = await ask
    const late = Date.now() - at
    t.ok(late >= 0 && late < soon, `${name}: ${late} ms after`)
    return answer
  }
  const [a, b, c, d] = await Promise.all([
    inTime('pending', status(service, free, 'wait=30&until=caught'), Date.parse(freeExpiresAt)),
    inTime('waiting', status(service, human, 'wait=30'), Date.parse(expiresAt)),
    inTime('catch', catchIt(service, human, 'wait=30'), Date.parse(expiresAt)),
    inTime('work', status(service, work, 'wait=30'), Date.parse(caughtAt) + 1000),
  ])
  for (const answer of [a, b, d]) t.equal(answer.json().status, 'expired')
  t.equal(b.json().approval.state, 'waiting', 'nobody rejected it')
  isProblem(t, c, 410, 'expired')
})

t.test('a wait that times out answers the current state', async t => {
  const [id, free] = [await passed(service), await passed(service, { require_human: false })]
  const all = await Promise.all([
    timed(() => status(service, id, 'wait=1')), timed(() => catchIt(service, id, 'wait=1')), timed(() => status(service, free, 'wait=1&until=caught')),
  ])
  const [[a], [b], [c]] = all
  t.equal(a.json().status, 'pending')
  isProblem(t, b, 409, 'approval_required')
  t.equal(c.json().status, 'pending')
  for (const [, after, within] of all) t.ok(within >= 995 && after < soon, `after ${Math.round(within)} ms`)
  t.ok(await nobody(service, id))
  t.equal((await status(service, id, '')).json().status, 'pending', 'nothing was moved')
})

t.test('of many waiting catches one gets the handoff, on any replica', async t => {
  const [one, other] = await two(t)
  const id = await passed(one)
  const waits = Array.from({ length: 40 }, (_, i) => catchIt(i % 2 ? one : other, id, 'wait=30', undefined, i % 3 ? 'bob' : 'alice'))
  await asleep(one, id, 2)
  t.equal((await approve(other, id)).statusCode, 200)
  const answers = await Promise.all(waits)
  const won = answers.filter(({ statusCode }) => statusCode === 200)
  t.equal(won.length, 1)
  t.match(won[0]!.json(), { handoff_id: id, status: 'caught', task: 't', approval: { state: 'approved', decided_by: 'carol', note: 'go' } })
  for (const answer of answers.filter(answer => answer !== won[0])) {
    if (answer.json().code !== 'already_caught') t.fail(answer.body)
  }
  t.ok(await nobody(one, id))
})

t.test('a waiting catch honours its Idempotency-Key like any other', async t => {
  const [one, other] = await two(t)
  const id = await passed(one)
  const waits = [catchIt(one, id, 'wait=30', 'k'), catchIt(other, id, 'wait=30', 'k')]
  await asleep(one, id, 2)
  await approve(one, id)
  const answers = await Promise.all(waits)
  t.strictSame(answers.map(({ statusCode }) => statusCode), [200, 200])
  t.equal(answers[0]!.body, answers[1]!.body)
  t.equal(answers.filter(({ headers }) => headers['idempotency-replayed'] === 'true').length, 1, 'caught once')
  t.equal((await catchIt(one, id, 'wait=30', 'k')).headers['idempotency-replayed'], 'true', 'and at once again')
  isProblem(t, await catchIt(one, id, 'wait=30'), 409, 'already_caught')
})

t.test('hundreds wait for one large result or error: it is read a few times, each gets it, and all share its memory', { skip: ofOneReplica }, async t => {
  const service = await testApp(t)
  const reads = () => callsOf(service.store, 'status')
  const text = 'x'.repeat(300_000)
  for (const [report, body, member] of [['done', { output: { text } }, 'result'], ['fail', { error: { message: 'm', data: { text } } }, 'error']] as const) {
    const id = await service.caught()
    const waits = Array.from({ length: 300 }, () => status(service, id, 'wait=60'))
    await until(async () => (await scrape(service.app)).get('handoff_waiters') === waits.length)
    await asleep(service, id)
    const before = reads()
    await service.call('bob', 'POST', `/api/${report}/${id}`, body)
    const answers = await Promise.all(waits)
    t.ok(answers.every(answer => answer.statusCode === 200 && JSON.stringify(answer.json()[member]).includes(text)), report)
    t.ok(reads() - before < 30, `${reads() - before} reads`)
    const found = await service.store.handoffs.status({ tenant: 'default', id, tag: tagOf(id) }) as Parameters<typeof statusText>[1]
    const answer = statusText(id, found, '')
    t.ok(Buffer.isBuffer(answer) && statusText(id, found, '') === answer, 'one buffer')
  }
})

t.test('a status that comes later than another sees what happened in between', async t => {
  for (let n = 0; n < 30; n++) {
    const id = await service.pass()
    const early = status(service, id, '')
    const caught = catchIt(service, id)
    t.equal((await caught).statusCode, 200)
    t.equal((await status(service, id, '')).json().status, 'caught')
    await early
  }
})
