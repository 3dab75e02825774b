import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { testApp } from './helpers/app.ts'
import { skipInQuick } from './helpers/extent.ts'
import { form } from './helpers/forms.ts'
import { keepSecret, logSink } from './helpers/log-sink.ts'
import { scratchDir, typed, withoutTap } from './helpers/processes.ts'
import { listen } from './helpers/wire.ts'

/** Whether a test would fail whose log has this text, written before anybody declared it a secret. */
function isFound (text: string): boolean {
  const teardowns: Array<() => unknown> = []
  logSink({ teardown: (...added: Array<() => unknown>) => { teardowns.push(...added) } }).log.debug({ nested: { text } }, 'a line')
  try {
    for (const teardown of teardowns) teardown()
    return false
  } catch {
    return true
  }
}

t.test('what a file sets for each of its subtests is not for those of the other files of its process', skipInQuick, async t => {
  const folder = await scratchDir(t)
  const files = await Promise.all(['first', 'second'].map(async name => {
    const file = join(folder, `${name}.mts`)
    await writeFile(file, `
      import t from ${JSON.stringify(import.meta.resolve('tap'))}
      t.beforeEach(test => { test.comment('before ${name}: ' + test.name) })
      t.afterEach(test => { test.comment('after ${name}: ' + test.name) })
      t.test('of ${name}', async t => { await t.test('within ${name}', async t => { t.pass() }) })
    `)
    return file
  }))
  const { stdout } = await promisify(execFile)(process.execPath, [...typed(new URL('together.ts', import.meta.url)), ...files], { env: withoutTap() })
  t.strictSame([...stdout.matchAll(/# ((?:before|after) .*)/g)].map(([, said]) => said).sort(), ['first', 'second'].flatMap(name =>
    [`before ${name}: of ${name}`, `before ${name}: within ${name}`, `after ${name}: within ${name}`, `after ${name}: of ${name}`]).sort())
})

t.test('a test fails when its log has a secret, and all that a request brings is one', async t => {
  const { app, call } = await testApp(t)
  const port = await listen(app)
  t.notOk(isFound('told-only-later-0123'))
  keepSecret('told-only-later-0123')
  const body = { task: 'the-task-that-nobody-knows', context: { key: ['deep-in-the-context'] } }
  await call('alice', 'POST', '/api/pass', body, { 'idempotency-key': 'the-key-of-idempotency' })
  await call('alice', 'POST', '/api/pass', '{"task":"a-text-that-is-broken-off')
  await call(null, 'GET', '/api/status/x?q=what-was-asked-for', undefined, { cookie: 'handoff_session=a-session-of-somebody' })
  await app.inject(form('/approvals/sign-in', { key: 'a-key-typed-into-a-form' }))
  await new Promise(resolve => request({ port, path: '/api/status/y', headers: { authorization: 'Bearer a-key-over-the-wire' } }, resolve).end())
  for (const secret of ['told-only-later-0123', 'the-task-that-nobody-knows', 'deep-in-the-context', 'the-key-of-idempotency',
    'a-text-that-is-broken-off', 'what-was-asked-for', 'a-session-of-somebody', 'a-key-typed-into-a-form', 'a-key-over-the-wire', 'alice-secret-0123456789']) {
    t.ok(isFound(secret), secret)
  }
})
