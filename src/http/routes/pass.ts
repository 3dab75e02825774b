import type { FastifyInstance } from 'fastify'
import { noQuery, passAnswer, passHeaders } from '../../schemas/handoff.ts'
import { problems } from '../../schemas/problem.ts'
import type { Operation } from '../operations.ts'
import { perform } from '../perform.ts'

/** @param base BASE_URL's path */
export function passRoute (app: FastifyInstance, operation: Operation, base: string): void {
  app.post('/api/pass', {
    config: { scope: operation.scope },
    schema: {
      operationId: 'pass',
      summary: 'Pass a task to another agent',
      tags: ['handoffs'],
      querystring: noQuery,
      headers: passHeaders,
      body: operation.body,
      response: { 201: passAnswer, ...problems({ body: true }, 'idempotency_key_reused', 'unknown_parent', 'hop_limit', 'loop_detected', 'result_schema_too_slow') },
    },
  }, (request, reply) => perform(operation, request, reply, base))
}
