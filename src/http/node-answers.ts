import type { FastifyInstance } from 'fastify'
import { Problem } from '../errors.ts'

/** What node would answer by itself, in a shape that is not ours; `requireHostHeader` in server.ts belongs to it. */
export function useNodeAnswers (app: FastifyInstance): void {
  // Else 417. An expectation that means nothing to us may be passed over (RFC 9110, 10.1.1); 100-continue never comes here.
  app.server.on('checkExpectation', (request, response) => app.server.emit('request', request, response))
  app.addHook('onRequest', (request, reply, done) => {
    if (request.headers.host !== undefined || request.raw.httpVersion !== '1.1') return done()
    done(new Problem('invalid_request', { detail: 'A request of HTTP/1.1 has a Host field (RFC 9112, 3.2).' }))
  })
}
