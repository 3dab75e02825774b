import { createHash } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'

/** An answer that is the same for everybody. */
export interface Fixed { body: Buffer, etag: string }

export function fixed (text: string): Fixed {
  const body = Buffer.from(text)
  return { body, etag: `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"` }
}

/**
 * Makes once what depends on BASE_URL alone: whoever asks needs no key, so each request must cost little. Before the service listens its URL
 * may still change, and then it is made anew.
 */
export function oncePer<T> (baseUrl: () => string, make: (baseUrl: string) => T): () => T {
  let last: { of: string, made: T } | undefined
  return () => {
    const of = baseUrl()
    if (last?.of !== of) last = { of, made: make(of) }
    return last.made
  }
}

/** Sends it, or 304 to who has it already. The caller sets the content type. */
export function sendFixed (request: FastifyRequest, reply: FastifyReply, { body, etag }: Fixed): FastifyReply {
  reply.header('etag', etag)
  const known = request.headers['if-none-match']
  // A proxy that compresses makes the ETag a weak one.
  if (known?.split(',').some(one => one.trim().replace(/^W\//, '') === etag)) return reply.code(304).send()
  return reply.send(body)
}
