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

type Done = (error?: Error) => void

/**
 * Milliseconds. A request takes some three turns, and a call of Redis is given up after 2,000. Measured with V8 that compiles nothing,
 * on two busy cores, requests served a second: 500 connections that always ask 398 without shedding, 407 with 250 ms, 609 with 100;
 * 2,000 none (each answer came too late), 188 and 446. @fastify/under-pressure with the same 100 ms served none of either: it goes by the mean of the last
 * sample, so it sheds all until the next, and that doesn't come while who was shed asks again at once.
 */
const longestTurn = 100
/** A turn that began fewer requests than this was long for another reason: a pause of the machine, collecting garbage. */
const fewest = 64
/** How often the event loop is seen to come round, in milliseconds. */
const look = 20

/** After how many milliseconds a shed request is told so, and in as many it may come again: who doesn't heed Retry-After is held to it. */
const rest = 1000

/** What a shed request is answered. */
export const overloaded = { detail: 'The service is overloaded and did not process the request; send it again after Retry-After.', headers: { 'retry-after': String(rest / 1000) } }

/**
 * A hook that sheds what the event loop gets to late: 503, before auth and body. A turn of the loop serves all that has come
 * since the last, so when more comes than can be served each turn is longer than the one before. After one that was longer
 * than `longest`, so much of a turn is spent serving, and the rest is shed. That costs half as much as serving (most of a request
 * is node's HTTP), so were it told at once, clients that ask again at once would have the service do little else.
 * @param longest milliseconds
 */
export function shedLate (app: FastifyInstance, refused: Refused, longest = longestTurn) {
  // While it doesn't listen there is no more than somebody in this process asks for.
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
    if (shed.length > 0) setTimeout(answer, rest, shed)
    shed = []
  }
  app.addHook('onListen', done => {
    looking = setInterval(turn, look).unref()
    done()
  })
  app.addHook('onClose', (app, done) => {
    clearInterval(looking)
    answer(shed)
    done()
  })
  return (request: FastifyRequest, reply: FastifyReply, done: Done): void => {
    if (++begun <= fewest || before <= longest || performance.now() - turned <= longest) return done()
    refused.shed++
    shed.push(done)
  }
}

function answer (shed: readonly Done[]): void {
  for (const done of shed) done(new Problem('unavailable', overloaded))
}
