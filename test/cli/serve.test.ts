import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createInterface } from 'node:readline'
import { join } from 'node:path'
import t from 'tap'
import { startRedisServer } from '../faults/fleet/redis.ts'
import { loopback, run } from '../faults/fleet/process.ts'
import { builtHandoff, handoff } from '../helpers/command.ts'
import { projectRoot } from '../helpers/service.ts'
import { until } from '../helpers/until.ts'

const secret = 'a-secret-of-sixteen'

t.test('handoff serve runs the service, and handoff healthcheck checks it', async t => {
  const { url } = await startRedisServer(t)
  const env = { PATH: process.env.PATH!, REDIS_URL: url, PORT: '0', API_KEYS: `writer:${secret}`, DRAIN_DELAY: '0' }
  const service = run(loopback, join(projectRoot, 'dist/cli/main.js'), ['serve'], { env, stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(() => service.kill())
  const lines: string[] = []
  let address: string | undefined
  for await (const line of createInterface(service.child.stdout!)) {
    lines.push(line)
    address = /"address":"(http:[^"]+)","msg":"listening"/.exec(line)?.[1]
    if (address !== undefined) break
  }
  const { port } = new URL(address!)
  // It listens before it is connected to Redis.
  await until(async () => (await fetch(`${address}/readyz`)).ok)
  const passed = await fetch(`${address}/api/pass`, { method: 'POST', body: '{"task":"t"}', headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' } })
  t.equal(passed.status, 201)

  const well = { code: 0, stdout: '', stderr: '' }
  t.match(await builtHandoff(['healthcheck'], { env: { PORT: port, REDIS_URL: url } }), well)
  t.match(await handoff(['healthcheck'], { env: { PORT: port, HOST: '0.0.0.0' } }), well, 'all addresses')
  t.match(await handoff(['healthcheck'], { env: { PORT: '1', METRICS_PORT: port } }), well, 'where METRICS_PORT has it')
  t.match(await handoff(['healthcheck'], { env: { PORT: '0' } }), { code: 1, stderr: /^PORT is 0: [^\n]*\n$/ })

  service.child.kill('SIGTERM')
  t.equal(await service.ended, 0, 'SIGTERM lets it end by itself')
  t.match(await builtHandoff(['healthcheck'], { env: { PORT: port } }), { code: 1, stdout: '', stderr: /^http:\/\/127\.0\.0\.1:\d+\/healthz does not answer: ECONNREFUSED\n$/ })
})

t.test('healthcheck fails on a service that errs, and on a silent one', async t => {
  let answer: ((response: import('node:http').ServerResponse) => void) | undefined = response => response.writeHead(500).end()
  const server = createServer((_, response) => answer?.(response)).listen(0, '127.0.0.1')
  t.teardown(() => { server.closeAllConnections(); server.close() })
  await once(server, 'listening')
  const env = { PORT: String((server.address() as AddressInfo).port) }
  t.match(await handoff(['healthcheck'], { env }), { code: 1, stderr: /healthz answers 500\n$/ })
  answer = undefined
  const silent = await builtHandoff(['healthcheck'], { env })
  t.match(silent, { code: 1, stderr: /does not answer: nothing within 2\.5 s\n$/ })
})
