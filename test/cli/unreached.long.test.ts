import { join } from 'node:path'
import t from 'tap'
import { startRedisServer } from '../faults/fleet/redis.ts'
import { newPlace, pass } from '../helpers/handoffs.ts'
import { builtHandoff, handoff, parsed } from '../helpers/command.ts'
import { scratchDir } from '../helpers/processes.ts'
import { fleetStore } from '../helpers/redis.ts'
import { npmStart } from '../helpers/service.ts'

/** One line on stderr, exit status 1. */
const oneLine = (says: RegExp) => ({ code: 1, stdout: '', stderr: new RegExp(`^${says.source}[^\\n]*\\n$`) })

t.test('a missing, silent or refusing Redis is one line', async t => {
  const server = await startRedisServer(t)
  const port = server.url.split(':').at(-1)
  await server.admin.call('ACL', 'SETUSER', 'narrow', 'on', '>x', '+ping')
  await server.admin.config('SET', 'requirepass', 'secret')
  const cases: Array<[url: string, args: string[], says: RegExp]> = [
    ['redis://127.0.0.1:1', ['keys', 'list'], /Redis is not connected\. \(connect ECONNREFUSED 127\.0\.0\.1:1\)/],
    ['redis://127.0.0.1:1', ['doctor'], /Redis is not connected\. \(connect ECONNREFUSED/],
    ['redis+cluster://127.0.0.1:1', ['inspect', newPlace().id], /Redis is not connected\. \(connect ECONNREFUSED/],
    ['redis+sentinel://127.0.0.1:1/name', ['keys', 'list'], /Redis is not connected\./],
    [`redis://127.0.0.1:${port}`, ['keys', 'list'], /Redis wants a password; set it in REDIS_URL\./],
    [`redis://127.0.0.1:${port}`, ['doctor'], /Redis wants a password; set it in REDIS_URL\./],
    [`redis://:wrong@127.0.0.1:${port}`, ['keys', 'create', '--name', 'a', '--scopes', 'pass'], /Redis refuses the user and password of REDIS_URL\./],
    [`redis://narrow:x@127.0.0.1:${port}`, ['keys', 'revoke', 'AAAAAAAAAAAA'], /Redis does not give this service the rights that it needs\. \(NOPERM/],
    [`redis://narrow:x@127.0.0.1:${port}`, ['inspect', newPlace().id], /Redis does not give this service the rights that it needs\./],
  ]
  for (const [url, args, says] of cases) {
    const ended = await handoff(args, { env: { REDIS_URL: url } })
    t.match(ended, oneLine(says), `${url}: ${args[0]}`)
    t.notMatch(ended.stderr, /secret|wrong@|\bat /)
  }
  // What waits must not keep the process: a Redis, a Sentinel, somebody who lets nobody in.
  await Promise.all([cases[0]!, cases[3]!, cases[6]!].map(async ([url, args, says]) =>
    t.match(await builtHandoff(args, { env: { REDIS_URL: url } }), oneLine(says), `built: ${url}`)))
  server.pause()
  t.match(await builtHandoff(['keys', 'list'], { env: { REDIS_URL: `redis://:secret@127.0.0.1:${port}` } }), oneLine(/Redis (is not connected|does not answer in time)\./))
  server.resume()
})

t.test('a wrong setting is one line that names the variable', async t => {
  const redis = { REDIS_URL: 'redis://127.0.0.1:1' }
  for (const [args, env, variable] of [
    [['keys', 'list'], { REDIS_URL: '/run/redis.sock' }, 'REDIS_URL'],
    [['doctor'], { ...redis, DURABILITY: 'all' }, 'DURABILITY'],
    [['inspect', newPlace().id], { ...redis, REDIS_KEY_PREFIX: '{a}' }, 'REDIS_KEY_PREFIX'],
    [['healthcheck'], { API_KEYS: 'a:b' }, 'API_KEYS'],
  ] as const) t.match(await handoff(args, { env }), oneLine(new RegExp(`${variable}: `)), variable)
  t.match(await builtHandoff(['serve'], { env: { ...redis, PORT: 'abc' } }), oneLine(/PORT: /))
})

t.test('without REDIS_URL the command uses the Redis of npm start', async t => {
  const cwd = await scratchDir(t)
  const none = (dataDir: string) => oneLine(new RegExp(`REDIS_URL is unset, and no Redis runs on DATA_DIR ${dataDir}: set REDIS_URL, or start the service \\(npm start\\)`))
  t.match(await builtHandoff(['keys', 'list'], { cwd }), none('\\.data'))
  for (const args of [['doctor'], ['inspect', newPlace().id]]) t.match(await handoff(args, { env: { DATA_DIR: cwd } }), none(cwd), args.join())

  // A path too long for a unix socket.
  const DATA_DIR = join(cwd, 'd'.repeat(100))
  await npmStart(t, { DATA_DIR })
  const made = parsed(await builtHandoff(['keys', 'create', '--name', 'a', '--scopes', 'pass', '--json'], { env: { DATA_DIR } }))
  t.match(parsed<object[]>(await handoff(['keys', 'list', '--json'], { env: { DATA_DIR } })), [{ id: made.id }])
  t.match(await handoff(['doctor'], { env: { DATA_DIR } }), { code: 0, stdout: /\n0 errors, [01] warnings?, 0 notes\n$/ }, 'it is set as it should be; a busy machine takes long for a round trip')
})

t.test('keys are acknowledged by as many replicas as handoffs are; status needs none', async t => {
  const { url } = await startRedisServer(t)
  const store = fleetStore(t, url)
  const place = newPlace()
  await pass(store.handoffs, place)
  const env = { REDIS_URL: url, DURABILITY: 'replicas:1' }
  t.match(await handoff(['keys', 'create', '--name', 'a', '--scopes', 'pass'], { env }), oneLine(/Redis has 0 replicas online; DURABILITY needs 1\./))
  t.match(await handoff(['inspect', place.id], { env }), { code: 0, stdout: /pending/ })
})
