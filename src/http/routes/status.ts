import type { FastifyInstance } from 'fastify'
import { handoffParams, statusAnswer, statusQuery } from '../../schemas/handoff.ts'
import { problems } from '../../schemas/problem.ts'
import type { Operation } from '../operations.ts'
import { perform } from '../perform.ts'

/** @param base BASE_URL's path */
export function statusRoute (app: FastifyInstance, operation: Operation, base: string): void {
  app.get('/api/status/:id', {
    config: { scope: operation.scope },
    schema: {
      operationId: 'status',
      summary: 'Read a handoff’s status',
      description: 'Changes nothing, and never shows task, output or context: only catch does. With wait=, the answer comes when the handoff has reached the status `until`, a later one or an end, or when the wait is over.',
      tags: ['handoffs'],
      params: handoffParams,
      querystring: statusQuery,
      response: { 200: statusAnswer, ...problems({ body: false }) },
    },
  }, (request, reply) => perform(operation, request, reply, base))
}
