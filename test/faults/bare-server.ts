/**
 * The baseline for slow clients: a bare server of Node's with the service's timeouts, in a process of its own. It prints its port on
 * 127.0.0.1.
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { serverOptions } from '../../src/http/server.ts'
import { endStalled } from '../../src/http/stalled.ts'

export const bareProgram = fileURLToPath(import.meta.url)

/** As large as the file that deaf clients request. */
const file = Buffer.alloc(1_500_000, 'x')

function main (): void {
  const options = serverOptions({ bodyLimit: 0, trustedProxies: [], basePath: '' })
  const server = createServer(options.http, (request, response) => {
    request.on('error', () => {}) // the client was too slow, and Node has answered 408
    if (request.method === 'GET') response.end(file)
  })
  server.keepAliveTimeout = options.keepAliveTimeout
  endStalled({ server })
  server.listen(0, '127.0.0.1', () => process.stdout.write(`${(server.address() as AddressInfo).port}\n`))
}

if (process.argv[1] === bareProgram) main()
