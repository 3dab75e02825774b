import {
  createMcpHandler, isLegacyRequest, ProtocolError, ProtocolErrorCode, Server, WebStandardStreamableHTTPServerTransport
} from '@modelcontextprotocol/server'
import { AjvJsonSchemaValidator } from '@modelcontextprotocol/server/validators/ajv'
import { version } from '../core/version.ts'
import { protocolVersions, title } from './message.ts'
import type { Message } from './message.ts'
import { instructionsFor } from './tools.ts'
import type { Definition } from './tools.ts'
import type { ToolResult } from './calls.ts'

/** One message and what is needed to answer it. */
export interface Exchange {
  message: Message
  /** Who calls. */
  agent: string
  /** The request's header fields that the protocol reads. */
  headers: Record<string, string>
  /** The tools that the caller's key may use. */
  tools: readonly Definition[]
  /** Calls the tool that the message names; undefined if there is no such tool. */
  call: (() => Promise<ToolResult>) | undefined
  /** How many seconds the call may wait. */
  wait: number
}

/** How often a waiting call reports progress, in milliseconds. Clients give up a call that is silent for a minute. */
const progressEvery = 10_000
/** How long clients may use a list of tools, in milliseconds. */
const listsKept = 300_000
/** Nothing uses it, but without it each server would make its own. */
const jsonSchemaValidator = new AjvJsonSchemaValidator()

/**
 * Answers messages as the protocol says: those of 2026-07-28, where each message is complete in itself, and those of
 * older versions, which begin with a handshake of which nothing is kept. One server of the SDK lives for one message,
 * so any replica can answer any message.
 */
export class Protocol {
  readonly #modern = createMcpHandler(({ authInfo }) => serverFor(authInfo!.extra!.exchange as Exchange), {
    // Subscriptions are acknowledged with nothing in them, and end at once: `serverFor` offers no changes, since the
    // list of tools depends on the key.
    legacy: 'reject',
  })

  async answer (exchange: Exchange): Promise<Response> {
    const { message: { parsed: parsedBody }, headers } = exchange
    const request = new Request('http://mcp/mcp', { method: 'POST', headers })
    if (!await isLegacyRequest(request, parsedBody)) {
      // The caller is already authenticated: the SDK gets no key and only passes this on.
      return await this.#modern.fetch(
        request, { parsedBody, authInfo: { token: '', clientId: '', scopes: [], extra: { exchange } } }
      )
    }
    const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: !sendsProgress(exchange) })
    await serverFor(exchange).connect(transport)
    return await transport.handleRequest(request, { parsedBody })
  }
}

/** Progress can only be sent in a stream. A call gets one if it may wait long and its client asked for progress. */
function sendsProgress ({ message: { call }, wait }: Exchange): boolean {
  return wait * 1000 > progressEvery && call?.progressToken !== undefined
}

function serverFor (exchange: Exchange): Server {
  const { message, tools, call } = exchange
  const server = new Server({ name: 'handoff', title, version }, {
    capabilities: { tools: {} },
    instructions: instructionsFor(exchange.agent),
    supportedProtocolVersions: [...protocolVersions],
    jsonSchemaValidator,
    // It changes with the key's scopes alone.
    cacheHints: { 'tools/list': { ttlMs: listsKept, cacheScope: 'private' } },
  })
  server.setRequestHandler('tools/list', () => ({ tools: [...tools] }))
  server.setRequestHandler('tools/call', async ({ params: { name } }, { mcpReq: { notify } }) => {
    if (call === undefined) throw new ProtocolError(ProtocolErrorCode.InvalidParams, `Unknown tool: ${name}`)
    if (!sendsProgress(exchange)) return await call()
    const progressToken = message.call!.progressToken!
    let progress = 0
    const timer = setInterval(() => {
      // A client that has gone gets no message; the wait ends with its connection.
      progress += progressEvery / 1000
      notify({
        method: 'notifications/progress', params: { progressToken, progress, total: exchange.wait, message: 'Waiting' }
      }).catch(() => {})
    }, progressEvery)
    try {
      return await call()
    } finally {
      clearInterval(timer)
    }
  })
  return server
}
