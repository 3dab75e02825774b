import type { Socket } from 'node:net'
import type { FastifyInstance, FastifyReply, FastifyRequest, RouteShorthandOptions } from 'fastify'
import { Problem, invalid } from '../core/errors.ts'
import { BodyError, openBracket, skipSpace } from '../core/json.ts'
import { jsonType } from '../http/body.ts'
import type { Operation } from '../operations/operation.ts'
import type { ToolCallOptions, Prepared } from './calls.ts'
import { readMessage, roles } from './message.ts'
import type { Message, Role } from './message.ts'
import type { ResourceMetadata } from './resource-metadata.ts'

/** What the tools call, and who may call them. */
interface McpOptions extends Omit<ToolCallOptions, 'refusesByStatus'> {
  operations: readonly Operation[]
  isAllowed: OriginCheck
  /** Null if no issuer is for MCP. */
  metadata: ResourceMetadata | null
}

/** May pages of this origin call the service, when their request came over this socket? */
type OriginCheck = (origin: string, socket: Pick<Socket, 'localAddress' | 'localPort'>) => boolean

/** Clients are set up by hand, with a slash at the end or without one. A redirect would lose the body of the POST. */
const paths = ['/mcp', '/mcp/']

/** JSON-RPC's error codes. */
const [parseError, invalidRequest] = [-32700, -32600]

export function mcpRoute (app: FastifyInstance, options: McpOptions): void {
  const { isAllowed, metadata } = options
  let loaded: ReturnType<typeof load> | undefined
  const settings: RouteShorthandOptions = {
    config: { isBatch: true, isMcp: true },
    ...metadata !== null && { onSend: (request, reply) => metadata.challenge(request, reply) },
    onRequest: (request, reply, done) => done(refuseOrigin(request, reply, isAllowed)),
    validatorCompiler: () => () => true,
    schema: { hide: true, body: {} },
  }
  for (const path of paths) app.post(path, settings, answer)

  async function answer (request: FastifyRequest, reply: FastifyReply) {
    const role = roleIn(request)
    const message = tryRead(request, reply)
    if (message === undefined) return reply
    // Loaded only when it is first needed: many services never need it, and the SDK takes longer to load than the
    // service to start.
    const { protocol, calls } = await (loaded ??= load(options))
    const limit = request.limit!
    let call: Prepared | undefined
    try {
      if (message.call === null) await limit.spend()
      else call = await calls.prepare(message.call, request, limit)
    } finally {
      limit.writeHeaders(reply)
    }
    if (message.cancels !== undefined) calls.cancel(request.caller, message.cancels)
    let ended: unknown
    let isAnswering = false
    const run = call && (() => calls.run(call, request).catch((error: Problem) => {
      // Its status has been sent, so the call is notified: a stream has begun.
      if (isAnswering) return calls.refuse(error, request)
      throw ended = error
    }))
    const response = await protocol.answer({
      message,
      agent: request.caller.agent,
      headers: headersOf(request),
      tools: calls.listFor(request.caller, role),
      call: run,
      wait: call !== undefined && 'own' in call ? call.own.wait ?? 0 : 0,
    })
    // The SDK's answer to this error isn't sent: the request itself is refused.
    if (ended !== undefined) throw ended
    isAnswering = true
    return send(reply, response)
  }
}

/** For which role the tools are listed, as the address says. @throws {Problem} there is no such role */
function roleIn ({ query, limit }: FastifyRequest): Role {
  const { tools = 'all' } = query as { tools?: unknown }
  if (typeof tools === 'string' && Object.hasOwn(roles, tools)) return tools as Role
  throw limit?.refusal() ?? invalid({ pointer: '/tools', message: `must be one of ${Object.keys(roles).join(', ')}` })
}

async function load (options: McpOptions) {
  const [{ Protocol }, { ToolCalls }, { toolsOf }] =
    await Promise.all([import('./protocol.ts'), import('./calls.ts'), import('./tools.ts')])
  const settings = { ...options, refusesByStatus: options.metadata !== null }
  return { protocol: new Protocol(), calls: new ToolCalls(toolsOf(options.operations), settings) }
}

/**
 * Answers CORS preflight requests, which a browser sends before a page's request with a key. The route is outside the
 * instance that needs a key, since a preflight has none. If no page may call, there is no such route.
 */
export function mcpPreflight (app: FastifyInstance, origins: readonly string[], isAllowed: OriginCheck): void {
  if (origins.length === 0) return
  for (const path of paths) {
    app.options(path, {
      schema: { hide: true }, onRequest: (request, reply, done) => done(refuseOrigin(request, reply, isAllowed))
    }, async (request, reply) => {
      reply.code(204).headers({
        'access-control-allow-methods': 'POST',
        'access-control-allow-headers': String(request.headers['access-control-request-headers'] ?? ''),
        'access-control-max-age': '600'
      })
    })
  }
}

/**
 * Which origins may call: those of MCP_ORIGINS, and the service's own. That is BASE_URL's. Without BASE_URL it is the
 * address that the request came to, and `localhost` if that is this machine's loopback. The Host field doesn't count: a
 * page whose name was made to point here (DNS rebinding) sends its own name there, but the browser can't say that it is
 * from an address, or from localhost.
 */
export function originCheck (origins: readonly string[], isNamed: boolean, baseUrl: () => string): OriginCheck {
  return (origin, { localAddress, localPort }) => {
    const base = new URL(baseUrl())
    if (origins.includes(origin) || origin === base.origin) return true
    if (isNamed) return false
    const address = localAddress?.replace(/^::ffff:(?=\d+\.)/, '')
    const own = address === undefined
      ? base
      : new URL(`http://${address.includes(':') ? `[${address}]` : address}:${localPort}`)
    if (origin === own.origin) return true
    if (own.hostname !== '[::1]' && !own.hostname.startsWith('127.')) return false
    own.hostname = 'localhost'
    return origin === own.origin
  }
}

/**
 * A browser sends its page's origin; other clients send none. So a page that a person happens to open can't call a
 * service on their machine.
 */
function refuseOrigin (
  { headers: { origin }, raw: { socket } }: FastifyRequest, reply: FastifyReply, isAllowed: OriginCheck
): Error | undefined {
  if (origin === undefined) return undefined
  reply.header('vary', 'Origin')
  if (!isAllowed(origin, socket)) {
    return new Problem(
      'cross_origin', { detail: 'Pages of this origin may not call /mcp; the operator can allow it with MCP_ORIGINS.' }
    )
  }
  reply.headers({
    'access-control-allow-origin': origin,
    'access-control-expose-headers': 'X-Request-Id, Retry-After, RateLimit, RateLimit-Policy'
  })
  return undefined
}

/**
 * The message; undefined if it is invalid and the JSON-RPC error is already sent.
 * @throws {Problem} rate_limited, which comes before it
 */
function tryRead ({ bytes, limit }: FastifyRequest, reply: FastifyReply): Message | undefined {
  try {
    return readMessage(bytes)
  } catch (error) {
    if (!(error instanceof BodyError)) throw error
    const refusal = limit?.refusal()
    if (refusal !== undefined) throw refusal
    const code = isArray(bytes) ? invalidRequest : parseError
    const message = isArray(bytes)
      ? 'Invalid Request: send one message at a time'
      : `Parse error: ${error.pointer} ${error.message}`
    reply.code(400).header('content-type', jsonType).send(
      JSON.stringify({ jsonrpc: '2.0', error: { code, message }, id: null })
    )
    return undefined
  }
}

function isArray (bytes: Buffer): boolean {
  return bytes[skipSpace(bytes, 0)] === openBracket
}

/**
 * The header fields that the protocol reads. `accept` always names both kinds of answer, since every client here can
 * read both.
 */
function headersOf ({ headers }: FastifyRequest): Record<string, string> {
  const read = Object.entries(headers).filter(([name]) => name.startsWith('mcp-')).map(([name, value]) =>
    [name, String(value)])
  return {
    ...Object.fromEntries(read), 'content-type': 'application/json', accept: 'application/json, text/event-stream'
  }
}

/**
 * Sends the SDK's answer with the service's own header fields, so that Connection is right while the service drains.
 */
async function send (reply: FastifyReply, response: Response): Promise<FastifyReply> {
  reply.code(response.status)
  if (response.body === null) return reply.send()
  const type = response.headers.get('content-type')!
  if (type.startsWith('application/json')) return reply.header('content-type', jsonType).send(await response.text())
  return reply.header('content-type', type).header('x-accel-buffering', 'no').send(response.body)
}
