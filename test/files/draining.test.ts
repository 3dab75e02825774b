import { once } from 'node:events'
import { readdir } from 'node:fs/promises'
import { Agent, request } from 'node:http'
import type { IncomingMessage } from 'node:http'
import { join } from 'node:path'
import t from 'tap'
import { filesApp } from '../helpers/files.ts'
import { until } from '../helpers/until.ts'

/** A service that stops while files are under way, or were. */

t.test('connections that files went over are closed with the others', async t => {
  const { put, call, app } = await filesApp(t)
  const { url } = (await call('alice', 'GET', `/api/files/${await put('four')}`)).json()
  const agent = new Agent({ keepAlive: true })
  t.teardown(() => agent.destroy())
  const [answer] = await once(request(url, { agent }).end(), 'response') as [IncomingMessage]
  t.equal(answer.resume().statusCode, 200)
  await once(answer, 'end')
  const begun = performance.now()
  app.draining.start()
  await app.close()
  t.ok(performance.now() - begun < 10_000, `${performance.now() - begun} ms`)
})

t.test('an upload that goes on is cut when the time is over', async t => {
  const { make, app, directory } = await filesApp(t, { DRAIN_TIMEOUT: '2000' })
  const { upload } = (await make(Buffer.alloc(100, 'x'))).json()
  const sending = request(upload.url, { method: 'PUT', headers: upload.headers, agent: false })
  sending.on('error', () => {})
  sending.write('x')
  await until(async () => (await readdir(join(directory, 'incoming'))).length === 1)
  const timer = setInterval(() => sending.write('x'), 500)
  t.teardown(() => clearInterval(timer))
  const begun = performance.now()
  app.draining.start()
  await app.close()
  t.ok(performance.now() - begun < 10_000, `${performance.now() - begun} ms`)
  t.equal(app.draining.cut, 1)
  await until(async () => (await readdir(join(directory, 'incoming'))).length === 0)
})
