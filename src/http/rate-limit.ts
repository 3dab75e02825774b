import type { FastifyReply, FastifyRequest } from 'fastify'
import { Problem } from '../errors.ts'
import type { RateBudget } from '../store/rate-budget.ts'
import { rateWindow } from '../store/rates.ts'
import type { Rates } from '../store/rates.ts'
import type { Refused } from './shed.ts'

type Done = (error?: Error) => void

/**
 * Limits what an agent may ask in a minute, whichever replica it asks: a hook for after auth, and before the body. Beyond it is a
 * 429, and all answers tell how much is left (draft-ietf-httpapi-ratelimit-headers-10). Where Redis can't say, it is a 503,
 * as the request itself would be. @fastify/rate-limit has none of this: it writes other header fields, asks its store for each
 * request, and comes with three promises for each.
 * @param perMinute requests; 0 for no limit but what a key has of its own
 */
export function rateLimit (rates: Rates, perMinute: number, refused: Refused) {
  return (request: FastifyRequest, reply: FastifyReply, done: Done): void => {
    const { tenant, agent, ratePerMinute } = request.caller
    const limit = ratePerMinute ?? perMinute
    if (limit === 0) return done()
    const budget = rates.of(tenant, agent, limit)
    const now = performance.now()
    const known = budget.spend(now)
    if (known !== undefined) answer(budget, known, now, reply, done, refused)
    else budget.ask((error, allowed) => error === null ? answer(budget, allowed, performance.now(), reply, done, refused) : done(error))
  }
}

function answer (budget: RateBudget, allowed: boolean, now: number, reply: FastifyReply, done: Done, refused: Refused): void {
  const { limit, remaining } = budget
  const resets = Math.ceil(budget.resetsIn(now) / 1000)
  reply.header('ratelimit-policy', `"default";q=${limit};w=${rateWindow / 1000}`)
  reply.header('ratelimit', `"default";r=${remaining};t=${resets}`)
  if (allowed) return done()
  refused.limited++
  done(new Problem('rate_limited', { headers: { 'retry-after': String(Math.max(1, resets)) } }))
}
