import type { IncomingMessage } from 'node:http'
import type { FastifyInstance } from 'fastify'
import { Problem } from '../errors.ts'

/**
 * Replaces node's own error answers, which aren't problem documents, and refuses what node should refuse but doesn't. `requireHostHeader` in
 * server.ts belongs to it.
 */
export function useNodeAnswers (app: FastifyInstance): void {
  // By default node answers 417. A server may ignore an expectation that it doesn't know (RFC 9110, 10.1.1). 100-continue never gets here.
  app.server.on('checkExpectation', (request, response) => app.server.emit('request', request, response))
  app.addHook('onRequest', (request, reply, done) => {
    const fault = faultOf(request.raw)
    done(fault === undefined ? undefined : new Problem('invalid_request', { detail: fault }))
  })
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
