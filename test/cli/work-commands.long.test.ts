import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import type { Test } from 'tap'
import { answering, proxy, tenants } from '../helpers/client.ts'
import { builtHandoff, handoff } from '../helpers/command.ts'
import { isAlive, scratchDir, untilGone } from '../helpers/processes.ts'
import { projectRoot } from '../helpers/service.ts'
import { until } from '../helpers/until.ts'

/** `handoff work` with commands that don't start, leave something behind, or don't want to end. */

const tenant = await tenants(t)

async function start (t: Test) {
  const service = tenant()
  service.store.sweeper.start()
  return { ...service, dir: await scratchDir(t), env: service.env('bob') }
}

/** The number of a process that a command has written to a file. */
async function numberIn (file: string): Promise<number> {
  let text = ''
  await until(async () => (text = await readFile(file, 'utf8').catch(() => '')) !== '')
  return Number(text)
}

t.test('what is no program is found out before anything is caught', async t => {
  const { env, pass, status, dir } = await start(t)
  const id = await pass()
  await mkdir(join(dir, 'folder'))
  await writeFile(join(dir, 'text'), 'x')
  for (const command of ['', dir, `${dir}/folder`, `${dir}/text`]) t.match(await handoff(['work', 'w', '--once', '--', command], { env }), { code: 2, stderr: /there is no command/ }, command)
  t.match(await status(id), { status: 'pending' })
})

t.test('a command that can’t be started any more fails one handoff, not all', async t => {
  const { env, pass, status, dir } = await start(t)
  const command = join(dir, 'command')
  await writeFile(command, '#!/no/such/interpreter\n')
  await chmod(command, 0o755)
  const ids = [await pass({ priority: 1 }), await pass()]
  t.match(await handoff(['work', 'w', '--', command], { env }), { code: 1, stderr: /the command can't be started: [^\n]*ENOENT\n$/ })
  t.match(await Promise.all(ids.map(status)), [{ status: 'failed', error: { message: /ENOENT/ } }, { status: 'pending' }])
})

t.test('what it leaves in the background isn’t waited for, and what it said itself is all there', async t => {
  const { env, pass, status, dir } = await start(t)
  const id = await pass()
  const ended = handoff(['work', 'w', '--once', '--', 'sh', '-c', `sleep 1000 & echo $! > ${dir}/left; head -c 100000 /dev/zero | tr "\\0" x`], { env })
  const left = await numberIn(join(dir, 'left'))
  t.teardown(() => process.kill(left, 'SIGKILL'))
  t.match(await ended, { code: 0 })
  t.ok(isAlive(left))
  t.equal((await status(id)).result.text.length, 100_000)
})

for (const [what, script] of [
  ['that ignores SIGTERM', 'trap "" TERM; echo $$ > DIR/pid; while :; do sleep 0.1; done'],
  ['whose child ignores it, and says nothing', 'sh -c \'trap "" TERM; echo $$ > DIR/pid; while :; do sleep 0.1; done\' < /dev/null > /dev/null 2>&1 & wait'],
] as const) {
  t.test(`a command ${what} is killed when its handoff is lost, before the worker ends`, async t => {
    const { env, pass, call, dir } = await start(t)
    const id = await pass({ heartbeat_within: 5 })
    const ended = builtHandoff(['work', 'w', '--once', '--', 'sh', '-c', script.replace('DIR', dir)], { env })
    const pid = await numberIn(join(dir, 'pid'))
    t.teardown(() => { try { process.kill(pid, 'SIGKILL') } catch {} })
    t.equal((await call('alice', 'POST', `/api/cancel/${id}`, { force: true })).statusCode, 200)
    t.match(await ended, { code: 0 })
    t.ok(await untilGone(pid, 1000))
  })
}

t.test('nobody need read what the command says', async t => {
  const { env, pass, status, dir } = await start(t)
  const id = await pass()
  const child = spawn(join(projectRoot, 'dist/cli/main.js'), ['work', 'w', '--once', '--', 'sh', '-c', `echo a >&2; while [ ! -e ${dir}/go ]; do sleep 0.05; done; echo b >&2; sleep 0.2; echo c >&2; echo done`],
    { env: { PATH: process.env.PATH, ...env }, stdio: ['ignore', 'ignore', 'pipe'] })
  t.teardown(() => child.kill('SIGKILL'))
  await once(child.stderr, 'data')
  child.stderr.destroy()
  await writeFile(join(dir, 'go'), '')
  t.strictSame(await once(child, 'exit'), [0, null])
  t.match(await status(id), { status: 'done', result: { text: 'done\n' } })
})

t.test('a message in several pieces stays as it is', async t => {
  const { env, pass, status } = await start(t)
  const id = await pass()
  t.match(await handoff(['work', 'w', '--once', '--', 'sh', '-c', 'printf "\\360\\237" >&2; sleep 0.3; printf "\\230\\200" >&2; exit 1'], { env }), { code: 0 })
  t.match(await status(id), { error: { message: '😀' } })
  const long = await pass()
  await handoff(['work', 'w', '--once', '--', 'node', '-e', 'process.stderr.write("a" + "😀".repeat(1500) + "b", () => process.exit(1))'], { env })
  t.equal((await status(long)).error.message, `${'😀'.repeat(999)}b`)
})

t.test('who declines while the service is away declines', async t => {
  const { address, env, pass, status } = await start(t)
  const id = await pass()
  // More often than one call asks again.
  let left = 12
  const { address: through, seen } = await proxy(t, address, ({ url }) => url.startsWith('/api/decline') && left-- > 0 ? answering(503) : 'pass')
  const ended = handoff(['work', 'w', '--once', '--', 'sh', '-c', 'echo not mine >&2; exit 75'], { env: { ...env, HANDOFF_URL: through } })
  t.match(await ended, { code: 0 })
  t.match(await status(id), { status: 'declined', reason: 'not mine' })
  t.equal(new Set(seen.filter(({ url }) => url.startsWith('/api/decline')).map(({ key }) => key)).size, 1)
})

t.test('what goes wrong meanwhile is said, once', async t => {
  const child = spawn(join(projectRoot, 'dist/cli/main.js'), ['work', 'w', '--', 'true'],
    { env: { PATH: process.env.PATH, HANDOFF_URL: 'http://127.0.0.1:1', HANDOFF_KEY: 'k' }, stdio: ['ignore', 'ignore', 'pipe'] })
  t.teardown(() => child.kill('SIGKILL'))
  let said = ''
  child.stderr.on('data', chunk => { said += chunk })
  await until(() => said !== '')
  t.match(said, /^[^\n]*\(connection_failed\): is the service running, and is HANDOFF_URL or --url its address\?\n$/)
  child.kill('SIGTERM')
  t.strictSame(await once(child, 'exit'), [0, null])
})
