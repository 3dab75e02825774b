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

/** Three fake replicas that are ready and answer as the test tells them. */
class Three {
  asked: IncomingMessage[] = []
  answer: (request: IncomingMessage, response: ServerResponse) => void = () => {}
  readonly #servers = [1, 2, 3].map(() => createServer((request, response) => {
    if (request.url?.startsWith('/readyz')) return response.end()
    this.asked.push(request)
    this.answer(request, response)
  }).listen(0, '127.0.0.1'))

  /** @returns their addresses */
  async start (t: Test): Promise<string[]> {
    t.teardown(() => this.stop())
    await Promise.all(this.#servers.map(server => once(server, 'listening')))
    return this.#servers.map(server => `127.0.0.1:${(server.address() as AddressInfo).port}`)
  }

  /** From now on they answer like this; what was asked before is forgotten. */
  will (answer: typeof this.answer): void {
    this.asked = []
    this.answer = answer
  }

  stop (): void {
    for (const server of this.#servers) server.close().closeAllConnections()
  }
}

async function get (url: string, headers: Record<string, string> = {}) {
  // A connection of its own: on a kept one, HAProxy hands a reset on to a client that may retry, instead of an answer.
  const answer = await fetch(`${url}/api/catch/x`, { headers: { ...headers, connection: 'close' } })
  return { statusCode: answer.status, headers: Object.fromEntries(answer.headers), body: await answer.text() }
}

for (const [name, { skip, start }] of Object.entries(balancers)) {
  t.test(name, { skip }, async t => {
    const three = new Three()
    const url = await start(t, await three.start(t))

    await t.test('forwards the client’s real address and the request’s id', async t => {
      three.will((request, response) => response.end('{}'))
      await get(url, { 'x-forwarded-for': '192.0.2.1', 'x-request-id': 'mine' })
      t.match(three.asked[0]!.headers, { 'x-forwarded-for': '127.0.0.1', 'x-request-id': 'mine' })
    })

    await t.test('sends no request to a second replica', async t => {
      three.will(request => request.socket.destroy())
      isProblem(t, await get(url), 503, 'unavailable', 'the outcome is unknown')
      t.equal(three.asked.length, 1)
    })

    await t.test('a replica hears that its client has gone', async t => {
      three.will(() => {})
      const own = new AbortController()
      const waiting = t.rejects(fetch(`${url}/api/catch?wait=50`, { method: 'POST', signal: own.signal }))
      await until(() => three.asked.length === 1)
      const gone = new Promise(resolve => three.asked[0]!.socket.on('close', resolve))
      own.abort()
      await waiting
      await gone
    })

    await t.test('a page goes to any replica, and a browser gets one when it breaks off', async t => {
      three.will((request, response) => request.url === '/approvals' ? response.end('<p>') : request.socket.destroy())
      const page = await fetch(`${url}/approvals`, { headers: { accept: 'text/html' } })
      t.strictSame([page.status, await page.text()], [200, '<p>'])
      t.match((await get(url, { accept: 'text/html' })).body, /^<!doctype html>/)
      t.equal(three.asked.length, 2, 'and it is not sent twice')
    })

    await t.test('a batch passes', async t => {
      three.will((request, response) => request.resume().on('end', () => response.end('{}')))
      t.equal((await fetch(`${url}/api/batch`, { method: 'POST', body: 'x'.repeat(8 * 1024 * 1024) })).status, 200)
      t.equal(three.asked[0]!.headers['content-length'], String(8 * 1024 * 1024))
    })

    await t.test('without a replica it answers as the service does', async t => {
      three.stop()
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
  })
}
