import type { Socket } from 'node:net'
import t from 'tap'
import { testApp, secrets } from '../helpers/app.ts'
import { isProblem } from '../helpers/problems.ts'
import { until } from '../helpers/until.ts'
import { deaf, listen, wire } from '../helpers/wire.ts'

const head = `Host: x\r\nAuthorization: Bearer ${secrets.alice}\r\n`
const upload = `POST /api/pass HTTP/1.1\r\n${head}Content-Type: application/json\r\n`

// The real ten seconds, with all slow clients in parallel.
t.test('a request that hasn’t arrived completely within 10 s is 408, and its connection is closed; so is that of who reads no answer, or goes on after a refusal', async t => {
  const { app, call, dump } = await testApp(t)
  // More than all buffers between the two ends of a connection hold.
  app.get('/large', { schema: { hide: true } }, (_, reply) => reply.send('x'.repeat(20_000_000)))
  const port = await listen(app)
  const sockets: Socket[] = []
  app.server.on('connection', socket => sockets.push(socket))
  await deaf(t, port, 'GET /large HTTP/1.1\r\nHost: x\r\n\r\n')
  const silent = await wire(t, port)
  silent.send('POST /api/pass HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n')
  t.equal((await silent.answer()).statusCode, 401)
  const endless = await wire(t, port)
  endless.send('POST /api/pass HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n')
  t.equal((await endless.answer()).statusCode, 401)
  const more = () => { while (!endless.socket.destroyed && endless.socket.write(`3e8\r\n${'x'.repeat(1000)}\r\n`.repeat(1000))); }
  endless.socket.on('drain', more)
  more()
  const slow: Record<string, { start: string, more: string }> = {
    'headers that stop': { start: 'GET /api/status/x HTTP/1.1\r\nHost: x\r\n', more: '' },
    'headers that drip': { start: 'GET /api/status/x HTTP/1.1\r\nHost: x\r\n', more: 'X: y\r\n' },
    'a body that stops': { start: `${upload}Content-Length: 100\r\n\r\n{"task":"t"}`, more: '' },
    'a body that drips': { start: `${upload}Content-Length: 100\r\n\r\n{"task":"t"}`, more: ' ' },
    'chunks that drip': { start: `${upload}Transfer-Encoding: chunked\r\n\r\nc\r\n{"task":"t"}\r\n`, more: '1\r\n \r\n' },
  }
  const began = performance.now()
  await Promise.all(Object.entries(slow).map(async ([name, { start, more }]) => {
    const { send, answer, ended } = await wire(t, port)
    const drip = setInterval(() => send(more), 500)
    send(start)
    try {
      const heard = await answer()
      isProblem(t, heard, 408, 'request_timeout', name)
      const after = performance.now() - began
      t.ok(after > 9000 && after < 20_000, `${name}: after ${Math.round(after)} ms`)
      t.equal(heard.headers.connection, 'close')
      await ended
    } finally {
      clearInterval(drip)
    }
  }))
  await until(() => sockets.every(({ destroyed }) => destroyed))
  t.equal(sockets.length, 3 + Object.keys(slow).length)
  // Node 24 takes more at once than Node 20, which gets no further than 13 MB.
  t.ok(sockets[2]!.bytesRead < 18_000_000, `of an endless body 16 MiB are read at most: ${sockets[2]!.bytesRead}`)
  t.strictSame(await dump(), {}, 'nothing was passed')
  t.equal((await call('alice', 'POST', '/api/pass', { task: 't' })).statusCode, 201)
})
