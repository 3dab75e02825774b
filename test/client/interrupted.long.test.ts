/** work() goes on after Redis was killed, and after its own process stood still. */
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { join } from 'node:path'
import t from 'tap'
import { HandoffClient } from '../../src/clients/typescript/index.ts'
import { startRedisServer } from '../faults/fleet/redis.ts'
import { secrets } from '../helpers/app.ts'
import { clientTest, proxy } from '../helpers/client.ts'
import { until } from '../helpers/until.ts'
import { projectRoot } from '../helpers/service.ts'

t.setTimeout(120_000)

t.test('Redis is killed in the middle and comes back', async t => {
  const redis = await startRedisServer(t, { options: ['--appendfsync', 'always'] })
  const { address, client } = await clientTest(t, {}, { url: redis.url, limitedUrl: redis.url })
  const { address: through, seen } = await proxy(t, address, () => 'pass')
  const alice = client('alice')
  const pass = async (count: number) => {
    const { results } = await alice.batch(Array.from({ length: count }, () => ({ op: 'pass' as const, body: { task: 'x', to: 'in', heartbeat_within: 60, max_attempts: 3 } })))
    return results.map(({ body }) => (body as unknown as { handoff_id: string }).handoff_id)
  }
  const reports = () => seen.filter(({ url }) => url.startsWith('/api/done'))
  const begun: string[] = []
  const errors: unknown[] = []
  let finish = () => {}
  const finished = new Promise<void>(resolve => { finish = resolve })
  const own = new AbortController()
  t.teardown(() => own.abort())
  // Each call gives up soon, so that work() itself has to go on.
  const working = new HandoffClient({ baseUrl: through, key: secrets.bob, retryFor: 100 }).work('in', async ({ handoff_id: id }) => {
    begun.push(id)
    await finished
    return { id }
  }, { concurrency: 5, signal: own.signal, onError: error => errors.push(error) })
  const ids = await pass(20)
  await until(() => begun.length === 5)
  await redis.kill()
  finish()
  await until(() => reports().length > 10)
  await redis.restart()
  await until(() => begun.length === 20)
  const more = await pass(5)
  for (const id of [...ids, ...more]) t.match(await alice.waitFor(id, 'done', { timeout: 60_000 }), { handoff_id: id, status: 'done', result: { id } })
  own.abort()
  await working
  t.strictSame(begun.toSorted(), [...ids, ...more].toSorted(), 'each was worked on once')
  t.equal(new Set(reports().map(({ url, key, body }) => `${url} ${key} ${body}`)).size, 25, 'each report has one key, however often it was sent')
  t.ok(errors.every(error => (error as { retryable: boolean }).retryable), 'no report was refused')
})

/** Works on `in` and prints what happens. A first attempt ends when its handoff is lost, or when a line is read. */
const program = `
  import { once } from 'node:events'
  import { HandoffClient } from ${JSON.stringify(join(projectRoot, 'dist/clients/typescript/index.js'))}
  const say = fact => console.log(JSON.stringify(fact))
  const line = once(process.stdin, 'data')
  await new HandoffClient().work('in', async ({ task, attempt = 1 }, { signal }) => {
    const lost = new Promise(resolve => signal.addEventListener('abort', () => resolve(signal.reason.code)))
    say({ begun: task, attempt })
    if (attempt === 1) say({ ended: task, by: task === 'waits' ? await lost : String(await line).trim() })
    return { attempt }
  }, { concurrency: 2 })`

t.test('its process is stopped for longer than its handoffs’ heartbeats may be apart', async t => {
  const { address, client, store } = await clientTest(t)
  store.sweeper.start()
  const { address: through, seen } = await proxy(t, address, () => 'pass')
  const alice = client('alice')
  const body = { to: 'in', heartbeat_within: 5, max_attempts: 2, retry_delay: 0 }
  const ids = await Promise.all(['waits', 'returns'].map(async task => (await alice.pass({ task, ...body })).handoff_id))
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], { env: { HANDOFF_URL: through, HANDOFF_KEY: secrets.bob }, stdio: ['pipe', 'pipe', 'inherit'] })
  t.teardown(() => child.kill('SIGKILL'))
  const facts: Array<Record<string, unknown>> = []
  createInterface(child.stdout).on('line', line => facts.push(JSON.parse(line)))
  await until(() => facts.length === 2)
  child.kill('SIGSTOP')
  const successors = await Promise.all(ids.map(id => until(async () => (await alice.status(id)).reissued_as)))
  // It is there to be read as soon as the process goes on.
  child.stdin.write('enough\n')
  child.kill('SIGCONT')
  for (const id of successors) t.match(await alice.waitFor(id, 'done', { timeout: 60_000 }), { status: 'done', attempt: 2, caught_by: 'bob', result: { attempt: 2 } })
  t.match(facts.filter(({ ended }) => ended === 'waits'), [{ by: 'expired' }], 'by its own clock')
  t.match(facts.filter(({ ended }) => ended === 'returns'), [{ by: 'enough' }])
  const reported = seen.filter(({ url }) => /^\/api\/(?:done|fail)/.test(url)).map(({ url }) => url)
  t.strictSame(reported.toSorted(), successors.map(id => `/api/done/${id}`).toSorted(), 'what was lost is not reported')
  for (const id of ids) t.match(await alice.status(id), { status: 'expired', expired_because: 'stalled' })
})
