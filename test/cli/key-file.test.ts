import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import t from 'tap'
import { serve, tenants } from '../helpers/client.ts'
import { handoff, parsed } from '../helpers/command.ts'
import { callText } from '../helpers/mcp.ts'
import { scratchDir } from '../helpers/processes.ts'
import { projectedFile } from '../helpers/projected.ts'
import { projectRoot } from '../helpers/service.ts'

/** HANDOFF_KEY_FILE: the command's key is in a file, and goes where HANDOFF_KEY would. */

const command = join(projectRoot, 'dist/cli/main.js')
const tenant = await tenants(t)

t.test('whoami says who has the key in the file, and a key in the environment comes first', async t => {
  const { address: HANDOFF_URL, secrets } = tenant()
  const { path: HANDOFF_KEY_FILE, rotate } = await projectedFile(t, secrets.alice)
  const whoami = (env: object, ...args: string[]) => handoff(['whoami', ...args], { env: { HANDOFF_URL, HANDOFF_KEY_FILE, DATA_DIR: '/nowhere', ...env } })
  t.match(await whoami({}), { code: 0, stdout: /^tenant {2}t0\nagent {3}alice\nscopes {2}\["pass","catch","status"\]\n$/, stderr: '' })
  t.strictSame(parsed(await whoami({ HANDOFF_KEY: secrets.bob }, '--json')), { tenant: 't0', agent: 'bob', scopes: ['pass', 'catch', 'status'], inboxes: null, expires_at: null })
  await rotate(secrets.approver)
  t.match(await whoami({ HANDOFF_KEY: ' ' }), { code: 0, stdout: /carol/ })
})

t.test('its key goes only where HANDOFF_KEY would', async t => {
  const { address, secrets } = tenant()
  const seen: unknown[] = []
  const other = await serve(t, ({ headers }, response) => {
    seen.push(headers.authorization)
    response.end('{}')
  })
  const { path: HANDOFF_KEY_FILE } = await projectedFile(t, secrets.alice)
  const whoami = (env: object, ...args: string[]) => handoff(['whoami', ...args], { env: { HANDOFF_KEY_FILE, DATA_DIR: '/nowhere', XDG_CONFIG_HOME: '/nowhere', ...env } })
  t.match(await whoami({ HANDOFF_URL: address }, '--url', other), { code: 2, stdout: '', stderr: /no key for .* \(HANDOFF_KEY_FILE belongs to HANDOFF_URL\)/ })
  t.strictSame(seen, [])
  t.match(await whoami({ HANDOFF_URL: address }, '--url', `${address}/`), { code: 0, stdout: /alice/ })
  t.match(await whoami({}, '--url', address), { code: 0, stdout: /alice/ })
})

t.test('a file that has no key is named before anything is sent', async t => {
  const folder = await scratchDir(t)
  await writeFile(join(folder, 'empty'), '\n')
  for (const [name, says] of [['none', 'ENOENT'], ['empty', 'must not be empty'], ['', 'EISDIR']] as const) {
    const path = join(folder, name)
    for (const args of [['whoami', '--json'], ['mcp'], ['work', 'in', '--', 'true']]) {
      const { code, stdout, stderr } = await handoff(args, { env: { HANDOFF_URL: 'http://127.0.0.1:1', HANDOFF_KEY_FILE: path } })
      t.match({ code, stdout }, { code: 2, stdout: '' }, args.join(' '))
      t.ok(stderr.startsWith(`the key’s file ${path} can’t be used: `) && stderr.includes(says), stderr)
    }
  }
})

t.test('the command of a worker gets the file’s name with --pass-key, and otherwise nothing of it', async t => {
  const { address: HANDOFF_URL, secrets, call, pass, status } = tenant()
  const { path: HANDOFF_KEY_FILE } = await projectedFile(t, secrets.bob)
  const work = (...more: string[]) => handoff(['work', 'w', '--once', '--quiet', ...more, '--', 'sh', '-c', 'env | grep ^HANDOFF_KEY; true'], { env: { HANDOFF_URL, HANDOFF_KEY_FILE } })
  for (const [more, text] of [[[], ''], [['--pass-key'], `HANDOFF_KEY_FILE=${HANDOFF_KEY_FILE}\n`]] as Array<[string[], string]>) {
    const id = await pass()
    t.match(await work(...more), { code: 0, stderr: '' })
    t.match(await status(id), { status: 'done', result: { text }, caught_by: 'bob' })
  }
  t.equal((await call('bob', 'GET', '/api/inboxes/w')).json().caught, 0)
})

t.test('the bridge goes on with the key that is in the file then, and asks once more after a 401', async t => {
  const { address: HANDOFF_URL, secrets } = tenant()
  const file = await projectedFile(t, secrets.alice)
  const child = spawn(command, ['mcp'], { env: { PATH: process.env.PATH, HANDOFF_URL, HANDOFF_KEY_FILE: file.path }, stdio: ['pipe', 'pipe', 'inherit'] })
  t.teardown(() => child.kill('SIGKILL'))
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]()
  let id = 0
  const pass = async () => {
    child.stdin.write(`${callText('handoff_pass', '{"task":"t"}').replace('"id":1', `"id":${++id}`)}\n`)
    return JSON.parse((await lines.next()).value!)
  }
  t.match(await pass(), { id: 1, result: { content: [{ text: /handoff_id/ }] } })
  await file.rotate('no-key-of-anybody-0123456789')
  t.match(await pass(), { id: 2, error: { data: { code: 'unauthorized' } } })
  await file.rotate(secrets.bob)
  t.match(await pass(), { id: 3, result: { content: [{ text: /handoff_id/ }] } })
  await file.rotate('')
  t.match(await pass(), { id: 4, error: { message: new RegExp(`${file.path} can’t be used: a key must not be empty`) } })
  child.stdin.end()
  await once(child, 'exit')
})

t.test('what the bridge asks is refused, its file is read again, and it asks once more', async t => {
  const seen: string[] = []
  const { path, rotate } = await projectedFile(t, 'old')
  const address = await serve(t, async (request, response) => {
    seen.push(String(request.headers.authorization))
    request.resume()
    // The token that was just sent is replaced while it is refused.
    if (seen.length === 1) await rotate('new')
    const isKnown = seen.at(-1) === 'Bearer new'
    const body = isKnown ? { jsonrpc: '2.0', id: 1, result: {} } : { code: 'unauthorized', status: 401, detail: 'No.' }
    response.writeHead(isKnown ? 200 : 401, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  })
  const child = spawn(command, ['mcp'], { env: { PATH: process.env.PATH, HANDOFF_URL: address, HANDOFF_KEY_FILE: path }, stdio: ['pipe', 'pipe', 'inherit'] })
  t.teardown(() => child.kill('SIGKILL'))
  child.stdin.end(`${callText('handoff_status', '{"id":"x"}')}\n`)
  const [[line]] = await Promise.all([createInterface(child.stdout)[Symbol.asyncIterator]().next().then(({ value }) => [JSON.parse(value!)]), once(child, 'exit')])
  t.match(line, { id: 1, result: {} })
  t.strictSame(seen, ['Bearer old', 'Bearer new'])
})
