import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Problem } from '../errors.ts'

/** Requests that were refused for their number, since the process began. */
export interface Refused {
  /** Over their agent's limit: 429. */
  limited: number
  /** More than the process could serve: 503. */
  shed: number
}

declare module 'fastify' {
  interface FastifyInstance {
    refused: Refused
  }
}

const overloaded = { detail: 'More is asked of this service than it can do; nothing happened. Ask again.', headers: { 'retry-after': '1' } }

/** Milliseconds. */
const longestTurn = 250

/** How often the event loop is seen to come round, in milliseconds. */
const look = 20

/**
 * A hook that sheds a request which the event loop gets to late: 503, before auth and body. A turn of the loop serves all that has
 * come since the last, so when more comes than can be served each turn is longer than the one before. So much of a turn is
 * spent serving, and the rest of it on refusing, which is cheaper.
 * @param longest milliseconds of a turn
 */
export function shedLate (app: FastifyInstance, refused: Refused, longest = longestTurn) {
  let turned = performance.now()
  const looking = setInterval(() => { turned = performance.now() }, look).unref()
  app.addHook('onClose', (app, done) => {
    clearInterval(looking)
    done()
  })
  return (request: FastifyRequest, reply: FastifyReply, done: (error?: Error) => void): void => {
    if (performance.now() - turned <= look + longest) return done()
    refused.shed++
    done(new Problem('unavailable', overloaded))
  }
}
