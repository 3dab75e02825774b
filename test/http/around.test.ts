import t from 'tap'
import { testApp, secrets } from '../helpers/app.ts'
import { isProblem } from '../helpers/problems.ts'
import { until } from '../helpers/until.ts'
import { ask, listen } from '../helpers/wire.ts'

/** Of all that needs no service of its own. */
const service = await testApp(t)
const { app } = service

t.test('healthz and readyz need no key', async t => {
  const { app } = await testApp(t)
  const health = await app.inject('/healthz')
  t.equal(health.statusCode, 200)
  t.strictSame(health.json(), { status: 'ok' })
  const ready = await until(async () => {
    const answer = await app.inject('/readyz')
    return answer.statusCode === 200 ? answer : null // it may not be connected yet
  })
  t.strictSame(ready.json(), { status: 'ready' })
  for (const url of ['/healthz', '/readyz']) t.equal((await app.inject({ method: 'HEAD', url })).statusCode, 200)
})

t.test('draining refuses nothing, makes readyz 503 and closes connections', async t => {
  const { app, call } = await testApp(t)
  const port = await listen(app)
  const { handoff_id: id } = (await call('alice', 'POST', '/api/pass', { task: 't' })).json()
  const request = (line: string) => ask(t, port, `${line} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${secrets.bob}\r\n\r\n`)
  t.not((await request(`GET /api/status/${id}`)).headers.connection, 'close')
  await until(async () => (await app.inject('/readyz')).statusCode === 200)

  app.draining.now = true
  const ready = await request('GET /readyz')
  t.match(isProblem(t, ready, 503, 'unavailable').detail, /stopping/)
  const answers = [
    [ready, 503], [await request('GET /healthz'), 200], [await request(`GET /api/catch/${id}`), 200], [await request(`POST /api/done/${id}`), 200],
    [await request('GET /api/status/x'), 404], [await request('GET /nowhere'), 404], [await request('PUT /api/pass'), 405], [await request('POST /api/pass'), 400],
  ] as const
  for (const [{ statusCode, headers }, status] of answers) {
    t.equal(statusCode, status)
    t.equal(headers.connection, 'close')
  }
})

t.test('/docs is a page whose files are all its own', async t => {
  const page = await app.inject('/docs')
  t.equal(page.statusCode, 200)
  t.match(page.headers['content-type'], /^text\/html/)
  const files = [...page.body.matchAll(/(?:src|href)="([^"]+)"/g)].map(match => match[1]!)
  t.ok(files.length >= 4)
  for (const file of files) {
    const { pathname, origin } = new URL(file, 'http://service.test/docs')
    t.equal(origin, 'http://service.test', file)
    const answer = await app.inject(pathname)
    t.equal(answer.statusCode, 200, file)
    t.ok(answer.rawPayload.length > 50)
  }
  const policy = String(page.headers['content-security-policy'])
  t.match(policy, /^default-src 'self'/)
  t.notMatch(policy, /https:|http:|unsafe|\w\.\w|\*|upgrade-insecure-requests/, 'nothing from elsewhere, and nothing moved to https')
  const initializer = (await app.inject('/docs/static/swagger-initializer.js')).body
  t.match(initializer, /validatorUrl: null/, 'the document is shown to nobody else')
})

t.test('/docs serves only its own files', async t => {
  const port = await listen(app)
  for (const path of ['nope.js', '../../package.json', '..%2f..%2fpackage.json', '..%5c..%5cpackage.json', '%2e%2e/%2e%2e/package.json', '.git']) {
    const answer = await ask(t, port, `GET /docs/static/${path} HTTP/1.1\r\nHost: x\r\n\r\n`)
    isProblem(t, answer, 404, 'not_found', path)
  }
  const range = await ask(t, port, 'GET /docs/static/swagger-ui.css HTTP/1.1\r\nHost: x\r\nRange: bytes=99999999-\r\n\r\n')
  isProblem(t, range, 400, 'invalid_request', 'a range that isn’t there is no fault of ours')
})
