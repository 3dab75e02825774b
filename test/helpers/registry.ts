import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'

/** A fake package registry that answers only what `npm audit` asks. @param answer advisories by the names of packages */
export async function startAuditRegistry (t: Test, status: number, answer: object): Promise<string> {
  const server = createServer((request, response) => {
    request.resume()
    const isQuestion = request.url?.endsWith('/advisories/bulk') === true
    response.writeHead(isQuestion ? status : 404, { 'content-type': 'application/json' }).end(JSON.stringify(isQuestion ? answer : {}))
  }).listen(0, '127.0.0.1')
  t.teardown(() => server.close())
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
}
