import slotOf from 'cluster-key-slot'
import t from 'tap'
import type { Test } from 'tap'
import { Unavailable } from '../../src/core/errors.ts'
import { tags } from '../../src/core/ids.ts'
import { Checks, lookAtRedis, memoryOf } from '../../src/store/health.ts'
import type { Look } from '../../src/store/health.ts'
import { startCluster } from '../faults/fleet/cluster.ts'
import { testApp } from '../helpers/app.ts'
import { skipInQuick } from '../helpers/extent.ts'
import { logSink } from '../helpers/log-sink.ts'
import { scrape } from '../helpers/metrics.ts'
import { ownRedis } from '../helpers/own-redis.ts'
import { isProblem } from '../helpers/problems.ts'
import { fleetStore, quiet } from '../helpers/redis.ts'
import { until } from '../helpers/until.ts'

/** The reasons for which a master refuses writes, by the metric. */
async function refused (app: Parameters<typeof scrape>[0], master = 'redis'): Promise<Record<string, number>> {
  const told = await scrape(app)
  return Object.fromEntries(['full', 'readonly', 'not_saved', 'too_few_replicas']
    .map(reason => [reason, told.get(`handoff_redis_refuses_writes{master="${master}",reason="${reason}"}`) ?? NaN]))
}

t.test('a full Redis is told by the log and the metrics, and only what a balancer asks stays ready', async t => {
  const redis = await ownRedis(t, ['--maxmemory', '100mb'])
  const { app, call, lines } = await testApp(t, {}, { url: redis.url, limitedUrl: redis.url })
  const readyz = async (query = '') => (await app.inject(`/readyz${query}`)).statusCode
  const told = () => lines.map(line => JSON.parse(line)).filter(({ msg }) => msg === 'Redis refuses writes')
  await until(async () => await readyz() === 200)
  const well = { full: 0, readonly: 0, not_saved: 0, too_few_replicas: 0 }
  t.strictSame(await refused(app), well)
  const { handoff_id: id } = (await call('alice', 'POST', '/api/pass', { task: 't' })).json()

  await redis.admin.config('SET', 'maxmemory', 1)
  isProblem(t, await call('alice', 'POST', '/api/pass', { task: 't' }), 503, 'unavailable')
  for (let n = 0; n < 3; n++) t.equal(await readyz('?full=ok'), 200, 'what is caught can be done, so balancers must not take it out')
  const refused503 = await app.inject('/readyz')
  isProblem(t, refused503, 503, 'unavailable')
  t.match(refused503.json().detail, /^Redis is full: /)
  t.strictSame(await refused(app), { ...well, full: 1 })
  t.equal((await scrape(app)).get('handoff_ready'), 1, 'what balancers are told')
  t.match(told(), [{ level: 40, master: 'redis', reason: /^Redis is full: .*Raise maxmemory/, used_memory: Number, maxmemory: 1 }])
  t.equal(told().length, 1, 'once')
  t.equal((await call('bob', 'GET', `/api/catch/${id}`)).statusCode, 200)
  t.equal((await call('bob', 'POST', `/api/done/${id}`)).statusCode, 200)

  await redis.admin.replicaof('127.0.0.1', '1')
  t.equal(await until(async () => (await app.inject('/readyz?full=ok')).json().detail), 'Redis is a replica and takes no writes.', 'full isn’t all: it takes no write at all')
  t.equal((await scrape(app)).get('handoff_ready'), 0)
  await redis.admin.replicaof('NO', 'ONE')
  await redis.admin.config('SET', 'maxmemory', 0)
  await until(async () => await readyz() === 200)
  t.strictSame(await refused(app), well)
})

t.test('requests that are refused because Redis is full are counted, also while it has room for small ones', async t => {
  const redis = await ownRedis(t)
  const { app, call } = await testApp(t, {}, { url: redis.url, limitedUrl: redis.url })
  const count = async () => (await scrape(app)).get('handoff_redis_full_refusals_total{master="redis"}')
  const ready = () => until(async () => (await app.inject('/readyz')).statusCode === 200)
  const idOf = async (task: string) => {
    const { handoff_id: id } = (await call('alice', 'POST', '/api/pass', { task })).json()
    t.equal((await call('bob', 'GET', `/api/catch/${id}`)).statusCode, 200)
    return id as string
  }
  const large = 'x'.repeat(1_000_000)
  await ready()
  const [first, second, third] = [await idOf('t'), await idOf('t'), await idOf('t')]
  t.equal(await count(), 0)

  const used = Number(/used_memory:(\d+)/.exec(await redis.admin.info('memory'))![1])
  await redis.admin.config('SET', 'maxmemory', used + large.length / 2)
  isProblem(t, await call('alice', 'POST', '/api/pass', { task: large }), 503, 'unavailable')
  await ready()
  t.equal((await refused(app)).full, 0, 'the check’s own write has room')
  t.equal((await call('alice', 'POST', '/api/pass', { task: 't' })).statusCode, 201)
  t.equal(await count(), 1)
  isProblem(t, await call('bob', 'POST', `/api/done/${first}`, { output: { text: large } }), 503, 'unavailable')
  t.equal(await count(), 2, 'also by the script itself')

  await redis.admin.config('SET', 'maxmemory', 1)
  t.equal((await app.inject('/readyz')).statusCode, 503)
  t.equal((await call('bob', 'POST', `/api/done/${second}`, { output: { text: 'short' } })).statusCode, 200)
  isProblem(t, await call('bob', 'POST', `/api/fail/${third}`, { error: { message: 'y'.repeat(1000) } }), 503, 'unavailable')
  t.equal(await count(), 3, 'neither the check nor what goes on counts')
})

/** What is found of masters of which the test says INFO and how the check's own write ends. */
function redisOf (all: Array<{ info?: string, outcome?: string, mark?: string }>, { replicas = 0, lacking = [] as string[] } = {}) {
  const masters = {
    all: () => all.map(({ info = '' }, at) => ({ name: `m${at}`, tags: [`${at}`], calls: { status: 'ready', info: async () => info } }))
  }
  const lanes = {
    async call ({ tag, decode }: { tag: string, decode (reply: unknown): unknown }) {
      const { outcome = 'written', mark = 'other' } = all[Number(tag)]!
      if (outcome === '') throw new Unavailable('READONLY You can’t write')
      return decode([Buffer.from(outcome), Buffer.from(mark), null, Buffer.from('0')])
    }
  }
  const rights = { read: async () => ({ lacking, missing: [], unknown: [], messages: '' }) }
  const keyNames = { dataSet: () => '', dataSetReplaced: () => '' }
  const readiness = { masters, lanes, scripts: {}, rights, keyNames, newMark: () => 'mine', markOf: () => undefined, replicas }
  return { look: () => lookAtRedis(readiness as never), memory: () => memoryOf(masters as never) }
}

t.test('one master that can serve is enough, and one that may drop handoffs is too many', async t => {
  const unsafe = { info: 'maxmemory_policy:volatile-lru\r\n' }
  const { reason, looks } = await redisOf([{}, unsafe]).look()
  t.match(reason, /^maxmemory-policy is volatile-lru: /)
  t.strictSame(looks.map(({ unsafe }) => unsafe), [undefined, true])
  t.equal((await redisOf([{ outcome: '' }, {}]).look()).reason, null)
  t.equal((await redisOf([{ outcome: '' }]).look()).reason, 'Redis is a replica and takes no writes.')
  t.equal((await redisOf([{ info: 'maxmemory_policy:noeviction\r\n' }]).look()).reason, null)
})

t.test('a master has to have as many replicas and rights as it takes, and says whether it is full, and whose mark it has', async t => {
  const info = 'role:master\r\nslave0:ip=10.0.0.1,state=online\r\n'
  const reasons = await Promise.all([0, 1, 2].map(async replicas => (await redisOf([{ info }], { replicas }).look()).reason))
  t.strictSame(reasons, [null, null, 'Redis has 1 replicas online; DURABILITY needs 2.'])
  t.equal((await redisOf([{}], { lacking: ['SET'] }).look()).reason, 'Redis does not let this service run SET: its user needs more rights.')
  const { reason, looks } = await redisOf([{ outcome: 'no_room', mark: 'mine' }, {}]).look()
  t.strictSame([reason, ...looks.map(({ refuses, mark }) => [refuses, mark!.isNew])], [null, ['full', true], [undefined, false]])
})

t.test('memory is that of all masters, and has no limit where one of them has none', async t => {
  const info = (used: number, limit: number) => ({ info: `used_memory:${used}\r\nmaxmemory:${limit}\r\n` })
  t.strictSame(await redisOf([info(1, 10), info(2, 20)]).memory(), { used: 3, limit: 30 })
  t.strictSame(await redisOf([info(1, 10), info(2, 0)]).memory(), { used: 3, limit: 0 })
  t.equal(await redisOf([info(1, 10), {}]).memory(), null)
})

/** Lines of the log of checks with these results, one after another. */
async function linesOf (results: Array<{ reason?: string | null, looks: Look[] }>, quietFor = 0): Promise<string[]> {
  const lines: string[] = []
  const write = (details: { master?: string, reason?: string }, message: string) => lines.push([message, details.master, details.reason?.slice(0, 13)].filter(Boolean).join(' '))
  const checks = new Checks(async () => ({ reason: null, ...results.shift()! }), { info: write, warn: write, error: write }, quietFor)
  while (results.length > 0) await checks.whyNotReady()
  return lines
}

const well = (master: string): Look => ({ master, reason: null })
const full = (master: string): Look => ({ master, reason: null, refuses: 'full' })
const readonly = (master: string): Look => ({ master, reason: 'it takes none', refuses: 'readonly' })

t.test('each master’s trouble has a line when it begins and one when it is over', async t => {
  t.strictSame(await linesOf([
    { looks: [well('a'), well('b')] },
    { looks: [full('a'), well('b')] },
    { looks: [full('a'), readonly('b')] },
    { looks: [well('a'), readonly('b')] },
    { looks: [well('a'), { master: 'b', reason: 'no rights' }] },
    { looks: [well('a'), well('b')] },
    { looks: [well('a'), well('b')] },
  ]), [
    'ready', 'Redis refuses writes a Redis is full', 'Redis refuses writes b it takes none', 'Redis takes writes again a',
    'a Redis master can’t serve b no rights', 'a Redis master serves again b',
  ])
})

t.test('it is full where no master takes a pass, and one of them only because it is full', async t => {
  for (const [looks, isFull] of [
    [[full('a')], true], [[full('a'), full('b')], true], [[full('a'), readonly('b')], true],
    [[], false], [[well('a')], false], [[full('a'), well('b')], false], [[readonly('a'), readonly('b')], false],
  ] as const) {
    const { log } = logSink(t)
    const checks = new Checks(async () => ({ reason: null, looks }), log)
    await checks.whyNotReady()
    t.equal(checks.isFull, isFull, JSON.stringify(looks))
  }
})

t.test('what makes the whole service unready isn’t told twice', async t => {
  t.strictSame(await linesOf([
    { looks: [readonly('a'), well('b')] },
    { reason: 'it takes none', looks: [readonly('a'), readonly('b')] },
    { reason: 'it takes none', looks: [readonly('a'), readonly('b')] },
    { looks: [readonly('a'), readonly('b')] },
  ]), ['ready', 'Redis refuses writes a it takes none', 'not ready it takes none', 'ready', 'Redis refuses writes b it takes none'])
})

t.test('a Redis that is full and has room by turns is one event', async t => {
  t.strictSame(await linesOf([{ looks: [full('a')] }, { looks: [well('a')] }, { looks: [full('a')] }, { looks: [well('a')] }], 600_000),
    ['ready', 'Redis refuses writes a Redis is full'])
})

t.test('probes that come during a check share it', async t => {
  let looks = 0
  const checks = new Checks(async () => {
    looks++
    await new Promise(resolve => setImmediate(resolve))
    return { reason: null, looks: [] }
  }, quiet)
  t.strictSame(new Set(await Promise.all(Array.from({ length: 100 }, () => checks.whyNotReady()))), new Set([null]))
  t.equal(looks, 1)
  await checks.whyNotReady()
  t.equal(looks, 2, 'and the next one looks again')
})

/** A replica, what it logged as errors, and its check. */
function replicaOf (t: Test, url: string) {
  const { log, lines } = logSink(t)
  const store = fleetStore(t, url, { log })
  const errors = () => lines.map(line => JSON.parse(line)).filter(({ level }) => level === 50)
  /** Looks until each master has told its mark. */
  const look = (masters = 1) => until(async () => await store.whyNotReady() === null && store.looks.filter(({ mark }) => mark !== undefined).length === masters)
  return { store, errors, look }
}

t.test('a Redis that was emptied is told by each replica once, and one that restarted isn’t', async t => {
  const redis = await ownRedis(t)
  const replicas = [replicaOf(t, redis.url), replicaOf(t, redis.url)]
  const all = async () => { for (const { look } of replicas) await look() }
  await all()
  t.strictSame(replicas.map(({ store }) => store.looks[0]!.replacedAgo), [undefined, undefined], 'who looks for the first time notes nothing')
  const pid = redis.pid()
  process.kill(pid, 'SIGKILL')
  await until(() => redis.pid() !== pid)
  await all()
  t.strictSame(replicas.map(({ store, errors }) => [store.replaced, errors().length]), [[0, 0], [0, 0]])

  await redis.admin.flushall()
  for (let n = 0; n < 3; n++) await all()
  t.strictSame(replicas.map(({ store, errors }) => [store.replaced, errors().length]), [[1, 1], [1, 1]])
  t.match(replicas[1]!.errors(), [{ master: 'redis', msg: /^Redis is empty, or another one than before: .*401.*restore a backup/ }])
  const late = replicaOf(t, redis.url)
  await late.look()
  t.equal(late.store.replaced, 0, 'who comes later knows no other')
  t.equal(late.store.looks[0]!.mark!.isNew, false)
  t.ok(late.store.looks[0]!.replacedAgo! >= 0, 'but it is known for an hour')
  const [note] = await redis.admin.keys('*:dataset:replaced')
  t.ok(await redis.admin.pttl(note!) <= 3_600_000)
  await redis.admin.del(note!)
  await all()
  t.equal(replicas[0]!.store.looks[0]!.replacedAgo, undefined, 'once each has noted it, it is not noted again')
  t.equal((await redis.admin.keys('*:dataset')).length, 1)
  t.ok(await redis.admin.pttl((await redis.admin.keys('*:dataset'))[0]!) > 86_400_000, 'it stays')
})

t.test('of a Cluster only a master that lost its data is told, not failovers and moved slots', skipInQuick, async t => {
  const cluster = await startCluster(t, { masters: 2, replicas: 1 })
  const { store, errors, look } = replicaOf(t, cluster.url)
  await look(2)
  const first = slotOf(tags[0]!)
  const [master] = [await cluster.ownerOf(first)]
  const other = (await cluster.masters()).find(server => server !== master)!
  await cluster.moveSlot(first, other)
  await look(2)
  await cluster.moveSlot(first, master)
  await look(2)
  const [replica] = await cluster.replicasOf(master)
  await cluster.failover(replica!)
  await until(async () => await store.whyNotReady() === null && store.looks.some(({ master, mark }) => master === replica!.at && mark !== undefined))
  t.strictSame([store.replaced, errors()], [0, []])

  await other.admin.flushall()
  await look(2)
  t.equal(store.replaced, 1)
  t.match(errors(), [{ master: other.at }])
})
