import { execFile, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, readdirSync, renameSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { IncomingMessage } from 'node:http'
import { createServer as createSecure } from 'node:https'
import { connect } from 'node:net'
import type { AddressInfo, Socket } from 'node:net'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { version } from '../../src/core/version.ts'
import { proxy, serve, tenants } from '../helpers/client.ts'
import { commandOf, handoff, parsed } from '../helpers/command.ts'
import type { Ended } from '../helpers/command.ts'
import { scratchDir } from '../helpers/processes.ts'
import { projectRoot } from '../helpers/service.ts'

/** The agents' verbs of the built command, each run in a process of its own as other programs start it. */

const tenant = await tenants(t)

const start = () => commandOf(tenant())

/** The built command as another program starts it. */
function begin (args: readonly string[], env: Record<string, string>, stdin: 'ignore' | 'pipe' = 'ignore') {
  const child = spawn(process.execPath, [join(projectRoot, 'dist/cli/main.js'), ...args], { env: { PATH: process.env.PATH, ...env }, stdio: [stdin, 'pipe', 'pipe'] })
  t.teardown(() => child.kill('SIGKILL'))
  const texts = [child.stdout!, child.stderr!].map(async stream => (await stream.setEncoding('utf8').toArray()).join(''))
  const ended = once(child, 'close').then(async ([code, signal]) => ({ code, signal, stdout: await texts[0]!, stderr: await texts[1]! }))
  return { child, ended }
}

t.test('login keeps a key for its address alone, and only one that the service knows', async t => {
  const { url, secrets } = start()
  const home = join(await scratchDir(t), 'config')
  const env = { XDG_CONFIG_HOME: home, DATA_DIR: join(home, 'none') }
  const file = join(home, 'handoff', 'keys.json')
  const login = (address: string, input: string, more: Record<string, string> = {}) => new Promise<{ code: number, stderr: string }>(resolve => {
    const child = execFile(process.execPath, [join(projectRoot, 'dist/cli/main.js'), 'login', address], { cwd: dirname(home), env: { PATH: process.env.PATH, ...env, ...more } },
      (error, _, stderr) => resolve({ code: error === null ? 0 : error.code as number, stderr }))
    child.stdin!.end(input)
  })
  t.match(await login(url, 'no-such-key-0123456789\n'), { code: 1, stderr: /doesn’t know this key/ })
  t.match(await login(url, 'two\nlines\n'), { code: 2 })
  t.match(await login('ftp://x', secrets.alice), { code: 2 })
  t.match(await login('http://127.0.0.1:1', secrets.alice), { code: 1, stderr: /doesn’t answer/ })
  for (const XDG_CONFIG_HOME of ['', 'relative']) t.match(await login(url, secrets.alice, { HOME: '', XDG_CONFIG_HOME }), { code: 2, stderr: /no home folder[^\n]*XDG_CONFIG_HOME/ })
  t.match(await login(url, secrets.alice, { XDG_CONFIG_HOME: '/dev/null' }), { code: 2, stderr: /^\/dev\/null\/handoff\/keys.json is not readable: ENOTDIR/ })
  t.strictSame(readdirSync(dirname(home)), [], 'nothing was kept')
  t.match(await login(`${url}/`, `\ufeff${secrets.alice}\r\n`), { code: 0 })
  t.equal(statSync(file).mode & 0o777, 0o600)
  t.match(parsed(await handoff(['pass', '--task', 't', '--url', url, '--json'], { env })), { status: 'pending' })
  const seen: string[] = []
  const elsewhere = await serve(t, ({ url, headers }, response) => {
    seen.push(`${url} ${headers.authorization}`)
    response.end('{"status":"done","items":[]}')
  })
  t.match(await login(`${elsewhere}/handoffs//`, 'another-key'), { code: 0 })
  t.strictSame(JSON.parse(readFileSync(file, 'utf8')), { [url]: secrets.alice, [`${elsewhere}/handoffs`]: 'another-key' })
  for (const HANDOFF_URL of [`${elsewhere}/handoffs`, `${elsewhere}/handoffs/`]) t.match(await handoff(['status', 'x'], { env: { ...env, HANDOFF_URL } }), { code: 0 })
  t.match(await handoff(['status', 'x', '--url', elsewhere], { env }), { code: 2, stderr: /no key for/ }, 'without the path it is another')
  t.strictSame(seen, ['/handoffs/api/handoffs?limit=1', '/handoffs/api/status/x', '/handoffs/api/status/x'].map(path => `${path} Bearer another-key`))
  t.match(await handoff(['status', 'x', '--url', 'http://127.0.0.1:1'], { env }), { code: 2, stderr: /no key for .*handoff login/ })
  t.match(await handoff(['status', 'x', '--url', url], { env: { ...env, HANDOFF_KEY: 'wrong-0123456789' } }), { code: 1, stderr: /API key/ }, 'what is set comes first')

  for (const [[status, headers, body], says] of [[[404, {}, 'hello'], /isn’t the service’s: status 404/], [[307, { location: url }, ''], /a redirect to/], [[200, {}, '<p>'], /isn’t the service’s/], [[200, {}, '{}'], /not as the service does/]] as const) {
    const other = await serve(t, (_, response) => response.writeHead(status, headers).end(body))
    t.match(await login(other, 'another-key'), { code: 1, stderr: says }, 'what isn’t the service has no key')
  }
  const here = [...Array(8).keys()].map(index => `${elsewhere}/${index}`)
  t.strictSame(await Promise.all(here.map(async address => (await login(address, 'another-key')).code)), here.map(() => 0))
  t.strictSame(Object.keys(JSON.parse(readFileSync(file, 'utf8'))).sort(), [url, `${elsewhere}/handoffs`, ...here].sort(), 'none is lost that is kept at the same time')

  const real = join(dirname(home), 'real.json')
  renameSync(file, real)
  symlinkSync(real, file)
  writeFileSync(`${real}.new`, '')
  t.match(await login(url, secrets.bob), { code: 0 }, 'also where one was killed while it wrote')
  t.match([JSON.parse(readFileSync(real, 'utf8'))[url], readdirSync(dirname(file)), existsSync(`${real}.new`)], [secrets.bob, ['keys.json'], false], 'a link stays one')
  for (const broken of [`{"${url}": ${secrets.bob}}`, '', '[]', '"x"', 'null', `{"${url}":5}`]) {
    writeFileSync(real, broken)
    for (const { code, stderr } of [await login(url, secrets.bob), await handoff(['status', 'x', '--url', url], { env })]) {
      t.match({ code, stderr }, { code: 2, stderr: /keys.json is not readable: it isn’t a JSON object/ }, broken)
      t.notMatch(stderr, secrets.bob.slice(0, 4), 'no part of a key is shown')
    }
    t.equal(readFileSync(real, 'utf8'), broken, 'it stays as it was')
  }
})

t.test('the client’s package has the agents’ verbs, and only those', async t => {
  const { as } = start()
  const folder = await scratchDir(t)
  execFileSync('tar', ['-xzf', join(projectRoot, 'dist/clients/agent-handoff-client.tgz'), '-C', folder])
  const command = join(folder, 'package/dist/command/main.js')
  const run = (args: readonly string[], env = {}) => new Promise<Pick<Ended, 'code' | 'stdout' | 'stderr'>>(resolve => {
    const child = execFile(command, args, { env: { PATH: process.env.PATH, ...env } }, (_, stdout, stderr) => resolve({ code: child.exitCode!, stdout, stderr }))
  })
  const { stdout } = await run(['--help'])
  const verbsIn = (help: string) => [...help.matchAll(/^ {2}([a-z]+) .*\S$/gm)].map(([, verb]) => verb)
  const [agents] = (await handoff(['--help'])).stdout.split('For the operator:')
  t.strictSame(verbsIn(stdout), [...verbsIn(agents!.split('For agents:')[1]!), 'help'])
  t.strictSame(await run(['fail', '--help']), { code: 0, stdout: (await handoff(['fail', '--help'])).stdout, stderr: '' })
  t.strictSame(await run(['--version']), { code: 0, stdout: `${version}\n`, stderr: '' })
  t.match(await run(['pass', '--task', 't', '--json'], as('alice').env), { code: 0, stdout: /"status":"pending"/, stderr: '' })
  t.match(await run(['serve']), { code: 2, stdout: '', stderr: "unknown command 'serve' (see handoff --help)\n" })
  t.match(await run([]), { code: 2, stdout: '', stderr: /^Usage: handoff / })
})

t.test('- reads standard input that doesn’t block, and one option takes it', async t => {
  const { run, json, as, client } = start()
  const { handoff_id: id } = await json('alice', 'pass', '--task', 'x')
  await run('bob', 'catch', id!)
  // Python sets the pipe non-blocking, and begins to write when the command has read nothing yet.
  const program = `import os, subprocess, sys, time
r, w = os.pipe()
os.set_blocking(r, False)
child = subprocess.Popen(sys.argv[1:], stdin=r)
os.close(r)
time.sleep(1)
os.write(w, b'{"n":1.0}')
os.close(w)
sys.exit(child.wait())`
  const said = await promisify(execFile)('python3', ['-c', program, process.execPath, join(projectRoot, 'dist/cli/main.js'), 'done', id!, '--output', '-'], { env: { PATH: process.env.PATH, ...as('bob').env } })
  t.match(said.stdout, /done/)
  t.match((await client('alice').status(id!)).text, '"result":{"n":1.0}')
  t.match(await run('alice', 'pass', '--task', 'x', '--context', '-', '--output', '-'), { code: 2, stdout: '', stderr: /^--(context|output) and --(?!\1)(context|output) both take standard input/ })
  const { child, ended } = begin(['done', id!, '--output', '-'], as('bob').env, 'pipe')
  child.stdin!.end(Buffer.from('{"n":"\xfc"}', 'latin1'))
  t.match(await ended, { code: 2, stdout: '', stderr: /^--output: what it reads is not UTF-8/ })
})

t.test('next and catch that a signal ends leave nothing caught that they didn’t print', { timeout: 120_000 }, async t => {
  const { client, address, secrets, json } = start()
  const alice = client('alice')
  let came = () => {}
  let isHeld = false
  // The answer to the command's own catch may be held back: the service has caught something by then, and the command doesn't know.
  const { address: through } = await proxy(t, address, ({ url }) => {
    if (!url.includes('catch') || !url.includes('wait=60')) return 'pass'
    came()
    return isHeld ? 'hold' : 'pass'
  })
  let kept = 0
  for (let round = 0; round < 14; round++) {
    isHeld = round < 4
    const one = round % 2 === 0 ? undefined : (await json('alice', 'pass', '--task', 'x', '--require-human')).handoff_id as string
    const arrived = new Promise<void>(resolve => { came = resolve })
    const { child, ended } = begin(one === undefined ? ['next', 'signalled', '--wait', '60s', '--json'] : ['catch', one, '--wait', '60s', '--json'], { HANDOFF_URL: through, HANDOFF_KEY: secrets.bob })
    await arrived
    const id = one ?? (await alice.pass({ task: 'x', to: 'signalled' })).handoff_id
    if (one !== undefined) await client('approver').approvals.approve(one)
    if (isHeld) await alice.waitFor(id, 'caught', { timeout: 20_000 })
    // Around the arrival: at once, and later and later.
    else for (const began = performance.now(); performance.now() - began < round;) await new Promise(resolve => setImmediate(resolve))
    child.kill(round % 4 < 2 ? 'SIGTERM' : 'SIGINT')
    const { stdout, stderr, signal } = await ended
    const { status } = await alice.status(id)
    if (isHeld) t.match({ signal, stderr, status }, { signal: /^SIG(TERM|INT)$/, stderr: `${id} was caught, and given back: declined\n`, status: 'declined' }, `round ${round}`)
    t.ok(status === 'pending' || status === 'declined' || stdout.includes(id), `round ${round}: ${status}`)
    if (stdout.includes(id)) kept++
    if (status === 'pending') await alice.cancel(id)
  }
  t.comment(`${kept} of 14 were printed`)
})

t.test('https goes through the proxy’s tunnel, to who the certificate names', async t => {
  const dir = await scratchDir(t)
  execFileSync('openssl', 'req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=x -addext subjectAltName=DNS:service.test,IP:127.0.0.1 -keyout key -out crt'.split(' '), { cwd: dir, stdio: 'ignore' })
  const service = createSecure({ key: readFileSync(join(dir, 'key')), cert: readFileSync(join(dir, 'crt')) }, (request, response) => {
    const { host, 'proxy-authorization': login = 'none' } = request.headers
    request.resume().on('end', () => response.setHeader('content-type', 'application/json').end(JSON.stringify({ host, login })))
  }).listen(0, '127.0.0.1')
  const tunnels: string[] = []
  const server = createServer().on('connect', (request: IncomingMessage, socket: Socket) => {
    tunnels.push(`${request.url} ${request.headers['proxy-authorization']}`)
    const onward = connect((service.address() as AddressInfo).port, '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n')
      onward.pipe(socket).pipe(onward)
    })
    for (const [one, other] of [[socket, onward], [onward, socket]] as const) one.on('error', () => {}).on('close', () => other.destroy())
  }).listen(0, '127.0.0.1')
  t.teardown(() => { for (const one of [service, server]) one.close() })
  await Promise.all([service, server].map(async one => one.listening || await once(one, 'listening')))
  const env = { NODE_EXTRA_CA_CERTS: join(dir, 'crt'), HTTPS_PROXY: `http://u:p@127.0.0.1:${(server.address() as AddressInfo).port}`, HANDOFF_KEY: 'a-key-0123456789' }
  for (const place of ['service.test', '127.0.0.1:9']) {
    const { stdout, code } = await begin(['inbox', 'in', '--json'], { ...env, HANDOFF_URL: `https://${place}/base` }).ended
    t.strictSame([code, JSON.parse(stdout)], [0, { host: place, login: 'none' }])
    t.strictSame(tunnels.splice(0), [`${place === 'service.test' ? 'service.test:443' : place} Basic dTpw`])
  }
  const output = JSON.stringify({ a: 'x'.repeat(300_000) })
  await writeFile(join(dir, 'output'), output)
  t.match(await begin(['pass', '--task', 'x', '--output', `@${join(dir, 'output')}`, '--json'], { ...env, HANDOFF_URL: 'https://service.test' }).ended, { code: 0 })
  t.match(await begin(['inbox', 'in'], { ...env, HANDOFF_URL: 'https://other.test' }).ended, { code: 1, stderr: /other\.test.*altnames/ }, 'never to another')
})
