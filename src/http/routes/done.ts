import type { FastifyInstance } from 'fastify'
import { doneAnswer, handoffParams, idempotencyHeaders, noQuery } from '../../schemas/handoff.ts'
import { problems } from '../../schemas/problem.ts'
import type { Operation } from '../operations.ts'
import { perform } from '../perform.ts'
import { holderRefusals } from './attempts.ts'

/** @param base BASE_URL's path */
export function doneRoute (app: FastifyInstance, operation: Operation, base: string): void {
  app.post('/api/done/:id', {
    config: { scope: operation.scope },
    schema: {
      operationId: 'done',
      summary: 'Report a caught handoff done',
      description: 'Only the agent that caught the handoff may do so. If it was passed with a result_schema, the output must satisfy that schema. The body is optional.',
      tags: ['handoffs'],
      params: handoffParams,
      querystring: noQuery,
      headers: idempotencyHeaders,
      body: operation.body,
      response: {
        200: doneAnswer,
        ...problems({ body: true }, ...holderRefusals, 'result_invalid', 'result_schema_too_slow')
      },
    },
  }, (request, reply) => perform(operation, request, reply, base))
}
