import { once } from 'node:events'
import { connect } from 'node:net'
import type { Socket } from 'node:net'
import t from 'tap'
import { secrets, testApp } from '../helpers/app.ts'
import { listen } from '../helpers/wire.ts'

t.test('a client that does not read its answer is disconnected', async t => {
  const { app, call } = await testApp(t, { BODY_LIMIT: '30000000' })
  // More than all buffers between the two ends of a connection hold.
  const { handoff_id: id } = (await call('alice', 'POST', '/api/pass', { task: 't', output: { text: 'x'.repeat(20_000_000) } })).json()
  const port = await listen(app)
  const connected = once(app.server, 'connection') as Promise<[Socket]>
  const client = connect({ port, host: '127.0.0.1' })
  t.teardown(() => client.destroy())
  client.on('error', () => {})
  client.write(`GET /api/catch/${id} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${secrets.bob}\r\n\r\n`)
  const [served] = await connected
  await once(served, 'close')
  t.ok(served.destroyed)
})
