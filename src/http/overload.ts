import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import pLimit from 'p-limit'
import type { LimitFunction } from 'p-limit'
import { Problem, Unavailable } from '../core/errors.ts'
import type { Caller } from '../core/model.ts'
import { longAgo, stillThere } from '../handoffs/waiter.ts'
import type { Asker } from '../handoffs/waiter.ts'

/** How many requests were refused because there were too many, since the process began. */
export interface RefusedCounts {
  /** Over their agent's limit: 429. */
  limited: number
  /** More than the process could serve: 503. */
  shed: number
  /** No room for their bodies: 503. */
  bodies: number
}

declare module 'fastify' {
  interface FastifyInstance {
    refused: RefusedCounts
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
 * A hook that refuses, with 503 and before auth and body, what the event loop reaches too late. One turn of the loop
 * serves everything that has arrived since the last one. So when more arrives than can be served, each turn is longer
 * than the one before. After a turn longer than `longestTurn`, a turn serves requests for that long and sheds the rest.
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

/**
 * How many reads of batches and of waits for many handoffs run at once at a master. Each may read a megabyte, and Redis
 * answers all that arrives together before it serves anybody else: a hundred of them kept it busy for most of a second,
 * and three times as many for longer than a connection waits for it.
 */
export const readsAtOnce = 16
/**
 * How many pages of lists a replica reads at once that need the same masters: one, the two of an inbox, or all. So in a
 * Cluster of n each is asked for 2(n + 1) pages at once at most.
 */
export const pagesAtOnce = 2

/** The operations at one master, or at the same ones. */
interface Queue {
  limit: LimitFunction
  tenants: Map<string, { limit: LimitFunction, users: number }>
  /** When the last operation that the master answered ended. */
  answered: number
  /** When it last became clear that the master answers nothing. */
  silent: number
}

/** How long an operation waits for its turn, or for room, in milliseconds: less than a client waits for its answer. */
export const patience = 5000

/** The answer to an operation whose turn doesn't come. */
const noTurn = {
  detail: 'Too many large reads are going on, and the service did not process the operation; ' +
  'send it again after Retry-After.',
  headers: { 'retry-after': '1' }
}

/**
 * Lets a few operations at a time ask each master of Redis, or the same masters; the others wait for their turn. So a
 * silent master keeps none waiting that can do without it. Tenants take turns: each has at most as many operations
 * before a queue as may run at once, so another tenant's next one waits for those only.
 */
export class MasterTurns {
  readonly #atOnce: number
  readonly #patience: number
  readonly #queues = new Map<string | undefined, Queue>()

  /** @param wait milliseconds; tests have another one */
  constructor (atOnce: number, wait = patience) {
    this.#atOnce = atOnce
    this.#patience = wait
  }

  /**
   * Runs the operation when it is its turn.
   * @param operation `now`: the asker, as the key is then, if it waited for a while
   * @param asker if given, it doesn't run for a client that has gone, or whose key has ended, while it waited
   * @throws {Problem} unavailable, without having run: its turn didn't come in time. What has given up stays in the
   *   queues, and takes no time when its turn comes.
   * @throws {Unavailable} without having run, if the master turned out to answer nothing while the operation waited.
   *   Otherwise it would have a call's whole budget before it for each turn that it waits, and the master would get all
   *   of them when it is back, however late.
   */
  async run<T> (
    master: string | undefined, tenant: string, operation: (now?: Caller) => Promise<T>, asker?: Asker
  ): Promise<T> {
    const queue = this.#queueOf(master)
    const own = queue.tenants.get(tenant) ?? { limit: pLimit(this.#atOnce), users: 0 }
    queue.tenants.set(tenant, own)
    own.users++
    const came = performance.now()
    try {
      return await new Promise<T>((resolve, reject) => {
        let isOver = false
        const timer = setTimeout(() => {
          isOver = true
          reject(new Problem('unavailable', noTurn))
        }, this.#patience)
        const begin = async () => {
          if (isOver) return
          clearTimeout(timer)
          await this.#run(queue, came, operation, asker).then(resolve, reject)
        }
        own.limit(() => isOver ? undefined : queue.limit(begin)).catch(reject)
      })
    } finally {
      if (--own.users === 0) queue.tenants.delete(tenant)
      // What it knows concerns only those in it. The names of masters change over time.
      if (queue.tenants.size === 0) this.#queues.delete(master)
    }
  }

  async #run<T> (
    queue: Queue, came: number, operation: (now?: Caller) => Promise<T>, asker: Asker | undefined
  ): Promise<T> {
    if (queue.silent > came) throw new Unavailable('Redis answered none of those before it')
    const isLate = asker !== undefined && performance.now() - came > longAgo
    const now = isLate ? await stillThere(asker) : undefined
    // Its client may have gone while its key was looked up.
    if (asker?.isGone() === true) throw new Problem('request_timeout')
    const began = performance.now()
    let isAnswered = true
    try {
      return await operation(now)
    } catch (error) {
      isAnswered = !(error instanceof Unavailable)
      throw error
    } finally {
      if (isAnswered) queue.answered = performance.now()
      // What one operation alone isn't answered, because its slot is moving, say, others are: those that began after it
      // have ended since.
      else if (queue.answered <= began) queue.silent = performance.now()
    }
  }

  #queueOf (master: string | undefined): Queue {
    const queue =
      this.#queues.get(master) ?? { limit: pLimit(this.#atOnce), tenants: new Map(), answered: 0, silent: 0 }
    this.#queues.set(master, queue)
    return queue
  }
}
