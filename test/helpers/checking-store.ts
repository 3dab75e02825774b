import { createServer, request } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'
import { sha256 } from './files.ts'

/**
 * In front of an S3 server that checks no digests: does what S3 documents of `x-amz-checksum-sha256` and `if-none-match: *`. All else is the
 * server's.
 */
export async function checkingFront (t: Test, target: string): Promise<{ url: string, close: () => Promise<void> }> {
  const digests = new Map<string, string>()
  const answer = async (incoming: IncomingMessage, response: ServerResponse) => {
    const chunks: Buffer[] = []
    for await (const some of incoming) chunks.push(some)
    const body = Buffer.concat(chunks)
    const [path] = incoming.url!.split('?') as [string]
    const { 'x-amz-checksum-sha256': declared, 'if-none-match': condition } = incoming.headers
    if (incoming.method === 'PUT') {
      if (declared !== Buffer.from(sha256(body), 'hex').toString('base64')) return response.writeHead(400).end('<Error><Code>BadDigest</Code></Error>')
      if (condition === '*' && digests.has(path)) return response.writeHead(412).end('<Error><Code>PreconditionFailed</Code></Error>')
    }
    const { 'if-none-match': _, ...headers } = incoming.headers
    const onward = request(new URL(incoming.url!, target), { method: incoming.method!, headers: { ...headers, 'content-length': body.length } })
    onward.on('error', () => response.destroy())
    onward.end(body)
    const [given] = await once(onward, 'response') as [IncomingMessage]
    if (incoming.method === 'PUT' && given.statusCode === 200) digests.set(path, String(declared))
    if (incoming.method === 'DELETE') digests.delete(path)
    const known = incoming.headers['x-amz-checksum-mode'] === 'ENABLED' ? digests.get(path) : undefined
    response.writeHead(given.statusCode!, { ...given.headers, ...known !== undefined && { 'x-amz-checksum-sha256': known } })
    given.pipe(response)
  }
  const server = createServer((incoming, response) => { answer(incoming, response).catch(() => response.destroy()) })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const close = async () => {
    server.closeAllConnections()
    await new Promise(resolve => server.close(resolve))
  }
  t.teardown(() => close().catch(() => {}))
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close }
}
