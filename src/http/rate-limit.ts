import type { FastifyReply, FastifyRequest } from 'fastify'
import { Problem } from '../errors.ts'
import type { Caller } from '../model.ts'
import type { RateBudget } from '../store/rate-budget.ts'
import { rateWindow } from '../store/rates.ts'
import type { Rates } from '../store/rates.ts'
import type { Refused } from './shed.ts'

type Done = (error?: Error) => void

/**
 * Limits how many requests an agent may make in a minute, whichever replicas it asks. This hook runs after authentication and before the body is
 * read. Beyond the limit the answer is 429, and all answers tell how much is left (draft-ietf-httpapi-ratelimit-headers-10). If Redis can't say,
 * the answer is 503, as the request's own would be. @fastify/rate-limit does none of this: it writes other header fields, asks its store on each
 * request, and makes three promises each time.
 * @param perMinute requests; 0 for no limit, except a key's own
 */
export function rateLimit (rates: Rates, perMinute: number, refused: Refused) {
  return (request: FastifyRequest, reply: FastifyReply, done: Done): void => {
    if (request.routeOptions.config.isBatch === true) return done()
    const budget = budgetOf(rates, request.caller, perMinute)
    if (budget === undefined) return done()
    const now = performance.now()
    const known = budget.spend(now)
    if (known !== undefined) answer(budget, known, now, reply, done, refused)
    else budget.ask((error, allowed) => error === null ? answer(budget, allowed, performance.now(), reply, done, refused) : done(error))
  }
}

/** The caller's budget; undefined if it has no limit. @param perMinute as above */
function budgetOf (rates: Rates, { tenant, agent, ratePerMinute }: Caller, perMinute: number): RateBudget | undefined {
  const limit = ratePerMinute ?? perMinute
  return limit === 0 ? undefined : rates.of(tenant, agent, limit)
}

/** Counts each operation of a batch as a request. */
export class BatchLimit {
  readonly #budget: RateBudget | undefined
  readonly #refused: Refused
  #isOver = false

  constructor (rates: Rates, caller: Caller, perMinute: number, refused: Refused) {
    this.#budget = budgetOf(rates, caller, perMinute)
    this.#refused = refused
  }

  /** @throws {Problem} rate_limited @throws {Unavailable} */
  spend (): void | Promise<void> {
    const budget = this.#budget
    if (budget === undefined) return
    const known = budget.spend(performance.now())
    if (known === true) return
    if (known === false) throw this.#refusal(budget)
    return new Promise((resolve, reject) => budget.ask((error, allowed) => {
      if (error !== null) reject(error)
      else if (allowed) resolve()
      else reject(this.#refusal(budget))
    }))
  }

  /** Writes how much is left, as on every answer; and if an operation was refused, when to try again. */
  tell (reply: FastifyReply): void {
    if (this.#budget === undefined) return
    const now = performance.now()
    writeFields(this.#budget, now, reply)
    if (this.#isOver) reply.header('retry-after', retryAfter(this.#budget, now))
  }

  #refusal (budget: RateBudget): Problem {
    this.#refused.limited++
    this.#isOver = true
    return limited(budget, performance.now())
  }
}

function writeFields (budget: RateBudget, now: number, reply: FastifyReply): void {
  reply.header('ratelimit-policy', `"default";q=${budget.limit};w=${rateWindow / 1000}`)
  reply.header('ratelimit', `"default";r=${budget.remaining};t=${secondsLeft(budget, now)}`)
}

function limited (budget: RateBudget, now: number): Problem {
  return new Problem('rate_limited', { headers: { 'retry-after': retryAfter(budget, now) } })
}

function retryAfter (budget: RateBudget, now: number): string {
  return String(Math.max(1, secondsLeft(budget, now)))
}

function secondsLeft (budget: RateBudget, now: number): number {
  return Math.ceil(budget.resetsIn(now) / 1000)
}

function answer (budget: RateBudget, allowed: boolean, now: number, reply: FastifyReply, done: Done, refused: Refused): void {
  writeFields(budget, now, reply)
  if (allowed) return done()
  refused.limited++
  done(limited(budget, now))
}
