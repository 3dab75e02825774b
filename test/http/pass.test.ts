import type { AddressInfo } from 'node:net'
import { hostname, networkInterfaces } from 'node:os'
import t from 'tap'
import { testApp, secrets } from '../helpers/app.ts'
import { isProblem } from '../helpers/problems.ts'
import { ofOneReplica } from '../helpers/through.ts'
import { listen, ask } from '../helpers/wire.ts'

/** Of all that needs no service of its own. */
const service = await testApp(t)
const { call } = service

const lifetime = (answer: { created_at: string, expires_at: string }) => Date.parse(answer.expires_at) - Date.parse(answer.created_at)
const timestamp = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

t.test('pass answers the contract’s members and no others', async t => {
  const { call, setClock } = await testApp(t)
  const now = Date.now() - 3600_000
  await setClock(now)
  const answer = await call('alice', 'POST', '/api/pass', { task: 't' })
  t.equal(answer.statusCode, 201)
  t.equal(answer.headers['cache-control'], 'no-store')
  t.match(answer.headers['content-type'], /^application\/json/)
  t.notOk('idempotency-replayed' in answer.headers)
  const body = answer.json()
  t.strictSame(Object.keys(body).sort(), ['created_at', 'expires_at', 'handoff_id', 'pickup_url', 'status'])
  t.match(body, { status: 'pending', created_at: timestamp, expires_at: timestamp })
  t.equal(Date.parse(body.created_at), now, 'the time is that of Redis’s clock')
  t.equal(answer.headers.location, `/api/status/${body.handoff_id}`)
})

t.test('expires_in has its default and limits, and refuses other values', async t => {
  const { call, dump } = await testApp(t, { DEFAULT_EXPIRES_IN: '7', MAX_EXPIRES_IN: '100' })
  const pass = (expiresIn: unknown) => call('alice', 'POST', '/api/pass', { task: 't', expires_in: expiresIn })
  t.equal(lifetime((await call('alice', 'POST', '/api/pass', { task: 't' })).json()), 7000)
  t.equal(lifetime((await pass(null)).json()), 7000, 'null is absent')
  t.equal(lifetime((await pass(1)).json()), 1000)
  t.equal(lifetime((await pass(100)).json()), 100_000)
  const before = await dump()
  for (const wrong of [0, 101, 1.5, '5', -1, true, [], {}]) {
    const document = isProblem(t, await pass(wrong), 400, 'invalid_request', `expires_in ${JSON.stringify(wrong)}`)
    t.match(document.errors, [{ pointer: '/expires_in', message: /./ }])
  }
  const late = await call('alice', 'POST', '/api/pass', { task: 't', expires_in: 60, delay: 60 })
  t.match(isProblem(t, late, 400, 'invalid_request').errors, [{ pointer: '/delay' }], 'it would expire before')
  t.strictSame(await dump(), before, 'what was refused left nothing')
})

t.test('the default lifetime is a day, the longest thirty', async t => {
  const pass = (more: object) => call('alice', 'POST', '/api/pass', { task: 't', ...more })
  t.equal(lifetime((await pass({})).json()), 86400_000)
  t.equal(lifetime((await pass({ expires_in: 30 * 86400 })).json()), 30 * 86400_000)
  isProblem(t, await pass({ expires_in: 30 * 86400 + 1 }), 400, 'invalid_request')
})

t.test('null for an optional member means absent', async t => {
  const passed = await call('alice', 'POST', '/api/pass',
    { task: 't', output: null, context: null, constraints: null, require_human: null, expires_in: null })
  t.equal(passed.statusCode, 201)
  t.notOk('approval_url' in passed.json())
  const caught = await call('bob', 'GET', `/api/catch/${passed.json().handoff_id}`)
  t.match(caught.json(), { output: {}, context: {}, constraints: null })
})

t.test('links are built on BASE_URL, else on the listening address, never on the request', { skip: ofOneReplica }, async t => {
  const behind = await testApp(t, { BASE_URL: 'https://handoff.example/base/' })
  const spoofed = { host: 'evil.example', 'x-forwarded-host': 'evil.example', forwarded: 'host=evil.example' }
  const { handoff_id: id, ...links } = (await behind.call('alice', 'POST', '/api/pass', { task: 't', require_human: true }, spoofed)).json()
  t.match(links, { pickup_url: `https://handoff.example/base/api/catch/${id}`, approval_url: `https://handoff.example/base/approvals/${id}` })

  const { app } = await testApp(t)
  const port = await listen(app)
  const answer = await ask(t, port, `POST /api/pass HTTP/1.1\r\nHost: evil.example\r\nAuthorization: Bearer ${secrets.alice}\r\n` +
    'Content-Type: application/json\r\nContent-Length: 12\r\n\r\n{"task":"t"}')
  const body = JSON.parse(answer.body)
  t.equal(body.pickup_url, `http://127.0.0.1:${port}/api/catch/${body.handoff_id}`)
})

const hasIPv6 = Object.values(networkInterfaces()).flat().some(address => address?.family === 'IPv6')
for (const HOST of hasIPv6 ? ['0.0.0.0', '::'] : ['0.0.0.0']) {
  t.test(`on every address (${HOST}) links begin with the machine’s name, and the log asks for BASE_URL`, { skip: ofOneReplica }, async t => {
    const { app, call, lines } = await testApp(t, { HOST })
    await app.listen({ host: HOST, port: 0 })
    const { port } = app.server.address() as AddressInfo
    const { handoff_id: id, pickup_url: link } = (await call('alice', 'POST', '/api/pass', { task: 't' })).json()
    t.equal(link, `http://${hostname().toLowerCase()}:${port}/api/catch/${id}`)
    const warnings = () => lines.map(line => JSON.parse(line)).filter(({ level, msg }) => level === 40 && /BASE_URL/.test(msg))
    t.match(warnings(), [{ base_url: `http://${hostname().toLowerCase()}:${port}`, msg: /set BASE_URL/ }])
    t.equal(warnings().length, 1)
  })
}

t.test('with BASE_URL, or on one address, the log asks for nothing', { skip: ofOneReplica }, async t => {
  for (const [HOST, more] of [['0.0.0.0', { BASE_URL: 'https://handoff.example' }], ['127.0.0.1', {}], ['localhost', {}]] as const) {
    const { app, call, lines } = await testApp(t, { HOST, ...more })
    await app.listen({ host: HOST, port: 0 })
    t.notOk(lines.some(line => line.includes('BASE_URL')), HOST)
    const { port } = app.server.address() as AddressInfo
    const { pickup_url: link } = (await call('alice', 'POST', '/api/pass', { task: 't' })).json()
    const base = 'BASE_URL' in more ? more.BASE_URL : `http://${HOST}:${port}`
    t.ok(link.startsWith(`${base}/api/catch/`), `links begin with ${base}, as HOST or BASE_URL says it: ${link}`)
  }
  const { call } = await testApp(t, { HOST: '::1' })
  const { pickup_url: link } = (await call('alice', 'POST', '/api/pass', { task: 't' })).json()
  t.ok(link.startsWith('http://[::1]:8080/api/catch/'), `an address of IPv6 stands in brackets: ${link}`)
})

t.test('require_human adds an approval_url, and until somebody decides it is waiting', async t => {
  const { handoff_id: id, approval_url: link } = (await call('alice', 'POST', '/api/pass', { task: 't', require_human: true })).json()
  t.match(link, new RegExp(`^http://127\\.0\\.0\\.1:\\d+/approvals/${id}$`))
  isProblem(t, await call('bob', 'POST', `/api/done/${id}`), 409, 'not_caught')
  const approval = { state: 'waiting', decided_at: null, decided_by: null, note: null }
  t.match((await call('alice', 'GET', `/api/status/${id}`)).json(), { status: 'pending', require_human: true, approval })
})

t.test('a reissue answers as a pass does, and a delay shows wherever the handoff does', async t => {
  const { handoff_id: id, available_at: availableAt } = (await call('alice', 'POST', '/api/pass', { task: 't', delay: 30, require_human: true })).json()
  t.match((await call('approver', 'GET', '/api/approvals?limit=100')).json().items.at(-1), { handoff_id: id, available_at: availableAt })
  t.match((await call('approver', 'GET', `/api/approvals/${id}`)).json(), { available_at: availableAt })
  const { handoff_id: first } = (await call('alice', 'POST', '/api/pass', { task: 't' })).json()
  await call('bob', 'GET', `/api/catch/${first}`)
  const answer = await call('alice', 'POST', `/api/reissue/${first}`)
  const { handoff_id: next, pickup_url: link } = answer.json()
  t.match([answer.statusCode, answer.headers.location, link], [201, `/api/status/${next}`, `http://127.0.0.1:8080/api/catch/${next}`])
})
