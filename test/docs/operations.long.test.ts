/** Runs the commands of docs/operations.md. */
import { execFile } from 'node:child_process'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { which } from '../../src/embedded/binary.ts'
import { startRedisServer } from '../faults/fleet/redis.ts'
import { commandsUnder } from '../helpers/pages.ts'
import { scratchDir } from '../helpers/processes.ts'
import { npmStart, projectRoot } from '../helpers/service.ts'

const missing = await which('redis-cli') === undefined || await which('redis-server') === undefined
const skip = missing && 'no redis-cli or redis-server (Debian: redis-tools, redis-server)'

async function type (script: string, env: Record<string, string>, cwd = projectRoot): Promise<string> {
  const { REDIS_URL: _, ...outer } = process.env
  return (await promisify(execFile)('bash', ['-euo', 'pipefail', '-c', script], { cwd, env: { ...outer, ...env } })).stdout
}

t.test('what an operator asks at night', { timeout: 900_000 }, async t => {
  const DATA_DIR = join(await scratchDir(t), 'data')
  await npmStart(t, { DATA_DIR, EVENTS_RETENTION: '3600' })
  const env = { DATA_DIR }
  const passed = async (more = '') => /"handoff_id":"([^"]+)/.exec(await type(`npx handoff pass --task t --to reviewer --json ${more}`, env))![1]!
  const [ID, OTHER] = [await passed(), await passed()]
  await type(`npx handoff catch ${ID} && npx handoff catch ${OTHER}`, env)

  const said = await type(commandsUnder('docs/operations.md', 'Who, what and where'), { ...env, ID })
  t.match(said, /^0 errors/m, 'doctor')
  t.match(said, /^status +caught\n[^]*^caught +\S+ \(.*\) by agent\n/m, 'who holds it')
  t.match(said, /handoff\.passed[^]*handoff\.caught/, 'what happened to it')
  t.match(said, /^pending +0$/m, 'what waits in an inbox')
  t.match(said, new RegExp(`^${ID} +caught +reviewer +agent `, 'm'), 'what is in it, and what an agent holds')

  const made = await type('npx handoff keys create --name loud --scopes pass --json', env)
  const KEY_ID = /"id":"([^"]+)/.exec(made)![1]!
  t.match(await type(commandsUnder('docs/operations.md', 'Rotating'), { ...env, KEY_ID }), /^key +handoff_/m)
  t.match(await type(commandsUnder('docs/operations.md', 'Slowing a tenant down'), { ...env, KEY_ID }), new RegExp(`^set: [^]*^${KEY_ID} [^]*^revoked`, 'm'))

  const FAILED = await passed()
  await type(`npx handoff catch ${FAILED} && npx handoff fail ${FAILED} --message no`, env)
  const [again, many] = commandsUnder('docs/operations.md', 'Trying again').split(/(?=^export HANDOFF_KEY)/m)
  t.match(await type(again!, { ...env, ID, OTHER }), /^status +pending\n[^]*^status +cancelled$/m)
  t.match(await type(`npx handoff status ${ID}`, env), /^reissued_as +\S/m)
  t.match(await type(many!, { ...env, DATA_DIR }), /^reissued +1\n[^]*^cancelled +2$/m)
})

t.test('a backup, and a restore from it', { skip, timeout: 180_000 }, async t => {
  const source = await startRedisServer(t)
  await source.admin.mset({ a: '1', b: '2' })
  await source.admin.set('c', '3', 'EX', 3600)
  const cwd = await scratchDir(t)
  await type(commandsUnder('docs/operations.md', 'Backup'), { HOST: source.host.address, PORT: String(source.port) }, cwd)
  await source.admin.set('later', '4')

  const DIR = join(cwd, 'restored')
  await mkdir(DIR)
  t.match(await type(commandsUnder('docs/operations.md', 'Restore'), { DIR }, cwd), /^3$/m, 'all keys')
  // As the service's own Redis is run: with appendonly yes.
  const script = `redis-server --dir ${DIR} --port 0 --unixsocket ${DIR}/redis.sock --appendonly yes --save '' > /dev/null & trap 'kill $!; wait' EXIT
    until redis-cli -s ${DIR}/redis.sock ping 2> /dev/null | grep -q PONG; do sleep 0.1; done
    redis-cli -s ${DIR}/redis.sock mget a b c later; redis-cli -s ${DIR}/redis.sock ttl c`
  const [a, b, c, later, ttl] = (await type(script, {}, cwd)).split('\n')
  t.strictSame([a, b, c, later], ['1', '2', '3', ''])
  t.ok(Number(ttl) > 0, 'with their deadlines')
})

t.test('the move to another Redis', { skip, timeout: 180_000 }, async t => {
  const [old, next] = [await startRedisServer(t), await startRedisServer(t)]
  await old.admin.mset({ a: '1', b: '2' })
  const env = { OLD: old.host.address, OLD_PORT: String(old.port), NEW: next.host.address, NEW_PORT: String(next.port) }
  t.match(await type(commandsUnder('docs/operations.md', 'Moving to another Redis'), env), /^OK\nOK\nOK\nOK\n$/)
  t.strictSame(await next.admin.mget('a', 'b'), ['1', '2'])
  t.equal(await next.admin.set('c', '3'), 'OK', 'the new one takes writes')
  await t.rejects(old.admin.set('d', '4'), /READONLY/, 'the old one takes none')
})
