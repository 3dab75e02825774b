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
      summary: 'Catch a handoff; only one agent can',
      description: 'Moves the handoff from pending to caught. wait= waits for a person’s approval and for the end of a delay. Send an Idempotency-Key, so that you can retry when the answer is lost.',
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
