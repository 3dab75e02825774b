import t from 'tap'
import type { Test } from 'tap'
import { randomId } from '../../src/handoff/id.ts'
import { testApp, secrets } from '../helpers/app.ts'
import type { TestApp, Who } from '../helpers/app.ts'
import { isProblem } from '../helpers/problems.ts'
import { ask, listen } from '../helpers/wire.ts'

async function passed ({ call }: TestApp, more: object = {}): Promise<string> {
  return (await call('alice', 'POST', '/api/pass', { task: 't', ...more })).json().handoff_id
}

async function caught (service: TestApp, by: Who = 'bob'): Promise<string> {
  const id = await passed(service)
  await service.call(by, 'GET', `/api/catch/${id}`)
  return id
}

/** Checks that an agent's done is refused and changes nothing in Redis. */
async function refused (t: Test, { call, dump }: TestApp, who: Who, id: string, status: number, code: string): Promise<Record<string, any>> {
  const before = await dump()
  const document = isProblem(t, await call(who, 'POST', `/api/done/${id}`, { output: { a: 1 } }), status, code)
  t.strictSame(await dump(), before, `${code} changes nothing`)
  return document
}

t.test('done’s refusals come in the contract’s order', async t => {
  const service = await testApp(t, { WORK_TTL: '60' })
  const { setClock, call, redis, prefix } = service
  const start = Date.now() - 3600_000
  await setClock(start)

  await refused(t, service, 'bob', randomId(), 404, 'not_found')
  const pending = await passed(service, { expires_in: 10 })
  t.equal((await refused(t, service, 'bob', pending, 409, 'not_caught')).handoff_status, 'pending')
  const working = await caught(service)
  t.notOk((await refused(t, service, 'alice', working, 403, 'not_the_catcher')).completed_at)
  await refused(t, service, 'foreignAlice', working, 404, 'not_found')
  const finished = await caught(service)
  const { completed_at: completedAt } = (await call('bob', 'POST', `/api/done/${finished}`)).json()
  t.match(await refused(t, service, 'bob', finished, 409, 'already_done'), { handoff_status: 'done', completed_at: completedAt })
  await refused(t, service, 'alice', finished, 403, 'not_the_catcher')

  // The record as a rejection leaves it.
  const rejected = await passed(service, { require_human: true })
  const key = `${prefix}:{${rejected.slice(0, 3)}}:h:default:${rejected}`
  await redis.hset(key, 's', (await redis.hget(key, 's'))!.replace('pending waiting', 'rejected rejected'))
  t.equal((await refused(t, service, 'bob', rejected, 409, 'rejected')).handoff_status, 'rejected')
  t.equal(isProblem(t, await call('bob', 'GET', `/api/catch/${rejected}`), 409, 'rejected').handoff_status, 'rejected')

  await setClock(start + 60_000)
  t.equal((await refused(t, service, 'bob', pending, 410, 'expired')).handoff_status, 'expired', 'expired before not_caught')
  await refused(t, service, 'alice', working, 410, 'expired') // before not_the_catcher
  await refused(t, service, 'bob', finished, 409, 'already_done') // a done one doesn't expire
})

t.test('all keys of an agent count as that agent', async t => {
  const service = await testApp(t)
  const id = await caught(service, 'alice')
  t.equal((await service.call('alice2', 'POST', `/api/done/${id}`)).statusCode, 200)
  t.equal((await service.call('bob', 'GET', `/api/status/${id}`)).json().caught_by, 'alice')
})

t.test('the body of done may be empty, {} or missing, with and without a content type', async t => {
  const service = await testApp(t)
  const port = await listen(service.app)
  const bodies = [
    '\r\n',
    'Content-Type: application/json\r\n\r\n',
    'Content-Length: 0\r\n\r\n',
    'Content-Type: application/json\r\nContent-Length: 0\r\n\r\n',
    'Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    'Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    'Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}',
    'Content-Type: application/json\r\nContent-Length: 15\r\n\r\n{"output":null}',
  ]
  for (const rest of bodies) {
    const id = await caught(service)
    const answer = await ask(t, port, `POST /api/done/${id} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${secrets.bob}\r\n${rest}`)
    t.equal(answer.statusCode, 200, JSON.stringify(rest))
    t.strictSame(Object.keys(JSON.parse(answer.body)).sort(), ['completed_at', 'handoff_id', 'status'])
    t.equal((await service.call('alice', 'GET', `/api/status/${id}`)).json().result, null)
  }
})
