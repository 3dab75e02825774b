import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { join } from 'node:path'
import t from 'tap'
import { tenants } from '../helpers/client.ts'
import { told, toolOperations } from '../helpers/mcp.ts'
import type { Result } from '../helpers/mcp.ts'
import { projectRoot } from '../helpers/service.ts'

/** The client that most agents have: version 1 of the protocol's own package, which knows nothing of 2026-07-28. */

const tenant = await tenants(t)

for (const how of ['over HTTP', 'by `handoff mcp`']) {
  t.test(`${how} it passes, waits, catches and reports done`, async t => {
    const { address, secrets, env, pass } = tenant()
    const transport = how === 'over HTTP'
      ? new StreamableHTTPClientTransport(new URL(`${address}/mcp`), { requestInit: { headers: { authorization: `Bearer ${secrets.bob}` } } })
      : new StdioClientTransport({ command: join(projectRoot, 'dist/cli/main.js'), args: ['mcp'], env: { PATH: process.env.PATH!, ...env('bob') } })
    const client = new Client({ name: 'test', version: '1' })
    await client.connect(transport as never)
    t.teardown(() => client.close())
    const call = async (name: string, args: Record<string, unknown>, onprogress = () => {}) =>
      await client.callTool({ name, arguments: args }, undefined, { onprogress }) as Result

    t.equal((await client.listTools()).tools.length, toolOperations.length)
    t.match(client.getInstructions(), /idempotency_key/)
    const { handoff_id: id } = told(await call('handoff_pass', { task: 'Count', output: { n: 1 }, to: 'w', idempotency_key: 'k' }))
    t.match(told(await call('handoff_catch_next', { inbox: 'w' })), { items: [{ handoff_id: id, task: 'Count', output: { n: 1 } }] })
    t.match(told(await call('handoff_done', { id, output: { sum: 2 } })), { status: 'done' })
    t.match(await call('handoff_done', { id }), { isError: true, content: [{ text: /already_done/ }] })
    // Progress comes while it waits; only then is there something to catch.
    const later: Array<Promise<string>> = []
    const next = await call('handoff_catch_next', { inbox: 'v', wait: 50 }, () => { if (later.length === 0) later.push(pass({ to: 'v' })) })
    t.equal(told(next).items[0].handoff_id, await later[0])
  })
}
