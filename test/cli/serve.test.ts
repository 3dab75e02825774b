import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { startRedisServer } from '../faults/fleet/redis.ts'
import { loopback, run } from '../faults/fleet/process.ts'
import type { Running } from '../faults/fleet/process.ts'
import { handoff } from '../helpers/command.ts'
import { projectRoot } from '../helpers/service.ts'
import { until } from '../helpers/until.ts'

const secret = 'a-secret-of-sixteen'

/** What the first line of its log that matches says in the group. */
async function logged ({ child }: Running, pattern: RegExp): Promise<string> {
  const stdout = child.stdout!.setEncoding('utf8')
  for (let log = ''; ;) {
    const found = pattern.exec(log)?.[1]
    if (found !== undefined) return found
    const chunk = await Promise.race([once(stdout, 'data'), once(stdout, 'end')])
    if (chunk.length === 0) throw new Error(`it ended, with ${log}`)
    log += chunk[0] as string
  }
}

t.test('handoff serve runs the service, and handoff healthcheck checks it', async t => {
  const { url } = await startRedisServer(t)
  const env = { PATH: process.env.PATH!, REDIS_URL: url, PORT: '0', API_KEYS: `writer:${secret}`, DRAIN_DELAY: '0' }
  const service = run(loopback, join(projectRoot, 'dist/cli/main.js'), ['serve'], { env, stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(() => service.kill())
  const address = await logged(service, /"address":"(http:[^"]+)","msg":"listening"/)
  const { port } = new URL(address)
  // It listens before it is connected to Redis.
  await until(async () => (await fetch(`${address}/readyz`)).ok)
  const passed = await fetch(`${address}/api/pass`, { method: 'POST', body: '{"task":"t"}', headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' } })
  t.equal(passed.status, 201)

  const well = { code: 0, stdout: '', stderr: '' }
  t.match(await handoff(['healthcheck'], { env: { PORT: port, REDIS_URL: url } }), well)
  t.match(await handoff(['healthcheck'], { env: { PORT: port, HOST: '0.0.0.0' } }), well, 'all addresses')
  t.match(await handoff(['healthcheck'], { env: { PORT: '1', METRICS_PORT: port } }), well, 'where METRICS_PORT has it')
  t.match(await handoff(['healthcheck'], { env: { PORT: '0' } }), { code: 1, stderr: /^PORT is 0: [^\n]*\n$/ })

  service.child.kill('SIGTERM')
  await logged(service, /"msg":"(stopped)"\}\n$/)
  t.equal(await service.ended, 0, 'SIGTERM lets it end by itself, and say so as its last line')
  t.match(await handoff(['healthcheck'], { env: { PORT: port } }), { code: 1, stdout: '', stderr: /^http:\/\/127\.0\.0\.1:\d+\/healthz does not answer: ECONNREFUSED\n$/ })
})

t.test('a service ends whose log nobody reads any more', async t => {
  // Both lines are logged in one turn of the event loop: the second is what pino would write again and again as the process exits.
  const script = `import { openStdoutLog } from './dist/log.js'
    const { log, end } = openStdoutLog('info')
    process.once('SIGTERM', async () => {
      log.info('draining')
      log.fatal('stopped')
      if (process.argv[1] === 'gracefully') await end()
      process.exit(3)
    })
    log.info('listening')
    setInterval(() => {}, 1000)`
  for (const way of ['gracefully', 'at once']) {
    const service = run(loopback, process.execPath, ['--input-type=module', '-e', script, way], { cwd: projectRoot, stdio: ['ignore', 'pipe', 'inherit'] })
    t.teardown(() => service.kill())
    await logged(service, /"msg":"(listening)"/)
    service.child.stdout!.destroy()
    service.child.kill('SIGTERM')
    t.equal(await service.ended, 3, way)
  }
})

t.test('healthcheck fails on a service that errs, and on a silent one', async t => {
  let answer: ((response: import('node:http').ServerResponse) => void) | undefined = response => response.writeHead(500).end()
  const server = createServer((_, response) => answer?.(response)).listen(0, '127.0.0.1')
  t.teardown(() => { server.closeAllConnections(); server.close() })
  await once(server, 'listening')
  const env = { PORT: String((server.address() as AddressInfo).port) }
  t.match(await handoff(['healthcheck'], { env }), { code: 1, stderr: /healthz answers 500\n$/ })
  answer = undefined
  const silent = await handoff(['healthcheck'], { env })
  t.match(silent, { code: 1, stderr: /does not answer: nothing within 2\.5 s\n$/ })
})
