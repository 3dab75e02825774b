// A server that answers everything alike and at once, for what is measured at its client. It prints its address.
import { createServer } from 'node:http'

const body = JSON.stringify({ handoff_id: 'AAA0123456789012345678901', status: 'pending', created_at: '2026-01-01T00:00:00.000Z', expires_at: '2026-01-02T00:00:00.000Z' })
const head = { 'content-type': 'application/json; charset=utf-8', 'content-length': body.length, 'x-request-id': 'r' }
const server = createServer((request, response) => {
  request.resume().on('end', () => response.writeHead(200, head).end(body))
})
server.keepAliveTimeout = 60_000
server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}`))
process.on('SIGTERM', () => process.exit())
