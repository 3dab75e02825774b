import { once } from 'node:events'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import type { Test } from 'tap'
import { loadConfig } from '../src/config.ts'
import { SettingError } from '../src/core/errors.ts'
import { freePort } from './faults/fleet/ports.ts'
import { loopback, run } from './faults/fleet/process.ts'
import { startServiceReplica } from './faults/fleet/service.ts'
import { secrets, testKeys } from './helpers/app.ts'
import { skipInQuick } from './helpers/extent.ts'
import { ownRedis } from './helpers/own-redis.ts'
import { projectRoot } from './helpers/service.ts'
import { until } from './helpers/until.ts'

t.test('METRICS_PORT moves metrics and health to a port of their own', async t => {
  t.equal(loadConfig({}).metricsPort, undefined)
  t.equal(loadConfig({ METRICS_PORT: '' }).metricsPort, undefined)
  t.equal(loadConfig({ METRICS_PORT: '9400' }).metricsPort, 9400)
  t.equal(loadConfig({ METRICS_PORT: '0', PORT: '0' }).metricsPort, 0)
  for (const METRICS_PORT of ['x', '-1', '65536', '1.5', '8080']) {
    t.throws(() => loadConfig({ METRICS_PORT }), { constructor: SettingError, message: /^METRICS_PORT: another port [^\n]+$/ }, METRICS_PORT)
  }
})

/** Starts the service with settings that prevent it. @returns its exit code and stderr */
async function fails (t: Test, env: Record<string, string>): Promise<[end: number | string, said: string]> {
  const service = run(loopback, process.execPath, ['dist/main.js'], { cwd: projectRoot, env: { ...testKeys, PORT: '0', ...env }, stdio: ['ignore', 'ignore', 'pipe'] })
  t.teardown(() => service.kill())
  let said = ''
  service.child.stderr!.on('data', some => { said += some })
  await once(service.child, 'close')
  return [await service.ended, said]
}

t.test('an impossible METRICS_PORT stops the start with one line', skipInQuick, async t => {
  const { admin } = await ownRedis(t)
  const redisPort = await freePort(loopback)
  await admin.config('SET', 'port', String(redisPort))
  const REDIS_URL = `redis://127.0.0.1:${redisPort}`
  const taken = createServer().listen(0, '127.0.0.1')
  t.teardown(() => { taken.close() })
  await once(taken, 'listening')
  const { port } = taken.address() as AddressInfo
  const [end, said] = await fails(t, { REDIS_URL, METRICS_PORT: String(port) })
  t.equal(end, 1)
  t.match(said, new RegExp(`^listen EADDRINUSE[^\\n]*:${port}\\n$`))
  t.strictSame(await fails(t, { REDIS_URL, METRICS_PORT: 'many' }), [1, 'METRICS_PORT: another port for /metrics, /healthz and /readyz: 0 to 65535, 0 for any free one; with the rest when unset\n'])
})

t.test('a HOST that this machine does not have stops the start with one line that names it', skipInQuick, async t => {
  const REDIS_URL = `redis://127.0.0.1:${await freePort(loopback)}`
  for (const [HOST, why] of [['no-such-host.invalid', 'getaddrinfo '], ['192.0.2.1', 'listen EADDRNOTAVAIL']] as const) {
    const [end, said] = await fails(t, { REDIS_URL, HOST })
    t.equal(end, 1)
    t.match(said, new RegExp(`^HOST: the address to listen on: ${why}[^\\n]*${HOST}[^\\n]*\\n$`))
  }
})

t.test('the metrics port answers until the service has stopped, and its /readyz says that it stops', async t => {
  const { admin } = await ownRedis(t)
  const redisPort = await freePort(loopback)
  await admin.config('SET', 'port', String(redisPort))
  const port = await freePort(loopback)
  const service = await startServiceReplica(t, { env: { ...testKeys, REDIS_URL: `redis://127.0.0.1:${redisPort}`, METRICS_PORT: String(port), DRAIN_DELAY: '500' } })
  const ask = async (path: string) => (await fetch(`http://127.0.0.1:${port}${path}`)).status
  await until(async () => await ask('/readyz') === 200)
  t.equal(await ask('/metrics'), 200)
  for (const path of ['/readyz', '/metrics', '/healthz']) t.equal((await fetch(service.url + path)).status, 404, path)
  t.ok(service.lines.some(line => line.includes(`"address":"http://127.0.0.1:${port}","msg":"metrics and health listen"`)))

  // It waits, and is answered when draining begins; the answer itself doesn't matter here.
  const headers = { authorization: `Bearer ${secrets.alice}`, 'content-type': 'application/json' }
  const { handoff_id: id } = await (await fetch(`${service.url}/api/pass`, { method: 'POST', body: '{"task":"t"}', headers })).json() as { handoff_id: string }
  const waits = fetch(`${service.url}/api/status/${id}?wait=30`, { headers })
  const stopped = service.stop()
  await until(async () => await ask('/readyz') === 503)
  t.equal(await ask('/metrics'), 200, 'while it drains')
  t.equal((await waits).status, 200)
  await stopped
  t.equal(await service.ended, 0)
  await t.rejects(ask('/healthz'), 'gone')
})
