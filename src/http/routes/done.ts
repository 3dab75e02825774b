import type { FastifyInstance } from 'fastify'
import type { HandoffService } from '../../handoff/service.ts'
import { doneAnswer, doneBody, handoffParams, idempotencyHeaders, noQuery } from '../../schemas/handoff.ts'
import { problems } from '../../schemas/problem.ts'
import { idempotencyKey, markReplayed } from '../idempotency.ts'
import { holderRefusals } from './attempts.ts'

export function doneRoute (app: FastifyInstance, service: HandoffService): void {
  app.post<{ Params: { id: string }, Body: { output?: object | null } }>('/api/done/:id', {
    config: { scope: 'catch', moves: 'done' },
    schema: {
      operationId: 'done',
      summary: 'Report a caught handoff done',
      description: 'Only the agent that caught the handoff may do so. If it was passed with a result_schema, the output must satisfy that schema. The body is optional.',
      tags: ['handoffs'],
      params: handoffParams,
      querystring: noQuery,
      headers: idempotencyHeaders,
      body: doneBody,
      response: {
        200: doneAnswer,
        ...problems({ body: true }, ...holderRefusals, 'result_invalid', 'result_schema_too_slow')
      },
    },
  }, async (request, reply) => {
    const { caller, params, body, bytes, members } = request
    const result = body.output == null ? undefined : members.raw('output')
    const { answer, replayed } = await service.done(caller, params.id, result, bytes, idempotencyKey(request))
    markReplayed(reply, replayed)
    return answer
  })
}
