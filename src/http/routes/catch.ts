import type { FastifyInstance } from 'fastify'
import type { HandoffService } from '../../handoff/service.ts'
import { catchAnswer, handoffParams, idempotencyHeaders, waitQuery } from '../../schemas/handoff.ts'
import type { WaitQuery } from '../../schemas/handoff.ts'
import { problems } from '../../schemas/problem.ts'
import { idempotencyKey, markReplayed } from '../idempotency.ts'
import { jsonType } from '../media.ts'
import { waitOptions } from '../waiting.ts'

export function catchRoute (app: FastifyInstance, service: HandoffService): void {
  app.get<{ Params: { id: string }, Querystring: WaitQuery }>('/api/catch/:id', {
    config: { scope: 'catch', moves: 'caught' },
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
        ...problems({ body: false }, 'expired', 'cancelled', 'rejected', 'already_caught', 'already_done', 'already_failed', 'already_declined', 'approval_required', 'not_yet')
      },
    },
  }, async (request, reply) => {
    const { answer, replayed, traceparent } = await service.catch(request.caller, request.params.id, idempotencyKey(request), waitOptions(request, reply))
    markReplayed(reply, replayed)
    if (traceparent !== undefined) reply.header('traceparent', traceparent)
    reply.header('content-type', jsonType)
    return answer
  })
}
