import { rm } from 'node:fs/promises'
import t from 'tap'
import type { Test } from 'tap'
import { isReplicated } from '../faults/fleet/ask.ts'
import { startCluster } from '../faults/fleet/cluster.ts'
import { startRedisServer } from '../faults/fleet/redis.ts'
import { readInfo, testedServers, versionOf } from '../../src/redis/connect.ts'
import type { Store } from '../../src/store/store.ts'
import { setUser } from '../helpers/acl.ts'
import { skipInQuick } from '../helpers/extent.ts'
import { logSink } from '../helpers/log-sink.ts'
import { newPlace, payload } from '../helpers/handoffs.ts'
import { ownRedis } from '../helpers/own-redis.ts'
import { fleetStore } from '../helpers/redis.ts'
import { until } from '../helpers/until.ts'

t.test('readiness says why Redis can’t serve, in the service’s own words', async t => {
  const { url, admin, dir } = await startRedisServer(t)
  const store = fleetStore(t, url)
  await until(async () => await store.whyNotReady() === null)

  await admin.config('SET', 'maxmemory-policy', 'allkeys-lru')
  t.match(await store.whyNotReady(), /^maxmemory-policy is allkeys-lru: .*Set it to noeviction\.$/)
  await admin.config('SET', 'maxmemory-policy', 'noeviction')

  /** What it is told, and why the master refuses writes. */
  const told = async () => [await store.whyNotReady(), store.looks[0]?.refuses]
  t.strictSame(await told(), [null, undefined])
  await admin.config('SET', 'maxmemory', 1)
  t.strictSame(await told(), [null, 'full'], 'a full Redis still drains: it stays in the balancer')
  await admin.config('SET', 'maxmemory', 0)

  await admin.config('SET', 'min-replicas-to-write', 1)
  t.strictSame(await told(), ['Redis takes no writes because it has too few replicas.', 'too_few_replicas'])
  await admin.config('SET', 'min-replicas-to-write', 0)

  await admin.replicaof('127.0.0.1', '1')
  t.strictSame(await told(), ['Redis is a replica and takes no writes.', 'readonly'])
  await admin.replicaof('NO', 'ONE')

  await admin.config('SET', 'save', '3600 1')
  // As a disk that is full: it can't write the snapshot, and refuses writes from then on.
  await rm(dir, { recursive: true })
  await admin.bgsave()
  await until(async () => (await told())[1] === 'not_saved')
  t.equal(await store.whyNotReady(), 'Redis takes no writes because it cannot save them; its own log says why.')
})

/** Its answer, once that differs from the first one. */
function reasonOf (t: Test, url: string, replicas = 0, within = 5000): Promise<string> {
  const store = fleetStore(t, url, { replicas })
  return until(async () => {
    const reason = await store.whyNotReady()
    return reason === 'Redis is not connected.' ? null : reason ?? 'ready'
  }, within)
}

t.test('readiness names missing rights', async t => {
  const redis = await startRedisServer(t)
  await redis.admin.call('ACL', 'SETUSER', 'narrow', 'on', '>x', '~*', '&*', '+@connection', '+info', '+time', '+evalsha')
  await setUser(redis.admin, { user: 'handoff', password: 's%c' })
  await redis.admin.config('SET', 'requirepass', 'p@ss')
  const at = redis.at
  t.equal(await reasonOf(t, `redis://:p%40ss@${at}`), 'ready')
  t.equal(await reasonOf(t, `redis://handoff:s%25c@${at}`), 'ready', 'a user with no more than it takes')
  t.equal(await reasonOf(t, `redis://${at}`), 'Redis wants a password; set it in REDIS_URL.')
  t.equal(await reasonOf(t, `redis://:wrong@${at}`), 'Redis refuses the user and password of REDIS_URL.')
  t.equal(await reasonOf(t, `redis://nobody:x@${at}`), 'Redis refuses the user and password of REDIS_URL.')
  t.match(await reasonOf(t, `redis://narrow:x@${at}`), /^Redis does not let this service run DEL, EVAL, EXISTS, GET, .*, ZREMRANGEBYRANK, ZSCORE: its user needs more rights\.$/)
})

t.test('readiness names missing replicas', async t => {
  const master = await startRedisServer(t)
  t.equal(await reasonOf(t, master.url, 1), 'Redis has 0 replicas online; DURABILITY needs 1.')
  const replica = await startRedisServer(t, { options: ['--replicaof', `127.0.0.1 ${master.port}`] })
  await until(() => isReplicated(master, 1), 20_000)
  t.equal(await reasonOf(t, master.url, 1), 'ready')
  t.equal(await reasonOf(t, master.url, 2), 'Redis has 1 replicas online; DURABILITY needs 2.')
  t.equal(await reasonOf(t, replica.url), 'Redis is a replica and takes no writes.')
})

t.test('readiness reports a silent Redis', async t => {
  const redis = await startRedisServer(t)
  const store = fleetStore(t, redis.url)
  await until(async () => await store.whyNotReady() === null)
  redis.pause()
  t.match(await store.whyNotReady(), /^Redis (does not answer in time|is not connected)\.$/)
  redis.resume()
  await until(async () => await store.whyNotReady() === null)
})

t.test('readiness finds a Cluster node that REDIS_URL doesn’t call a Cluster, and a Cluster’s wrong password', skipInQuick, async t => {
  const { servers: [node], empty: [other] } = await startCluster(t, { masters: 1, empty: 1, replicas: 0 })
  const { at, admin } = node!
  t.equal(await reasonOf(t, other!.url), 'Redis is one node of a Cluster; say so in REDIS_URL: redis+cluster://…')
  await admin.config('SET', 'requirepass', 'secret')
  t.equal(await reasonOf(t, `redis+cluster://:wrong@${at}`), 'Redis refuses the user and password of REDIS_URL.')
  t.equal(await reasonOf(t, `redis+cluster://${at}`), 'Redis wants a password; set it in REDIS_URL.')
})

t.test('the suite runs on the servers that are documented as tested', async t => {
  const { admin } = await startRedisServer(t)
  const version = versionOf(readInfo(await admin.info()))!
  t.match(version, { tooOld: false, tested: true }, `${version.name} is none of ${testedServers.join(', ')}: the docs and CI name them too`)
})

t.test('versions are parsed', t => {
  t.match(versionOf({ redis_version: '6.2.14' }), { name: 'Redis 6.2.14', tooOld: true, tested: false })
  t.match(versionOf({ redis_version: '7.4.1' }), { tooOld: false, tested: false })
  t.match(versionOf({ redis_version: '10.0.0' }), { tooOld: false, tested: false })
  t.match(versionOf({ redis_version: '7.2.4', valkey_version: '8.1.1' }), { name: 'Valkey 8.1.1', tooOld: false, tested: true })
  t.match(versionOf({ redis_version: 'unstable' }), { tooOld: false }, 'what can’t be told is no "too old"')
  t.equal(versionOf({}), undefined)
  t.end()
})

/** What scripts run on such a server: this comes before all of their calls. */
const beginning = (begin: string) => (source: string) => source.replace('\n', () => `\n${begin}\n`)

t.test('a right that can’t be checked doesn’t count as missing', async t => {
  const { url } = await ownRedis(t)
  const asked = [
    ['local redis = { call = redis.call, acl_check_cmd = function() error({ err = \'ERR Wrong number of args\' }) end }', 'ERR Wrong number of args'],
    ['local redis = { call = redis.call }', 'attempt to call a nil value'],
    ['local redis = { call = redis.call, acl_check_cmd = function(name) if name == \'HSET\' then error(\'not that one\') end return true end }', 'not that one'],
    ['local redis = { call = redis.call }\nlocal function pcall() redis.nothing() end', 'attempt to call field \'nothing\''],
  ] as const
  for (const [begin, said] of asked) {
    const { log, lines } = logSink(t)
    const store = fleetStore(t, url, { log, edit: beginning(begin) })
    await until(async () => await store.whyNotReady() === null)
    await store.whyNotReady()
    const doubts = lines.filter(line => line.includes('some checks of Redis could not be made')).map(line => JSON.parse(line))
    t.equal(doubts.length, 1, `${said}: told once`)
    t.match(doubts[0], { reason: /^Redis can’t be asked whether it lets this service run (DEL, .*)?HSET\b/, said: new RegExp(said) })
  }
})

function passForPerson ({ handoffs }: Store) {
  return handoffs.pass({ ...newPlace(), token: '-', passedBy: 'alice', requireHuman: true, options: ' l2 hdigest', expiresIn: 60_000, payload })
}

t.test('a command that the server doesn’t have is named', async t => {
  const hidden = (command: string) => new RegExp(`^Redis does not have ${command}, which the service needs: tested are Redis 7\\.0, `)
  for (const [command, reason] of [['SPUBLISH', hidden('SPUBLISH')], ['ZADD', hidden('ZADD')], ['EVALSHA', /^(Redis|Valkey) \d\S+ does not run our scripts; tested are /]] as const) {
    const { url } = await startRedisServer(t, { options: ['--rename-command', command, '""'] })
    const { log, lines } = logSink(t)
    const store = fleetStore(t, url, { log })
    const seen = await until(async () => {
      const reason = await store.whyNotReady()
      return reason === 'Redis is not connected.' ? null : reason
    })
    t.match(seen, reason)
    const [told] = lines.map(line => JSON.parse(line)).filter(({ msg, reason }) => msg === 'not ready' && reason === seen)
    t.match(told.said, /^ERR (Invalid command|unknown command)/, 'Redis’s own words are in the log')
    t.notMatch(seen, told.said, 'and not where no key is needed')
    // Only who waits needs messages. The others are answered 503, not 500.
    if (command === 'SPUBLISH') await passForPerson(store)
    else await t.rejects(passForPerson(store), { name: 'Unavailable', message: /^ERR [Uu]nknown/ })
  }
})
