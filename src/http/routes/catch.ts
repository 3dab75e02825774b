import type { FastifyInstance } from 'fastify'
import { catchAnswer, handoffParams, idempotencyHeaders, waitQuery } from '../../schemas/handoff.ts'
import { problems } from '../../schemas/problem.ts'
import type { Operation } from '../operations.ts'
import { perform } from '../perform.ts'

/** @param base BASE_URL's path */
export function catchRoute (app: FastifyInstance, operation: Operation, base: string): void {
  app.get('/api/catch/:id', {
    config: { scope: operation.scope, resumesTrace: true },
    schema: {
      operationId: 'catch',
      summary: 'Catch a handoff: the only one who gets it',
      description: 'While a person has yet to approve, or a delay isn’t over, wait= waits for that. Moves the handoff from pending to caught. Send an Idempotency-Key to be able to ask again when the answer is lost.',
      tags: ['handoffs'],
      params: handoffParams,
      querystring: waitQuery,
      headers: idempotencyHeaders,
      response: {
        200: catchAnswer,
        ...problems({ body: false }, 'not_addressee', 'expired', 'cancelled', 'rejected', 'already_caught', 'already_done', 'already_failed', 'already_declined', 'approval_required', 'not_yet')
      },
    },
  }, (request, reply) => perform(operation, request, reply, base))
}
