import { once } from 'node:events'
import { access, chmod, mkdir, readdir, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import t, { type Test } from 'tap'
import { defaultCacheDir, findRedisServer } from '../../src/embedded/binary.ts'
import { startRedis } from '../../src/embedded/server.ts'
import type { StartOptions } from '../../src/embedded/server.ts'
import { skipInQuick } from '../helpers/extent.ts'
import { detachedChildrenOf, isAlive, killed, scratchDir, startOwner, untilGone } from '../helpers/processes.ts'

const binary = await findRedisServer({ cacheDir: defaultCacheDir, log: (line) => t.comment(line) })
const quiet = { info () {}, warn () {}, error () {} }

async function start (t: Test, dataDir: string, more: Partial<StartOptions> = {}) {
  const embedded = await startRedis({ binary, dataDir, log: quiet, ...more })
  t.teardown(() => embedded.stop())
  return embedded
}

/** A connection that waits for Redis without a time-out, and is closed with the test. */
function connect (t: Test, socket: string, connectionName = 'test'): Redis {
  const redis = new Redis({ path: socket, connectionName, retryStrategy: () => 20, maxRetriesPerRequest: null })
  redis.on('error', () => {})
  t.teardown(() => redis.disconnect())
  return redis
}

const isThere = (file: string) => access(file).then(() => true, () => false)

t.test('Redis runs with the service’s settings, in a directory of its own', async (t) => {
  const dataDir = join(await scratchDir(t), 'made/here')
  const embedded = await start(t, dataDir, { extra: ['--appendfsync', 'always'] })
  const redis = connect(t, embedded.socket)
  const settings = Object.fromEntries(await Promise.all(
    ['port', 'appendonly', 'appendfsync', 'save', 'hash-max-listpack-value', 'maxmemory-policy', 'unixsocketperm']
      .map((name) => redis.config('GET', name) as Promise<[string, string]>)))
  t.same(settings, {
    port: '0',
    appendonly: 'yes',
    appendfsync: 'always',
    save: '',
    'hash-max-listpack-value': '2048',
    'maxmemory-policy': 'noeviction',
    unixsocketperm: '700'
  })
  t.equal((await stat(dataDir)).mode & 0o777, 0o700)
  t.equal((await stat(join(dataDir, 'redis.sock'))).mode & 0o777, 0o700)
  t.match(await redis.info('server'), `process_id:${embedded.pid}`)
})

/** The files and folders below `dir` that another user can read, search or write, given what leads to them. */
async function openToOthers (dir: string): Promise<string[]> {
  const mode = (await stat(dir)).mode
  const search = (mode & 0o011) !== 0
  const inside = search ? await readdir(dir, { withFileTypes: true }) : []
  const found = await Promise.all(inside.map(async (entry) => {
    const path = join(dir, entry.name)
    const below = entry.isDirectory() ? await openToOthers(path) : []
    return ((await stat(path)).mode & 0o077) === 0 ? below : [entry.name, ...below]
  }))
  return found.flat().sort()
}

t.test('a directory that others can read is no way to what is in it', async (t) => {
  const [empty, shared] = [join(await scratchDir(t), 'empty'), join(await scratchDir(t), 'shared')]
  // As an earlier run left its files, beside one that isn't the service's.
  await mkdir(join(shared, 'appendonlydir'), { recursive: true })
  for (const name of ['redis.log', 'dump.rdb', 'agent.key', 'webhook.secret', 'notes.txt']) await writeFile(join(shared, name), '')
  await mkdir(empty)
  for (const dir of [empty, shared, join(shared, 'appendonlydir')]) await chmod(dir, 0o755)
  for (const name of await readdir(shared)) if (name.includes('.')) await chmod(join(shared, name), 0o644)

  for (const dataDir of [empty, shared]) {
    const redis = connect(t, (await start(t, dataDir)).socket)
    await redis.set('payload', 'secret')
    await redis.bgrewriteaof()
    while (/aof_rewrite_in_progress:1|aof_rewrite_scheduled:1/.test(await redis.info('persistence'))) await redis.ping()
    await redis.save()
  }
  t.equal((await stat(empty)).mode & 0o777, 0o700, 'an empty one becomes the service’s own')
  t.equal((await stat(shared)).mode & 0o777, 0o755, 'one with other things in it stays as it is')
  t.same(await openToOthers(shared), ['notes.txt'], 'and others can read only what isn’t the service’s')
})

t.test('a directory in which others can write is warned of', async (t) => {
  const dataDir = join(await scratchDir(t), 'shared')
  await mkdir(dataDir)
  await writeFile(join(dataDir, 'notes.txt'), '')
  await chmod(dataDir, 0o777)
  const warnings: string[] = []
  await start(t, dataDir, { log: { ...quiet, warn: (line) => warnings.push(line) } })
  t.match(warnings, [/^DATA_DIR .*: other users can write to it, .*chmod 700/])
  t.equal(warnings.length, 1)
})

/** The processes that have begun since then: files that share this process may have some of their own. */
function childrenSince () {
  const before = detachedChildrenOf(process.pid)
  return () => detachedChildrenOf(process.pid).filter(pid => !before.includes(pid))
}

t.test('stop leaves no process behind, and the data is there at the next start', async (t) => {
  const dataDir = await scratchDir(t)
  const children = childrenSince()
  const first = await start(t, dataDir)
  await connect(t, first.socket).set('kept', 'yes')
  t.equal(children().length, 2, 'redis-server and its watchdog')
  await first.stop()
  t.same(children(), [])
  t.notOk(isAlive(first.pid))
  t.notOk(await isThere(first.socket))
  const second = await start(t, dataDir)
  t.equal(await connect(t, second.socket).get('kept'), 'yes')
})

t.test('a killed redis-server is restarted with its data, each time', async (t) => {
  const children = childrenSince()
  const errors: string[] = []
  let ended = () => {}
  const embedded = await start(t, await scratchDir(t), {
    log: { ...quiet, error: (line) => errors.push(line) },
    onExit: () => ended()
  })
  const redis = connect(t, embedded.socket)
  for (const round of [1, 2]) {
    await redis.set(`round ${round}`, 'written')
    const { pid } = embedded
    const told = new Promise<void>((resolve) => { ended = resolve })
    process.kill(pid, 'SIGKILL')
    await told
    t.equal(await redis.get(`round ${round}`), 'written')
    t.not(embedded.pid, pid)
    t.equal(errors.length, round)
  }
  t.equal(children().length, 2, 'one redis-server, one watchdog')
})

t.test('stop works while a restart is pending', async (t) => {
  const children = childrenSince()
  let ended = () => {}
  const told = new Promise<void>((resolve) => { ended = resolve })
  const embedded = await start(t, await scratchDir(t), { onExit: () => ended() })
  process.kill(embedded.pid, 'SIGKILL')
  await told
  await embedded.stop()
  t.same(children(), [])
})

t.test('kill -9 of the service ends redis-server too, and the next start finds all data', async (t) => {
  const dataDir = await scratchDir(t)
  const owner = startOwner(t, dataDir)
  const { socket = '', pid = 0 } = await owner.next()
  await connect(t, socket).set('kept', 'yes')
  await killed(owner.process)
  const next = await start(t, dataDir) // at once, while the watchdog is still ending the old one
  t.equal(await connect(t, next.socket).get('kept'), 'yes')
  t.notOk(isAlive(pid))
  await next.stop()

  const other = startOwner(t, dataDir)
  const { pid: left = 0 } = await other.next()
  t.ok(isAlive(left))
  process.kill(left, 'SIGSTOP')
  await killed(other.process)
  t.ok(await untilGone(left), 'without a next start too, and even if it was stopped')
})

t.test('Ctrl-C reaches the service but not redis-server', skipInQuick, async (t) => {
  const owner = startOwner(t, await scratchDir(t))
  const { pid = 0 } = await owner.next()
  t.ok(detachedChildrenOf(owner.process.pid ?? 0).includes(pid), 'it has a session of its own')
  process.kill(-(owner.process.pid ?? 0), 'SIGINT')
  t.same(await owner.next(), { answered: 'PONG', pid }, 'the same one')
  owner.process.kill('SIGTERM')
  await once(owner.process, 'exit')
  t.notOk(isAlive(pid))
})

/** A redis-server whose service and whose watchdog were both killed. */
async function orphan (t: Test, dataDir: string): Promise<{ socket: string, pid: number }> {
  const owner = startOwner(t, dataDir)
  const { socket = '', pid = 0 } = await owner.next()
  const watchdog = detachedChildrenOf(owner.process.pid ?? 0).find((child) => child !== pid)
  process.kill(watchdog ?? 0, 'SIGKILL')
  await killed(owner.process)
  t.teardown(async () => {
    if (isAlive(pid)) process.kill(pid, 'SIGKILL')
    await untilGone(pid)
  })
  t.ok(isAlive(pid), 'it is left running')
  return { socket, pid }
}

t.test('an orphaned redis-server is replaced', async (t) => {
  const dataDir = await scratchDir(t)
  const left = await orphan(t, dataDir)
  await connect(t, left.socket).set('kept', 'yes')
  const embedded = await start(t, dataDir)
  t.notOk(isAlive(left.pid))
  t.equal(await connect(t, embedded.socket).get('kept'), 'yes')
})

t.test('an orphan that is in use, or that does not answer, gets no second redis-server beside it', skipInQuick, async (t) => {
  const [used, mute] = await Promise.all([scratchDir(t), scratchDir(t)])
  const left = await orphan(t, used)
  await connect(t, left.socket, 'handoff-2').ping()
  process.kill((await orphan(t, mute)).pid, 'SIGSTOP')
  const [fromUsed, fromMute] = await Promise.all([used, mute].map((dataDir) =>
    startRedis({ binary, dataDir, log: quiet }).then(() => 'started', (error: Error) => error.message)))
  t.match(fromUsed, /^DATA_DIR .* is in use by another handoff service: [^\n]*$/)
  t.match(fromUsed, used)
  t.ok(isAlive(left.pid))
  t.match(fromMute, /^DATA_DIR .* is held by a redis-server of an earlier run [^\n]*$/)
})

t.test('of several services on one directory one runs and the others are told, even after a killed run', skipInQuick, async (t) => {
  const dataDir = await scratchDir(t)
  const owner = startOwner(t, dataDir)
  await owner.next()
  await killed(owner.process)
  const all = await Promise.all(Array.from({ length: 4 }, () => startOwner(t, dataDir).next()))
  const running = all.filter(({ pid }) => pid !== undefined)
  t.equal(running.length, 1)
  for (const { error } of all) if (error !== undefined) t.match(error, /^DATA_DIR .* is in use by another handoff service: [^\n]*$/)
  const redis = connect(t, running[0]?.socket ?? '')
  t.match(await redis.info('server'), `process_id:${running[0]?.pid}`, 'and its redis-server is the one on the socket')
})

t.test('a directory whose path is too long for a socket works', skipInQuick, async (t) => {
  const dataDir = join(await scratchDir(t), 'd'.repeat(120))
  const aliases = async () => (await readdir(tmpdir())).filter((name) => /^handoff-\w{6}$/.test(name))
  const before = await aliases()
  const owner = startOwner(t, dataDir)
  const { socket = '', pid = 0 } = await owner.next()
  await connect(t, socket).set('kept', 'yes')
  await t.rejects(startRedis({ binary, dataDir, log: quiet }), /in use/)
  owner.process.kill('SIGTERM')
  await once(owner.process, 'exit')
  t.notOk(isAlive(pid))
  t.same(await aliases(), before, 'nothing is left in the temporary directory')
  const next = await start(t, dataDir)
  t.equal(await connect(t, next.socket).get('kept'), 'yes')
})

t.test('a redis-server that does not start says where to look, and releases the lock', async (t) => {
  const children = childrenSince()
  const dataDir = await scratchDir(t)
  await t.rejects(start(t, dataDir, { extra: ['--no-such-option', '1'] }),
    { message: /^redis-server ended as it started \(1\): .*redis\.log tells why$/ })
  t.same(children(), [])
  await t.rejects(start(t, dataDir, { binary: { path: join(dataDir, 'none') } }), /redis\.log tells why/)
  await start(t, dataDir)
})
