import { once } from 'node:events'
import { createServer } from 'node:http'
import type { RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'

/** A fake package registry that answers only what `npm audit` asks. @param answer advisories by the names of packages */
export async function startAuditRegistry (t: Test, status: number, answer: object): Promise<string> {
  return await listen(t, (request, response) => {
    request.resume()
    const isQuestion = request.url?.endsWith('/advisories/bulk') === true
    response.writeHead(isQuestion ? status : 404, { 'content-type': 'application/json' }).end(JSON.stringify(isQuestion ? answer : {}))
  })
}

/** One that takes every question and answers none. */
export async function startSilentRegistry (t: Test): Promise<string> {
  return await listen(t, () => {})
}

async function listen (t: Test, listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, '127.0.0.1')
  t.teardown(() => {
    server.close()
    server.closeAllConnections()
  })
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
}
