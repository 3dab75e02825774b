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
      summary: 'See where a handoff stands',
      description: 'With wait= it is answered when the status that `until` names, a later one or an end is reached, or the time is over. Changes nothing, and never shows task, output or context: to read those is to catch.',
      tags: ['handoffs'],
      params: handoffParams,
      querystring: statusQuery,
      response: { 200: statusAnswer, ...problems({ body: false }) },
    },
  }, (request, reply) => perform(operation, request, reply, base))
}
