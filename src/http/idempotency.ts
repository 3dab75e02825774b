import type { FastifyReply, FastifyRequest } from 'fastify'

/** The client's Idempotency-Key; its shape was checked with the request's schema. */
export function idempotencyKey (request: FastifyRequest): string | undefined {
  return request.headers['idempotency-key'] as string | undefined
}

export function markReplayed (reply: FastifyReply, replayed: boolean): void {
  if (replayed) reply.header('idempotency-replayed', 'true')
}
