import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Until } from '../handoff/service.ts'
import { idempotencyKey, markReplayed } from './idempotency.ts'
import { jsonType } from './media.ts'
import type { Operation } from './operations.ts'
import { traceparentOf } from './traceparent.ts'
import { waitOptions } from './waiting.ts'

/** Carries out an operation that came as a request of its own. @param base BASE_URL's path */
export async function perform (operation: Operation, request: FastifyRequest, reply: FastifyReply, base: string): Promise<object | string | Buffer> {
  const { id = '' } = request.params as { id?: string }
  const { until = 'done' } = request.query as { until?: Until }
  const { caller, body, members, bytes } = request
  const asked = { caller, id, body, members, bytes, key: idempotencyKey(request), traceparent: traceparentOf(request), waiting: waitOptions(request), until }
  const { status, answer, replayed, moved, made, traceparent } = await operation.run(asked)
  markReplayed(reply, replayed)
  request.moved = moved
  reply.code(status)
  if (made !== undefined) reply.header('location', `${base}/api/status/${made}`)
  if (traceparent !== undefined) reply.header('traceparent', traceparent)
  if (typeof answer === 'string' || Buffer.isBuffer(answer)) reply.header('content-type', jsonType)
  return answer
}
