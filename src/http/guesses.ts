import rateLimit from '@fastify/rate-limit'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { guesses } from '../auth/credentials.ts'
import type { Guesses } from '../auth/credentials.ts'

/** How many addresses are remembered for their wrong keys: those that failed last. */
const addresses = 10_000

/** Whose wrong keys a request's would be. */
export type GuessesOf = (request: FastifyRequest) => Guesses

/** Counts wrong keys by address. @param app whose requests carry keys */
export async function countGuesses (app: FastifyInstance): Promise<GuessesOf> {
  let standing: ReturnType<FastifyInstance['createRateLimit']>
  // In a scope without routes: in any other the plugin would put something of its own on every request.
  await app.register(async apart => {
    await apart.register(rateLimit, { global: false, max: guesses.limit, timeWindow: guesses.window, cache: addresses })
    standing = apart.createRateLimit()
  })
  return request => ({
    async blockedFor () {
      const now = await standing(request, { increment: false })
      return now.isAllowed || now.remaining > 0 ? 0 : now.ttlInSeconds
    },
    count: () => standing(request),
  })
}
