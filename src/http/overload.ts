import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import pLimit from 'p-limit'
import type { LimitFunction } from 'p-limit'
import { Problem, Unavailable } from '../core/errors.ts'
import type { Caller } from '../core/model.ts'
import { stillThere } from '../handoffs/waiter.ts'
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
const defaultMaxTurn = 100
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
 * than the one before. After a turn longer than `maxTurn`, a turn serves requests for that long and sheds the rest.
 * Shedding costs half as much as serving, since most of a request is node's HTTP. If it answered at once, clients that
 * retry at once would keep the service busy with little else.
 * @param maxTurn milliseconds
 */
export function shedLate (app: FastifyInstance, refused: RefusedCounts, maxTurn = defaultMaxTurn) {
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
    if (++begun <= fewest || before <= maxTurn || performance.now() - turned <= maxTurn) return done()
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
/** How many pages of lists a replica reads at once: each reads from all partitions. */
export const pagesAtOnce = 2

/** The operations at one master. */
interface Queue {
  limit: LimitFunction
  tenants: Map<string, { limit: LimitFunction, users: number }>
  /** When the last operation that the master answered ended. */
  answered: number
  /** When it last became clear that the master answers nothing. */
  silent: number
}

/** How long an operation waits for its turn, or for room, in milliseconds: less than a client waits for its answer. */
const patience = 5000
/** After so many milliseconds what waits asks again whether it may still run. A key must stop working within 2 s. */
export const longAgo = 100

/** The answer to an operation whose turn doesn't come. */
const noTurn = {
  detail: 'Too many large reads are going on, and the service did not process the operation; ' +
  'send it again after Retry-After.',
  headers: { 'retry-after': '1' }
}

/**
 * Lets a few operations at a time ask each master of Redis; the others wait for their turn. Tenants take turns: each
 * has at most as many operations before the master's queue as may run at once, so another tenant's next one waits
 * for those only.
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

  /** A master's queue stays: there are as many as a Cluster has ever had masters. */
  #queueOf (master: string | undefined): Queue {
    let queue = this.#queues.get(master)
    if (queue === undefined) {
      this.#queues.set(master, queue = { limit: pLimit(this.#atOnce), tenants: new Map(), answered: 0, silent: 0 })
    }
    return queue
  }
}

/** The answer to an operation for whose answer there is no room. */
const noRoom = {
  detail: 'The service holds as many large answers as it can and did not process the operation; ' +
  'send it again after Retry-After.',
  headers: { 'retry-after': '1' }
}

/**
 * Bounds the bytes that large answers hold at once, from before they are read until they are sent: 10 KB of a batch's
 * operations can ask for 100 MB, and a wait for a hundred handoffs for 4. A tenant may hold as much as it leaves free,
 * so half at most. One request at a time may go beyond that. So one that is alone is always answered, however large,
 * and of those that wait for each other's room one goes on.
 */
export class AnswerRoom {
  /** The bytes that count now. */
  held = 0
  /** How often some became free. */
  freed = 0
  readonly patience: number
  readonly #limit: number
  readonly #tenants = new Map<string, number>()
  readonly #waiting = new Set<() => void>()
  #beyond: Answers | undefined

  /** @param limit bytes @param wait milliseconds; tests have another one */
  constructor (limit: number, wait = patience) {
    this.#limit = limit
    this.patience = wait
  }

  /** Room for the answers of one request. It has to be ended. */
  open (tenant: string): Answers {
    return new Answers(this, tenant)
  }

  /** @returns how many of the bytes count; null if there is no room */
  take (answers: Answers, bytes: number): number | null {
    if ((this.#tenants.get(answers.tenant) ?? 0) + bytes <= this.#limit - this.held - bytes) {
      this.change(answers, bytes)
      return bytes
    }
    this.#beyond ??= answers
    return this.#beyond === answers ? 0 : null
  }

  /** @param by bytes, negative where some become free */
  change ({ tenant }: Answers, by: number): void {
    const held = (this.#tenants.get(tenant) ?? 0) + by
    if (held === 0) this.#tenants.delete(tenant)
    else this.#tenants.set(tenant, held)
    this.held += by
    if (by < 0) this.#wake()
  }

  /** The request holds nothing any more. */
  leave (answers: Answers): void {
    if (this.#beyond !== answers) return
    this.#beyond = undefined
    this.#wake()
  }

  /** Resolves when more has become free than had at `freed`, or when the time is over. */
  async more (freed: number, milliseconds: number): Promise<void> {
    if (this.freed !== freed) return
    await new Promise<void>(resolve => {
      const wake = () => {
        clearTimeout(timer)
        this.#waiting.delete(wake)
        resolve()
      }
      const timer = setTimeout(wake, milliseconds)
      this.#waiting.add(wake)
    })
  }

  #wake (): void {
    this.freed++
    for (const wake of this.#waiting) wake()
  }
}

/** The answers of one request: of a batch's operations, or of a wait for many. */
export class Answers {
  readonly tenant: string
  readonly #room: AnswerRoom
  /**
   * One operation at a time waits for room, with the others after it: each that waits is tried whenever some becomes
   * free.
   */
  readonly #line = pLimit(1)
  #counted = 0
  #isOver = false

  constructor (room: AnswerRoom, tenant: string) {
    this.#room = room
    this.tenant = tenant
  }

  /**
   * Reads an answer of at most so many bytes when there is room for it.
   * @param turn runs what it is given when it is its turn; no turn is held while there is no room
   * @param read says how many bytes the answer has
   * @throws {Problem} unavailable, without having read
   */
  async read<T> (
    maxBytes: number, turn: (operation: () => Promise<T | null>) => Promise<T | null>, read: () => Promise<[T, number]>
  ): Promise<T> {
    const came = performance.now()
    let freed = 0
    const attempt = () => turn(async () => {
      freed = this.#room.freed
      const taken = this.take(maxBytes)
      if (taken === null) return null
      let used = 0
      try {
        const [answer, bytes] = await read()
        used = bytes
        return answer
      } finally {
        this.keep(taken, used)
      }
    })
    return await attempt() ?? await this.#line(async () => {
      for (;;) {
        const left = came + this.#room.patience - performance.now()
        if (left <= 0) throw new Problem('unavailable', noRoom)
        await this.#room.more(freed, left)
        const answer = await attempt()
        if (answer !== null) return answer
      }
    })
  }

  /**
   * Room for an answer of at most so many bytes, if there is some at once. Call keep() once it is read.
   * @returns how many of the bytes count; null if there is no room
   */
  take (maxBytes: number): number | null {
    const counted = this.#isOver ? 0 : this.#room.take(this, maxBytes)
    this.#counted += counted ?? 0
    return counted
  }

  /** @param taken what take() returned @param used how many bytes the answer has */
  keep (taken: number, used: number): void {
    // What has been ended meanwhile counts no more, and what goes beyond the room never did.
    if (taken === 0 || this.#isOver) return
    this.#room.change(this, used - taken)
    this.#counted += used - taken
  }

  /** Call it when the answers are sent, or can't be. */
  end (): void {
    if (this.#isOver) return
    this.#isOver = true
    if (this.#counted > 0) this.#room.change(this, -this.#counted)
    this.#room.leave(this)
  }
}

/** Room for the answers of a request, until they are sent. */
export function answersFor (room: AnswerRoom, request: FastifyRequest, reply: FastifyReply): Answers {
  const answers = room.open(request.caller.tenant)
  whenOver(request, reply, () => answers.end())
  return answers
}

/**
 * Calls once when the answer is sent, or the connection is closed. A response that waits for another one's end doesn't
 * learn of the latter.
 */
function whenOver ({ raw: { socket } }: FastifyRequest, { raw }: FastifyReply, over: () => void): void {
  const end = () => {
    socket.off('close', end)
    over()
  }
  // It may have closed already, and then the event doesn't come again.
  if (socket.destroyed) return over()
  raw.once('close', end)
  socket.once('close', end)
}
