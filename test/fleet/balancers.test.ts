import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import type { Test } from 'tap'
import { hasHaproxy, startHaproxy } from '../faults/fleet/haproxy.ts'
import { hasNginx, startNginx } from '../faults/fleet/nginx.ts'
import { isProblem } from '../helpers/problems.ts'
import { projectRoot } from '../helpers/service.ts'
import { until } from '../helpers/until.ts'

const balancers = {
  haproxy: { skip: hasHaproxy() ? false : 'haproxy is not installed', start: async (t: Test, at: string[]) => (await startHaproxy(t, at)).url },
  nginx: { skip: hasNginx() ? false : 'nginx is not installed', start: (t: Test, at: string[]) => startNginx(t, at) },
}

type Answer = (request: IncomingMessage, response: ServerResponse) => void

/** Three fake replicas that are ready and answer as the test tells them. @returns their addresses, how to stop them, and their requests except checks */
async function three (t: Test, answer: Answer) {
  const asked: IncomingMessage[] = []
  const servers = [1, 2, 3].map(() => createServer((request, response) => {
    if (request.url?.startsWith('/readyz')) return response.end()
    asked.push(request)
    answer(request, response)
  }).listen(0, '127.0.0.1'))
  const stop = () => servers.forEach(server => { server.close().closeAllConnections() })
  t.teardown(stop)
  await Promise.all(servers.map(server => once(server, 'listening')))
  return { at: servers.map(server => `127.0.0.1:${(server.address() as AddressInfo).port}`), asked, stop }
}

async function get (url: string, headers: Record<string, string> = {}) {
  const answer = await fetch(`${url}/api/catch/x`, { headers })
  return { statusCode: answer.status, headers: Object.fromEntries(answer.headers), body: await answer.text() }
}

for (const [name, { skip, start }] of Object.entries(balancers)) {
  t.test(`${name}: forwards the client’s real address and the request’s id`, { skip }, async t => {
    const { at, asked } = await three(t, (request, response) => response.end('{}'))
    const url = await start(t, at)
    await get(url, { 'x-forwarded-for': '192.0.2.1', 'x-request-id': 'mine' })
    t.match(asked[0]!.headers, { 'x-forwarded-for': '127.0.0.1', 'x-request-id': 'mine' })
  })

  t.test(`${name}: sends no request to a second replica`, { skip }, async t => {
    const { at, asked } = await three(t, request => request.socket.destroy())
    const url = await start(t, at)
    isProblem(t, await get(url), 503, 'unavailable', 'the outcome is unknown')
    t.equal(asked.length, 1)
  })

  t.test(`${name}: a replica hears that its client has gone`, { skip }, async t => {
    const { at, asked } = await three(t, () => {})
    const url = await start(t, at)
    const own = new AbortController()
    const waiting = t.rejects(fetch(`${url}/api/catch?wait=50`, { method: 'POST', signal: own.signal }))
    await until(() => asked.length === 1)
    const gone = new Promise(resolve => asked[0]!.socket.on('close', resolve))
    own.abort()
    await waiting
    await gone
  })

  t.test(`${name}: a batch passes`, { skip }, async t => {
    const { at, asked } = await three(t, (request, response) => request.resume().on('end', () => response.end('{}')))
    const url = await start(t, at)
    t.equal((await fetch(`${url}/api/batch`, { method: 'POST', body: 'x'.repeat(8 * 1024 * 1024) })).status, 200)
    t.equal(asked[0]!.headers['content-length'], String(8 * 1024 * 1024))
  })

  t.test(`${name}: without a replica it answers as the service does`, { skip }, async t => {
    const { at, stop } = await three(t, (request, response) => response.end('{}'))
    const url = await start(t, at)
    stop()
    await until(async () => (await get(url)).statusCode === 503)
    const answer = await get(url)
    isProblem(t, answer, 503, 'unavailable')
    t.equal(answer.headers['retry-after'], '1')

    // Firefox's and Chrome's field; a program may copy it, but it has a key.
    const browser = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8'
    const page = await get(url, { accept: browser })
    t.equal(page.statusCode, 503)
    t.match(page.headers, { 'content-type': 'text/html; charset=utf-8', 'retry-after': '1', 'cache-control': 'no-store', 'x-request-id': /./ })
    t.match(page.body, /^<!doctype html>[^]*<h1>[^<]+<\/h1>[^]*<\/html>\n$/)
    const sample = await readFile(join(projectRoot, 'deploy/haproxy/503.html'), 'utf8')
    t.equal(page.body, sample.replace('%ID', page.headers['x-request-id']!), 'the same page as every balancer’s')
    isProblem(t, await get(url, { accept: browser, authorization: 'Bearer x' }), 503, 'unavailable')
  })

  t.test(`${name}: a page goes to any replica, and a browser gets one when it breaks off`, { skip }, async t => {
    const { at, asked } = await three(t, (request, response) => request.url === '/approvals' ? response.end('<p>') : request.socket.destroy())
    const url = await start(t, at)
    const page = await fetch(`${url}/approvals`, { headers: { accept: 'text/html' } })
    t.strictSame([page.status, await page.text()], [200, '<p>'])
    t.match((await get(url, { accept: 'text/html' })).body, /^<!doctype html>/)
    t.equal(asked.length, 2, 'and it is not sent twice')
  })
}
