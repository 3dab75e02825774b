import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { testApp } from '../helpers/app.ts'
import { newKey } from '../helpers/stored-keys.ts'
import { passed } from '../helpers/waits.ts'
import { listen, wire } from '../helpers/wire.ts'

/** Requests whose key ends while their body is still being sent. */

t.test('a request that arrives completely only after its key has ended is refused, and nothing is done', async t => {
  const service = await testApp(t)
  const { app, call, store } = service
  const port = await listen(app)
  const { id: keyId, key } = await newKey(store.keyRecords, { agent: 'eve', scopes: ['pass', 'catch', 'status', 'approve'] })
  const waiting = await passed(service)
  const caught = await passed(service, { require_human: false })
  await app.inject({ url: `/api/catch/${caught}`, headers: { authorization: `Bearer ${key}` } })
  const bodies: Array<[path: string, body: string]> =
    [['/api/pass', '{"task":"t"}'], [`/api/done/${caught}`, '{}'], [`/api/approve/${waiting}`, '{}'], [`/api/reject/${waiting}`, '{"note":"no"}']]
  const requests = await Promise.all(bodies.map(async ([path, body]) => {
    const { send, answer } = await wire(t, port)
    send(`POST ${path} HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n{`)
    return { path, answer, finish: () => send(body.slice(1)) }
  }))
  await sleep(200)
  await store.keyRecords.revoke(keyId, 'me')
  await sleep(2000)
  for (const { path, answer, finish } of requests) {
    finish()
    const { statusCode, headers } = await answer()
    t.equal(statusCode, 401, path)
    t.equal(headers['www-authenticate'], 'Bearer error="invalid_token"')
  }
  t.equal((await call('alice', 'GET', `/api/status/${waiting}`)).json().approval.state, 'waiting')
  t.equal((await call('alice', 'GET', `/api/status/${caught}`)).json().status, 'caught')
})
