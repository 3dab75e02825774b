import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Patience } from '../handoff/waiter.ts'

/** How long a request waits, by its `wait` in seconds, and that it stops when its connection closes; null where it doesn't wait. */
export function patienceOf (request: FastifyRequest, reply: FastifyReply): Patience | null {
  const { wait = 0 } = request.query as { wait?: number }
  if (wait === 0) return null
  return {
    milliseconds: wait * 1000,
    onGone (stop) {
      // It may have closed already, during the first look; nobody tells of that again.
      if (reply.raw.destroyed) stop()
      else reply.raw.once('close', stop)
    },
  }
}
