import t from 'tap'
import { loadConfig } from '../../src/config.ts'
import { secrets, testApp } from '../helpers/app.ts'
import { isProblem } from '../helpers/problems.ts'
import { ofOneReplica } from '../helpers/through.ts'

/** As browsers send it. */
const browser = { accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,image/webp,*/*;q=0.8' }

t.test('a browser gets a page where there is nothing, and a program a problem', async t => {
  const { call } = await testApp(t, { BASE_URL: 'https://handoff.example/handoff' })
  for (const path of ['/nowhere', '/docs/nowhere.js', '/%zz', '/approval']) {
    const page = await call(null, 'GET', path, undefined, browser)
    t.equal(page.statusCode, 404, path)
    t.match(page.headers, { 'content-type': 'text/html; charset=utf-8', 'cache-control': 'no-store', 'content-security-policy': /default-src 'none'/, 'x-request-id': /./ })
    t.match(page.body, /<h1>There is nothing here<\/h1>[^]*href="\/handoff\/approvals"/)
    t.match(page.body, `Request ${page.headers['x-request-id']}`)
    for (const accept of ['*/*', 'application/json', 'application/problem+json, */*']) isProblem(t, await call(null, 'GET', path, undefined, { accept }), 404, 'not_found')
    isProblem(t, await call(null, 'GET', path), 404, 'not_found')
  }
  isProblem(t, await call('alice', 'GET', '/api/status/x', undefined, browser), 404, 'not_found')
  isProblem(t, await call('alice', 'GET', '/nowhere', undefined, browser), 404, 'not_found', 'with a key it is a program')
  for (const path of ['/api/nowhere', '/handoff/api/nowhere']) isProblem(t, await call(null, 'GET', path, undefined, browser), 404, 'not_found', path)
  isProblem(t, await call(null, 'POST', '/nowhere', {}, browser), 404, 'not_found')
  isProblem(t, await call(null, 'GET', '/api/status/x', undefined, browser), 401, 'unauthorized')
  t.notMatch((await call(null, 'GET', '/<script>x</script>', undefined, browser)).body, '<script>x')
})

t.test('what is only at METRICS_PORT stays JSON there', { skip: ofOneReplica }, async t => {
  const { app } = await testApp(t, { METRICS_PORT: String(loadConfig({}).port + 1) })
  isProblem(t, await app.operatorsPort!.inject({ url: '/nowhere', headers: browser }), 404, 'not_found')
})

t.test('a browser gets a page while the service can’t serve', { skip: ofOneReplica }, async t => {
  const { app, call } = await testApp(t)
  app.draining.start()
  const page = await call(null, 'GET', '/readyz', undefined, browser)
  t.equal(page.statusCode, 503)
  t.match(page.body, /<h1>The service can’t answer just now<\/h1>[^]*The service is stopping\.[^]*Try again/, 'with the reason')
  isProblem(t, await call(null, 'GET', '/readyz'), 503, 'unavailable')
  t.notMatch(page.body, secrets.alice)
})
