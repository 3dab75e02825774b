import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:https'
import { join } from 'node:path'
import t from 'tap'
import type { RequestListener, Server } from 'node:http'
import { startRedisServer } from '../faults/fleet/redis.ts'
import { startServiceReplica } from '../faults/fleet/service.ts'
import { secrets, testKeys } from '../helpers/app.ts'
import { handoff, parsed } from '../helpers/command.ts'
import { scratchDir } from '../helpers/processes.ts'
import { receiver } from '../helpers/receiver.ts'
import { until } from '../helpers/until.ts'
import { webhookApp, webhookSecret } from '../helpers/webhooks.ts'

const idsOf = (got: ReadonlyArray<{ body: string }>) => got.map(({ body }) => JSON.parse(body).data.handoff_id as string)

t.test('when the delivering replica is killed, another one delivers what is left', { timeout: 120_000 }, async t => {
  const { url: REDIS_URL } = await startRedisServer(t)
  const env = { ...testKeys, REDIS_URL, EVENTS_RETENTION: '600', WEBHOOK_SECRET: webhookSecret, WEBHOOK_ALLOW: '127.0.0.0/8' }
  const { API_KEYS: _, APPROVER_KEYS: __, ...forCommand } = env
  const first = await startServiceReplica(t, { env })
  // It has the lease before the other one is there.
  const { url, got } = await receiver(t)
  const { id } = parsed(await handoff(['webhooks', 'create', '--url', url, '--json'], { env: forCommand }))
  const pass = async (at: string) => {
    const answer = await fetch(`${at}/api/pass`, { method: 'POST', headers: { authorization: `Bearer ${secrets.alice}`, 'content-type': 'application/json' }, body: '{"task":"t"}' })
    return (await answer.json() as { handoff_id: string }).handoff_id
  }
  const before = await pass(first.url)
  await until(() => idsOf(got).includes(before))
  const second = await startServiceReplica(t, { env })
  const passed = await Promise.all(Array.from({ length: 50 }, (_, at) => pass(at % 2 === 0 ? first.url : second.url)))
  await first.kill()
  passed.push(...await Promise.all(Array.from({ length: 50 }, () => pass(second.url))))
  await until(() => passed.every(id => idsOf(got).includes(id)), 60_000)
  const { items } = parsed<{ items: Array<{ status: string }> }>(await handoff(['webhooks', 'deliveries', String(id), '--status', 'failed', '--json'], { env: forCommand }))
  t.strictSame(items, [])
})

t.test('two replicas deliver each event once', async t => {
  const one = await webhookApp(t)
  const two = await webhookApp(t, {}, { prefix: one.prefix })
  const { url, got } = await receiver(t)
  const { id } = await one.make(url)
  const passed = await Promise.all(Array.from({ length: 60 }, (_, at) => (at % 2 === 0 ? one : two).pass()))
  await until(() => got.length >= 60)
  await one.untilDeliveries(id, found => found.length === 60 && found.every(({ status }) => status === 'delivered'))
  t.strictSame(idsOf(got).sort(), passed.sort())
  const counted = [one, two].map(({ app }) => app.deliverer!.counts.delivered)
  t.strictSame(counted.sort((a, b) => a - b), [0, 60], 'one of the two does')
})

t.test('Redis may be away for a while', { timeout: 60_000 }, async t => {
  const redis = await startRedisServer(t)
  const { make, pass, untilDeliveries, app } = await webhookApp(t, {}, { url: redis.url })
  let answer = () => {}
  const { url, got } = await receiver(t, response => { answer = () => response.writeHead(204).end() })
  const { id } = await make(url)
  const first = await pass()
  await until(() => got.length === 1)
  await redis.pause()
  // It can't be noted now.
  answer()
  await until(async () => (await app.inject('/readyz')).statusCode === 503)
  await redis.resume()
  const second = await pass()
  await until(() => got.length === 2)
  answer()
  t.strictSame(idsOf(got), [first, second])
  const listed = await untilDeliveries(id, found => found.every(({ status }) => status === 'delivered') && found.length === 2)
  t.strictSame(listed.map(({ attempts }) => attempts), [1, 1], 'noted once Redis was back: not delivered again')
})

t.test('receivers that hang hold up no other', { timeout: 200_000 }, async t => {
  // They hang for longer than this test takes.
  const { make, pass, app } = await webhookApp(t, {}, { webhooks: { attemptTimeout: 190_000 } })
  const hanging = await receiver(t, () => {})
  const quick = await receiver(t)
  await Promise.all(Array.from({ length: 15 }, () => make(hanging.url)))
  const { url } = quick
  await make(url)
  // More than a webhook is sent at once, and few enough to be delivered before what hangs is claimed again, after 30 s.
  const passed = await Promise.all(Array.from({ length: 100 }, () => pass()))
  // On a busy machine the reply to a claim may be lost with its connection. What it claimed is due again after 30 s.
  await until(() => new Set(idsOf(quick.got)).size === passed.length, 100_000)
  t.strictSame({ ...app.deliverer!.counts, delivered: 0 }, { delivered: 0, again: 0, failed: 0 }, 'all that hang still do')
  t.ok(hanging.got.length <= 15 * 16, `${hanging.got.length} connections to those that hang`)
})

t.test('a certificate that nobody trusts is refused', async t => {
  const dir = await scratchDir(t)
  execFileSync('openssl', 'req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1 -keyout key -out crt'.split(' '), { cwd: dir, stdio: 'ignore' })
  const secure = (listener: RequestListener) => createServer({ key: readFileSync(join(dir, 'key')), cert: readFileSync(join(dir, 'crt')) }, listener) as unknown as Server
  const { make, pass, untilDeliveries } = await webhookApp(t)
  const { url, got } = await receiver(t, undefined, secure)
  const { id } = await make(url.replace('http:', 'https:'))
  await pass()
  t.match((await untilDeliveries(id, ([one]) => one?.attempts === 1))[0], { status: 'pending', last_status: null, last_error: 'DEPTH_ZERO_SELF_SIGNED_CERT' })
  t.equal(got.length, 0)
})
