import type { FastifyInstance } from 'fastify'
import type { HandoffService } from '../../handoff/service.ts'
import { handoffParams, statusAnswer, statusQuery } from '../../schemas/handoff.ts'
import type { StatusQuery } from '../../schemas/handoff.ts'
import { problems } from '../../schemas/problem.ts'
import { jsonType } from '../media.ts'
import { waitOptions } from '../waiting.ts'

export function statusRoute (app: FastifyInstance, service: HandoffService): void {
  app.get<{ Params: { id: string }, Querystring: StatusQuery }>('/api/status/:id', {
    config: { scope: 'status' },
    schema: {
      operationId: 'status',
      summary: 'Read a handoff’s status',
      description: 'Changes nothing, and never shows task, output or context: only catch does. With wait=, the answer comes when the handoff has reached the status `until`, a later one or an end, or when the wait is over.',
      tags: ['handoffs'],
      params: handoffParams,
      querystring: statusQuery,
      response: { 200: statusAnswer, ...problems({ body: false }) },
    },
  }, async (request, reply) => {
    reply.header('content-type', jsonType)
    return service.status(request.caller, request.params.id, request.query.until ?? 'done', waitOptions(request, reply))
  })
}
