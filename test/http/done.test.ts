import t from 'tap'
import { testApp, secrets } from '../helpers/app.ts'
import type { TestApp, Who } from '../helpers/app.ts'
import { ask, listen } from '../helpers/wire.ts'

async function passed ({ call }: TestApp, more: object = {}): Promise<string> {
  return (await call('alice', 'POST', '/api/pass', { task: 't', ...more })).json().handoff_id
}

async function caught (service: TestApp, by: Who = 'bob'): Promise<string> {
  const id = await passed(service)
  await service.call(by, 'GET', `/api/catch/${id}`)
  return id
}

t.test('the body of done may be empty, {} or missing, with and without a content type', async t => {
  const service = await testApp(t)
  const port = await listen(service.app)
  const bodies = [
    '\r\n',
    'Content-Type: application/json\r\n\r\n',
    'Content-Length: 0\r\n\r\n',
    'Content-Type: application/json\r\nContent-Length: 0\r\n\r\n',
    'Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    'Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    'Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}',
    'Content-Type: application/json\r\nContent-Length: 15\r\n\r\n{"output":null}',
  ]
  for (const rest of bodies) {
    const id = await caught(service)
    const answer = await ask(t, port, `POST /api/done/${id} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${secrets.bob}\r\n${rest}`)
    t.equal(answer.statusCode, 200, JSON.stringify(rest))
    t.strictSame(Object.keys(JSON.parse(answer.body)).sort(), ['completed_at', 'handoff_id', 'status'])
    t.equal((await service.call('alice', 'GET', `/api/status/${id}`)).json().result, null)
  }
})
