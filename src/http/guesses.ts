import rateLimit from '@fastify/rate-limit'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { guesses } from '../auth/credentials.ts'
import type { Guesses } from '../auth/credentials.ts'

/** How many addresses with wrong keys are remembered: those that failed last. */
const addresses = 10_000

/** The count of wrong keys that a request's key would go into. */
export type GuessesOf = (request: FastifyRequest) => Guesses

/** Counts wrong keys by client address. @param app the instance whose requests carry keys */
export async function countGuesses (app: FastifyInstance): Promise<GuessesOf> {
  let limiter: ReturnType<FastifyInstance['createRateLimit']>
  // In a scope without routes: anywhere else the plugin would add a hook to every request.
  await app.register(async apart => {
    await apart.register(rateLimit, { global: false, max: guesses.limit, timeWindow: guesses.window, cache: addresses })
    limiter = apart.createRateLimit()
  })
  return request => ({
    async blockedFor () {
      const now = await limiter(request, { increment: false })
      return now.isAllowed || now.remaining > 0 ? 0 : now.ttlInSeconds
    },
    count: () => limiter(request),
  })
}
