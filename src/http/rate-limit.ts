import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Problem } from '../core/errors.ts'
import type { Caller } from '../core/model.ts'
import type { LimitTable } from '../auth/limit-table.ts'
import { JointAllowance, rateWindow } from '../store/rates.ts'
import type { Allowance, Rates } from '../store/rates.ts'
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
 * much is left (draft-ietf-httpapi-ratelimit-headers-10). If Redis doesn't answer, the answer is 503, as the request's
 * own would be.
 * @fastify/rate-limit does none of this: it writes other header fields, asks its store on each request, and makes three
 * promises each time.
 * @param perMinute requests; 0 for no limit but those of keys and operators
 * @param limits that operators set
 */
export function useRateLimit (
  app: FastifyInstance, rates: Rates, perMinute: number, limits: LimitTable, refused: RefusedCounts
): void {
  app.decorateRequest('limit', null)
  const admit = (request: FastifyRequest, reply: FastifyReply, done: Done) => {
    const allowance = allowanceOf(rates, request.caller, perMinute, limits)
    if (request.routeOptions.config.isBatch === true) {
      request.limit = new BatchLimit(allowance, refused)
      return request.limit.begin(reply, done)
    }
    if (allowance === undefined) return done()
    const now = performance.now()
    const known = allowance.spend(now)
    if (known !== undefined) answer(allowance, known, now, reply, done, refused)
    else {
      allowance.settle((error, allowed) =>
        error === null ? answer(allowance, allowed, performance.now(), reply, done, refused) : done(error))
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

/** The caller's allowance; undefined if it has no limit. @param perMinute as above */
function allowanceOf (
  rates: Rates, { tenant, agent, ratePerMinute }: Caller, perMinute: number, limits: LimitTable
): Allowance | undefined {
  const own = ratePerMinute ?? perMinute
  const set = limits.of(tenant)
  if (set === undefined) return own === 0 ? undefined : rates.of(tenant, agent, own)
  // All limits of one agent count together, so the lowest is enough.
  const ofAgent = Math.min(own === 0 ? Infinity : own, set.agents.get(agent) ?? Infinity)
  const allowance = ofAgent === Infinity ? undefined : rates.of(tenant, agent, ofAgent)
  if (set.all === null) return allowance
  const ofAll = rates.ofTenant(tenant, set.all)
  return allowance === undefined ? ofAll : new JointAllowance(allowance, ofAll)
}

/**
 * Counts each operation of a batch as a request. The first is spent before the body is read: so a batch whose body is
 * refused counts too.
 */
export class BatchLimit {
  readonly #allowance: Allowance | undefined
  readonly #refused: RefusedCounts
  /** Whether the request that was spent before the body is allowed; null once an operation has used it. */
  #first: boolean | null = true
  #isOver = false

  constructor (allowance: Allowance | undefined, refused: RefusedCounts) {
    this.#allowance = allowance
    this.#refused = refused
  }

  /** Spends one for the first operation, and writes how much is left. */
  begin (reply: FastifyReply, done: Done): void {
    const allowance = this.#allowance
    if (allowance === undefined) return done()
    const go = (allowed: boolean, now: number): void => {
      this.#first = allowed
      writeFields(allowance, now, reply)
      done()
    }
    const now = performance.now()
    const known = allowance.spend(now)
    if (known !== undefined) go(known, now)
    else allowance.settle((error, allowed) => error === null ? go(allowed, performance.now()) : done(error))
  }

  /** Why the whole batch is refused, if no operation has run and the agent was over its limit before the body. */
  refusal (): Problem | undefined {
    return this.#first === false && this.#allowance !== undefined ? this.#refusal(this.#allowance) : undefined
  }

  /** @throws {Problem} rate_limited @throws {Unavailable} */
  spend (): void | Promise<void> {
    const allowance = this.#allowance
    if (allowance === undefined) return
    const known = this.#first ?? allowance.spend(performance.now())
    this.#first = null
    if (known === true) return
    if (known === false) throw this.#refusal(allowance)
    return new Promise((resolve, reject) => allowance.settle((error, allowed) => {
      if (error !== null) reject(error)
      else if (allowed) resolve()
      else reject(this.#refusal(allowance))
    }))
  }

  /** Writes how much is left, as on every answer; and if an operation was refused, when to try again. */
  writeHeaders (reply: FastifyReply): void {
    if (this.#allowance === undefined) return
    const now = performance.now()
    writeFields(this.#allowance, now, reply)
    if (this.#isOver) reply.header('retry-after', retryAfter(this.#allowance, now))
  }

  #refusal (allowance: Allowance): Problem {
    this.#refused.limited++
    this.#isOver = true
    return limited(allowance, performance.now())
  }
}

function writeFields (allowance: Allowance, now: number, reply: FastifyReply): void {
  reply.header('ratelimit-policy', `"default";q=${allowance.limit};w=${rateWindow / 1000}`)
  reply.header('ratelimit', `"default";r=${allowance.remaining};t=${secondsLeft(allowance, now)}`)
}

function limited (allowance: Allowance, now: number): Problem {
  return new Problem('rate_limited', { headers: { 'retry-after': retryAfter(allowance, now) } })
}

function retryAfter (allowance: Allowance, now: number): string {
  return String(Math.max(1, secondsLeft(allowance, now)))
}

function secondsLeft (allowance: Allowance, now: number): number {
  return Math.ceil(allowance.resetsIn(now) / 1000)
}

function answer (
  allowance: Allowance, allowed: boolean, now: number, reply: FastifyReply, done: Done, refused: RefusedCounts
): void {
  writeFields(allowance, now, reply)
  if (allowed) return done()
  refused.limited++
  done(limited(allowance, now))
}
