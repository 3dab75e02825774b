import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import t from 'tap'
import type { Test } from 'tap'
import { tenants } from '../helpers/client.ts'
import { handoff, parsed } from '../helpers/command.ts'
import { callText } from '../helpers/mcp.ts'
import { startRedisServer } from '../faults/fleet/redis.ts'
import { projectRoot } from '../helpers/service.ts'

/**
 * Output that can't be written. What the built command prints goes to /dev/full, a device on which every write is ENOSPC. Most runs are in this
 * process, with that error: they cost less.
 */

const tenant = await tenants(t, { EVENTS_RETENTION: '60' })

interface Ended { code: number, stderr: string }

/** Runs the built command with these streams. @param input its standard input */
async function onto (t: Test, streams: { stdout?: 'full' | 'closed', stderr?: 'full' }, args: string[], env: Record<string, string>, input = ''): Promise<Ended> {
  const full = await open('/dev/full', 'w')
  t.teardown(() => full.close())
  const { stdout, stderr } = streams
  const child = spawn(join(projectRoot, 'dist/cli/main.js'), args, {
    env: { PATH: process.env.PATH, ...env }, stdio: ['pipe', stdout === 'full' ? full.fd : 'pipe', stderr === 'full' ? full.fd : 'pipe'],
  })
  t.teardown(() => child.kill('SIGKILL'))
  if (stdout === 'closed') child.stdout!.destroy()
  child.stdin!.on('error', () => {}).write(input)
  if (!args.includes('mcp')) child.stdin!.end()
  const said = child.stderr === null ? '' : text(child.stderr)
  const [code] = await once(child, 'exit')
  return { code, stderr: await said }
}

const full = { stdout: 'full' } as const

t.test('what is asked for and can’t be written is exit status 1, with a line that says so', async t => {
  const { pass, ...service } = tenant()
  const env = service.env('bob')
  await pass()
  const said = { code: 1, stderr: /standard output can’t be written: ENOSPC/ }
  t.match(await onto(t, full, ['inbox', 'w'], env), said)
  for (const args of [['status', 'x', '--json'], ['inbox', 'w'], ['events'], ['--help'], ['--version']]) {
    t.match(await handoff(args, { env, isFull: true }), said, args.join(' '))
  }
  const passed = await handoff(['pass', '--task', 't'], { env, isFull: true })
  t.match(passed, { code: 1, stderr: /^[\w-]{25} is pending\n/ }, 'which one it was')
})

t.test('what was caught for nobody is given back', async t => {
  const { pass, status, ...service } = tenant()
  const env = service.env('bob')
  const [first, second, third] = [await pass(), await pass(), await pass({ priority: 9 })]
  const next = await handoff(['next', 'w', '--max', '2'], { env, isFull: true })
  t.match(next, { code: 1, stderr: new RegExp(`^${third} was caught, and given back: declined\n${first} was caught, [^]*ENOSPC`) })
  t.match(await status(third), { status: 'declined', reason: /^its catcher’s standard output can’t be written: ENOSPC/ })
  t.match(await status(first), { status: 'declined' })
  t.match(await onto(t, { stdout: 'full', stderr: 'full' }, ['catch', second, '--json'], env), { code: 1 }, 'messages can’t be written either')
  t.match(await status(second), { status: 'declined' })
})

t.test('a reader that closed the pipe is told what is caught, which stays so', async t => {
  const { pass, status, ...service } = tenant()
  const env = service.env('bob')
  const id = await pass({ output: { text: 'x'.repeat(500_000) } })
  t.match(await onto(t, { stdout: 'closed' }, ['next', 'w'], env), { code: 1, stderr: new RegExp(`^${id} is caught, and yours\n[^\n]*EPIPE\n$`) })
  t.match(await status(id), { status: 'caught' })
  const other = await pass()
  const call = `${callText('handoff_catch_next', '{"inbox":"w"}')}\n`
  t.match(await onto(t, full, ['mcp'], env, call), { code: 1, stderr: new RegExp(`^${other} is caught, and yours\n[^\n]*ENOSPC[^\n]*\n$`) }, 'by a tool')
})

t.test('a key whose secret nobody got is revoked', async t => {
  const { url } = await startRedisServer(t)
  const env = { REDIS_URL: url, EVENTS_RETENTION: '60', WEBHOOK_SECRET: 'a-secret-of-32-characters-or-more', WEBHOOK_ALLOW: '127.0.0.0/8' }
  const list = async () => parsed<Array<{ id: string, state: string }>>(await handoff(['keys', 'list', '--json'], { env }))
  const run = (...args: string[]) => handoff(args, { env, isFull: true })
  const lost = await run('keys', 'create', '--name', 'a', '--scopes', 'pass')
  const [key] = await list()
  t.match(lost, { code: 1, stderr: new RegExp(`^the secret is lost, and ${key!.id} was revoked: [^\n]*ENOSPC[^\n]*\n$`) })
  t.equal(key!.state, 'revoked')
  const { id } = parsed<{ id: string }>(await handoff(['keys', 'create', '--name', 'a', '--scopes', 'pass', '--json'], { env }))
  t.match(await run('keys', 'rotate', id), { code: 1, stderr: new RegExp(`the new secret is lost, so rotate again \\(handoff keys rotate ${id}\\)`) })
  t.match(await run('webhooks', 'create', '--url', 'http://127.0.0.1:1/'), { code: 1, stderr: /^the secret is lost: have a new one made \(handoff webhooks rotate/ })
})

t.test('a worker works on where its messages can’t be written', async t => {
  const { pass, status, ...service } = tenant()
  const env = service.env('bob')
  const id = await pass()
  const command = ['sh', '-c', 'echo said >&2; echo more >&2; echo done; exit 1']
  t.match(await onto(t, { stdout: 'full', stderr: 'full' }, ['work', 'w', '--once', '--', ...command], env), { code: 0 })
  t.match(await status(id), { status: 'failed', error: { message: 'said\nmore' } })
})
