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
      summary: 'Catch a handoff; only one agent can',
      description: 'Moves the handoff from pending to caught. wait= waits for a person’s approval and for the end of a delay. Send an Idempotency-Key, so that you can retry when the answer is lost.',
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
