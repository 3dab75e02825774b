import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Problem } from '../core/errors.ts'
import { Budget } from '../store/requester.ts'
import type { Reads } from '../store/reads.ts'

/** How many requests were refused because there were too many, since the process began. */
export interface RefusedCounts {
  /** Over their agent's limit: 429. */
  limited: number
  /** More than the process could serve: 503. */
  shed: number
  /** Their bodies exceeded the free bytes: 503. */
  bodies: number
}

declare module 'fastify' {
  interface FastifyInstance {
    refused: RefusedCounts
  }
  interface FastifyRequest {
    /** Undefined as long as none was asked for. */
    ownBudget: Budget | undefined
    /** The budget of its answers. Its caller must be known. */
    budget (): Budget
  }
}

type Done = (error?: Error) => void

/**
 * The turn length from which requests are shed, in milliseconds. A request takes about three turns, and a call to Redis
 * is given up after 2,000. Requests served per second, measured with a V8 that compiles nothing, on two busy cores:
 * with 500 connections that send requests back to back, 398 without shedding, 407 with 250 ms, 609 with 100; with 2,000
 * connections none (every answer came too late), 188 and 446.
 * @fastify/under-pressure with the same 100 ms served none in either case. It uses the mean of its last sample, so it
 * sheds everything until the next sample, and that doesn't come while shed clients retry at once.
 */
const longestTurn = 100
/**
 * If a turn began fewer requests than this, it was long for another reason: a pause of the machine, or garbage
 * collection.
 */
const fewest = 64
/** How often the event loop's turns are timed, in milliseconds. */
const turnInterval = 20

/**
 * How long the answer to a shed request is held back, in milliseconds, and also its Retry-After. So a client that
 * ignores Retry-After is slowed down too.
 */
const answerDelay = 1000

/** The answer to a shed request. */
export const overloaded = {
  detail: 'The service is overloaded and did not process the request; send it again after Retry-After.',
  headers: { 'retry-after': String(answerDelay / 1000) }
}

/**
 * A hook that refuses, with 503 and before auth and body, requests that the event loop reaches too late. A turn of the
 * loop serves all requests that have arrived since the last turn. So if too many arrive, each turn is longer than the
 * last. After a turn longer than `longestTurn`, a turn serves requests for that long and sheds the rest.
 * Shedding costs half as much as serving, since most of a request is node's HTTP. If it answered at once, clients that
 * retry at once would keep the service busy with little else.
 */
export function shedLate (app: FastifyInstance, refused: RefusedCounts) {
  // Before the service listens, requests come only from this process itself, so nothing is shed.
  let turned = Infinity
  let before = 0
  let begun = 0
  let shed: Done[] = []
  let looking: NodeJS.Timeout | undefined
  const turn = () => {
    const now = performance.now()
    before = now - turned
    turned = now
    begun = 0
    if (shed.length > 0) setTimeout(answer, answerDelay, shed)
    shed = []
  }
  app.addHook('onListen', done => {
    looking = setInterval(turn, turnInterval).unref()
    done()
  })
  app.addHook('onClose', (app, done) => {
    clearInterval(looking)
    answer(shed)
    done()
  })
  return (request: FastifyRequest, reply: FastifyReply, done: Done): void => {
    if (++begun <= fewest || before <= longestTurn || performance.now() - turned <= longestTurn) return done()
    refused.shed++
    shed.push(done)
  }
}

function answer (shed: readonly Done[]): void {
  for (const done of shed) done(new Problem('unavailable', overloaded))
}

/** Gives each request a budget for its answers, until those are sent. */
export function useBudgets (app: FastifyInstance, reads: Reads): void {
  app.decorateRequest('ownBudget', undefined)
  app.decorateRequest('budget', function (this: FastifyRequest) {
    if (this.ownBudget === undefined) {
      const budget = this.ownBudget = new Budget(this.caller.tenant)
      this.onOver(() => reads.end(budget))
    }
    return this.ownBudget
  })
}
