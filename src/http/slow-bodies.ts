import type { FastifyReply, FastifyRequest } from 'fastify'

/**
 * How long after its arrival a request relies on the first check of its key, in milliseconds. Together with the longest time that a replica
 * believes a key without asking (auth/stored-keys.ts) this is below two seconds, the time within which an ended key stops everywhere.
 */
const quick = 400

/** A hook for when the body has arrived, which may take long. The key may have ended meanwhile, so it is checked again. */
export function authoriseAgain (request: FastifyRequest, reply: FastifyReply, done: (error?: Error) => void): void {
  if (performance.now() - request.startedAt < quick) return done()
  authorise(request).then(() => done(), done)
}

async function authorise (request: FastifyRequest): Promise<void> {
  await request.grant().authorise()
}
