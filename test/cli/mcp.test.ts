import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { join } from 'node:path'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { json, text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import type { Test } from 'tap'
import { proxy, serve, tenants } from '../helpers/client.ts'
import { handoff } from '../helpers/command.ts'
import { agentBy, callText, clientOf, eras, told } from '../helpers/mcp.ts'
import type { CallSettings } from '../helpers/mcp.ts'
import { inboxWaiters } from '../helpers/metrics.ts'
import { projectRoot } from '../helpers/service.ts'
import { until } from '../helpers/until.ts'

/** `handoff mcp`: real clients start it; what it does with odd messages, odd answers, and the end of its input. */

const command = join(projectRoot, 'dist/cli/main.js')
const tenant = await tenants(t)

const { app } = tenant()

const waiters = (count: number) => until(async () => await inboxWaiters(app) === count)

for (const era of eras) {
  t.test(`a client of ${era} passes, waits, catches and reports done`, async t => {
    const { env, pass, status } = tenant()
    const client = clientOf(era)
    await client.connect(new StdioClientTransport({ command, args: ['mcp'], env: { PATH: process.env.PATH!, ...env('bob') } }))
    t.teardown(() => client.close())
    const agent = agentBy(client)
    const call = async (name: string, args: object, settings?: CallSettings) => {
      const result = await agent.call(name, args, settings)
      return { isError: result.isError === true, body: told(result) }
    }
    t.ok((await agent.tools()).some(({ name }) => name === 'handoff_catch_next'))
    const { body: { handoff_id: id } } = await call('handoff_pass', { task: 'Count', output: { n: 1 }, to: 'w', idempotency_key: 'k' })
    t.match((await call('handoff_catch_next', { inbox: 'w' })).body, { items: [{ handoff_id: id, task: 'Count' }] })
    t.match((await call('handoff_done', { id, output: { sum: 2 } })).body, { status: 'done' })
    t.match(await call('handoff_done', { id }), { isError: true, body: { code: 'already_done' } })
    // One that gives up its wait catches nothing.
    const ending = new AbortController()
    const waiting = call('handoff_catch_next', { inbox: 'w', wait: 30 }, { signal: ending.signal }).catch(error => error)
    await waiters(1)
    ending.abort()
    await waiting
    await waiters(0)
    t.match(await status(await pass()), { status: 'pending' })
  })
}

function start (t: Test, env: Record<string, string>) {
  const child = spawn(command, ['mcp'], { env: { PATH: process.env.PATH, ...env }, stdio: ['pipe', 'pipe', 'inherit'] })
  t.teardown(() => child.kill('SIGKILL'))
  const said = text(child.stdout)
  /** What it has said when it has ended, by id. */
  const ended = once(child, 'exit').then(async ([code]) => {
    t.equal(code, 0)
    const all = (await said).split('\n').filter(line => line !== '').map(line => JSON.parse(line))
    return all.sort((one, other) => one.id - other.id)
  })
  return { stdin: child.stdin, ended }
}

async function say (t: Test, env: Record<string, string>, ...parts: Array<string | Buffer>) {
  const { stdin, ended } = start(t, env)
  for (const part of parts) stdin.write(part)
  stdin.end()
  return await ended
}

const asking = (id: number) => callText('handoff_status', '{"id":"x"}').replace('"id":1', `"id":${id}`)

t.test('a message is a line, and its bytes are as they came', async t => {
  const { call, env } = tenant()
  const pass = callText('handoff_pass', '{"task":"a\u2028b\u2029c","output":{"n":9007199254740993,"far":1e400}}').replace('"method"', '\r"method"')
  const broken = Buffer.from(callText('handoff_pass', '{"task":"X","to":"w"}').replace('"id":1', '"id":2'))
  broken[broken.indexOf('X')] = 0xe9
  const [inPieces, rest] = [Buffer.from(pass).subarray(0, 105), Buffer.from(`${pass}\r\n \n`).subarray(105)]
  const said = await say(t, env('alice'), inPieces, rest, broken, '\n', asking(3))
  t.match(said, [{ id: 1, result: {} }, { id: 2, error: { code: -32700 } }, { id: 3, result: {} }], 'the last one needs no line feed; what isn’t UTF-8 is refused, not replaced')
  t.equal(said.length, 3)
  const { body } = await call('bob', 'GET', `/api/catch/${JSON.parse(said[0].result.content[0].text).handoff_id}`)
  t.match(body, /"task":"a\u2028b\u2029c","output":\{"n":9007199254740993,"far":1e400\}/)
  t.equal((await call('alice', 'GET', '/api/inboxes/w')).json().pending, 0)
  const mark = Buffer.from('\ufeff')
  const marked = await say(t, env('alice'), mark.subarray(0, 1), mark.subarray(1), `${asking(1)}\n{\n`)
  t.match(marked, [{ id: null, error: { code: -32700 } }, { id: 1, result: {} }], 'a byte order mark in front isn’t part of the first message')
  t.match(await handoff(['mcp'], { env: { HANDOFF_URL: env('alice').HANDOFF_URL, DATA_DIR: '/nowhere' } }), { code: 2, stderr: /HANDOFF_KEY/ })
})

t.test('each request is answered by its id, whatever stands in the service’s place', async t => {
  let redirected = 0
  const elsewhere = await serve(t, (_, response) => {
    redirected++
    response.end('{}')
  })
  const answers: Array<[status: number, said: string, error: object, type?: string]> = [
    [502, '', { message: /answered 502/ }],
    [200, '', { message: /answered 200/ }],
    [202, '', { message: /answered 202/ }],
    [307, '', { message: /answered 307, a redirect to "http:[^"]+", which isn’t followed/ }],
    [200, 'data: {"jsonrpc":"2.0","method":"notifications/progress","params":{}}\n\n', { message: /broke off/ }, 'text/event-stream'],
    [400, '{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"m"}}', { message: /^m$/ }],
    [401, '{"code":"unauthorized","detail":"No."}', { code: -32000, data: { code: 'unauthorized' } }],
  ]
  const place = await serve(t, async (request, response) => {
    const { id } = await json(request) as { id?: number }
    const [status, said, , type = 'application/json'] = id === undefined ? [202, ''] as const : answers[id]!
    response.writeHead(status, { 'content-type': type, location: elsewhere }).end(said)
  })
  const env = { HANDOFF_URL: place, HANDOFF_KEY: 'k' }
  const said = await say(t, env, ...answers.map((_, id) => `{"jsonrpc":"2.0","id":${id},"method":"ping"}\n`), '{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
  for (const [id, [status, , error]] of answers.entries()) t.match(said.filter(one => one.id === id), [{ error }], String(status))
  t.equal(redirected, 0, 'no payload goes where nobody has sent it')
  t.match(await say(t, { ...env, HANDOFF_URL: 'http://127.0.0.1:1' }, asking(7)), [{ id: 7, error: { message: /can't be reached/ } }])
})

t.test('what waits to catch ends with its input, and catches nothing; what only looks is answered', async t => {
  const { env, call, pass } = tenant()
  const { stdin, ended } = start(t, env('alice'))
  const id = await pass({ to: undefined })
  stdin.write(`${callText('handoff_catch_next', '{"inbox":"w","wait":50}')}\n`)
  stdin.write(`${callText('handoff_status', `{"id":"${id}","wait":50}`).replace('"id":1', '"id":2')}\n`)
  await waiters(1)
  stdin.end()
  await waiters(0)
  await pass()
  t.equal((await call('alice', 'GET', '/api/inboxes/w')).json().pending, 1)
  await call('alice', 'POST', `/api/cancel/${id}`, {})
  t.match(await ended, [{ id: 1, error: { message: /Standard input ended/ } }, { id: 2, result: { content: [{ text: /"cancelled"/ }] } }])
})

t.test('what was caught as its wait was ended is given back', { timeout: 120_000 }, async t => {
  const { call, pass, status, env, address } = tenant()
  let came = () => {}
  // The answer to a catch that waits is held back: the service has caught something, and the bridge doesn't know.
  const { address: through } = await proxy(t, address, ({ body }) => {
    if (!body.includes('"wait":40')) return 'pass'
    came()
    return 'hold'
  })
  for (const [how, args] of [
    ['SIGTERM', '"inbox":"w"'], ['SIGINT', '"inboxes":["none","w"],"idempotency_key":null'], ['end', '"inbox":"w","idempotency_key":"own-one"'], ['end', ''],
    ['cancel', '"idempotency_key":"own","inbox":"w"'],
  ] as const) {
    const child = spawn(command, ['mcp'], { env: { PATH: process.env.PATH, ...env('bob'), HANDOFF_URL: through }, stdio: ['pipe', 'pipe', 'pipe'] })
    t.teardown(() => child.kill('SIGKILL'))
    const [said, ended] = [text(child.stderr), once(child, 'exit')]
    const arrived = new Promise<void>(resolve => { came = resolve })
    const byId = args === '' ? await pass({ to: undefined, delay: 1 }) : undefined
    child.stdin.write(`${callText(byId === undefined ? 'handoff_catch_next' : 'handoff_catch', byId === undefined ? `{${args},"wait":40}` : `{"id":"${byId}","wait":40}`)}\n`)
    await arrived
    const id = byId ?? await pass()
    while ((await status(id)).status !== 'caught') await sleep(20)
    if (how === 'end') child.stdin.end()
    else if (how === 'cancel') child.stdin.end('{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}\n')
    else child.kill(how)
    t.strictSame(await ended, how.startsWith('SIG') ? [null, how] : [0, null])
    t.equal(await said, `${id} was caught, and given back: declined\n`, how)
    t.equal((await status(id)).status, 'declined')
  }
  t.equal((await call('alice', 'GET', '/api/inboxes/w')).json().caught, 0)
})
