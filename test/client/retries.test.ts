import { once } from 'node:events'
import { createServer } from 'node:net'
import type { AddressInfo, Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import type { Test } from 'tap'
import { backoff, retryPause } from '../../src/clients/typescript/clock.ts'
import { HandoffClient } from '../../src/clients/typescript/index.ts'
import { answering, proxy, serve, tenants } from '../helpers/client.ts'
import type { Fate, Seen, Tenant } from '../helpers/client.ts'
import { until } from '../helpers/until.ts'

/** An address where nobody listens. */
async function nowhere (): Promise<string> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  await new Promise(resolve => server.close(resolve))
  return `http://127.0.0.1:${port}`
}

const tenant = await tenants(t)

interface Behind extends Tenant { seen: Seen[], through: Tenant['client'] }

/** The service behind a proxy that treats requests by their index so, and lets the rest pass. */
async function behind (t: Test, fates: Fate[] | ((seen: Seen, index: number) => Fate)): Promise<Behind> {
  const service = tenant()
  const { address, seen } = await proxy(t, service.address, typeof fates === 'function' ? fates : (_, index) => fates[index] ?? 'pass')
  return { ...service, seen, through: (who, options) => service.client(who, { baseUrl: address, ...options }) }
}

const keyless = ['/api/cancel', '/api/reissue', '/api/heartbeat', '/api/status', '/api/inboxes', '/api/approv', '/api/reject', '/api/batch']

t.test('pauses between attempts double, up to five seconds, of which half is random', async t => {
  for (const [round, longest] of [[0, 100], [1, 200], [5, 3200], [6, 5000], [1000, 5000]] as const) {
    const pauses = Array.from({ length: 20 }, () => backoff(round))
    t.ok(pauses.every(pause => pause >= longest / 2 && pause <= longest) && new Set(pauses).size > 1, `${round}: ${pauses}`)
  }
})

t.test('an answer that is lost, after the service has acted, is asked for again, at every operation', async t => {
  const asked = new Set<string>()
  const identity = ({ method, url, key, body }: Seen) => `${method} ${url} ${key} ${body}`
  const { seen, through, client } = await behind(t, one => {
    if (asked.has(identity(one))) return 'pass'
    asked.add(identity(one))
    return 'drop'
  })
  const [alice, bob, carol] = [through('alice'), through('bob'), through('approver')]
  const { handoff_id: id } = await alice.pass({ task: 'one', to: 'in', max_attempts: 3, retry_delay: 0 })
  t.equal((await alice.inbox('in')).pending, 1, 'passed once')
  const [caught] = await bob.catchNext({ inbox: 'in' })
  t.match(caught, { handoff_id: id, task: 'one' })
  await bob.heartbeat(id, { progress: { percent: 1 } })
  const { reissued_as: second } = await bob.fail(id, 'Again.')
  t.match(await bob.catch(second!, { wait: 5 }), { task: 'one', attempt: 2 })
  const { reissued_as: third } = await bob.decline(second!, 'Again.')
  t.match(await bob.catch(third!, { wait: 5 }), { task: 'one', attempt: 3 })
  t.match(await bob.done(third!, { counted: 1 }), { status: 'done' })
  t.match(await alice.waitFor(id, 'done'), { handoff_id: third, result: { counted: 1 } })

  const { handoff_id: other } = await alice.pass({ task: 'two', require_human: true })
  t.equal((await carol.approvals.list()).items.length, 1)
  await carol.approvals.get(other)
  const approved = await carol.approvals.approve(other, { note: 'Go.' })
  t.match(approved, { handoff_id: other, status: 'pending', approval: { state: 'approved', decided_by: 'carol' } })
  t.strictSame(JSON.parse(approved.text), approved, 'its text too, though it was told as a refusal')
  await t.rejects(client('approver').approvals.approve(other, { note: 'Go.' }), { code: 'already_decided' }, 'but what nothing was asked for before is refused')
  await bob.catch(other)
  const { handoff_id: again } = await alice.reissue(other)
  t.match(await client('alice').status(again), { attempt: 2 })
  t.match(await alice.cancel(again), { status: 'cancelled' })
  const { handoff_id: refused } = await alice.pass({ task: 'three', require_human: true })
  t.match(await carol.approvals.reject(refused, 'No.'), { status: 'rejected', approval: { state: 'rejected' } })
  const { results } = await alice.batch([{ op: 'pass', body: { task: 'four', to: 'batch' } }, { op: 'pass', body: { task: 'five', to: 'batch' } }])
  t.strictSame(results.map(({ status, replayed }) => [status, replayed]), [[201, true], [201, true]])
  t.equal((await alice.inbox('batch')).pending, 2)

  t.equal(seen.length, 2 * asked.size, 'each was asked twice, with the same key and the same bytes')
  for (const { url, key, body } of seen) {
    t.equal(key === undefined, keyless.some(path => url.startsWith(path)), url)
    if (url === '/api/batch') t.ok(JSON.parse(body).operations.every((one: { idempotency_key?: string }) => /./.test(one.idempotency_key!)))
  }
})

t.test('what may pass is asked again, and Retry-After is obeyed', async t => {
  const statuses = [408, 429, 502, 503, 504]
  const { seen, through } = await behind(t, (_, index) => {
    if (index % 2 === 1) return 'pass'
    const status = statuses[index / 2]
    return status === undefined ? answering(503, '', { 'retry-after': '1' }) : answering(status, '<html>')
  })
  for (const status of statuses) t.match(await through('alice').pass({ task: 'x' }), { status: 'pending' }, String(status))
  t.equal(seen.length, 2 * statuses.length)
  for (const [index, { key }] of seen.entries()) t.ok(key !== undefined && key === seen[index - index % 2]!.key)
  const began = performance.now()
  await through('alice').status('x').catch(() => {})
  t.ok(performance.now() - began >= 1000)
  t.equal(seen.length, 2 * statuses.length + 2)
})

t.test('a date in Retry-After is by the clock of whoever answers', async t => {
  const { through } = await behind(t, () => answering(503, '', { date: 'Fri, 20 Nov 2020 09:00:00 GMT', 'retry-after': 'Fri, 20 Nov 2020 09:01:00 GMT' }))
  await t.rejects(through('alice').pass({ task: 'x' }), { code: 'connection_failed', status: 503, retryAfter: 60 })
})

t.test('until retryFor is over', async t => {
  const overload = JSON.stringify({ code: 'unavailable', detail: 'Busy.', retryable: true, request_id: 'r1' })
  const { seen, through } = await behind(t, () => answering(503, overload))
  await t.rejects(through('alice', { retryFor: 400 }).pass({ task: 'x' }), { code: 'unavailable', status: 503, retryable: true, requestId: 'r1', detail: 'Busy.' })
  t.ok(seen.length > 2)
  t.equal(new Set(seen.map(({ key }) => key)).size, 1)
  const before = seen.length
  await t.rejects(through('alice', { retryFor: 0 }).pass({ task: 'x' }), { code: 'unavailable' })
  t.equal(seen.length, before + 1)
  const later = await behind(t, () => answering(503, '', { 'retry-after': '60' }))
  const atOnce = { signal: AbortSignal.timeout(5000) }
  await t.rejects(later.through('alice').pass({ task: 'x' }, atOnce), { code: 'connection_failed', status: 503, retryAfter: 60 }, 'who is told to wait longer than it has gives up at once')
})

t.test('what it asks the service to wait is no time to ask for where nobody answers', async t => {
  const { seen, through } = await behind(t, () => answering(503))
  await t.rejects(through('alice', { retryFor: 300 }).status('x', { wait: 60 }), { code: 'connection_failed' })
  t.ok(seen.length > 1)
})

t.test('never on another 4xx', async t => {
  const statuses = [400, 401, 403, 404, 409, 410, 413, 422, 500]
  const { seen, through } = await behind(t, (_, index) => answering(statuses[index] ?? 404, JSON.stringify({ code: 'some_code', detail: 'D.', reissued_as: 'n' })))
  for (const status of statuses) await t.rejects(through('alice').pass({ task: 'x' }), { code: 'some_code', status, retryable: false, reissuedAs: 'n' })
  t.equal(seen.length, statuses.length)
})

t.test('an answer that isn’t the service’s is an error that says so', async t => {
  const cases: Array<[status: number, body: string, detail: RegExp]> = [
    [502, '<html><h1>Bad Gateway</h1>', /status 502, text\/html, beginning "<html>/], [200, '', /empty/], [200, '<html>Sign in', /Sign in/],
    [200, '5', /beginning "5"/], [404, 'not JSON', /not JSON/], [302, '', /status 302/], [301, '{}', /status 301/], [200, '{"cut', /cut/],
  ]
  const { through } = await behind(t, (_, index) => answering(...cases[index]!.slice(0, 2) as [number, string], { 'content-type': 'text/html', location: '/elsewhere', 'x-request-id': 'r7' }))
  for (const [status, , detail] of cases) {
    await t.rejects(through('alice', { retryFor: 0 }).status('x'), { name: 'HandoffError', code: 'connection_failed', status, detail, requestId: 'r7', retryable: status === 502 })
  }
})

t.test('a redirect, and the wrong one of http: and https:, are told in words', async t => {
  let led = 0
  const elsewhere = await serve(t, (_, response) => { led++; response.end('{}') })
  const plain = await serve(t, (_, response) => response.writeHead(308, { location: `${elsewhere}/api/pass?token=secret` }).end())
  const make = (baseUrl: string) => new HandoffClient({ baseUrl, key: 'k', retryFor: 0 })
  const redirected = await make(plain).pass({ task: 'x' }).catch((error: Error) => error.message)
  t.match(redirected, `status 308, a redirect to "${elsewhere}/api/pass", which isn’t followed: give the address that it leads to.`)
  t.notMatch(redirected, 'secret')
  t.equal(led, 0)
  await t.rejects(make(plain.replace('http:', 'https:')).pass({ task: 'x' }), { code: 'connection_failed', retryable: false, detail: /doesn’t speak TLS; the address begins with http:/ })
  const secure = createServer(socket => { socket.on('error', () => {}).once('data', () => socket.end(Buffer.from([21, 3, 1, 0, 2, 2, 70]))) }).listen(0, '127.0.0.1')
  t.teardown(() => secure.close())
  await once(secure, 'listening')
  await t.rejects(make(`http://127.0.0.1:${(secure.address() as AddressInfo).port}`).pass({ task: 'x' }), { code: 'connection_failed', retryable: false, detail: /isn’t HTTP; perhaps the address begins with https:/ })
})

t.test('a clock that is set changes nothing about how long it is asked again', async t => {
  const now = Date.now
  t.teardown(() => { Date.now = now })
  let asked = 0
  const address = await serve(t, (_, response) => {
    Date.now = () => now() + 7200_000
    response.writeHead(asked++ < 2 ? 503 : 200).end('{}')
  })
  t.match(await new HandoffClient({ baseUrl: address, key: 'k', retryFor: 20_000 }).status('x'), {})
  t.equal(asked, 3)
})

t.test('a long wait is preceded by a short request where nothing was heard for a while, and by none soon after an answer', async t => {
  const now = Date.now
  t.teardown(() => { Date.now = now })
  const asked: string[] = []
  const fetch = async (url: string) => {
    const { pathname } = new URL(url)
    asked.push(pathname)
    if (pathname === '/api/status/silent' && !asked.includes('/healthz')) await new Promise(() => {})
    return new Response('{}')
  }
  const client = new HandoffClient({ baseUrl: 'http://127.0.0.1:1', key: 'k', fetch })
  for (const later of [0, 16_000, 17_000, 40_000]) {
    Date.now = () => now() + later
    await client.status(String(later), { wait: 1 })
  }
  t.strictSame(asked, ['/api/status/0', '/healthz', '/api/status/16000', '/api/status/17000', '/healthz', '/api/status/40000'])
  asked.length = 0
  const steady = performance.now.bind(performance)
  t.intercept(performance, 'now', { value: () => steady() + 16_000 })
  Date.now = () => now() - 3600_000
  await client.status('set-back', { wait: 1 })
  t.strictSame(asked.splice(0), ['/healthz', '/api/status/set-back'], 'also by a clock that was set back')
  await client.status('silent', { wait: 1, attemptTimeout: 10 })
  t.strictSame(asked, ['/api/status/silent', '/healthz', '/api/status/silent'], 'and where the last attempt got no answer in time')
})

t.test('what the service waited, as it was asked to, is no time lost for another attempt', async t => {
  let asked = 0
  const fetch = async () => {
    await sleep(300)
    return new Response('{}', { status: asked++ === 0 ? 503 : 200 })
  }
  const client = new HandoffClient({ baseUrl: 'http://127.0.0.1:1', key: 'k', fetch, retryFor: 200 })
  await client.status('x', { wait: 1 })
  t.equal(asked, 2)
})

t.test('20 MB come whole, and so does what each has of it', async t => {
  const items = Array.from({ length: 10 }, (_, n) => ({ handoff_id: String(n), task: 'é'.repeat(1_000_000) }))
  const address = await serve(t, (_, response) => { response.end(JSON.stringify({ items })) })
  const caught = await new HandoffClient({ baseUrl: address, key: 'k', retryFor: 0 }).catchNext({ max: 10 })
  t.strictSame(caught.map(({ text }) => JSON.parse(text)), items)
})

t.test('a Retry-After of ten digits isn’t waited for', async t => {
  t.strictSame([1, 3600, 3601, 9999999999].map(retryPause), [1000, 3600_000, 0, 0], 'nor any beyond an hour')
  const { through } = await behind(t, (_, index) => index % 2 === 0 ? answering(503, '', { 'retry-after': '9999999999' }) : 'pass')
  await t.rejects(through('alice').pass({ task: 'x' }), { code: 'connection_failed', status: 503, retryAfter: 9999999999 }, 'one call has no such time')
  const { handoff_id: id } = await through('alice').pass({ task: 'x', to: 'w' })
  const ending = new AbortController()
  const working = through('bob').work('w', () => {}, { signal: ending.signal })
  t.match(await through('alice').waitFor(id, 'done'), { status: 'done' }, 'nor by what asks for as long as it takes')
  ending.abort()
  await working
})

t.test('a service that hangs, and one that isn’t there', async t => {
  const hung = await serve(t, () => {})
  await t.rejects(new HandoffClient({ baseUrl: hung, key: 'k', attemptTimeout: 50, retryFor: 0 }).status('x'), { code: 'timeout', status: undefined, retryable: true })
  const half = await serve(t, (_, response) => { response.writeHead(200).write('{') })
  await t.rejects(new HandoffClient({ baseUrl: half, key: 'k', attemptTimeout: 50, retryFor: 0 }).status('x'), { code: 'timeout' }, 'in the middle of an answer')
  const { seen, through } = await behind(t, [() => {}])
  t.match(await through('alice', { attemptTimeout: 500 }).pass({ task: 'x' }), { status: 'pending' })
  t.equal(seen.length, 2)
  await t.rejects(new HandoffClient({ baseUrl: await nowhere(), key: 'k', retryFor: 200 }).status('x'), { code: 'connection_failed', retryable: true, detail: /ECONNREFUSED/ })
})

t.test('attempts that began at about the same time end each for itself', async t => {
  let hung = 0
  let closed = 0
  const answered = new Set<Socket>()
  const address = await serve(t, (request, response) => {
    if (request.url !== '/api/status/hangs') {
      answered.add(request.socket)
      return response.end('{}')
    }
    hung++
    response.on('close', () => closed++)
  })
  const client = new HandoffClient({ baseUrl: address, key: 'k', attemptTimeout: 2000, retryFor: 0 })
  const hangs = async () => {
    const began = performance.now()
    await t.rejects(client.status('hangs'), { code: 'timeout' })
    t.ok(performance.now() - began >= 1995, 'it had its time')
  }
  const late = Array.from({ length: 24 }, hangs)
  await until(() => hung === 24)
  await sleep(200)
  late.push(hangs())
  const own = new AbortController()
  const aborted = t.rejects(client.status('hangs', { signal: own.signal }), { code: 'aborted' })
  await until(() => hung === 26)
  own.abort()
  await aborted
  for (let index = 0; index < 25; index++) await client.status('answers')
  await Promise.all(late)
  await until(() => closed === 26)
  t.ok([...answered].every(({ destroyed }) => !destroyed), 'what had been answered has lost no connection')
})

t.test('fetch gets no signal once it was seen to do without, and what is ended loses its connection all the same', async t => {
  const { fetch } = globalThis
  t.teardown(() => { globalThis.fetch = fetch })
  const signals: unknown[] = []
  globalThis.fetch = (url, init) => {
    signals.push(init?.signal)
    return fetch(url, init)
  }
  let closed = 0
  const address = await serve(t, (request, response) => {
    if (request.url !== '/api/status/hangs') return response.end('{}')
    response.writeHead(200).write('{')
    response.on('close', () => closed++)
  })
  const client = new HandoffClient({ baseUrl: address, key: 'k', attemptTimeout: 300, retryFor: 0 })
  await client.status('first')
  await client.status('second')
  t.match(signals, [AbortSignal, undefined])
  const elsewhere: string[] = []
  const fresh = await serve(t, ({ url }, response) => {
    elsewhere.push(url!)
    response.end('{}')
  })
  const other = new HandoffClient({ baseUrl: fresh, key: 'k' })
  const own = new AbortController()
  const early = t.rejects(other.status('early', { signal: own.signal }), { code: 'aborted' })
  own.abort()
  await early
  await other.status('late')
  t.strictSame(elsewhere, ['/api/status/late'], 'what is ended before it has a connection isn’t sent')
  await t.rejects(client.status('hangs'), { code: 'timeout' })
  await until(() => closed === 1)
  t.strictSame([...new Set(signals.slice(1))], [undefined])

  const reasons: unknown[] = []
  globalThis.fetch = (_, init) => new Promise((_resolve, reject) => {
    init!.signal!.addEventListener('abort', () => {
      reasons.push(init!.signal!.reason)
      reject(init!.signal!.reason)
    })
  })
  await t.rejects(client.status('x'), { code: 'timeout' }, 'another is used at once, and gets one')
  t.equal(reasons.length, 1)
})

t.test('an attempt may take as long as it asks the service to wait, and more', async t => {
  const alice = tenant().client('alice', { attemptTimeout: 900, retryFor: 0 })
  const { handoff_id: id } = await alice.pass({ task: 'x' })
  t.match(await alice.status(id, { wait: 1 }), { status: 'pending' })
  t.match(await alice.status(id, { attemptTimeout: 2 ** 40 }), { status: 'pending' }, 'also longer than any timer lasts')
})

t.test('what waits for long is bounded by neither', async t => {
  const { seen, through, client } = await behind(t, (_, index) => index < 5 ? answering(503) : 'pass')
  const { handoff_id: id } = await client('alice').pass({ task: 'x' })
  const waiting = through('alice', { retryFor: 0, attemptTimeout: 5000 }).waitFor(id, 'caught')
  const caught = client('bob').catch(id)
  t.match(await waiting, { status: 'caught' })
  await caught
  t.ok(seen.length > 5)
})
