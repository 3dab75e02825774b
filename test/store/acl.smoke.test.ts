import { execFileSync } from 'node:child_process'
import { readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import type { Test } from 'tap'
import { neededCommands, operatorCommands, optionalCommands } from '../../src/store/rights.ts'
import { tagOf } from '../../src/core/ids.ts'
import { run, withEnvironment } from '../../src/embedded/binary.ts'
import { loadScripts } from '../../src/redis/scripts.ts'
import { isReplicated } from '../faults/fleet/ask.ts'
import { redisProgram, startRedisServer } from '../faults/fleet/redis.ts'
import type { RedisServer } from '../faults/fleet/redis.ts'
import { asUser, commandsOf, denials, setUser, usersOf } from '../helpers/acl.ts'
import { testApp } from '../helpers/app.ts'
import type { TestApp } from '../helpers/app.ts'
import { isWhole } from '../helpers/extent.ts'
import { commandsUnder } from '../helpers/pages.ts'
import { isProblem } from '../helpers/problems.ts'
import { allOperations, prepared } from '../helpers/rights.ts'
import { scratchDir } from '../helpers/processes.ts'
import { callsOf } from '../helpers/redis.ts'
import { projectRoot } from '../helpers/service.ts'
import { until } from '../helpers/until.ts'

const setup = { cluster: true, replicas: 1, events: true }
const scripts = loadScripts({ events: 'outbox' })
const everything = [...neededCommands(scripts, setup), ...optionalCommands].sort()
const file = new URL('../../deploy/redis/users.acl', import.meta.url)

t.test('the service’s user may do what the service does, and nothing else', async t => {
  t.strictSame(commandsOf('handoff'), everything)
  t.strictSame(usersOf('users.acl').get('handoff')!.filter(rule => !rule.startsWith('+')),
    ['on', '#SHA256_OF_SERVICE_PASSWORD', '~handoff:*', '&handoff:*', '-@all'])
  // The operator's further right, for `handoff doctor`. It may also create and revoke keys.
  t.strictSame(operatorCommands(scripts, setup), [])
  t.strictSame(commandsOf('handoff-operator'), [...everything, 'CONFIG|GET'].sort())
  t.strictSame(usersOf('users.acl').get('default'), ['off'])
})

t.test('Redis accepts the file only once each password is in it', async t => {
  const dir = await scratchDir(t)
  const unfilled = ['--port', '0', '--unixsocket', join(dir, 'redis.sock'), '--aclfile', file.pathname]
  await t.rejects(run('env', withEnvironment(await redisProgram(t), unfilled), { cwd: dir }),
    { code: 1, stdout: /password hash must be exactly 64/ }, 'Redis does not start')
  await symlink(join(projectRoot, 'deploy'), join(dir, 'deploy'))
  execFileSync('bash', ['-euc', commandsUnder('docs/redis.md', 'Users and rights')], { cwd: dir })
  for (const made of ['users.acl', 'sentinel-users.acl'] as const) {
    const lines = await readFile(join(dir, made), 'utf8')
    t.notMatch(lines, 'SHA256_OF')
    // The test's own connections use the default user.
    await writeFile(join(dir, made), lines.replace(/^user default off$/m, 'user default on nopass ~* &* +@all'))
  }
  const redis = await startRedisServer(t, { options: ['--aclfile', join(dir, 'users.acl')] })
  const sentinel = await startRedisServer(t, { sentinel: true, options: ['--aclfile', join(dir, 'sentinel-users.acl')] })
  t.equal((await redis.admin.call('ACL', 'USERS') as string[]).length, usersOf('users.acl').size)
  t.equal((await sentinel.admin.call('ACL', 'USERS') as string[]).length, usersOf('sentinel-users.acl').size)
  const passwords = await readFile(join(dir, 'passwords'), 'utf8')
  const [, password = ''] = /^SERVICE=(.*)$/m.exec(passwords) ?? []
  t.equal(await redis.admin.call('AUTH', 'handoff', password), 'OK')
})

/** A master with a replica, so that WAIT is called too, and the service as its limited user. */
async function limitedService (t: Parameters<typeof startRedisServer>[0] & Parameters<typeof testApp>[0]) {
  const redis = await startRedisServer(t)
  await startRedisServer(t, { options: ['--replicaof', `${redis.host.address} ${redis.port}`] })
  await until(() => isReplicated(redis, 1), 20_000)
  const grant = (...more: string[]) => setUser(redis.admin, { user: 'handoff', password: 'secret', prefix: 't-', more: ['~clock-t-*', ...more] })
  await grant()
  const told: string[] = []
  // From here on only the service's commands are counted.
  await redis.admin.config('RESETSTAT')
  const service = await testApp(t, { EVENTS_RETENTION: '60' }, {
    url: redis.url,
    limitedUrl: asUser(redis.url, 'handoff', 'secret'),
    replicas: 1,
    isSpread: true,
    log: { info () {}, error () {}, warn: (details, message) => { told.push(`${message}: ${(details as { reason: string }).reason}`) } },
  })
  return { redis, grant, told, service }
}

const isReady = async ({ app }: TestApp) => (await app.inject('/readyz')).statusCode === 200

/** All that is done with events: what an outbox has is read, moved, removed, and read in the feed. */
async function moveEvents ({ store, call, prefix, redis }: TestApp): Promise<void> {
  const { handoff_id: id } = (await call('alice', 'POST', '/api/pass', { task: 't' })).json()
  const tag = tagOf(id)
  const [last] = await until(async () => {
    const { entries } = await store.events!.read('default', '0-0', 100)
    return entries.some(({ text }) => text.includes(id)) ? redis.zrange(`${prefix}:{${tag}}:o`, '0', '-1', 'WITHSCORES').then(found => [found.at(-1)!]) : null
  })
  await store.relay.catchUp(tag, 'default', '0')
  await store.events!.trim(tag, 'default', last!)
}

/**
 * What a person approved waits in its inbox, in a group, whose handoffs are weighed before they are caught. While it is caught, the sweeping
 * replica looks now and then whether it still is.
 */
async function catchApproved (t: Test, { call, store }: TestApp): Promise<void> {
  const { handoff_id: id } = (await call('alice', 'POST', '/api/pass', { task: 't', to: 'approved', group: 'a', require_human: true })).json()
  t.equal((await call('approver', 'POST', `/api/approve/${id}`)).statusCode, 200)
  t.match((await call('bob', 'POST', '/api/catch', { inbox: 'approved' })).json(), { items: [{ handoff_id: id }] })
  await store.inboxes.tidy({ tenant: 'default', inbox: 'approved', tag: tagOf(id) })
  t.equal((await call('bob', 'POST', `/api/done/${id}`)).statusCode, 200)
}

/** What waits for another one is noted there, and the sweep asks now and then whether it is. */
async function passAfter (t: Test, { call, store }: TestApp): Promise<void> {
  const pass = async (more: object = {}) => (await call('alice', 'POST', '/api/pass', { task: 't', ...more })).json().handoff_id as string
  const first = await pass()
  const second = await pass({ after: [first] })
  await store.dependents.settled()
  t.match(await store.dependents.look('default', [first], undefined, second), [{ standing: 'open', isNoted: true }])
}

t.test('all that the service does is allowed, and all that is allowed is used', { timeout: 60_000 }, async t => {
  const { redis, service } = await limitedService(t)
  await until(() => isReady(service))
  service.store.sweeper.start()
  for (const { path, status, answer } of await allOperations(service, await prepared(service))) t.equal(answer.statusCode, status, path)
  await catchApproved(t, service)
  await passAfter(t, service)
  await moveEvents(service)
  await service.store.indexer.round()
  await redis.admin.call('CLIENT', 'KILL', 'USER', 'handoff')
  await until(() => isReady(service))
  // The sweep and the subscriber's ping come by themselves; acl-fleet.long.test.ts has the commands that only a Cluster needs.
  let idle = everything
  await until(async () => {
    const called = await commandsCalled(redis)
    idle = everything.filter(name => !called.has(name) && !['ASKING', 'CLUSTER|SLOTS'].includes(name))
    return idle.length === 0
  }, 10_000).catch(() => t.strictSame(idle, [], 'granted and never called'))
  t.strictSame(await denials(redis.admin, 'handoff'), [])
})

t.test('without a right nothing is begun that would end half way, and no lease is taken', async t => {
  const { redis, grant, service } = await limitedService(t)
  const { call, store, prefix } = service
  await until(() => isReady(service))
  const passed = await call('alice', 'POST', '/api/pass', { task: 't', to: 'in', max_attempts: 2, work_within: 60 })
  const id = passed.json().handoff_id as string
  t.match((await call('bob', 'POST', '/api/catch', { inbox: 'in' })).json(), { items: [{ handoff_id: id }] })
  const before = await contents(redis, `${prefix}:{${tagOf(id)}}:*`)

  // An attempt that ends leaves what its inbox has caught: the last of what fail writes.
  await grant('-srem')
  await redis.admin.call('CLIENT', 'KILL', 'USER', 'handoff')
  const fail = () => call('bob', 'POST', `/api/fail/${id}`, { error: { message: 'm' } })
  isProblem(t, await fail(), 503, 'unavailable')
  t.equal((await call('alice', 'GET', `/api/status/${id}`)).json().status, 'caught', 'what needs no such right goes on')
  const asked = callsOf(store, 'lease')
  store.sweeper.start()
  await until(() => callsOf(store, 'lease') > asked)
  await t.rejects(store.handoffs.sweep(tagOf(id), 100), { name: 'Unavailable', message: 'NOPERM: sweep needs SREM' })
  t.strictSame(await redis.admin.keys(`${prefix}:*sweeps`), [], 'others may sweep')
  t.strictSame(await contents(redis, `${prefix}:{${tagOf(id)}}:*`), before, 'all is as it was')

  await grant()
  await until(() => isReady(service))
  const failed = await fail()
  t.equal(failed.statusCode, 200)
  t.match((await call('bob', 'POST', '/api/catch?wait=30', { inbox: 'in' })).json(), { items: [{ task: 't' }] }, 'the next attempt')
  await until(async () => (await redis.admin.keys(`${prefix}:*sweeps`)).length === 1)
})

/** The keys of this pattern, and what DUMP says of each. */
async function contents ({ admin }: RedisServer, pattern: string): Promise<Array<[string, string]>> {
  const keys = (await admin.keys(pattern)).sort()
  return await Promise.all(keys.map(async (key): Promise<[string, string]> => [key, (await admin.dumpBuffer(key)).toString('base64')]))
}

async function commandsCalled ({ admin }: RedisServer): Promise<Set<string>> {
  const stats = await admin.info('commandstats')
  return new Set([...stats.matchAll(/^cmdstat_([^:]+):/gm)].map(([, name]) => name!.toUpperCase()))
}

/** Without these no call works, not even the one that finds missing rights: with DURABILITY each group ends in a SET and a WAIT. */
const unnamed = ['EVAL', 'EVALSHA', 'SET', 'WAIT', 'keys', 'channels']

t.test('without one of its rights the service says which, and answers 503 or as usual', { timeout: 120_000 }, async t => {
  const { redis, grant, told, service } = await limitedService(t)
  await until(() => isReady(service))
  const losses = [...everything.filter(name => !name.startsWith('CLUSTER') && name !== 'ASKING').map(name => [name, `-${name.toLowerCase()}`]),
    ['keys', 'resetkeys'], ['channels', 'resetchannels']] as Array<[what: string, rule: string]>
  for (const [at, [what, rule]] of losses.entries()) {
    // A sample, in which the last two are what isn't a command.
    if (!isWhole && at < losses.length - 2 && at % 6 > 0) continue
    const handoffs = await prepared(service)
    told.length = 0
    await grant(rule)
    // A new connection, and no scripts at the server, so that commands for these cases are counted too.
    await redis.admin.call('CLIENT', 'KILL', 'USER', 'handoff')
    await redis.admin.call('SCRIPT', 'FLUSH')
    const answers = await allOperations(service, handoffs)
    for (const { path, status, answer } of answers) {
      // Publishing is refused then, which stops nothing.
      if (what === 'channels') t.equal(answer.statusCode, status, `${path} without channels`)
      else if (answer.statusCode === 503 && !path.startsWith('/approvals')) isProblem(t, answer, 503, 'unavailable', `${what}: ${path}`)
      else t.ok([status, 503].includes(answer.statusCode), `${what}: ${path}: ${answer.statusCode}`)
    }
    if (optionalCommands.includes(what as typeof optionalCommands[number])) {
      await until(() => isReady(service))
      for (const { path, status, answer } of answers) t.equal(answer.statusCode, status, `${path} without ${what}`)
    } else {
      const detail = await until(async () => {
        const { statusCode, body } = await service.app.inject('/readyz')
        const { detail } = JSON.parse(body)
        return statusCode === 503 && /right/.test(detail) ? detail as string : undefined
      })
      if (!unnamed.includes(what)) t.equal(detail, `Redis does not let this service run ${what}: its user needs more rights.`)
      t.ok(told.includes(`not ready: ${detail}`), `${what}: the log has it`)
    }
    await grant()
    await until(() => isReady(service))
  }
})
