import t from 'tap'
import type { Test } from 'tap'
import { loadConfig } from '../../src/config.ts'
import { networkOf } from '../../src/http/body.ts'
import { secrets, testApp } from '../helpers/app.ts'
import type { TestApp, Who } from '../helpers/app.ts'
import { skipInQuick } from '../helpers/extent.ts'
import { scrape } from '../helpers/metrics.ts'
import { isProblem } from '../helpers/problems.ts'
import { until } from '../helpers/until.ts'
import { listen, wire } from '../helpers/wire.ts'
import type { Answer, Wire } from '../helpers/wire.ts'

const mebi = 1024 * 1024
/** Where forms come from. */
const own = 'Sec-Fetch-Site: same-origin\r\nContent-Type: application/x-www-form-urlencoded\r\n'

const keyOf = (who: Who) => `Authorization: Bearer ${secrets[who]}\r\nContent-Type: application/json\r\n`

const metric = async ({ app }: TestApp, name: string) => (await scrape(app)).get(name)!
const held = (service: TestApp) => metric(service, 'handoff_body_bytes')
const refused = (service: TestApp) => metric(service, 'handoff_requests_refused_total{reason="bodies"}')

/** Announces a body, and sends a part of it or nothing. */
async function begin (t: Test, port: number, path: string, fields: string, length: number | 'chunked', part = ''): Promise<Wire> {
  const one = await wire(t, port)
  const size = length === 'chunked' ? 'Transfer-Encoding: chunked' : `Content-Length: ${length}`
  one.send(`POST ${path} HTTP/1.1\r\nHost: x\r\n${fields}${size}\r\n\r\n${part}`)
  return one
}

/** Begins as many requests, and sorts them. @returns those that were answered, with their answers, and those whose body is waited for */
async function crowd (service: TestApp, count: number, one: () => Promise<Wire>): Promise<{ answers: Answer[], open: Wire[] }> {
  const answers: Answer[] = []
  const all: Wire[] = []
  const answered = new Set<Wire>()
  const before = await refused(service)
  for (let n = 0; n < count; n++) {
    const begun = await one()
    all.push(begun)
    begun.answer().then(answer => { answers.push(answer); answered.add(begun) }, () => {})
  }
  // What isn't refused is held.
  let last = -1
  await until(async () => {
    const now = await held(service) + await refused(service)
    const isStill = now === last && answers.length === await refused(service) - before
    last = now
    return isStill
  })
  return { answers, open: all.filter(one => !answered.has(one)) }
}

t.test('an agent that holds bodies is refused before they are read; others are served', skipInQuick, async t => {
  const service = await testApp(t, { BODIES_LIMIT: String(32 * mebi) })
  const port = await listen(service.app)
  const batch = (who: Who) => () => begin(t, port, '/api/batch', keyOf(who), 4 * mebi, '{')
  const alice = await crowd(service, 20, batch('alice'))
  t.equal(alice.open.length, 4, 'half of the limit')
  t.equal(await held(service), 16 * mebi)
  t.equal(await refused(service), 16)
  for (const answer of alice.answers) {
    t.equal(isProblem(t, answer, 503, 'unavailable').retryable, true)
    t.equal(answer.headers['retry-after'], '1')
  }
  const second = await crowd(service, 5, batch('alice2'))
  t.equal(second.open.length, 0, 'another key of the same agent')
  const bob = await crowd(service, 5, batch('bob'))
  t.equal(bob.open.length, 1, 'another agent has room for one')
  const foreign = await crowd(service, 5, batch('foreignAlice'))
  t.equal(foreign.open.length, 1, 'another tenant has its share of the rest')
  for (const who of ['alice', 'bob', 'foreignAlice'] as const) {
    t.equal((await service.call(who, 'POST', '/api/pass', { task: 't' })).statusCode, 201, 'whatever is small is served')
  }

  const body = JSON.stringify({ operations: [{ op: 'pass', body: { task: 't' } }] })
  const [one, ...more] = alice.open as [Wire, ...Wire[]]
  one.send(body.slice(1).padEnd(4 * mebi - 1))
  await until(async () => alice.open.length === 4 && await held(service) === 20 * mebi)
  for (const { socket } of [...more, ...bob.open, ...foreign.open]) socket.destroy()
  await until(async () => await held(service) === 0)
  t.equal((await service.call('alice', 'POST', '/api/batch', body)).statusCode, 200, 'given back')
  t.equal(await held(service), 0)
})

t.test('who isn’t known yet has little room, and nobody else is refused for it', async t => {
  const service = await testApp(t, { BODIES_LIMIT: String(16 * mebi), TRUSTED_PROXIES: '127.0.0.1' })
  const port = await listen(service.app)
  const signIn = (address: string, length: number, part = '') => () => begin(t, port, '/approvals/sign-in', `${own}X-Forwarded-For: ${address}\r\n`, length, part)
  const large = await signIn('192.0.2.1', 512 * 1024, 'key=')()
  t.equal((await large.answer()).statusCode, 401, 'that is no key')
  t.equal(await held(service), 0)
  const one = await crowd(service, 100, signIn('192.0.2.1', 16 * 1024, 'key='))
  t.ok(one.open.length > 50 && one.open.length * 16 * 1024 <= 16 * mebi / 17, `${one.open.length} from one address`)
  for (const answer of one.answers) {
    t.equal(answer.statusCode, 503)
    t.equal(answer.headers['retry-after'], '1')
    t.match(answer.headers['content-type'], /^text\/html/)
  }
  const others = await crowd(service, 120, () => signIn(`2001:db8:0:${(Math.random() * 65536 | 0).toString(16)}::1`, 16 * 1024, 'key=')())
  t.ok(await held(service) <= 16 * mebi / 9, 'and so has everybody of whom nothing is known, together')
  t.ok(others.answers.length > 0)
  const form = new URLSearchParams({ key: secrets.approver, next: '/approvals' }).toString()
  const person = await begin(t, port, '/approvals/sign-in', `${own}X-Forwarded-For: 198.51.100.7\r\n`, form.length, form)
  t.equal((await person.answer()).statusCode, 303, 'a person signs in meanwhile')
  t.equal((await service.call('alice', 'POST', '/api/pass', { task: 'x'.repeat(900_000) })).statusCode, 201, 'an agent doesn’t notice')
  for (const { socket } of [...one.open, ...others.open]) socket.destroy()
  await until(async () => await held(service) === 0)
})

t.test('without a key no route holds more than a form', skipInQuick, async t => {
  const service = await testApp(t, { MCP_ORIGINS: 'https://agents.example.com', BODIES_LIMIT: String(32 * mebi) })
  const port = await listen(service.app)
  const { paths } = (await service.app.inject('/openapi.json')).json() as { paths: Record<string, object> }
  const known = Object.entries(paths).flatMap(([path, methods]) => Object.keys(methods).map(method => [method.toUpperCase(), path.replace(/\{.*?\}/g, 'x')] as const))
  const hidden = ['/mcp', '/approvals/sign-in', '/approvals/sign-out', '/approvals/x/approve', '/approvals/x/reject', '/nowhere', '/healthz'].map(path => ['POST', path] as const)
  for (const [method, path] of [...known, ...hidden, ['OPTIONS', '/mcp'], ['DELETE', '/approvals'], ['PUT', '/api/pass']] as const) {
    for (const type of path.startsWith('/api') ? ['application/json'] : ['application/json', 'application/x-www-form-urlencoded']) {
      const { send, answer, socket } = await wire(t, port)
      send(`${method} ${path} HTTP/1.1\r\nHost: x\r\nSec-Fetch-Site: same-origin\r\nOrigin: https://agents.example.com\r\nContent-Type: ${type}\r\nContent-Length: ${mebi}\r\n\r\n${'x'.repeat(1000)}`)
      const { statusCode } = await answer()
      t.ok(statusCode !== 408 && statusCode < 500, `${method} ${path} as ${type}: ${statusCode} before the body has come`)
      t.equal(await held(service), 0)
      socket.destroy()
    }
  }
})

t.test('chunks are counted as they come, however small', async t => {
  const service = await testApp(t, { BODIES_LIMIT: String(32 * mebi) })
  const port = await listen(service.app)
  const chunked = await begin(t, port, '/api/pass', keyOf('alice'), 'chunked', '1\r\n{\r\n')
  await until(async () => await held(service) === 4096)
  chunked.send('1\r\n \r\n'.repeat(10_000))
  await until(async () => await held(service) === 16_384)
  chunked.send('c\r\n"task":"t"  \r\n1\r\n}\r\n0\r\n\r\n')
  t.equal((await chunked.answer()).statusCode, 201)
  await until(async () => await held(service) === 0)
  // A body that finds no room when half of it is there.
  const batches = await crowd(service, 4, () => begin(t, port, '/api/batch', keyOf('alice'), 4 * mebi))
  t.equal(batches.open.length, 4)
  batches.open[0]!.socket.destroy()
  await until(async () => await held(service) === 12 * mebi)
  const growing = await begin(t, port, '/api/batch', keyOf('alice'), 'chunked')
  const piece = `10000\r\n${' '.repeat(65_536)}\r\n`
  growing.send(piece.repeat(5 * 16))
  isProblem(t, await growing.answer(), 503, 'unavailable', 'the fifth mebibyte')
  await until(async () => await held(service) === 12 * mebi)
})

t.test('what ends otherwise gives back too', skipInQuick, async t => {
  const service = await testApp(t, { BODY_LIMIT: '1024', BODIES_LIMIT: String(32 * mebi) })
  const { call, app } = service
  const port = await listen(app)
  for (const body of ['{', '{"task":5}', 'x'.repeat(1025), '{"task":"t"}']) await call('alice', 'POST', '/api/pass', body)
  await call('alice', 'POST', '/api/pass', '{"task":"t"}', { 'content-type': 'text/plain' })
  await call('alice', 'POST', '/mcp', { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'handoff_catch_next', arguments: { wait: 0 } } })
  await call('alice', 'POST', '/mcp', 'nonsense')
  const gone = await begin(t, port, '/api/catch?wait=50', keyOf('bob'), 2, '{}')
  await until(async () => await held(service) > 0)
  gone.socket.destroy()
  const upload = await begin(t, port, '/api/pass', keyOf('bob'), 100, '{')
  upload.socket.end()
  await until(async () => await held(service) === 0)
})

t.test('BODIES_LIMIT', async t => {
  t.equal(loadConfig({}).bodiesLimit, 64 * mebi)
  t.equal(loadConfig({ BATCH_LIMIT: String(32 * mebi) }).bodiesLimit, 256 * mebi, 'larger bodies need more room')
  t.equal(loadConfig({ BODIES_LIMIT: String(16 * mebi) }).bodiesLimit, 16 * mebi)
  for (const given of ['-1', '1.5', '64MiB', String(16 * mebi - 1)]) t.throws(() => loadConfig({ BODIES_LIMIT: given }), { message: /^BODIES_LIMIT: all request bodies[^\n]*$/ }, given)
})

t.test('an address of IPv6 counts with its network', async t => {
  const pairs = [['192.0.2.1', '192.0.2.1'], ['::ffff:192.0.2.1', '::ffff:192.0.2.1'], ['2001:db8::1', '2001:db8:0:0'], ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2'], ['::1', '0:0:0:0'], ['1:2:3:4:5::', '1:2:3:4']] as const
  for (const [ip, network] of pairs) t.equal(networkOf(ip), network)
})
