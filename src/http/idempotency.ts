import type { FastifyReply, FastifyRequest } from 'fastify'

/** The client's Idempotency-Key; its shape was checked with the request's schema. */
export function idempotencyKey (request: FastifyRequest): string | undefined {
  return request.headers['idempotency-key'] as string | undefined
}

const mark = 'idempotency-replayed'

export function markReplayed (reply: FastifyReply, replayed: boolean): void {
  if (replayed) reply.header(mark, 'true')
}

export function isReplayed (reply: FastifyReply): boolean {
  return reply.hasHeader(mark)
}
