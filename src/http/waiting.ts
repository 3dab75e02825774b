import type { FastifyRequest } from 'fastify'
import type { WaitOptions } from '../handoff/waiter.ts'

/** How a request waits, by its `wait` in seconds; null where it doesn't wait. */
export function waitOptions (request: FastifyRequest): WaitOptions | null {
  const { wait = 0 } = request.query as { wait?: number }
  return wait === 0 ? null : waitFor(wait * 1000, request)
}

/** How a request waits for so long: until its connection closes or what let it in has ended, whichever is first. */
export function waitFor (milliseconds: number, request: FastifyRequest): WaitOptions {
  return {
    milliseconds,
    grant: () => request.grant(),
    // The connection's, not the response's: one that is pipelined behind another has none yet, and never hears that it closed.
    isGone: () => request.raw.socket.destroyed,
    onGone (stop) {
      const { socket } = request.raw
      // It may have closed already; nobody tells of that again.
      if (socket.destroyed) stop()
      else socket.once('close', stop)
      return () => socket.off('close', stop)
    },
  }
}
