import type { FastifyReply, FastifyRequest } from 'fastify'
import type { WaitOptions } from '../handoff/waiter.ts'

/** How a request waits, by its `wait` in seconds; null where it doesn't wait. */
export function waitOptions (request: FastifyRequest, reply: FastifyReply): WaitOptions | null {
  const { wait = 0 } = request.query as { wait?: number }
  return wait === 0 ? null : waitFor(wait * 1000, request, reply)
}

/** How a request waits for so long: until its connection closes or what let it in has ended, whichever is first. */
export function waitFor (milliseconds: number, request: FastifyRequest, reply: FastifyReply): WaitOptions {
  return {
    milliseconds,
    grant: () => request.grant(),
    onGone (stop) {
      // It may have closed already, during the first look; nobody tells of that again.
      if (reply.raw.destroyed) stop()
      else reply.raw.once('close', stop)
    },
  }
}
