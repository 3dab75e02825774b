import type { FastifyInstance } from 'fastify'
import type { HandoffService } from '../../handoff/service.ts'
import { noQuery, passAnswer, passBody, passHeaders } from '../../schemas/handoff.ts'
import type { Limits, PassBody } from '../../schemas/handoff.ts'
import { problems } from '../../schemas/problem.ts'
import { idempotencyKey, markReplayed } from '../idempotency.ts'
import { traceparentOf } from '../traceparent.ts'

/** @param base BASE_URL's path */
export function passRoute (app: FastifyInstance, service: HandoffService, limits: Limits, base: string): void {
  app.post<{ Body: PassBody }>('/api/pass', {
    config: { scope: 'pass', moves: 'pending' },
    schema: {
      operationId: 'pass',
      summary: 'Pass a task to another agent',
      tags: ['handoffs'],
      querystring: noQuery,
      headers: passHeaders,
      body: passBody(limits),
      response: { 201: passAnswer, ...problems({ body: true }, 'idempotency_key_reused', 'unknown_parent', 'hop_limit', 'loop_detected', 'result_schema_too_slow') },
    },
  }, async (request, reply) => {
    const { caller, body, bytes, members } = request
    const { answer, replayed } = await service.pass(caller, body, { members, raw: bytes, traceparent: traceparentOf(request) }, idempotencyKey(request))
    markReplayed(reply, replayed)
    reply.code(201).header('location', `${base}/api/status/${answer.handoff_id}`)
    return answer
  })
}
