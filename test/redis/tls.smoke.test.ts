import { execFileSync } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import type { Test } from 'tap'
import { freePort } from '../faults/fleet/ports.ts'
import { loopback } from '../faults/fleet/process.ts'
import { startRedisServer } from '../faults/fleet/redis.ts'
import { startServiceReplica } from '../faults/fleet/service.ts'
import { scratchDir } from '../helpers/processes.ts'
import { until } from '../helpers/until.ts'

/** A certificate authority for the test, and a certificate for the loopback address that it signed. */
async function makeCertificates (t: Test): Promise<{ ca: string, options: string[] }> {
  const dir = await scratchDir(t)
  const openssl = (command: string) => execFileSync('openssl', command.split(' '), { cwd: dir, stdio: 'ignore' })
  await writeFile(join(dir, 'server.ext'), 'subjectAltName = IP:127.0.0.1')
  openssl('req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=test-authority -keyout ca.key -out ca.crt')
  openssl('req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=redis -keyout server.key -out server.csr')
  openssl('x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -extfile server.ext -out server.crt')
  const file = (name: string) => join(dir, name)
  return {
    ca: file('ca.crt'),
    options: ['--tls-cert-file', file('server.crt'), '--tls-key-file', file('server.key'), '--tls-ca-cert-file', file('ca.crt'), '--tls-auth-clients', 'no'],
  }
}

const secret = 'the-key-of-an-agent-0123456789'

/** The built service, run by an operator who trusts this authority besides the usual ones. */
async function startService (t: Test, redisUrl: string, ca: string) {
  const { url, lines } = await startServiceReplica(t, {
    env: { REDIS_URL: redisUrl, NODE_EXTRA_CA_CERTS: ca, API_KEYS: `alice:${secret},bob:${secret}-2`, DRAIN_DELAY: '0' },
  })
  const ask = async (path: string, body?: unknown) => {
    const answer = await fetch(url + path, {
      method: body === undefined ? 'GET' : 'POST',
      headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
      ...body !== undefined && { body: JSON.stringify(body) },
    })
    return { status: answer.status, body: await answer.json() as Record<string, unknown> }
  }
  return { ask, lines }
}

async function handsOver (t: Test, redisUrl: string, ca: string): Promise<void> {
  const { ask } = await startService(t, redisUrl, ca)
  await until(async () => (await ask('/readyz')).status === 200)
  const passed = await ask('/api/pass', { task: 'over TLS' })
  t.equal(passed.status, 201)
  t.match(await ask(`/api/catch/${passed.body.handoff_id}`), { status: 200, body: { task: 'over TLS' } })
}

t.test('over TLS', async t => {
  const { ca, options } = await makeCertificates(t)
  const port = await freePort(loopback)
  const redis = await startRedisServer(t, { options: ['--tls-port', String(port), ...options] })

  await t.test('the store works on one server', async t => {
    await handsOver(t, `rediss://127.0.0.1:${port}`, ca)
  })

  await t.test('a server with an untrusted certificate is refused', async t => {
    const other = await makeCertificates(t)
    const { ask, lines } = await startService(t, `rediss://127.0.0.1:${port}`, other.ca)
    // A handshake that takes longer than a second on a busy machine is another reason, which may come first.
    const detail = 'Redis’s certificate is not trusted; NODE_EXTRA_CA_CERTS names the file of who signed it.'
    const { status } = await until(async () => {
      const answer = await ask('/readyz')
      return answer.body.detail === detail ? answer : undefined
    })
    t.equal(status, 503)
    await until(() => /certificate[^\n]*"msg":"Redis is away"/.test(lines.join('\n')))
    t.equal((await ask('/api/pass', { task: 't' })).status, 503)
  })

  await t.test('the store works with a Sentinel and its master', async t => {
    const sentinelPort = await freePort(loopback)
    await startRedisServer(t, {
      sentinel: true,
      options: ['--tls-port', String(sentinelPort), '--tls-replication', 'yes', ...options, '--sentinel', `monitor handoffs 127.0.0.1 ${port} 1`],
    })
    await handsOver(t, `rediss+sentinel://127.0.0.1:${sentinelPort}/handoffs`, ca)
  })

  await t.test('the store works on a Cluster', async t => {
    const [tlsPort, bus] = [await freePort(loopback), await freePort(loopback)]
    const node = await startRedisServer(t, {
      options: ['--cluster-enabled', 'yes', '--tls-cluster', 'yes', '--cluster-port', String(bus), '--tls-port', String(tlsPort), ...options],
    })
    await node.admin.call('CLUSTER', 'ADDSLOTSRANGE', 0, 16383)
    await handsOver(t, `rediss+cluster://127.0.0.1:${tlsPort}`, ca)
  })

  t.ok(await redis.admin.dbsize() > 0)
})
