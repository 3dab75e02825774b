import { randomUUID } from 'node:crypto'
import t from 'tap'
import { startRedisServer } from '../faults/fleet/redis.ts'
import { startServiceReplica } from '../faults/fleet/service.ts'
import { secrets, testKeys } from '../helpers/app.ts'
import { handoff, parsed } from '../helpers/command.ts'
import { keepSecret } from '../helpers/log-sink.ts'
import { nameServer } from '../helpers/name-server.ts'
import type { NameServer } from '../helpers/name-server.ts'
import { receiver } from '../helpers/receiver.ts'
import { until } from '../helpers/until.ts'
import { webhookSecret } from '../helpers/webhooks.ts'

/** Has a process read other files instead of the system's; system look-ups (Redis's) don't. */
function reading ({ hosts, resolvConf }: NameServer['files']): string[] {
  const program = `import fs from 'node:fs/promises'; import { syncBuiltinESMExports } from 'node:module'
    const others = ${JSON.stringify({ '/etc/hosts': hosts, '/etc/resolv.conf': resolvConf })}
    for (const name of ['readFile', 'stat']) { const real = fs[name]; fs[name] = (path, ...more) => real(others[path] ?? path, ...more) }
    syncBuiltinESMExports()`
  return ['--import', `data:text/javascript,${encodeURIComponent(program)}`]
}

t.test('names whose server is silent hold up neither another tenant, nor Redis, nor the end', { timeout: 300_000 }, async t => {
  const redis = await startRedisServer(t)
  const server = await nameServer(t, { 'well.test': ['127.0.0.1'] })
  const silent = Array.from({ length: 8 }, (_, at) => `silent${at}.test`)
  for (const name of silent) server.names[name] = ['127.0.0.1']
  const env = {
    ...testKeys,
    REDIS_URL: redis.url.replace('127.0.0.1', 'localhost'),
    EVENTS_RETENTION: '600',
    WEBHOOK_SECRET: webhookSecret,
    WEBHOOK_ALLOW: '127.0.0.0/8',
    DRAIN_DELAY: '0',
  }
  const service = await startServiceReplica(t, { env, nodeOptions: reading(server.files) })
  const { API_KEYS: _, APPROVER_KEYS: __, ...forCommand } = env
  const keyOf = async (tenant: string) => {
    const { key } = parsed<{ key: string }>(await handoff(['keys', 'create', '--tenant', tenant, '--name', 'ops', '--scopes', 'webhooks', '--json'], { env: forCommand }))
    keepSecret(key)
    return key
  }
  const ask = async (key: string, path: string, body: object) => {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json', 'idempotency-key': randomUUID() }
    const answer = await fetch(`${service.url}${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
    return { status: answer.status, body: await answer.json() as { errors?: object[], code?: string } }
  }
  const make = (key: string, url: string) => ask(key, '/api/webhooks', { url })
  const [ours, others] = await Promise.all(['default', 'other'].map(keyOf)) as [string, string]
  const { url, got } = await receiver(t)
  for (const name of silent) t.equal((await make(ours, url.replace('127.0.0.1', name))).status, 201)
  // A connection for each message: otherwise one look-up is enough for all.
  const well = await receiver(t, response => response.writeHead(204, { connection: 'close' }).end())
  t.equal((await make(others, well.url.replace('127.0.0.1', 'well.test'))).status, 201)
  for (const name of silent) server.names[name] = null

  await Promise.all(Array.from({ length: 20 }, () => ask(secrets.alice, '/api/pass', { task: 't' })))
  await until(() => silent.every(name => server.asked.filter(asked => asked === `${name} A`).length > 1), 60_000)
  const fresh = Array.from({ length: 24 }, (_, at) => `new${at}.test`)
  for (const name of fresh) server.names[name] = null
  const answers = await Promise.all(fresh.slice(0, 16).map(name => make(ours, url.replace('127.0.0.1', name))))
  for (const answer of answers) t.match(answer, { status: 400, body: { code: 'invalid_request', errors: [{ pointer: '/url', message: /public address/ }] } })

  // More than a tenant's share, one after the other, until the service ends.
  const ended: number[] = []
  const stopping = new AbortController()
  const makers = fresh.map(async name => {
    while (!stopping.signal.aborted) await make(ours, url.replace('127.0.0.1', name)).then(({ status }) => ended.push(status), () => {})
  })
  const passed = await Promise.all(Array.from({ length: 20 }, () => ask(secrets.foreignAlice, '/api/pass', { task: 't' })))
  t.strictSame(passed.map(({ status }) => status), new Array(20).fill(201))
  await until(() => new Set(well.got.map(({ headers }) => headers['webhook-id'])).size === 20, 30_000)
  t.equal(got.length, 0)
  await redis.admin.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
  await redis.admin.call('CLIENT', 'KILL', 'TYPE', 'pubsub')
  await until(async () => (await ask(secrets.alice, '/api/pass', { task: 't' })).status === 201, 20_000)

  ended.length = 0
  stopping.abort()
  await service.stop()
  t.equal(await service.ended, 0)
  await Promise.all(makers)
  t.ok(ended.includes(503), `they were answered because the service stops: ${ended.join()}`)
  t.notOk(service.lines.some(line => line.includes('did not end in time')))
})
