import type { FastifyReply, FastifyRequest } from 'fastify'

/** The client's Idempotency-Key. The request's schema has checked its form. */
export function idempotencyKey (request: FastifyRequest): string | undefined {
  return request.headers['idempotency-key'] as string | undefined
}

export function markReplayed (reply: FastifyReply, replayed: boolean): void {
  if (replayed) reply.header('idempotency-replayed', 'true')
}
