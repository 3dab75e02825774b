import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'
import { Problem } from '../errors.ts'

/** How many requests of a connection may wait for the answer to one before them. */
const mostPipelined = 20

/**
 * Replaces node's own error answers, which aren't problem documents, and refuses what node should refuse but doesn't. `requireHostHeader` in
 * server.ts belongs to it.
 */
export function useNodeAnswers (app: FastifyInstance): void {
  boundPipelining(app.server)
  // By default node answers 417. A server may ignore an expectation that it doesn't know (RFC 9110, 10.1.1). 100-continue never gets here.
  app.server.on('checkExpectation', (request, response) => app.server.emit('request', request, response))
  app.addHook('onRequest', (request, reply, done) => {
    const fault = faultOf(request.raw)
    done(fault === undefined ? undefined : new Problem('invalid_request', { detail: fault }))
  })
}

/**
 * Ends a connection on which more than `mostPipelined` requests wait for the answer to one before them. Node takes 64 KB from a connection at once and
 * begins all requests in them, 1,500 short ones; it doesn't look whether the client reads any answer. 600 such connections without a key took 2.4 GB.
 * What was acknowledged stays; what wasn't may be sent again (RFC 9112, 9.3.2). No proxy that we know pipelines.
 */
function boundPipelining (server: Server): void {
  const waiting = new WeakMap<Socket, number>()
  const handlers = server.listeners('request') as ((request: IncomingMessage, response: ServerResponse) => void)[]
  server.removeAllListeners('request')
  server.on('request', (request, response) => {
    // A response has its connection once it is its turn: only those behind another one are counted.
    if (response.socket === null) {
      const { socket } = request
      // Those that node has read with the one that was too many.
      if (socket.destroyed) return
      const count = (waiting.get(socket) ?? 0) + 1
      if (count > mostPipelined) {
        stopReading(socket)
        return
      }
      waiting.set(socket, count)
      response.once('close', () => waiting.set(socket, waiting.get(socket)! - 1))
    }
    for (const handle of handlers) handle.call(server, request, response)
  })
}

/**
 * Ends a connection with what was read from it and isn't begun yet. Without the second step node would make a request and a response of each, and keep
 * them until it has read from all connections that are ready: 300 of them took 600 MB. `socket.parser` isn't documented; where it is missing,
 * the connection ends all the same.
 */
function stopReading (socket: Socket): void {
  socket.destroy()
  const { parser } = socket as Socket & { parser?: { onIncoming?: () => number } | null }
  // 2: what follows is no HTTP (an upgrade), so the parser stops here.
  if (parser?.onIncoming !== undefined) parser.onIncoming = () => 2
}

/** What RFC 9112 wants answered with 400. The connection can stay open: in each of these cases the end of the request is clear. */
function faultOf ({ headers, rawHeaders, httpVersion }: IncomingMessage): string | undefined {
  if (headers.host === undefined && httpVersion === '1.1') return 'An HTTP/1.1 request must have a Host field (RFC 9112, 3.2).'
  // Of several Host fields node keeps the first, but a proxy in front may have used another.
  if (headers.host !== undefined && hasTwoHosts(rawHeaders)) return 'A request must have one Host field, not several (RFC 9112, 3.2).'
  const coding = headers['transfer-encoding']
  // Node decodes only chunked, and refuses codings that don't end with it. Any other coding beneath would leave the body encoded.
  if (coding !== undefined && /,\s*chunked\s*$/i.test(coding)) return 'The only supported transfer coding is chunked (RFC 9112, 6.1).'
  return undefined
}

/** @param fields names and values, alternating, as they came */
function hasTwoHosts (fields: readonly string[]): boolean {
  let count = 0
  for (let at = 0; at < fields.length; at += 2) {
    const name = fields[at] as string
    if (name.length === 4 && name.toLowerCase() === 'host') count++
  }
  return count > 1
}
