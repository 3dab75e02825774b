import { once } from 'node:events'
import { createServer } from 'node:http'
import type { ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { until } from '../helpers/until.ts'
import { Unread } from './unread.ts'

t.test('what a service leaves unread counts while it does, and afterwards', async t => {
  const held: ServerResponse[] = []
  let isHolding = true
  const server = createServer((_request, response) => {
    if (isHolding) held.push(response)
    else response.end('read')
  }).listen(0, '127.0.0.1')
  t.teardown(() => { server.closeAllConnections(); server.close() })
  await once(server, 'listening')
  const unread = new Unread([`http://127.0.0.1:${(server.address() as AddressInfo).port}`])
  t.teardown(() => unread.stop())
  t.equal(unread.longest, 3000, 'as long as a client waits')
  await until(() => unread.longest > 3500)
  isHolding = false
  for (const response of held) response.end('read')
  // Probes that were answered at once.
  await once(server, 'request')
  await once(server, 'request')
  t.ok(unread.longest > 3500, 'it has been seen')
})
