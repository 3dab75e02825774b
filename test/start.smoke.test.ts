import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { idOfSecret } from '../src/store/api-keys.ts'
import { freePort } from './faults/fleet/ports.ts'
import { loopback } from './faults/fleet/process.ts'
import { builtHandoff } from './helpers/command.ts'
import { ownRedis } from './helpers/own-redis.ts'
import { scratchDir, untilGone } from './helpers/processes.ts'
import { npmStart, projectRoot } from './helpers/service.ts'
import type { Started } from './helpers/service.ts'

const keyOf = (output: string) => /agent key\s+(\S+)/.exec(output)?.[1] ?? ''

async function pass ({ address }: Started, key: string): Promise<string> {
  const answer = await fetch(`${address}/api/pass`, {
    method: 'POST', body: '{"task":"t"}', headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  })
  return (await answer.json() as { handoff_id: string }).handoff_id
}

async function status ({ address }: Started, key: string, id: string): Promise<number> {
  return (await fetch(`${address}/api/status/${id}`, { headers: { authorization: `Bearer ${key}` } })).status
}

function commandOf (pid: number): string {
  return execFileSync('ps', ['-o', 'args=', '-p', String(pid)], { encoding: 'utf8' })
}

async function allGone (pids: number[]): Promise<boolean> {
  return (await Promise.all(pids.map(pid => untilGone(pid)))).every(gone => gone)
}

t.test('npm start prints its address, shows the keys once, keeps its data, and leaves no process behind', async t => {
  const DATA_DIR = await scratchDir(t)
  const first = await npmStart(t, { DATA_DIR })
  const key = keyOf(first.output())
  t.ok(idOfSecret(key), 'the form of all keys, checksum included')
  t.match(first.output(), `${first.address}/docs`)
  t.equal((await stat(join(DATA_DIR, 'agent.key'))).mode & 0o777, 0o600)
  // The printed call, unchanged.
  const call = /^ {2}(curl[^]*?'\{.*\}')$/m.exec(first.output())![1]!
  const printed = execFileSync('sh', ['-c', call.replace('curl', 'curl -s')], { encoding: 'utf8' })
  t.match(JSON.parse(printed), { status: 'pending' })
  const id = await pass(first, key)
  const events = await fetch(`${first.address}/api/events?after=0-0`, { headers: { authorization: `Bearer ${key}` } })
  t.match(await events.json(), { items: [{ type: 'handoff.passed' }, { data: { handoff_id: id } }] }, 'events are on')

  t.equal(await readFile(join(DATA_DIR, 'address'), 'utf8'), `${first.address}\n`)
  t.equal((await stat(join(DATA_DIR, 'address'))).mode & 0o777, 0o600)
  t.match(await builtHandoff(['status', id], { env: { DATA_DIR } }), { code: 0, stdout: /^status +pending$/m }, 'the command finds it by itself')

  const processes = first.processes
  t.ok(processes.length >= 3, `${processes.length} processes`)
  process.kill(first.pid, 'SIGTERM') // only npm's process, as a supervisor does
  await first.ended
  t.ok(await allGone(processes), 'SIGTERM: nothing is left')
  t.match(first.output(), '"stopped"')
  t.match(await readFile(join(DATA_DIR, 'address'), 'utf8').catch((error: Error) => error), { code: 'ENOENT' }, 'the address may be another’s now')

  const second = await npmStart(t, { DATA_DIR, HOST: '0.0.0.0' })
  t.match(await readFile(join(DATA_DIR, 'address'), 'utf8'), /^http:\/\/127\.0\.0\.1:\d+\n$/)
  t.match(await builtHandoff(['status', id], { env: { DATA_DIR } }), { code: 0 })
  t.notMatch(second.output(), /^(installing|building)/m, 'what was made is made once')
  t.notMatch(second.output(), key)
  t.equal(await status(second, key, id), 200, 'what was taken is still there')
  const approver = await readFile(join(DATA_DIR, 'approver.key'), 'utf8')
  const cancelled = await fetch(`${second.address}/api/cancel/${id}`, { method: 'POST', headers: { authorization: `Bearer ${approver.trim()}` } })
  t.equal(cancelled.status, 200, 'the approver’s key, which was kept, is an operator’s')
  const more = second.processes
  process.kill(-second.pid, 'SIGINT') // the whole process group, as Ctrl-C in a terminal does
  await second.ended
  t.ok(await allGone(more), 'Ctrl-C: nothing is left')
  t.match(second.output(), '"stopped"')
})

const hasScript = process.platform === 'linux' && spawnSync('script', ['--version']).status === 0

t.test('it ends with its terminal', { skip: hasScript ? false : 'no script is to be had' }, async t => {
  const DATA_DIR = await scratchDir(t)
  const { REDIS_URL: _, ...env } = process.env
  const terminal = spawn('script', ['--quiet', '--flush', '--command', `exec node ${join(projectRoot, 'dist/main.js')}`, '/dev/null'], {
    env: { ...env, DATA_DIR, PORT: String(await freePort(loopback)) }, stdio: ['ignore', 'pipe', 'inherit']
  })
  let said = ''
  for await (const some of terminal.stdout.setEncoding('utf8')) {
    if (/"ready"/.test(said += some)) break
  }
  const pid = Number(/"pid":(\d+)/.exec(said)![1])
  t.teardown(() => { try { process.kill(pid, 'SIGKILL') } catch {} })
  terminal.kill('SIGKILL')
  t.ok(await untilGone(pid))
})

t.test('killed with -9 and started again, it has everything older than a second', async t => {
  const DATA_DIR = await scratchDir(t)
  const first = await npmStart(t, { DATA_DIR })
  const key = keyOf(first.output())
  const id = await pass(first, key)
  await sleep(1000)
  const all = first.processes
  for (const pid of all) process.kill(pid, 'SIGKILL') // Redis and its watchdog too: the hardest case
  t.ok(await allGone(all))
  const second = await npmStart(t, { DATA_DIR })
  t.equal(await status(second, key, id), 200)
  // Only the service: the processes that it started must end with it.
  const more = second.processes
  process.kill(more.find(pid => commandOf(pid).includes('dist/main.js') && !commandOf(pid).includes('sh -c'))!, 'SIGKILL')
  t.ok(await allGone(more))
  const third = await npmStart(t, { DATA_DIR })
  t.equal(await status(third, key, id), 200)
  process.kill(-third.pid, 'SIGTERM') // each process of the group, as systemd does, and again by npm
  await third.ended
  t.match(third.output(), '"stopped"')
})

t.test('a second start on the same data stops with one line', async t => {
  const DATA_DIR = await scratchDir(t)
  await npmStart(t, { DATA_DIR })
  const refused = await npmStart(t, { DATA_DIR }).catch((error: Error) => error.message)
  t.match(refused, /^ended \(1\): /)
  t.match(refused, /DATA_DIR .* is in use by another handoff service/)
  t.notMatch(refused, /\n\s+at /, 'no stack')
})

t.test('with a REDIS_URL several run side by side, and none makes a key', async t => {
  const port = await freePort(loopback)
  await ownRedis(t, ['--port', String(port)])
  const env = { REDIS_URL: `redis://127.0.0.1:${port}`, API_KEYS: 'writer:a-secret-of-sixteen' }
  const both = await Promise.all([npmStart(t, env), npmStart(t, env)])
  const id = await pass(both[0], 'a-secret-of-sixteen')
  t.equal(await status(both[1], 'a-secret-of-sixteen', id), 200)
  t.notMatch(both[0].output(), 'agent key')
})

t.test('a wrong setting stops the start with one line', async t => {
  const refused = await npmStart(t, { PORT: 'abc' }).catch((error: Error) => error.message)
  t.match(refused, /^PORT: /m)
  t.match(refused, /^ended \(1\): /)
  t.notMatch(refused, /\n\s+at /, 'no stack')
  // Without npm, which has no part in the others.
  for (const [name, value] of Object.entries({ DURABILITY: 'replicas:x', REDIS_URL: 'redis+sentinel://h', API_KEYS: 'a:b' })) {
    const { status, stdout, stderr } = spawnSync(process.execPath, ['dist/main.js'], { cwd: projectRoot, encoding: 'utf8', env: { [name]: value } })
    t.match({ status, stdout, stderr }, { status: 1, stdout: '', stderr: new RegExp(`^${name}: [^\\n]+\\n$`) }, name)
  }
})
