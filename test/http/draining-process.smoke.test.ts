import t from 'tap'
import { freePort } from '../faults/fleet/ports.ts'
import { loopback, run } from '../faults/fleet/process.ts'
import { secrets, testKeys } from '../helpers/app.ts'
import { ownRedis } from '../helpers/own-redis.ts'
import { isProblem } from '../helpers/problems.ts'
import { projectRoot } from '../helpers/service.ts'
import { until } from '../helpers/until.ts'
import { ask, deaf, wire } from '../helpers/wire.ts'

const as = (who: keyof typeof secrets) => `Host: x\r\nAuthorization: Bearer ${secrets[who]}\r\n`
const get = (path: string) => `GET ${path} HTTP/1.1\r\n${as('bob')}\r\n`
/** More than all buffers between the two ends of a connection hold. */
const large = JSON.stringify({ task: 't', output: { text: 'x'.repeat(20_000_000) } })

t.test('a draining process is not ready at once, goes on serving, and ends in time even if clients and Redis hang', async t => {
  const redis = await ownRedis(t)
  const port = await freePort(loopback)
  const env = { BODY_LIMIT: '30000000', ...testKeys, PATH: process.env.PATH, PORT: String(port), REDIS_URL: '', DRAIN_DELAY: '4000', DRAIN_TIMEOUT: '7000' }
  const redisPort = await freePort(loopback)
  await redis.admin.config('SET', 'port', String(redisPort))
  const service = run(loopback, process.execPath, ['dist/main.js'], {
    cwd: projectRoot, env: { ...env, REDIS_URL: `redis://127.0.0.1:${redisPort}` }, stdio: ['ignore', 'pipe', 'ignore']
  })
  t.teardown(() => service.kill())
  let log = ''
  service.child.stdout!.on('data', some => { log += some })
  await until(() => log.includes('"listening"'))
  await until(async () => (await ask(t, port, get('/readyz'))).statusCode === 200)
  const pass = async (body: string): Promise<string> => {
    const { statusCode, body: answer } = await ask(t, port,
      `POST /api/pass HTTP/1.1\r\n${as('alice')}Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`)
    // On a busy machine Redis may not take the large one in time.
    return statusCode === 201 ? JSON.parse(answer).handoff_id : pass(body)
  }
  const [id, second] = [await pass('{"task":"t"}'), await pass('{"task":"t"}')]
  const unread = await pass(large)
  const kept = await wire(t, port)
  kept.send(get(`/api/status/${id}`))
  t.equal((await kept.answer()).headers.connection, 'keep-alive')

  const began = performance.now()
  // Only now: a connection's first request has 9.5 s for its headers, and DRAIN_TIMEOUT is to end it before that.
  const half = await wire(t, port)
  half.send('GET /api/status/x HT')
  service.child.kill('SIGTERM')
  await until(() => log.includes('"draining"'))
  // Only now: the service itself ends who reads nothing for 8 s, and DRAIN_TIMEOUT is to end it before that.
  const stuck = await deaf(t, port, get(`/api/catch/${unread}`))
  await until(() => stuck.readableLength > 0)
  const ready = await ask(t, port, get('/readyz'))
  t.match(isProblem(t, ready, 503, 'unavailable').detail, /stopping/)
  kept.send(get(`/api/catch/${id}`))
  for (const answer of [await kept.answer(), await ask(t, port, get(`/api/catch/${second}`))]) {
    t.equal(answer.statusCode, 200, 'served, on an old connection and on a new one')
    t.equal(answer.headers.connection, 'close')
  }
  await kept.ended
  process.kill(redis.pid(), 'SIGSTOP')
  const late = await ask(t, port, get(`/api/status/${id}`))
  isProblem(t, late, 503, 'unavailable', 'what was asked while it served is answered after that')
  t.equal(await service.ended, 0)
  const after = performance.now() - began
  t.ok(after > 4000, `gone after ${Math.round(after)} ms`)
  t.match(log, /"connections":2,"msg":"closed connections that did not end in time"/)
  t.match(log, /"stopped"/)
})
