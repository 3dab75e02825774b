import { createMcpHandler, isLegacyRequest, ProtocolError, ProtocolErrorCode, Server, WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/server'
import { AjvJsonSchemaValidator } from '@modelcontextprotocol/server/validators/ajv'
import { version } from '../version.ts'
import type { Message } from './message.ts'
import { instructions } from './texts.ts'
import type { ToolResult } from './calls.ts'
import type { Definition } from './tools.ts'

/** One message as it is to be answered. */
export interface Exchange {
  message: Message
  /** Those of its header fields that the protocol reads. */
  headers: Record<string, string>
  /** The tools that its key is good for. */
  tools: readonly Definition[]
  /** Calls the tool that the message names; undefined where there is none. */
  call: (() => Promise<ToolResult>) | undefined
  /** For how many seconds the call may wait. */
  wait: number
}

const protocolVersions = ['2026-07-28', '2025-11-25', '2025-06-18']
/** How often a waiting call says so, in milliseconds. Clients take it that a call without a word for a minute is lost. */
const progressEvery = 10_000
/** It is never asked anything, but each server would make one of its own. */
const jsonSchemaValidator = new AjvJsonSchemaValidator()

/**
 * Answers messages by the protocol: those of 2026-07-28, each of which says all there is to know, and those of the versions before, which begin with a
 * handshake of which nothing is kept. A server of the SDK lives for one message, so any replica answers any.
 */
export class Protocol {
  readonly #modern = createMcpHandler(({ authInfo }) => serverFor(authInfo!.extra!.exchange as Exchange), {
    legacy: 'reject',
    // The list of tools goes by the key, and doesn't change: there is nothing to listen to.
    maxSubscriptions: 0,
  })

  async answer (exchange: Exchange): Promise<Response> {
    const { message: { parsed: parsedBody }, headers } = exchange
    const request = new Request('http://mcp/mcp', { method: 'POST', headers })
    if (!await isLegacyRequest(request, parsedBody)) {
      // Who asks was settled before: the SDK gets no key, and hands this on.
      return await this.#modern.fetch(request, { parsedBody, authInfo: { token: '', clientId: '', scopes: [], extra: { exchange } } })
    }
    const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: !tellsProgress(exchange) })
    await serverFor(exchange).connect(transport)
    return await transport.handleRequest(request, { parsedBody })
  }
}

/** Only a stream can say something before its answer; a call that may wait long, and whose client wants to know, gets one. */
function tellsProgress ({ message: { call }, wait }: Exchange): boolean {
  return wait * 1000 > progressEvery && call?.progressToken !== undefined
}

function serverFor (exchange: Exchange): Server {
  const { message, tools, call } = exchange
  const server = new Server({ name: 'handoff', title: 'Agent Handoff', version }, {
    capabilities: { tools: {} }, instructions, supportedProtocolVersions: protocolVersions, jsonSchemaValidator,
  })
  server.setRequestHandler('tools/list', () => ({ tools: [...tools] }))
  server.setRequestHandler('tools/call', async ({ params: { name } }, { mcpReq: { notify } }) => {
    if (call === undefined) throw new ProtocolError(ProtocolErrorCode.InvalidParams, `Unknown tool: ${name}`)
    if (!tellsProgress(exchange)) return await call()
    const progressToken = message.call!.progressToken!
    let progress = 0
    const timer = setInterval(() => {
      // Whoever has gone is told nothing; the wait ends with its connection.
      progress += progressEvery / 1000
      notify({ method: 'notifications/progress', params: { progressToken, progress, total: exchange.wait, message: 'Waiting' } }).catch(() => {})
    }, progressEvery)
    try {
      return await call()
    } finally {
      clearInterval(timer)
    }
  })
  return server
}
