import type { IncomingMessage } from 'node:http'
import type { FastifyInstance } from 'fastify'
import { Problem } from '../errors.ts'

/** What node would answer by itself, in a shape that is not ours, and what it should refuse and doesn't. `requireHostHeader` in server.ts belongs to it. */
export function useNodeAnswers (app: FastifyInstance): void {
  // Else 417. An expectation that means nothing to us may be passed over (RFC 9110, 10.1.1); 100-continue never comes here.
  app.server.on('checkExpectation', (request, response) => app.server.emit('request', request, response))
  app.addHook('onRequest', (request, reply, done) => {
    const fault = faultOf(request.raw)
    done(fault === undefined ? undefined : new Problem('invalid_request', { detail: fault }))
  })
}

/** What RFC 9112 has answered with 400. The connection stays: each of these says plainly where its request ends. */
function faultOf ({ headers, rawHeaders, httpVersion }: IncomingMessage): string | undefined {
  if (headers.host === undefined && httpVersion === '1.1') return 'A request of HTTP/1.1 has a Host field (RFC 9112, 3.2).'
  // Of several node keeps the first, where a proxy in front may have gone by another.
  if (headers.host !== undefined && hasTwoHosts(rawHeaders)) return 'A request has one Host field, not several (RFC 9112, 3.2).'
  const coding = headers['transfer-encoding']
  // Node undoes chunked alone, and refuses what doesn't end with it: below it the body would be taken for what it isn't.
  if (coding !== undefined && /,\s*chunked\s*$/i.test(coding)) return 'The only transfer coding that is understood here is chunked (RFC 9112, 6.1).'
  return undefined
}

/** @param fields names and values in turn, as they came */
function hasTwoHosts (fields: readonly string[]): boolean {
  let count = 0
  for (let at = 0; at < fields.length; at += 2) {
    const name = fields[at] as string
    if (name.length === 4 && name.toLowerCase() === 'host') count++
  }
  return count > 1
}
