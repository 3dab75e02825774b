import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import t from 'tap'
import type { Test } from 'tap'
import { secrets, testApp } from '../helpers/app.ts'
import { serve } from '../helpers/client.ts'
import { callText } from '../helpers/mcp.ts'
import { projectRoot } from '../helpers/service.ts'
import { until } from '../helpers/until.ts'
import { listen } from '../helpers/wire.ts'

/** `handoff mcp`: what it does with odd messages, odd answers, and the end of its input. */

function start (t: Test, url: string) {
  const env = { PATH: process.env.PATH, HANDOFF_URL: url, HANDOFF_KEY: secrets.alice }
  const child = spawn(join(projectRoot, 'dist/cli/main.js'), ['mcp'], { env, stdio: ['pipe', 'pipe', 'inherit'] })
  t.teardown(() => child.kill('SIGKILL'))
  const said = text(child.stdout)
  /** What it has said when it has ended. */
  const ended = async () => {
    const [code] = await once(child, 'exit')
    t.equal(code, 0)
    return (await said).split('\n').filter(line => line !== '').map(line => JSON.parse(line))
  }
  return { stdin: child.stdin, ended }
}

async function say (t: Test, url: string, ...parts: Array<string | Buffer>) {
  const { stdin, ended } = start(t, url)
  const all = ended()
  for (const part of parts) stdin.write(part)
  stdin.end()
  return await all
}

t.test('a message is a line, and its bytes are as they came', async t => {
  const { app, call } = await testApp(t)
  const url = `http://127.0.0.1:${await listen(app)}`
  const pass = callText('handoff_pass', '{"task":"a\u2028b\u2029c","output":{"n":9007199254740993}}').replace('"method"', '\r"method"')
  const [answer, ...others] = await say(t, url, Buffer.from(pass).subarray(0, 105), Buffer.from(`${pass}\r\n \n`).subarray(105))
  t.strictSame(others, [])
  const { body } = await call('bob', 'GET', `/api/catch/${JSON.parse(answer.result.content[0].text).handoff_id}`)
  t.match(body, /"task":"a\u2028b\u2029c","output":\{"n":9007199254740993\}/)
  t.equal((await say(t, url, callText('handoff_status', '{"id":"x"}'))).length, 1, 'the last one needs no line feed')
  const mark = Buffer.from('\ufeff')
  const marked = await say(t, url, mark.subarray(0, 1), mark.subarray(1), `${callText('handoff_status', '{"id":"x"}')}\n`)
  t.match(marked, [{ id: 1, result: {} }], 'a byte order mark in front isn’t part of the first message')
  t.equal((await say(t, url, mark, '\n', callText('handoff_status', '{"id":"x"}'))).length, 1)
  const broken = Buffer.from(callText('handoff_pass', '{"task":"X","to":"w"}'))
  broken[broken.indexOf('X')] = 0xe9
  t.match(await say(t, url, broken), [{ id: 1, error: { code: -32700 } }], 'bytes that aren’t UTF-8 are refused, not replaced')
  t.equal((await call('alice', 'GET', '/api/inboxes/w')).json().pending, 0)
})

t.test('each request is answered by its id, whatever stands in the service’s place', async t => {
  let redirected = 0
  const elsewhere = await serve(t, (_, response) => {
    redirected++
    response.end('{}')
  })
  const place = await serve(t, (request, response) => {
    const [, status, body = ''] = request.url!.split('/')
    const type = body === 'stream' ? 'text/event-stream' : 'application/json'
    const said = body === 'stream' ? 'data: {"jsonrpc":"2.0","method":"notifications/progress","params":{}}\n\n' : body === 'refused' ? '{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"m"}}' : ''
    response.writeHead(Number(status), { 'content-type': type, location: elsewhere }).end(said)
  })
  for (const [path, message] of [['502', /answered 502/], ['200', /answered 200/], ['202', /answered 202/], ['307', /answered 307, a redirect to "http:[^"]+", which isn’t followed/], ['200/stream', /broke off/], ['400/refused', /^m$/]] as const) {
    const said = await say(t, `${place}/${path}`, '{"jsonrpc":"2.0","id":7,"method":"ping"}\n', '{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
    t.match(said.filter(({ id }) => id === 7), [{ error: { message } }], path)
  }
  t.equal(redirected, 0, 'no payload goes where nobody has sent it')
})

t.test('what waits to catch ends with its input, and catches nothing; what only looks is answered', async t => {
  const service = await testApp(t)
  const { stdin, ended } = start(t, `http://127.0.0.1:${await listen(service.app)}`)
  const all = ended()
  const id = (await service.call('alice', 'POST', '/api/pass', { task: 't' })).json().handoff_id
  stdin.write(`${callText('handoff_catch_next', '{"inbox":"w","wait":50}')}\n`)
  stdin.write(`${callText('handoff_status', `{"id":"${id}","wait":50}`).replace('"id":1', '"id":2')}\n`)
  const metric = async (line: RegExp) => line.test((await service.app.inject('/metrics')).body)
  await until(() => metric(/^handoff_inbox_waiters 1$/m))
  stdin.end()
  await until(() => metric(/^handoff_inbox_waiters 0$/m))
  await service.call('alice', 'POST', '/api/pass', { task: 't', to: 'w' })
  t.equal((await service.call('alice', 'GET', '/api/inboxes/w')).json().pending, 1)
  await service.call('alice', 'POST', `/api/cancel/${id}`, {})
  const said = await all
  t.match(said.find(({ id }) => id === 1), { error: { message: /Standard input ended/ } })
  t.match(said.find(({ id }) => id === 2), { result: { content: [{ text: /"cancelled"/ }] } })
})
