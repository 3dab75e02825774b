import type { FastifyInstance } from 'fastify'
import type { HandoffService } from '../../handoff/service.ts'
import { handoffParams, noQuery, statusAnswer } from '../../schemas/handoff.ts'
import { problems } from '../../schemas/problem.ts'
import { jsonType } from '../media.ts'

export function statusRoute (app: FastifyInstance, service: HandoffService): void {
  app.get<{ Params: { id: string } }>('/api/status/:id', {
    config: { scope: 'status' },
    schema: {
      operationId: 'status',
      summary: 'See where a handoff stands',
      description: 'Changes nothing, and never shows task, output or context: to read those is to catch.',
      tags: ['handoffs'],
      params: handoffParams,
      querystring: noQuery,
      response: { 200: statusAnswer, ...problems({ body: false }) },
    },
  }, async (request, reply) => {
    reply.header('content-type', jsonType)
    return service.status(request.caller, request.params.id)
  })
}
