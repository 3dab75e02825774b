import { request } from 'node:http'
import t from 'tap'
import { testApp } from './helpers/app.ts'
import { form } from './helpers/forms.ts'
import { guardOutput, keepSecret, logSink } from './helpers/log-sink.ts'
import { listen } from './helpers/wire.ts'

/** A fake test whose teardowns run at once. */
function ended () {
  const teardowns: Array<() => unknown> = []
  return { teardown: (...added: Array<() => unknown>) => { teardowns.unshift(...added) }, end: () => { for (const teardown of teardowns) teardown() } }
}

t.test('a test fails when its log contains a secret, written before or after it was declared', async t => {
  const test = ended()
  const { log, lines } = logSink(test)
  log.trace('nothing')
  t.equal(lines.length, 1)
  test.end()
  log.trace({ found: 'told-only-later-0123' }, 'a line')
  keepSecret('told-only-later-0123')
  lines.length = 0
  t.throws(test.end, /a log line holds "told-only-later-0123"/)
})

t.test('everything that a request brings is secret', async t => {
  const { app, call } = await testApp(t)
  const port = await listen(app)
  await call('alice', 'POST', '/api/pass', { task: 'the-task-that-nobody-knows', context: { key: ['deep-in-the-context'] }, constraints: 'so-and-no-further' }, { 'idempotency-key': 'the-key-of-idempotency' })
  await call('alice', 'POST', '/api/pass', '{"task":"a-text-that-is-broken-off')
  await call(null, 'GET', '/api/status/x?q=what-was-asked-for', undefined, { authorization: 'Bearer a-key-that-is-unknown', cookie: 'handoff_session=a-session-of-somebody' })
  await app.inject(form('/approvals/sign-in', { key: 'a-key-typed-into-a-form' }))
  await new Promise(resolve => request({ port, path: '/api/status/y', headers: { authorization: 'Bearer a-key-over-the-wire' } }, resolve).end())
  for (const secret of ['the-task-that-nobody-knows', 'deep-in-the-context', 'so-and-no-further', 'the-key-of-idempotency', 'a-text-that-is-broken-off',
    'what-was-asked-for', 'a-key-that-is-unknown', 'a-session-of-somebody', 'a-key-typed-into-a-form', 'a-key-over-the-wire', 'alice-secret-0123456789']) {
    const test = ended()
    logSink(test).log.debug({ nested: { secret } }, 'a line')
    t.throws(test.end, /a log line holds/, secret)
  }
})

t.test('a process’s output is searched for the secrets in its settings', async t => {
  const env = { API_KEYS: 'a:the-first-secret-01,b/c:the-second-secret-1', APPROVER_KEYS: 'd:the-third-secret-01', REDIS_URL: 'redis://me:the-password-of-redis@host' }
  for (const secret of ['the-first-secret-01', 'the-second-secret-1', 'the-third-secret-01', 'the-password-of-redis']) {
    const test = ended()
    const take = guardOutput(test, env)
    take('{"msg":"listening"}')
    test.end()
    take(`{"msg":"connecting to ${secret}"}`)
    t.throws(test.end, /a log line holds/, secret)
  }
})
