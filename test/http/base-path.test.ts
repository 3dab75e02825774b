import t from 'tap'
import { loadConfig } from '../../src/config.ts'
import { SettingError } from '../../src/core/errors.ts'
import { secrets, testApp } from '../helpers/app.ts'
import { asked, form, own, shown } from '../helpers/forms.ts'
import { isProblem } from '../helpers/problems.ts'
import { ofOneReplica } from '../helpers/through.ts'
import { until } from '../helpers/until.ts'
import { ask, listen } from '../helpers/wire.ts'

const settings = { BASE_URL: 'https://handoff.example/handoff/' }
/** Of all that needs no service of its own. */
const { app, call } = await testApp(t, settings)
const port = await listen(app)

t.test('a request with BASE_URL’s path, or with the path stripped by the proxy, is the same request', async t => {
  for (const base of ['', '/handoff']) {
    const passed = await call('alice', 'POST', `${base}/api/pass`, { task: 't' })
    t.equal(passed.statusCode, 201)
    const { handoff_id: id, pickup_url: link } = passed.json()
    t.strictSame([passed.headers.location, link], [`/handoff/api/status/${id}`, `https://handoff.example/handoff/api/catch/${id}`], 'what it writes has the path')
    t.equal((await call('alice', 'GET', passed.headers.location as string)).json().status, 'pending')
    t.equal((await call('bob', 'GET', `${base}/api/catch/${id}?wait=0`)).statusCode, 200)
    t.equal((await call('bob', 'POST', `${base}/api/done/${id}`)).statusCode, 200)
    for (const path of ['/healthz', '/readyz', '/metrics', '/openapi.json', '/docs', '/docs/', '/problems', '/approvals/sign-in', '/approvals/assets/page.css', '/clients/', '/clients/agent-handoff-client.tgz']) {
      t.equal((await call(null, 'GET', base + path)).statusCode, 200, base + path)
    }
    const clients = await call(null, 'GET', `${base}/clients/`)
    t.match(clients.body, 'root https://handoff.example/handoff/clients/agent-handoff-client.tgz work')
    t.match(clients.body, 'href="/handoff/clients/agent-handoff-client.tgz"')
    const [whole, head] = [await call(null, 'GET', `${base}/clients/agent-handoff-client.tgz`), await app.inject({ method: 'HEAD', url: `${base}/clients/agent-handoff-client.tgz` })]
    t.strictSame([head.statusCode, head.body, head.headers.etag, head.headers['content-length']], [200, '', whole.headers.etag, String(whole.rawPayload.length)])
    isProblem(t, await call(null, 'POST', `${base}/healthz`), 405, 'method_not_allowed')
    t.equal((await call(null, 'POST', `${base}/healthz`)).headers.allow, 'GET, HEAD')
    isProblem(t, await call('bob', 'GET', `${base}/api/status/a%2Fb`), 404, 'not_found')
  }
})

t.test('a path that only begins like BASE_URL’s is not found', async t => {
  for (const path of ['/handoffx/healthz', '/handoff%2Fhealthz', '/Handoff/healthz', '/handoff/handoff/healthz', '//handoff/healthz', '/handoff//healthz', '/x/handoff/healthz', '/handoff.healthz', '/handoff%', '/handoffhealthz']) {
    isProblem(t, await call(null, 'GET', path), 404, 'not_found', path)
  }
  for (const [target, status] of [['http://handoff.example/handoff/healthz', 200], ['http://handoff.example/healthz', 200], ['http://handoff.example/handoffx/healthz', 404]] as const) {
    t.equal((await ask(t, port, `GET ${target} HTTP/1.1\r\nHost: handoff.example\r\n\r\n`)).statusCode, status, `in absolute form: ${target}`)
  }
  const { call: dotted } = await testApp(t, { BASE_URL: 'https://handoff.example/a.b' })
  t.equal((await dotted(null, 'GET', '/a.b/healthz')).statusCode, 200)
  isProblem(t, await dotted(null, 'GET', '/axb/healthz'), 404, 'not_found', 'a dot stands for itself alone')
})

t.test('a problem’s type links to the page that explains it', async t => {
  const answers = [
    await call('alice', 'GET', '/api/status/nothing'), await call('alice', 'GET', '/handoff/api/status/nothing'), await call(null, 'GET', '/handoff/%zz'),
    await ask(t, port, '\0\r\n\r\n'),
  ]
  for (const { body } of answers) {
    const { type, code } = JSON.parse(body)
    t.equal(type, `/handoff/problems#${code}`)
    t.match((await call(null, 'GET', type.replace(/#.*/, ''))).body, `id="${code}"`)
  }
})

t.test('the documentation and its page link below the path', async t => {
  // Programs read the one anywhere; the page calls the service where it was loaded from.
  for (const [path, url] of [['/openapi.json', 'https://handoff.example/handoff'], ['/docs/json', '/handoff']] as const) {
    const { body } = await call(null, 'GET', path)
    t.strictSame(JSON.parse(body).servers, [{ url }])
    t.match(body, '"type":"/handoff/problems#expired"')
    t.notMatch(body, '"/problems#')
  }
  t.match((await call(null, 'GET', '/handoff/docs')).body, 'src="/handoff/docs/static/swagger-ui-bundle.js"')
  t.equal((await call(null, 'GET', '/handoff/docs/static/swagger-ui-bundle.js')).statusCode, 200)
  t.equal((await call(null, 'GET', '/docs/static/index.html')).headers.location, '/handoff/docs/')
})

t.test('an invalid path stops the start', { skip: ofOneReplica }, async t => {
  for (const path of ['//x', '/a//b', '/..', '/a/../b', '/.', '/a;b', '/a b', '/é', '/a%2Fb', '/a"b', '?x', '#x']) {
    t.throws(() => loadConfig({ BASE_URL: `https://handoff.example${path}` }), { message: /^BASE_URL: [^\n]+$/ }, path)
  }
  for (const [given, own] of [['http://LOCALHOST:1', 'http://localhost:1'], ['https://host:443/', 'https://host'], ['http://Host:80/A/', 'http://host/A']] as const) t.equal(loadConfig({ BASE_URL: given }).baseUrl, own)
  for (const url of ['http://', 'https://[::1', 'https://a:99999', 'ftp://a', 'https://a\\b', 'https://u@a', 'https://u:p@a']) t.throws(() => loadConfig({ BASE_URL: url }), { message: /^BASE_URL: / }, url)
  for (const [path, base] of [['', ''], ['/', ''], ['//', ''], ['/a', '/a'], ['/a/', '/a'], ['/a/b-c_d.e~f', '/a/b-c_d.e~f'], ['/...', '/...']] as const) {
    t.equal(loadConfig({ BASE_URL: `https://handoff.example${path}` }).basePath, base, path)
  }
  // With such a path nobody could tell whether a proxy has stripped it.
  for (const path of ['/api', '/approvals/assets', '/llms.txt']) {
    const { app } = await testApp(t, { BASE_URL: `https://handoff.example${path}` })
    await t.rejects(async () => await app.ready(), new SettingError(`BASE_URL: ${path} is the service’s own; take another path`), path)
  }
  const { call } = await testApp(t, { BASE_URL: 'https://handoff.example/api/handoff' })
  for (const base of ['', '/api/handoff']) t.equal((await call('approver', 'GET', `${base}/api/approvals`)).statusCode, 200, base)
})

t.test('the operators’ port accepts requests with and without the path', { skip: ofOneReplica }, async t => {
  const { app } = await testApp(t, { ...settings, METRICS_PORT: '0' })
  await until(async () => (await app.operatorsPort!.inject('/readyz')).statusCode === 200)
  for (const path of ['/healthz', '/handoff/healthz', '/readyz', '/handoff/metrics']) t.equal((await app.operatorsPort!.inject(path)).statusCode, 200, path)
  isProblem(t, await app.inject('/handoff/metrics'), 404, 'not_found')
  for (const path of ['/clients/', '/clients/agent-handoff-client.tgz']) {
    t.strictSame([(await app.inject(path)).statusCode, (await app.operatorsPort!.inject(path)).statusCode], [200, 404], path)
  }
})

t.test('every address on every page begins with the path, and so does where a form leads', async t => {
  const service = await testApp(t, { ...settings, BASE_URL: 'http://handoff.example/handoff' })
  const { headers, cookies: [session] } = await service.app.inject(form('/approvals/sign-in', { key: secrets.approver }))
  t.equal(headers.location, '/handoff/approvals')
  const cookie = `${session!.name}=${session!.value}`
  const id = await asked(service, 'href="/approvals action="/x')
  const paths = ['/', '/problems', '/approvals/sign-in', '/approvals', `/approvals/${id}`, '/approvals/list', '/nowhere', '/approvals/nothing']
  for (const url of paths) {
    const { body } = await service.app.inject({ url, headers: { cookie, accept: 'text/html' } })
    const addresses = [...body.matchAll(/ (?!value)[a-z-]+="(\/[^"]*)"/g)].map(([, address]) => address!)
    t.ok(addresses.length > 0, url)
    t.strictSame(addresses.filter(address => !address.startsWith('/handoff/')), [], url)
  }
  const { body } = await service.app.inject({ url: `/approvals/${id}`, headers: { cookie } })
  t.match(body, 'href&#61;&#34;/approvals action&#61;&#34;/x', 'what an agent wrote stays as it is')
  const decided = await service.app.inject({ ...form(`/approvals/${id}/approve`, await shown(service, id, cookie)), headers: { cookie, ...own, 'content-type': 'application/x-www-form-urlencoded' } })
  t.equal(decided.headers.location, `/handoff/approvals?tab=approvals&decided=${id}`)
  const again = await service.app.inject({ url: `/approvals/${id}`, headers: { 'sec-fetch-site': 'cross-site' } })
  t.match(again.body, `content="0; url=/handoff/approvals/${id}"`)
})
