import type { FastifyReply, FastifyRequest } from 'fastify'

/**
 * How long after a request came it goes by what let it in then, in milliseconds. With the longest that a replica believes a key unasked
 * (auth/stored-keys.ts) that stays below the two seconds within which a key that has ended stops everywhere.
 */
const quick = 400

/** A hook for when the body is there, which may take its time: what let the request in may have ended meanwhile, and is asked anew. */
export function authoriseAgain (request: FastifyRequest, reply: FastifyReply, done: (error?: Error) => void): void {
  if (performance.now() - request.startedAt < quick) return done()
  authorise(request).then(() => done(), done)
}

async function authorise (request: FastifyRequest): Promise<void> {
  await request.grant().authorise()
}
