import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { problems } from '../core/schemas/problem.ts'
import type { WaitOptions } from '../handoffs/waiter.ts'
import type { Operation } from '../operations/operation.ts'
import { jsonType } from './body.ts'
import { logDecision, logOperated, traceparentOf } from './observe.ts'
import type { DecisionLog } from './observe.ts'

/** Makes a route of each operation. @param log for what people and operators do */
export function operationRoutes (app: FastifyInstance, operations: readonly Operation[], log: DecisionLog): void {
  for (const operation of operations) {
    const { name, scope, method, path, tag, summary, description, params, query, headers, body } = operation
    if (path === null) continue
    app.route({
      method,
      url: path,
      config: { scope, nested: operation.nested, ...operation.resumesTrace && { resumesTrace: true } },
      schema: {
        operationId: name,
        summary,
        ...description !== undefined && { description },
        tags: [tag],
        ...params !== undefined && { params },
        querystring: query,
        ...headers !== undefined && { headers },
        ...body !== null && { body },
        response: { ...operation.answers, ...problems({ body: body !== null }, ...operation.refusals) },
      },
      handler: (request, reply) => perform(operation, request, reply, log),
    })
  }
}

/** Carries out an operation that came as a request of its own. */
async function perform (
  operation: Operation, request: FastifyRequest, reply: FastifyReply, log: DecisionLog
): Promise<object | string | Buffer> {
  const { id, name } = request.params as { id?: string, name?: string }
  const { caller, query, body, members, bytes } = request
  const call = {
    caller,
    id: id ?? name ?? '',
    query,
    body,
    members,
    bytes,
    key: idempotencyKey(request),
    traceparent: traceparentOf(request),
    asker: request,
    waiting: waitOptions(request)
  }
  const { status, answer, replayed, moved, made, traceparent, decided, operated } = await operation.run(call)
  if (replayed) reply.header('idempotency-replayed', 'true')
  request.moved = moved
  reply.code(status)
  if (made !== undefined) reply.header('location', `${reply.server.basePath}/api/status/${made}`)
  if (traceparent !== undefined) reply.header('traceparent', traceparent)
  if (decided !== undefined) logDecision(log, request, call.id, decided)
  logOperated(log, request, operated)
  if (typeof answer === 'string' || Buffer.isBuffer(answer)) reply.header('content-type', jsonType)
  return answer
}

/** How a request waits, from its `wait` parameter in seconds; null if it doesn't wait. */
export function waitOptions (request: FastifyRequest): WaitOptions | null {
  const { wait = 0 } = request.query as { wait?: number }
  return wait === 0 ? null : { milliseconds: wait * 1000, asker: request }
}

/** The client's Idempotency-Key. The request's schema has checked its form. */
function idempotencyKey (request: FastifyRequest): string | undefined {
  return request.headers['idempotency-key'] as string | undefined
}
