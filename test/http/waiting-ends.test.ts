import t from 'tap'
import type { Test } from 'tap'
import { secrets, testApp } from '../helpers/app.ts'
import type { TestApp } from '../helpers/app.ts'
import { isProblem } from '../helpers/problems.ts'
import { asleep, nobody, passed, subscribers, timed } from '../helpers/waits.ts'
import { listen, wire } from '../helpers/wire.ts'

/** Waits that end without a change: the client leaves, the other waiters leave, the service stops. */

async function two (t: Test): Promise<[TestApp, TestApp]> {
  const first = await testApp(t)
  return [first, await testApp(t, {}, { prefix: first.prefix })]
}

const status = (service: TestApp, id: string, query: string) => service.call('alice', 'GET', `/api/status/${id}?${query}`)
const catchIt = (service: TestApp, id: string, query: string) => service.call('bob', 'GET', `/api/catch/${id}?${query}`)
const reject = (service: TestApp, id: string) => service.call('approver', 'POST', `/api/reject/${id}`, { note: 'no' })

t.test('a client that has gone away catches nothing', async t => {
  const service = await testApp(t)
  const id = await passed(service)
  const port = await listen(service.app)
  const { socket, send } = await wire(t, port)
  send(`GET /api/catch/${id}?wait=60 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${secrets.bob}\r\n\r\n`)
  await asleep(service, id)
  socket.destroy()
  t.ok(await nobody(service, id), 'nobody listens for it')
  await service.call('approver', 'POST', `/api/approve/${id}`)
  await asleep(service, id, 0)
  t.equal((await status(service, id, '')).json().status, 'pending')
  t.equal((await catchIt(service, id, '')).statusCode, 200)
})

t.test('one subscription serves all waiters, and none is left afterwards', async t => {
  const [one, other] = await two(t)
  const [id, second] = [await passed(one), await passed(one)]
  const waits = Array.from({ length: 30 }, (_, i) => status(i % 3 ? one : other, id, i % 5 ? 'wait=30' : 'wait=1'))
  const alone = status(one, second, 'wait=30')
  await asleep(one, id, 2)
  await asleep(one, second)
  await Promise.all(waits.filter((_, i) => i % 5 === 0))
  t.equal(await subscribers(one, id), 2, 'some have gone, the others wait on')
  await reject(other, id)
  const seen = (await Promise.all(waits)).map((answer, i) => answer.json().status === (i % 5 ? 'rejected' : 'pending'))
  t.notOk(seen.includes(false), 'each with what was true when it ended')
  t.ok(await nobody(one, id))
  t.equal(await subscribers(one, second), 1, 'who waits for another one waits on')
  await reject(other, second)
  t.equal((await alone).json().status, 'rejected')
  t.ok(await nobody(one, second))
})

t.test('a stopping service answers waiters with the current state', async t => {
  const [one, other] = await two(t)
  const id = await passed(one)
  const waits = [status(one, id, 'wait=30'), catchIt(one, id, 'wait=30')] as const
  const elsewhere = status(other, id, 'wait=30')
  await asleep(one, id, 2)
  const [answers, after] = await timed(() => {
    one.app.draining.start()
    return Promise.all(waits)
  })
  t.ok(after < 10_000, `after ${Math.round(after)} ms`)
  t.match(answers[0].json(), { status: 'pending', approval: { state: 'waiting' } })
  t.equal(answers[0].statusCode, 200)
  isProblem(t, answers[1], 409, 'approval_required')
  const [late, afterLate] = await timed(() => status(one, id, 'wait=30'))
  t.equal(late.json().status, 'pending')
  t.ok(afterLate < 10_000, 'who comes then does not wait')
  await reject(one, id)
  t.equal((await elsewhere).json().status, 'rejected', 'the other replica’s wait on')
})
