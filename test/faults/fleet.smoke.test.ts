import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { scratchDir, isAlive, untilGone } from '../helpers/processes.ts'
import { until } from '../helpers/until.ts'
import { asked } from './fleet/ask.ts'
import { freePort } from './fleet/ports.ts'
import { loopback, run } from './fleet/process.ts'
import { startRedisServer, type RedisServer } from './fleet/redis.ts'
import { startServiceReplica } from './fleet/service.ts'

const logOf = async ({ dir }: RedisServer) => await readFile(join(dir, 'redis.log'), 'utf8')

t.test('a killed Redis comes back with its data', async t => {
  const redis = await startRedisServer(t, { options: ['--appendfsync', 'always', '--save', '3600 1 300 100'] })
  t.strictSame(await redis.admin.config('GET', 'appendfsync'), ['appendfsync', 'always'])
  t.strictSame(await redis.admin.config('GET', 'save'), ['save', '3600 1 300 100'], 'a value of several words')
  const { pid } = redis
  for (let n = 1; n <= 1000; n++) redis.admin.incr('count').catch(() => {})
  await redis.admin.set('kept', 'yes')
  await redis.kill()
  t.notOk(isAlive(pid))
  t.notMatch(await logOf(redis), 'SIGTERM')
  await redis.restart()
  t.not(redis.pid, pid)
  t.ok(isAlive(redis.pid))
  t.equal(await redis.admin.get('kept'), 'yes')
  t.equal(await redis.admin.get('count'), '1000')
  t.equal(redis.url, `redis://127.0.0.1:${redis.port}`)
  t.match(await redis.admin.info('server'), `tcp_port:${redis.port}\r\n`)
})

t.test('a paused Redis is silent, and then carries out what it was sent', async t => {
  const redis = await startRedisServer(t)
  redis.pause()
  const answer = redis.admin.incr('asked')
  t.equal(await asked(answer, 300), undefined)
  redis.resume()
  t.equal(await answer, 1)
  redis.pause()
  await redis.stop()
  t.notOk(isAlive(redis.pid), 'a paused one can be stopped')
  t.match(await logOf(redis), /SIGTERM[^]*bye bye/)
  await redis.restart()
  t.equal(await redis.admin.get('asked'), '1')
})

t.test('a configuration change survives a restart', async t => {
  const [one, other] = await Promise.all([startRedisServer(t), startRedisServer(t)])
  await other.admin.replicaof('127.0.0.1', one.port)
  await other.admin.config('REWRITE')
  await other.kill()
  await other.restart()
  await one.admin.set('a', 'b')
  t.ok(await until(async () => await other.admin.get('a') === 'b'))
})

t.test('a Redis that cannot start says why', async t => {
  await t.rejects(startRedisServer(t, { options: ['--no-such-option', '1'] }), /it ended \(1\).*no-such-option/s)
})

t.test('each port is given once', async t => {
  const ports = await Promise.all(Array.from({ length: 1000 }, () => freePort({ ...loopback, namespace: 'of which nobody is asked' })))
  t.equal(new Set(ports).size, 1000)
})

t.test('teardown ends the processes and removes the directory', async t => {
  let left = { pid: 0, dir: '' }
  await t.test('a run', async t => {
    left = await startRedisServer(t)
  })
  t.notOk(isAlive(left.pid))
  await t.rejects(readFile(join(left.dir, 'redis.conf')), { code: 'ENOENT' })
})

t.test('processes of a killed run end too', { skip: process.platform !== 'linux' }, async t => {
  const code = `const { run, loopback } = await import(${JSON.stringify(fileURLToPath(new URL('fleet/process.ts', import.meta.url)))})
    console.log(run(loopback, 'sleep', ['60']).pid)
    setInterval(() => {}, 1000)`
  const owner = run(loopback, process.execPath, ['--import=tsx', '--input-type=module', '-e', code], { stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(() => owner.kill())
  const { value } = await createInterface(owner.child.stdout!)[Symbol.asyncIterator]().next()
  t.ok(isAlive(Number(value)))
  await owner.kill()
  t.ok(await untilGone(Number(value)))
})

const answers = async (url: string) => (await fetch(`${url}/healthz`, { signal: AbortSignal.timeout(1000) }).catch(() => undefined))?.status

t.test('a replica of the service can be started and stopped', async t => {
  const redis = await startRedisServer(t)
  const start = () => startServiceReplica(t, { env: { REDIS_URL: redis.url, DRAIN_DELAY: '0' } })
  const [one, other] = await Promise.all([start(), start()])
  t.not(one.url, other.url)
  t.equal(await answers(one.url), 200)
  one.pause()
  t.equal(await answers(one.url), undefined)
  one.resume()
  t.equal(await answers(one.url), 200)
  t.notMatch(one.lines.join('\n'), /draining/)
  await one.stop()
  t.equal(await one.ended, 0)
  // What it wrote may be read after its end.
  await until(() => one.lines.some(line => line.includes('stopped')))
  t.match(one.lines.join('\n'), /listening[^]*draining[^]*stopped/)
  await other.kill()
  t.equal(await other.ended, 'SIGKILL')
})

/** Makes a folder with this program as its dist/main.js. */
async function projectOf (t: Test, program: string): Promise<string> {
  const dir = await scratchDir(t)
  await mkdir(join(dir, 'dist'))
  await writeFile(join(dir, 'dist/main.js'), program)
  return dir
}

t.test('a replica can run another build', async t => {
  const talkative = await projectOf(t, `
    for (let n = 1; n <= 5000; n++) console.log(n)
    console.log(process.cwd(), JSON.stringify(process.env))
    console.log('{"address":"http://127.0.0.1:1","msg":"listening"}')
    setInterval(() => {}, 1000)`)
  const replica = await startServiceReplica(t, { project: talkative, env: { A: 'b', PORT: '7' } })
  t.equal(replica.url, 'http://127.0.0.1:1')
  await until(() => replica.lines.some(line => line.startsWith(talkative)))
  t.ok(replica.lines.length <= 1000 && replica.lines.includes('5000') && !replica.lines.includes('1'))
  const seen = JSON.parse(replica.lines.find(line => line.startsWith(talkative))!.slice(talkative.length))
  t.match(seen, { A: 'b', PORT: '7', HOST: '127.0.0.1' })
  t.notOk('HOME' in seen)
  await t.rejects(startServiceReplica(t, { project: await projectOf(t, 'console.log("no luck"); process.exit(3)'), env: {} }), /ended \(3\): no luck/)
})
