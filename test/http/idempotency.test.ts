import t from 'tap'
import { testApp, secrets } from '../helpers/app.ts'
import type { TestApp, Who } from '../helpers/app.ts'
import { isProblem } from '../helpers/problems.ts'
import { ask, listen } from '../helpers/wire.ts'

/** Of all that needs no service of its own. */
const service = await testApp(t)
const { app, call, dump } = service

const key = { 'idempotency-key': 'k-1' }
const otherKey = { 'idempotency-key': 'k-2' }
const body = '{"task": "t", "output": {"a": 1.0}}'

const passIn = ({ call }: TestApp) => (who: Who = 'alice', text = body, headers: Record<string, string> = key) =>
  call(who, 'POST', '/api/pass', text, headers)

t.test('pass: the same key with another body is refused', async t => {
  const pass = passIn(service)
  await pass()
  const before = await service.dump()
  for (const other of ['{"task":"t","output":{"a":1.0}}', '{"task": "t", "output": {"a": 1}}', '{"task": "u"}', body + ' ',
    '{"task": "t", "output": {"a": 1.0}, "require_human": false}']) {
    isProblem(t, await pass('alice', other), 422, 'idempotency_key_reused', other)
  }
  isProblem(t, await pass('alice', '{"task": "t", "delay": 60, "expires_in": 60}'), 400, 'invalid_request', 'what can’t be passed is said first')
  t.strictSame(await service.dump(), before)
})

t.test('pass: the key’s scope is tenant, agent and require_human', async t => {
  const pass = passIn(service)
  const human = '{"task": "t", "require_human": true}'
  const first = await pass()
  const others = [await pass('bob'), await pass('foreignAlice'), await pass('alice', human), await pass('alice', body, otherKey)]
  for (const other of others) {
    t.equal(other.statusCode, 201)
    t.notOk('idempotency-replayed' in other.headers)
  }
  t.equal(new Set([first, ...others].map(answer => answer.json().handoff_id)).size, 5, 'each a handoff of its own')
  const again = await pass('alice', human)
  t.equal(again.body, others[2]!.body, 'with its approval_url')
  t.equal(again.headers['idempotency-replayed'], 'true')
  isProblem(t, await pass('alice', '{"task": "u", "require_human": true}'), 422, 'idempotency_key_reused')
})

t.test('an Idempotency-Key is 1 to 128 visible ASCII characters, and may be sent once', async t => {
  const port = await listen(app)
  const id = (await passIn(service)('alice', body, {})).json().handoff_id
  const ends = ['!', '~', '!'.repeat(128)]
  for (const good of ends) t.equal((await passIn(service)('alice', body, { 'idempotency-key': good })).statusCode, 201, good)
  await call('bob', 'GET', `/api/catch/${id}`, undefined, { 'idempotency-key': ends[2]! })
  const before = await dump()
  const field = 'Idempotency-Key: '
  const wrong = ['', 'a'.repeat(129), 'a b', 'a\tb', 'caf\xe9', '\xc3\xa9', `a\r\n${field}a`, `a\r\n${field}b`]
  for (const value of wrong) {
    for (const target of ['POST /api/pass', `GET /api/catch/${id}`, `POST /api/done/${id}`]) {
      const length = target === 'POST /api/pass' ? 'Content-Type: application/json\r\nContent-Length: 12\r\n\r\n{"task":"t"}' : '\r\n'
      const answer = await ask(t, port, `${target} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${secrets.bob}\r\n${field}${value}\r\n${length}`)
      const document = isProblem(t, answer, 400, 'invalid_request', `${target} ${JSON.stringify(value)}`)
      t.match(document.errors, [{ pointer: '/idempotency-key', message: /./ }])
    }
  }
  t.strictSame(await dump(), before)
})

t.test('a call to Redis that was asked again by itself is no replay to a client without a key', async t => {
  const service = await testApp(t)
  const { handoffs, attempts } = service.store
  const again = <O extends object>(of: O, name: keyof O) => {
    const own = of[name] as (...args: unknown[]) => Promise<unknown>
    t.intercept(of, name, {
      value: async (...args: unknown[]) => {
        await own.apply(of, args)
        return await own.apply(of, args)
      }
    })
  }
  for (const name of ['pass', 'catch', 'done'] as const) again(handoffs, name)
  for (const name of ['fail', 'decline'] as const) again(attempts, name)
  for (const [end, body] of [['done', {}], ['fail', { error: { message: 'm' } }], ['decline', { reason: 'r' }]] as const) {
    const passed = await service.call('alice', 'POST', '/api/pass', { task: 't' })
    const { handoff_id: id } = passed.json()
    const answers = [passed, await service.call('bob', 'GET', `/api/catch/${id}`), await service.call('bob', 'POST', `/api/${end}/${id}`, body)]
    t.strictSame(answers.map(({ statusCode, headers }) => [statusCode, headers['idempotency-replayed']]), [[201, undefined], [200, undefined], [200, undefined]], end)
  }
})
