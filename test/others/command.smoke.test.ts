import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import t from 'tap'
import type { Test } from 'tap'
import { mcpHosts } from '../../src/http/mcp-hosts.ts'
import { clientTest } from '../helpers/client.ts'
import { secrets } from '../helpers/app.ts'
import type { Ended } from '../helpers/command.ts'
import { scratchDir } from '../helpers/processes.ts'
import { projectRoot } from '../helpers/service.ts'

/** The agents' command as the service hands it out, on a machine without a clone: an empty folder, home and cache, and no network but the service. */

const { address, client } = await clientTest(t, { EVENTS_RETENTION: '1h' })
const packageUrl = `${address}/clients/agent-handoff-client.tgz`
const initialize = { jsonrpc: '2.0', id: 1, method: 'initialize', params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'x', version: '1' } } }

type Run = (args: readonly string[], more?: { input?: string, env?: Record<string, string> }) => Promise<Ended>

/** A machine on which `command` is `handoff`. @param before where its programs are, before the usual places */
async function machine (t: Test, command: readonly string[], before = ''): Promise<Run> {
  const folder = await scratchDir(t)
  const [cwd, HOME] = [join(folder, 'empty'), join(folder, 'home')]
  for (const one of [cwd, HOME]) await mkdir(one)
  return async (args, { input = '', env = {} } = {}) => {
    const [program, ...rest] = [...command, ...args]
    const child = execFile(program!, rest, { cwd, env: { PATH: before + process.env.PATH, HOME, npm_config_registry: 'http://127.0.0.1:1', ...env } })
    const [stdout, stderr] = [child.stdout!, child.stderr!].map(stream => stream.setEncoding('utf8').toArray())
    child.stdin!.on('error', () => {}).end(input)
    const [code] = await once(child, 'close')
    return { code, stdout: (await stdout!).join(''), stderr: (await stderr!).join('') }
  }
}

/** From a key to a result. */
async function journey (t: Test, run: Run, inbox: string): Promise<void> {
  const url = ['--url', address]
  t.match(await run(['status', 'x', ...url]), { code: 2, stderr: /no key for .*; or run handoff login http[^\n]* \(see handoff --help\)\n$/ })
  t.match(await run(['login', `${address}/`], { input: `${secrets.alice}\n` }), { code: 0, stdout: new RegExp(`home/.config/handoff/keys.json, for ${address} alone`) })
  const passed = await run(['pass', '--task', 'shout', '--to', inbox, '--output', '-', '--json', ...url], { input: '{"n":1.0}' })
  const { handoff_id: id } = JSON.parse(passed.stdout)
  const worked = await run(['work', inbox, '--once', ...url, '--', 'cat'])
  t.match(worked, { code: 0, stdout: '', stderr: new RegExp(`caught ${id} "shout"\ndone ${id}\n$`) })
  const { stdout } = await run(['status', id, '--json', ...url])
  t.match(stdout, '"status":"done"')
  t.match(stdout, '"output":{"n":1.0}', 'the number as it was')
  t.match(await run(['done', id, ...url]), { code: 1, stdout: '', stderr: /\(already_done\)\n$/ })
  // In the environment, as a file had it.
  const env = { HANDOFF_URL: address, HANDOFF_KEY: `${secrets.bob}\n` }
  const events = await run(['events', '--json', '--handoff-id', id], { env })
  t.strictSame(events.stdout.trim().split('\n').map(line => JSON.parse(line).type), ['handoff.passed', 'handoff.caught', 'handoff.done'])
  t.match(JSON.parse((await run(['mcp'], { env, input: `${JSON.stringify(initialize)}\n` })).stdout), { id: 1, result: { protocolVersion: '2025-06-18' } })
}

/** The words of a line that a page of the service hands out. */
async function handedOut (page: string, line: RegExp): Promise<string[]> {
  const text = (await (await fetch(`${address}${page}`)).text()).replace(/&#(\d+);/g, (_, code: string) => String.fromCharCode(Number(code)))
  return line.exec(text)![1]!.split(' ')
}

const npm12 = join(projectRoot, '.cache/npm-12/node_modules/.bin:')
const has12 = await promisify(execFile)('npm', ['--version'], { env: { PATH: npm12 + process.env.PATH } }).then(({ stdout }) => stdout.startsWith('12.'))

for (const [name, before, skip] of [['this npm', '', false], ['npm 12', npm12, !has12 && 'no npm 12 is here (.ci/run fetches it)']] as const) {
  t.test(`${name} runs and installs it from the service by the lines that the service hands out, without a registry`, { skip }, async t => {
    const npx = await handedOut('/clients/', /^(?:<pre>)?(npx .*) work INBOX -- COMMAND/m)
    const run = await machine(t, npx, before)
    await journey(t, run, name.replace(' ', '-'))
    t.match(await run(['--help']), { code: 0, stdout: /^Usage: handoff / })
    const piped = await machine(t, ['bash', '-c', 'set -o pipefail; "$@" | head -1', 'bash', ...npx], before)
    t.match(await piped(['events', '--json'], { env: { HANDOFF_URL: address, HANDOFF_KEY: secrets.alice } }), { code: 0, stdout: /^\{"id"[^\n]*\n$/ })

    const { command, args, env } = JSON.parse(mcpHosts(address).find(({ name }) => name === 'Claude Desktop')!.text).mcpServers.handoff
    const mcp = await machine(t, [command], before)
    t.match(JSON.parse((await mcp(args, { env: { ...env, HANDOFF_KEY: secrets.bob }, input: `${JSON.stringify(initialize)}\n` })).stdout), { id: 1, result: { protocolVersion: '2025-06-18' } })

    const install = await handedOut('/llms.txt', /^(npm install .*)$/m)
    const project = await machine(t, ['bash', '-c', '"$@" >&2 && cat package-lock.json', 'bash'], before)
    t.match((await project(install)).stdout, new RegExp(`"resolved": "${address}/clients/agent-handoff-client-\\d+\\.\\d+\\.\\d+\\.tgz"`), 'what has a digest is of one version')
    const installed = await machine(t, ['bash', '-c', 'echo allow-remote=root > .npmrc; "$0" install "$1" >&2; npm ci >&2 && exec node_modules/.bin/handoff --version', 'npm', install.at(-1)!], before)
    t.match(await installed([]), { code: 0, stdout: /^\d+\.\d+\.\d+/ }, 'and again from its lock file, as the README has it')
  })
}

t.test('a worker that npx has started finishes what it has when npx is ended, and catches no more', async t => {
  const folder = await scratchDir(t)
  const passed = async () => (await client('alice').pass({ task: 't', to: 'ended' })).handoff_id
  const [first, second] = [await passed(), await passed()]
  const env = { PATH: process.env.PATH, HOME: folder, npm_config_registry: 'http://127.0.0.1:1', HANDOFF_URL: address, HANDOFF_KEY: secrets.bob }
  const child = spawn('npx', ['-y', '--allow-remote=root', packageUrl, 'work', 'ended', '--', 'sh', '-c', 'while [ ! -e go ]; do sleep 0.05; done; echo done'], { cwd: folder, env, detached: true, stdio: ['ignore', 'ignore', 'pipe'] })
  t.teardown(() => { try { process.kill(-child.pid!, 'SIGKILL') } catch {} })
  const [ended, closed] = [once(child, 'exit'), once(child, 'close')]
  for await (const line of createInterface(child.stderr)) if (line.startsWith('caught')) break
  child.kill('SIGTERM')
  await ended
  // That the command goes on for longer than the worker needs to notice.
  await sleep(1500)
  await writeFile(join(folder, 'go'), '')
  child.stderr.resume()
  await closed
  t.match([await client('alice').status(first), await client('alice').status(second)], [{ status: 'done' }, { status: 'pending' }])
})

for (const [runtime, options] of [['bun', ['run']], ['deno', ['run', '--no-lock', '--allow-all']]] as const) {
  const isThere = await promisify(execFile)(runtime, ['--version']).then(() => true, () => false)
  t.test(`${runtime} runs it, unpacked`, { skip: !isThere && `no ${runtime} is installed` }, async t => {
    const folder = await scratchDir(t)
    await promisify(execFile)('tar', ['-xzf', join(projectRoot, 'dist/clients/agent-handoff-client.tgz'), '-C', folder])
    await journey(t, await machine(t, [runtime, ...options, join(folder, 'package/dist/command/main.js')]), runtime)
  })
}

t.test('bunx runs it from the service', { skip: !await promisify(execFile)('bunx', ['--version']).then(() => true, () => false) && 'no bunx is installed' }, async t => {
  t.match(await (await machine(t, ['bunx', '--package', packageUrl, 'handoff']))(['--version']), { code: 0, stdout: /^\d+\.\d+\.\d+/ })
})
