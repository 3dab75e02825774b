import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { tenants } from '../helpers/client.ts'
import { handoff } from '../helpers/command.ts'
import { skipInQuick } from '../helpers/extent.ts'
import { scratchDir } from '../helpers/processes.ts'
import { projectRoot } from '../helpers/service.ts'
import { until } from '../helpers/until.ts'

/** `handoff work`: a command serves an inbox. */

const tenant = await tenants(t)

function start () {
  const service = tenant()
  service.store.sweeper.start()
  const env = service.env('bob')
  const once = (...command: string[]) => handoff(['work', 'w', '--once', '--', ...command], { env })
  return { ...service, env, once }
}

t.test('standard output is the result: a JSON object as it is, and any other text as text', async t => {
  const { call, once: work, pass } = start()
  for (const [command, result] of [
    ['echo \'{"n": 9007199254740993, "one": 1.0}\'', '"result":{"n": 9007199254740993, "one": 1.0}'],
    ['echo hello; echo \'{}\'', '"result":{"text":"hello\\n{}\\n"}'],
    ['echo "[1]"', '"result":{"text":"[1]\\n"}'],
    ['printf "\\357\\273\\277{\\"n\\": 1.0}"', '"result":{"n": 1.0}'],
    ['printf "\\357\\273\\277a"', '"result":{"text":"a"}'],
    ['true', '"result":{"text":""}'],
    ['cat', '"result":{"handoff_id":'],
    ['printf "%s %s" "$HANDOFF_TASK" "$HANDOFF_ID"', '"result":{"text":"t '],
  ] as const) {
    const id = await pass({ output: { a: 1 } })
    t.match(await work('sh', '-c', command), { code: 0, stderr: `caught ${id} "t"\ndone ${id}\n` }, command)
    const { body } = await call('alice', 'GET', `/api/status/${id}`)
    t.ok(body.includes(result), `${command}: ${body}`)
  }
})

t.test('the exit status fails or declines, with what standard error says', async t => {
  const { once: work, pass, status } = start()
  const later = join(await scratchDir(t), 'later')
  for (const [command, expected] of [
    ['echo one >&2; echo two >&2; exit 3', { status: 'failed', error: { message: 'one\ntwo' } }],
    ['exit 1', { status: 'failed', error: { message: 'the command ended with 1' } }],
    ['kill -9 $$', { status: 'failed', error: { message: 'the command ended with SIGKILL' } }],
    ['echo not mine >&2; exit 75', { status: 'declined', reason: 'not mine' }],
    ['exit 75', { status: 'declined' }],
    ['printf \'{"name":"M\\374ller"}\'', { status: 'failed', error: { message: 'the command’s standard output is not UTF-8' } }],
    ['printf "M\\303"', { status: 'failed', error: { message: /is not UTF-8/ } }],
    ['printf "M\\374ller" >&2; exit 1', { status: 'failed', error: { message: 'M\ufffdller' } }],
    ['printf "\\377"; printf "\\377" >&2; exit 75', { status: 'declined', reason: '\ufffd' }],
    [`head -c 9000000 /dev/zero; touch ${later}`, { status: 'failed', error: { message: /standard output is longer/ } }],
    ['head -c 9000000 /dev/zero | tr "\\0" e >&2; exit 1', { status: 'failed', error: { message: /^e{2000}$/ } }],
  ] as const) {
    const id = await pass()
    t.match(await work('sh', '-c', command), { code: 0 }, command)
    t.match(await status(id), expected, command)
  }
  t.notOk(existsSync(later), 'a command that says too much is ended in the midst of it')
})

t.test('it says what it catches and how that ends, one line each, and with --quiet nothing', async t => {
  const { call, env, once: work, pass, status } = start()
  const id = await pass({ task: 'steer\u001b[2J\u009b2J' })
  t.match(await work('sh', '-c', 'exit 3'), { code: 0, stderr: `caught ${id} "steer\\u001b[2J\\u009b2J"\nfailed ${id} "the command ended with 3"\n` })
  const declined = await pass()
  t.match(await work('sh', '-c', 'exit 75'), { stderr: `caught ${declined} "t"\ndeclined ${declined} "the command ended with 75"\n` })
  const midLine = await pass()
  t.match(await work('sh', '-c', 'printf oops >&2; exit 3'), { stderr: `caught ${midLine} "t"\noops\nfailed ${midLine} "oops"\n` })
  const long = await pass()
  t.match(await work('sh', '-c', 'head -c 2000000 /dev/zero | tr "\\0" x'), { stderr: new RegExp(`^caught ${long} "t"\n${long}: .* \\(payload_too_large\\)\nfailed ${long}\n$`) })
  const itself = await pass()
  t.match(await handoff(['work', 'w', '--once', '--pass-key', '--', process.execPath, join(projectRoot, 'dist/cli/main.js'), 'done', itself], { env }), { stderr: `caught ${itself} "t"\ndone ${itself}\n` })
  const lost = await pass({ heartbeat_within: 5 })
  const dir = await scratchDir(t)
  const ended = work('sh', '-c', `trap 'touch ${dir}/asked; exit' TERM; sleep 1000 & wait`)
  await until(async () => (await status(lost)).status === 'caught')
  await call('alice', 'POST', `/api/cancel/${lost}`, { force: true })
  t.match(await ended, { code: 0, stderr: `caught ${lost} "t"\nlost ${lost}\n` })
  t.ok(existsSync(join(dir, 'asked')), 'a command whose handoff is lost is asked to end before it is killed')
  await pass()
  t.match(await handoff(['work', 'v,w', '--once', '--quiet', '--', 'true'], { env }), { code: 0, stdout: '', stderr: '' })
})

t.test('it catches one with --once, none for what is no program, and no more after a program that can’t be started', async t => {
  const { env, pass, status } = start()
  const dir = await scratchDir(t)
  const [first, second] = [await pass(), await pass()]
  t.match(await handoff(['work', 'w', '--once', '--concurrency', '2', '--quiet', '--', 'true'], { env }), { code: 0 })
  t.match([await status(first), await status(second)], [{ status: 'done' }, { status: 'pending' }], 'with --once one alone is caught, however many at once')
  t.match(await handoff(['work', 'w', '--once', '--', dir], { env }), { code: 2, stderr: /there is no command/ }, 'a folder is no command')
  t.match(await status(second), { status: 'pending' }, 'and that shows before anything is caught')
  const command = join(dir, 'command')
  await writeFile(command, '#!/no/such/interpreter\n', { mode: 0o755 })
  t.match(await handoff(['work', 'w', '--', command], { env }), { code: 1, stderr: /the command can't be started: [^\n]*ENOENT\n$/ }, 'a command that can’t be started ends the worker')
})

t.test('the command has the key only with --pass-key, and then the address that it belongs to', async t => {
  const { env, pass, status } = start()
  const says = 'echo "$HANDOFF_URL $HANDOFF_KEY $HANDOFF_KEY_FILE"'
  const ran = async (own: Record<string, string>, ...options: string[]) => {
    const id = await pass()
    t.match(await handoff(['work', 'w', '--once', ...options, '--', 'sh', '-c', says], { env: own }), { code: 0 })
    return (await status(id)).result
  }
  t.strictSame(await ran({ ...env, HANDOFF_KEY_FILE: 'k' }), { text: `${env.HANDOFF_URL}  \n` })
  t.strictSame(await ran(env, '--pass-key'), { text: `${env.HANDOFF_URL} ${env.HANDOFF_KEY} \n` })
  t.strictSame(await ran({ HANDOFF_KEY: env.HANDOFF_KEY! }, '--url', env.HANDOFF_URL!, '--pass-key'), { text: `${env.HANDOFF_URL} ${env.HANDOFF_KEY} \n` })
})

t.test('a task of a megabyte, and one with a NUL, fit into the environment', async t => {
  const { once: work, pass, status } = start()
  for (const task of ['é'.repeat(400_000), 'a\0b']) {
    const id = await pass({ task })
    t.match(await work('sh', '-c', 'printf "%s" "$HANDOFF_TASK" | wc -c'), { code: 0 })
    const bytes = Number((await status(id)).result.text)
    t.equal(bytes, task.length > 10 ? 100_000 : 2)
  }
})

t.test('it beats while the command runs, and a command that is lost is ended with all that it started', skipInQuick, async t => {
  const { call, once: work, pass, status } = start()
  const dir = await scratchDir(t)
  const id = await pass({ heartbeat_within: 5 })
  const ended = work('sh', '-c', `trap "" TERM; (sleep 1000 & echo $! > ${dir}/child; wait) & echo $$ > ${dir}/self; wait; sleep 1000`)
  await until(async () => (await readFile(join(dir, 'child'), 'utf8').catch(() => '')) !== '')
  const first = (await status(id)).heartbeat_expires_at
  await until(async () => (await status(id)).heartbeat_expires_at > first)
  t.equal((await call('alice', 'POST', `/api/cancel/${id}`, {})).statusCode, 202)
  t.equal((await status(id)).status, 'caught', 'a request ends nothing')
  t.equal((await call('alice', 'POST', `/api/cancel/${id}`, { force: true })).statusCode, 200)
  t.match(await ended, { code: 0 })
  const isAlive = async (file: string) => {
    try {
      return process.kill(Number(await readFile(join(dir, file), 'utf8')), 0)
    } catch {
      return false
    }
  }
  await until(async () => !await isAlive('self') && !await isAlive('child'))
  t.match(await status(id), { status: 'cancelled' })
})

t.test('several at once; SIGHUP catches no more, finishes what it has, and ends', async t => {
  const { env, pass, status } = start()
  const dir = await scratchDir(t)
  await mkdir(join(dir, 'begun'))
  const child = spawn(join(projectRoot, 'dist/cli/main.js'), ['work', 'w', '--concurrency', '2', '--', 'sh', '-c', `touch ${dir}/begun/$HANDOFF_ID; while [ ! -e ${dir}/go ]; do sleep 0.05; done; echo done`],
    { env: { PATH: process.env.PATH, ...env }, stdio: ['ignore', 'ignore', 'inherit'] })
  t.teardown(() => child.kill('SIGKILL'))
  const exited = once(child, 'exit')
  const ids = [await pass(), await pass(), await pass()]
  const statuses = async () => (await Promise.all(ids.map(id => status(id)))).map(({ status }) => status)
  await until(async () => (await statuses()).join() === 'caught,caught,pending')
  await until(async () => (await Promise.all(ids.slice(0, 2).map(id => readFile(join(dir, 'begun', id)).then(() => true, () => false)))).every(Boolean))
  child.kill('SIGHUP')
  // As under npx, which passes on what has come to the whole process group. Two at the same moment would be one.
  await sleep(50)
  child.kill('SIGHUP')
  await sleep(50)
  await writeFile(join(dir, 'go'), '')
  t.strictSame(await exited, [0, null])
  t.strictSame(await statuses(), ['done', 'done', 'pending'])
})

t.test('a wrong key, or one without the scope, ends it', async t => {
  const { env, secrets } = start()
  t.match(await handoff(['work', 'w', '--', 'true'], { env: { ...env, HANDOFF_KEY: 'not-a-key-of-this-one' } }), { code: 1, stderr: /\(unauthorized\)\n$/ })
  t.match(await handoff(['work', 'w', '--', 'true'], { env: { ...env, HANDOFF_KEY: secrets.approver } }), { code: 1, stderr: /\(insufficient_scope\)\n$/ })
})
