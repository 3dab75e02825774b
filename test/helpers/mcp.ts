import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import type { Test } from 'tap'
import { hasScope } from '../../src/auth/scopes.ts'
import { callerOf } from '../../src/core/model.ts'
import type { Scope } from '../../src/core/model.ts'
import type { Services } from '../../src/operations/operation.ts'
import { operationsOf } from '../../src/operations/table.ts'
import { secrets } from './app.ts'
import type { TestApp, Who } from './app.ts'
import { listen } from './wire.ts'

export const eras = ['2026-07-28', '2025-11-25'] as const
export type Era = typeof eras[number]

export interface Result { content: Array<{ type: string, text: string }>, isError?: boolean, structuredContent?: Record<string, unknown>, _meta?: Record<string, unknown> }
export interface CallSettings { signal?: AbortSignal, onprogress?: (progress: { progress: number, total?: number }) => void }
interface Tool { name: string, inputSchema: any, annotations?: any, description?: string, title?: string }

/** The operations that are tools. */
export const toolOperations = operationsOf({ limits: { maxExpiresIn: 1, maxWorkTtl: 1 } } as Services).filter(({ tool }) => tool !== null)

/** The names of the tools that a key with these scopes has. */
export function toolNames (...scopes: Scope[]): string[] {
  return toolOperations.flatMap(({ scope, tool }) => hasScope(callerOf('default', 'alice', scopes), scope) ? [tool!.name] : [])
}

/** A client of the protocol, whichever version of it. */
export interface Agent {
  call (name: string, args?: object, settings?: CallSettings): Promise<Result>
  tools (): Promise<Tool[]>
  version (): string | undefined
  instructions (): string | undefined
  close (): Promise<void>
}

/** A real client, connected over a real port. @param who whose key, or a key @param at the service's address, or its balancer's */
export async function agentOf (t: Test, service: Pick<TestApp, 'app'>, who: Who | { key: string }, era: Era, at?: string): Promise<Agent> {
  const url = new URL(`${at ?? `http://127.0.0.1:${await listen(service.app)}`}/mcp`)
  const authorization = `Bearer ${typeof who === 'string' ? secrets[who] : who.key}`
  const client = clientOf(era)
  await client.connect(new StreamableHTTPClientTransport(url, { requestInit: { headers: { authorization } } }))
  t.teardown(() => client.close())
  return agentBy(client)
}

/** One that isn't connected yet. The older protocol begins with a handshake; the client's authors' older one is in test/others. */
export function clientOf (era: Era): Client {
  return new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode: era === '2026-07-28' ? { pin: era } : 'legacy' } })
}

export function agentBy (client: Client): Agent {
  return {
    call: (name, args = {}, settings) => client.callTool({ name, arguments: args as Record<string, unknown> }, settings as object) as Promise<Result>,
    tools: async () => (await client.listTools()).tools as Tool[],
    version: () => client.getNegotiatedProtocolVersion(),
    instructions: () => client.getInstructions(),
    close: () => client.close(),
  }
}

/** The first content's text as JSON. */
export function told ({ content }: Result): any {
  return JSON.parse(content[0]!.text)
}

/** A tool's call as a message of an older client. @param args JSON text, sent as it is */
export function callText (name: string, args: string): string {
  return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"${name}","arguments":${args}}}`
}

/** Calls a tool with arguments that no client would send. */
export async function callWith ({ call }: Pick<TestApp, 'call'>, who: Who, name: string, args: string): Promise<Result> {
  const answer = await call(who, 'POST', '/mcp', callText(name, args))
  return answer.json().result
}
