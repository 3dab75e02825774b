import type { FastifyRequest } from 'fastify'
import type { WaitOptions } from '../handoff/waiter.ts'

/** How a request waits, from its `wait` parameter in seconds; null if it doesn't wait. */
export function waitOptions (request: FastifyRequest): WaitOptions | null {
  const { wait = 0 } = request.query as { wait?: number }
  return wait === 0 ? null : waitFor(wait * 1000, request)
}

/** What a request asks again once time has passed: is its key still good, and is its client still there? */
export function askerOf (request: FastifyRequest): Pick<WaitOptions, 'grant' | 'isGone'> {
  return {
    grant: () => request.grant(),
    // Use the connection, not the response. A response that is pipelined behind another one has no connection yet, and never learns that it closed.
    isGone: () => request.raw.socket.destroyed,
  }
}

/** How a request waits for this long: until its connection closes or its grant ends, whichever comes first. */
export function waitFor (milliseconds: number, request: FastifyRequest): WaitOptions {
  return {
    milliseconds,
    ...askerOf(request),
    onGone (stop) {
      const { socket } = request.raw
      // It may have closed already, and then the event doesn't come again.
      if (socket.destroyed) stop()
      else socket.once('close', stop)
      return () => socket.off('close', stop)
    },
  }
}
