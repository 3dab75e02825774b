import t from 'tap'
import type { Test } from 'tap'
import { startRedisServer } from '../faults/fleet/redis.ts'
import type { RedisServer } from '../faults/fleet/redis.ts'
import { isReplicated } from '../faults/fleet/ask.ts'
import { skipInQuick } from '../helpers/extent.ts'
import { newPlace, pass } from '../helpers/handoffs.ts'
import { fleetStore, usedRedis } from '../helpers/redis.ts'
import { builtHandoff, handoff, parsed } from '../helpers/command.ts'
import { until } from '../helpers/until.ts'

interface Told { level: string, name: string, saw: string, server: string | null, set: string | null, why: string | null }

/** What doctor finds, by name, and its exit status. */
async function examine (url: string, env: Record<string, string> = {}) {
  const ended = await handoff(['doctor', '--json'], { env: { REDIS_URL: url, ...env } })
  const { ok, findings } = parsed<{ ok: boolean, findings: Told[] }>(ended)
  // Latency depends on the machine.
  const worst = (level: string) => findings.filter(finding => finding.level === level && finding.name !== 'latency').map(({ name }) => name).sort()
  return { code: ended.code, ok, findings, errors: worst('error'), warnings: worst('warning'), notes: worst('note'), of: (name: string) => findings.find(finding => finding.name === name)! }
}

/** Sets these settings during `look`. */
async function withSettings<T> ({ admin }: RedisServer, wrong: Record<string, string | number>, look: () => Promise<T>): Promise<T> {
  const before = await Promise.all(Object.keys(wrong).map(name => admin.config('GET', name) as Promise<[string, string]>))
  for (const [name, value] of Object.entries(wrong)) await admin.config('SET', name, value)
  try {
    return await look()
  } finally {
    for (const [name, value] of before) await admin.config('SET', name, value)
  }
}

t.test('a Redis as it should be, and one setting after another that is wrong', async t => {
  const server = await usedRedis(t)
  const { url, admin } = server
  const well = await examine(url)
  t.match(well, { code: 0, ok: true, errors: [], warnings: ['maxmemory'], notes: [] })
  t.match(well.of('maxmemory'), { saw: /^no limit; \d.* MB used of the machine’s \d+ MB$/, set: /CONFIG SET maxmemory/, why: /system kills it/ })
  await admin.config('SET', 'maxmemory', '4gb')
  t.match(await examine(url), { code: 0, ok: true, errors: [], warnings: [], notes: [] })
  t.ok(well.findings.length >= 8, `${well.findings.length} looks`)
  t.match(well.of('version'), { level: 'ok', saw: /^(Redis|Valkey) \d/, server: server.at })
  t.match(well.of('latency').saw, /^\d+\.\d ms per round trip$/)
  t.equal(well.of('clock').saw, 'the same as this machine’s')

  const whole = await builtHandoff(['doctor'], { env: { REDIS_URL: url } })
  t.match(whole, { code: 0, stderr: '', stdout: new RegExp(`^ok +ready: the service can serve\n\n${server.at}\nok +version: [^]*\n0 errors, \\d warnings?, 0 notes\n$`) })

  // So much memory that doctor's own use is negligible, on any version.
  await admin.call('DEBUG', 'POPULATE', 20, 'filler', 1_000_000)
  const used = Number(/used_memory:(\d+)/.exec(await admin.info('memory'))![1])
  const wrong: Array<[settings: Record<string, string | number>, name: string, finding: object, code: number]> = [
    [{ 'maxmemory-policy': 'allkeys-lru', appendfsync: 'no' }, 'maxmemory-policy', { level: 'error', saw: 'allkeys-lru', set: 'noeviction', why: /drop handoffs/ }, 1],
    [{ appendfsync: 'no', 'hash-max-listpack-value': 64 }, 'persistence', { level: 'warning', saw: /appendfsync no$/, set: /everysec/ }, 0],
    [{ 'hash-max-listpack-value': 64 }, 'hash-max-listpack-value', { level: 'note', saw: '64', set: '2048', why: /a third less/ }, 0],
    [{ 'hash-max-listpack-entries': 8 }, 'hash-max-listpack-entries', { level: 'note', saw: '8', set: '128' }, 0],
    [{ appendonly: 'no' }, 'persistence', { level: 'error', saw: 'none', set: 'appendonly yes', why: /everything/ }, 1],
    [{ appendonly: 'no', save: '3600 1' }, 'persistence', { level: 'error', saw: 'only snapshots (save 3600 1)', why: /last snapshot/ }, 1],
    [{ maxmemory: 1 }, 'maxmemory', { level: 'error', set: 'a higher limit' }, 1],
    [{ maxmemory: 1 }, 'writes', { level: 'error', saw: 'refused, because Redis is full', set: /^a higher maxmemory/, why: /pass is answered 503/ }, 1],
    [{ maxmemory: 1 }, 'ready', { level: 'error', saw: 'Redis is full', why: /^\/readyz is 503/ }, 1],
    [{ maxmemory: Math.round(used * 1.05) }, 'maxmemory', { level: 'warning', set: 'a higher limit' }, 0],
    [{ 'min-replicas-to-write': 1 }, 'min-replicas-to-write', { level: 'error', saw: '1, and 0 online' }, 1],
  ]
  for (const [settings, name, finding, code] of wrong) {
    await withSettings(server, settings, async () => {
      const seen = await examine(url)
      t.match(seen.of(name), { name, ...finding }, JSON.stringify(settings))
      t.equal(seen.code, code)
      t.equal(seen.ok, code === 0)
    })
  }
  t.match((await examine(url, { DURABILITY: 'replicas:2' })).of('replicas'), { level: 'error', saw: '0 online', set: /^2 of them/ })
})

t.test('after Redis was emptied doctor says so, whether a replica has noticed it yet or not', async t => {
  const server = await startRedisServer(t)
  const { url, admin } = server
  t.match((await examine(url)).of('ready'), { level: 'ok', saw: 'the service can serve' }, 'one that is new was not emptied')
  const replica = fleetStore(t, url)
  await until(async () => await replica.whyNotReady() === null)
  const empty = { level: 'error', saw: /^the service can serve, but .+ ago Redis was empty, or another one than before$/, set: /REDIS_URL.*backup/, why: /404 and 401/ }
  await admin.flushall()
  t.ok(await admin.dbsize() === 0)
  const checks = setInterval(() => replica.whyNotReady(), 5000)
  t.teardown(() => clearInterval(checks))
  const early = await examine(url)
  t.match(early, { code: 1, ok: false })
  t.match(early.of('ready'), empty, 'it has not been noticed yet')
  const late = await examine(url)
  t.match(late.of('ready'), empty)
  t.match(await builtHandoff(['doctor'], { env: { REDIS_URL: url } }), { code: 1, stdout: /^error +ready: the service can serve, but [^\n]+\n +set: [^\n]+\n +why: / })
})

t.test('doctor accepts a master with a replica, and not the replica', skipInQuick, async t => {
  const master = await startRedisServer(t)
  const replica = await startRedisServer(t, { options: ['--replicaof', `127.0.0.1 ${master.port}`] })
  await until(() => isReplicated(master, 1), 20_000)
  const seen = await examine(master.url, { DURABILITY: 'replicas:1' })
  t.match(seen, { code: 0, warnings: ['maxmemory', 'min-replicas-to-write'], notes: ['repl-backlog-size'] })
  t.match(seen.of('replicas'), { level: 'ok', saw: '1 online' })
  // A lane leaves a replica when it refuses a write: on a busy machine the connection is still away when the other findings are made.
  const refused = await examine(replica.url)
  t.equal(refused.code, 1)
  t.ok(refused.errors.includes('ready'))
  t.match(await handoff(['doctor'], { env: { REDIS_URL: replica.url } }), { code: 1, stderr: '', stdout: /^error +ready: /m })
})

t.test('doctor finds missing rights', async t => {
  const server = await usedRedis(t)
  const user = (name: string, ...rights: string[]) => server.admin.call('ACL', 'SETUSER', name, 'reset', 'on', '>secret', ...rights)
  const urlOf = (name: string) => server.url.replace('://', `://${name}:secret@`)

  await user('nobody')
  const none = await examine(urlOf('nobody'))
  t.match(none, { code: 1, errors: ['ready', 'rights'], notes: ['unseen', 'unseen'] })
  t.match(none.of('rights').saw, /^nobody may not eval /)
  t.match(none.of('ready').saw, 'Redis does not give this service the rights that it needs.')

  // Exactly the rights that doctor recommends, beginning with the one that it needs to find the others.
  await user('narrow', '+eval')
  const lacking = await examine(urlOf('narrow'))
  t.match(lacking.of('rights'), { level: 'error', saw: /evalsha, .*hset, .*ssubscribe, .*time/, set: /^ACL SETUSER narrow ~handoff:\* &handoff:\* \+/ })
  const grant = lacking.of('rights').set!.split(' ').slice(3)
  await user('narrow', '+eval', ...grant)
  const useful = await examine(urlOf('narrow'))
  t.match(useful, { code: 0, errors: [] })
  t.match(useful.of('rights'), { level: 'note', saw: 'narrow may not client|info, client|kill' })
  t.match(useful.notes, ['rights', 'unseen'])
  t.match(useful.of('unseen').saw, /^cannot see appendfsync, save, .*: NOPERM/)
  grant.push(...useful.of('rights').set!.split(' ').slice(3))
  await user('narrow', '+eval', ...grant)
  const events = (await examine(urlOf('narrow'))).of('rights')
  t.match(events, { level: 'note', saw: /rpushx/, why: /EVENTS_RETENTION/ })
  t.match((await examine(urlOf('narrow'), { EVENTS_RETENTION: '3600' })).of('rights'), { level: 'error', saw: /rpushx/ })
  grant.push(...events.set!.split(' ').slice(3))
  await user('narrow', '+eval', ...grant)
  const service = (await examine(urlOf('narrow'))).of('rights')
  t.match(service, { level: 'note', saw: 'narrow may not xadd', why: /keys/ })
  grant.push(...service.set!.split(' ').slice(3))
  await user('narrow', '+eval', ...grant)
  t.match((await examine(urlOf('narrow'))).of('rights'), { level: 'ok' })
  await serves(t, urlOf('narrow'))

  for (const command of ['hset', 'wait', 'ssubscribe']) {
    await user('narrow', '+eval', ...grant, `-${command}`)
    t.match((await examine(urlOf('narrow'), { DURABILITY: 'replicas:1' })).of('rights').saw, new RegExp(`may not (.*, )?${command}\\b`), command)
  }
  await user('narrow', '+eval', ...grant, 'resetkeys', '~other:*')
  t.match((await examine(urlOf('narrow'))).of('rights').saw, /hset/, 'keys of another prefix')
  await user('narrow', '+eval', ...grant, 'resetchannels')
  t.match((await examine(urlOf('narrow'))).of('rights').saw, /spublish.*|ssubscribe/, 'no channels')
})

/** Checks that the rights that doctor accepts are sufficient. */
async function serves (t: Test, url: string): Promise<void> {
  const store = fleetStore(t, url)
  await until(async () => await store.whyNotReady() === null)
  const place = newPlace()
  t.match(await pass(store.handoffs, place), { outcome: 'passed' })
  t.match(await store.handoffs.catch(place, 'token', 'bob'), { outcome: 'caught' })
  const { id } = await store.keyRecords.create({ tenant: 'default', agent: 'a', scopes: ['pass'], expiresIn: 1000, ratePerMinute: null, by: 'test' })
  t.match(await store.keyRecords.rotate(id, 1000, 'test'), { outcome: 'rotated' })
  t.match(await store.keyRecords.revoke(id, 'test'), { outcome: 'revoked' })
  await store.subscriptions.listen(store.handoffs.channelOf(place), () => {})
  await store.handoffs.sweep(place.tag, 10)
}
