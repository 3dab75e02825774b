import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { Client as OlderClient } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport as OlderTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { join } from 'node:path'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { secrets, testApp } from '../helpers/app.ts'
import { builtHandoff } from '../helpers/command.ts'
import { projectRoot } from '../helpers/service.ts'
import { until } from '../helpers/until.ts'
import { listen } from '../helpers/wire.ts'

/** `handoff mcp`: real clients start it, and what they call reaches the service. */

const command = join(projectRoot, 'dist/cli/main.js')
const identity = { name: 'test', version: '1' }

for (const era of ['2026-07-28', '2025-11-25'] as const) {
  t.test(`a client of ${era} passes, waits, catches and reports done`, async t => {
    const service = await testApp(t)
    const env = { PATH: process.env.PATH!, HANDOFF_URL: `http://127.0.0.1:${await listen(service.app)}`, HANDOFF_KEY: secrets.bob }
    const settings = { command, args: ['mcp'], env }
    const client = era === '2026-07-28' ? new Client(identity, { versionNegotiation: { mode: { pin: era } } }) : new OlderClient(identity)
    await client.connect((era === '2026-07-28' ? new StdioClientTransport(settings) : new OlderTransport(settings)) as never)
    t.teardown(() => client.close())
    const call = async (name: string, args: object, options?: object) => {
      const answered = await (client as OlderClient).callTool({ name, arguments: args as never }, ...(era === '2026-07-28' ? [options as never] : [undefined, options as never])) as { content: Array<{ text: string }>, isError?: boolean }
      return { isError: answered.isError === true, text: answered.content[0]!.text, body: JSON.parse(answered.content[0]!.text) }
    }
    t.ok((await client.listTools()).tools.some(({ name }) => name === 'handoff_catch_next'))
    const { body: { handoff_id: id } } = await call('handoff_pass', { task: 'Count', output: { n: 1 }, to: 'w', idempotency_key: 'k' })
    t.match((await call('handoff_catch_next', { inbox: 'w' })).body, { handoff_id: id, task: 'Count' })
    t.match((await call('handoff_done', { id, output: { sum: 2 } })).body, { status: 'done' })
    t.match(await call('handoff_done', { id }), { isError: true, body: { code: 'already_done' } })
    // One that gives up its wait catches nothing.
    const ending = new AbortController()
    const waiting = call('handoff_catch_next', { inbox: 'w', wait: 30 }, { signal: ending.signal }).catch(error => error)
    await until(async () => /^handoff_inbox_waiters 1$/m.test((await service.app.inject('/metrics')).body))
    ending.abort()
    await waiting
    await until(async () => /^handoff_inbox_waiters 0$/m.test((await service.app.inject('/metrics')).body))
    const left = (await service.call('alice', 'POST', '/api/pass', { task: 't', to: 'w' })).json().handoff_id
    t.match((await service.call('alice', 'GET', `/api/status/${left}`)).json(), { status: 'pending' })
  })
}

t.test('messages go through as they are, and what fails is an error with its id', async t => {
  const service = await testApp(t)
  const env = { PATH: process.env.PATH!, HANDOFF_URL: `http://127.0.0.1:${await listen(service.app)}`, HANDOFF_KEY: secrets.alice }
  const say = async (env: NodeJS.ProcessEnv, ...lines: string[]) => {
    const child = spawn(command, ['mcp'], { env, stdio: ['pipe', 'pipe', 'inherit'] })
    child.stdin.end(lines.map(line => `${line}\n`).join(''))
    const [said, [code]] = await Promise.all([text(child.stdout), once(child, 'exit')])
    t.equal(code, 0, 'it ends with its input')
    return said.trim().split('\n').map(line => JSON.parse(line))
  }
  const pass = '{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"handoff_pass","arguments":{"task":"t","output":{"n":9007199254740993,"far":1e400}}}}'
  const [answer] = await say(env, pass)
  t.equal(answer.id, 7)
  const { handoff_id: id } = JSON.parse(answer.result.content[0].text)
  t.ok((await service.call('bob', 'GET', `/api/catch/${id}`)).body.includes('{"n":9007199254740993,"far":1e400}'))
  t.match(await say(env, '{'), [{ id: null, error: { code: -32700 } }])
  t.match(await say({ ...env, HANDOFF_KEY: 'not-a-key-of-this-one' }, pass), [{ id: 7, error: { code: -32000, data: { code: 'unauthorized' } } }])
  t.match(await say({ ...env, HANDOFF_URL: 'http://127.0.0.1:1' }, pass), [{ id: 7, error: { message: /can't be reached/ } }])
  t.match(await builtHandoff(['mcp'], { env: { HANDOFF_URL: env.HANDOFF_URL, DATA_DIR: '/nowhere' } }), { code: 2, stderr: /HANDOFF_KEY/ })
})
