import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Problem } from '../core/errors.ts'
import type { Caller } from '../core/model.ts'
import type { LimitTable } from '../auth/limit-table.ts'
import { JointBudget, rateWindow } from '../store/rates.ts'
import type { Budget, Rates } from '../store/rates.ts'
import type { RefusedCounts } from './overload.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** The limit of a request that counts as its operations (`isBatch`); null for others. */
    limit: BatchLimit | null
  }
}

type Done = (error?: Error) => void

/**
 * While its agent is over the limit, a batch of at most so many bytes is read, so that each operation gets its own
 * answer.
 */
const small = 16 * 1024

/**
 * Limits how many requests an agent, and a tenant's agents together, may make in a minute, whichever replicas they ask.
 * It runs after authentication and before the body is read. Beyond the limit the answer is 429, and all answers say how
 * much is left (draft-ietf-httpapi-ratelimit-headers-10). If Redis can't say, the answer is 503, as the request's own
 * would be.
 * @fastify/rate-limit does none of this: it writes other header fields, asks its store on each request, and makes three
 * promises each time.
 * @param perMinute requests; 0 for no limit, except a key's own and those that operators set
 * @param limits that operators set
 */
export function useRateLimit (
  app: FastifyInstance, rates: Rates, perMinute: number, limits: LimitTable, refused: RefusedCounts
): void {
  app.decorateRequest('limit', null)
  const admit = (request: FastifyRequest, reply: FastifyReply, done: Done) => {
    const budget = budgetOf(rates, request.caller, perMinute, limits)
    if (request.routeOptions.config.isBatch === true) {
      request.limit = new BatchLimit(budget, refused)
      return request.limit.begin(reply, done)
    }
    if (budget === undefined) return done()
    const now = performance.now()
    const known = budget.spend(now)
    if (known !== undefined) answer(budget, known, now, reply, done, refused)
    else {
      budget.ask((error, allowed) =>
        error === null ? answer(budget, allowed, performance.now(), reply, done, refused) : done(error))
    }
  }
  app.addHook('onRequest', (request, reply, done) => {
    // A form whose session has ended has no caller yet, and changes nothing: it is asked to sign in.
    if (request.caller === null) done()
    else if (limits.isKnown) admit(request, reply, done)
    else limits.whenKnown().then(() => admit(request, reply, done), done)
  })
  app.addHook('onRoute', route => {
    if (route.config?.isBatch === true) route.preParsing = refuseLarge
  })
}

/** Refuses a batch over its agent's limit before its body is read, unless the body is small. */
function refuseLarge ({ headers, limit }: FastifyRequest, reply: FastifyReply, payload: unknown, done: Done): void {
  const isSmall = headers['transfer-encoding'] === undefined && Number(headers['content-length'] ?? 0) <= small
  done(isSmall ? undefined : limit?.refusal())
}

/** The caller's budget; undefined if it has no limit. @param perMinute as above */
function budgetOf (
  rates: Rates, { tenant, agent, ratePerMinute }: Caller, perMinute: number, limits: LimitTable
): Budget | undefined {
  const own = ratePerMinute ?? perMinute
  const set = limits.of(tenant)
  if (set === undefined) return own === 0 ? undefined : rates.of(tenant, agent, own)
  // All limits of one agent count together, so the lowest is enough.
  const ofAgent = Math.min(own === 0 ? Infinity : own, set.agents.get(agent) ?? Infinity)
  const budget = ofAgent === Infinity ? undefined : rates.of(tenant, agent, ofAgent)
  if (set.all === null) return budget
  const ofAll = rates.ofTenant(tenant, set.all)
  return budget === undefined ? ofAll : new JointBudget(budget, ofAll)
}

/**
 * Counts each operation of a batch as a request. One is spent before the body is read, and the first operation uses it.
 * So a batch without any counts too: one whose body is refused.
 */
export class BatchLimit {
  readonly #budget: Budget | undefined
  readonly #refused: RefusedCounts
  /** Whether what was spent before the body is allowed; null when an operation has used it. */
  #first: boolean | null = true
  #isOver = false

  constructor (budget: Budget | undefined, refused: RefusedCounts) {
    this.#budget = budget
    this.#refused = refused
  }

  /** Spends one for the first operation, and writes how much is left. */
  begin (reply: FastifyReply, done: Done): void {
    const budget = this.#budget
    if (budget === undefined) return done()
    const go = (allowed: boolean, now: number): void => {
      this.#first = allowed
      writeFields(budget, now, reply)
      done()
    }
    const now = performance.now()
    const known = budget.spend(now)
    if (known !== undefined) go(known, now)
    else budget.ask((error, allowed) => error === null ? go(allowed, performance.now()) : done(error))
  }

  /** Why the whole batch is refused, if no operation has run and the agent was over its limit before the body. */
  refusal (): Problem | undefined {
    return this.#first === false && this.#budget !== undefined ? this.#refusal(this.#budget) : undefined
  }

  /** @throws {Problem} rate_limited @throws {Unavailable} */
  spend (): void | Promise<void> {
    const budget = this.#budget
    if (budget === undefined) return
    const known = this.#first ?? budget.spend(performance.now())
    this.#first = null
    if (known === true) return
    if (known === false) throw this.#refusal(budget)
    return new Promise((resolve, reject) => budget.ask((error, allowed) => {
      if (error !== null) reject(error)
      else if (allowed) resolve()
      else reject(this.#refusal(budget))
    }))
  }

  /** Writes how much is left, as on every answer; and if an operation was refused, when to try again. */
  writeHeaders (reply: FastifyReply): void {
    if (this.#budget === undefined) return
    const now = performance.now()
    writeFields(this.#budget, now, reply)
    if (this.#isOver) reply.header('retry-after', retryAfter(this.#budget, now))
  }

  #refusal (budget: Budget): Problem {
    this.#refused.limited++
    this.#isOver = true
    return limited(budget, performance.now())
  }
}

function writeFields (budget: Budget, now: number, reply: FastifyReply): void {
  reply.header('ratelimit-policy', `"default";q=${budget.limit};w=${rateWindow / 1000}`)
  reply.header('ratelimit', `"default";r=${budget.remaining};t=${secondsLeft(budget, now)}`)
}

function limited (budget: Budget, now: number): Problem {
  return new Problem('rate_limited', { headers: { 'retry-after': retryAfter(budget, now) } })
}

function retryAfter (budget: Budget, now: number): string {
  return String(Math.max(1, secondsLeft(budget, now)))
}

function secondsLeft (budget: Budget, now: number): number {
  return Math.ceil(budget.resetsIn(now) / 1000)
}

function answer (
  budget: Budget, allowed: boolean, now: number, reply: FastifyReply, done: Done, refused: RefusedCounts
): void {
  writeFields(budget, now, reply)
  if (allowed) return done()
  refused.limited++
  done(limited(budget, now))
}
