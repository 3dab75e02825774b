import type { FastifyInstance, FastifyRequest } from 'fastify'
import pLimit from 'p-limit'
import { Problem } from '../core/errors.ts'
import type { Room, Turn } from '../handoffs/waiter.ts'
import { patience } from './overload.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** Undefined as long as it has no room. */
    answers: Answers | undefined
    /** Room for its answer. Its caller must be known. */
    room (): Answers
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
 * operations can ask for 100 MB, and a hundred clients that read nothing may each catch 4. A tenant may hold as much as
 * it leaves free, so half at most. One request at a time may go beyond that. So one that is alone is always answered,
 * however large, and of those that wait for each other's room one goes on.
 */
export class AnswerRoom {
  /** The bytes that count now. */
  held = 0
  /** How often some became free. */
  freed = 0
  readonly patience: number
  readonly #limit: number
  readonly #tenants = new Map<string, number>()
  /** Those that wait, by tenant, the first first. */
  readonly #waiting = new Map<string, Set<() => void>>()
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
      this.wakeNext(answers.tenant)
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

  /** Resolves when more has become free than had at `freed` and it is its turn, or when the time is over. */
  async more (tenant: string, freed: number, milliseconds: number): Promise<void> {
    if (this.freed !== freed) return
    await new Promise<void>(resolve => {
      const waiting = this.#waiting.get(tenant) ?? new Set()
      this.#waiting.set(tenant, waiting)
      const wake = () => {
        clearTimeout(timer)
        waiting.delete(wake)
        if (waiting.size === 0) this.#waiting.delete(tenant)
        resolve()
      }
      const timer = setTimeout(wake, milliseconds)
      waiting.add(wake)
    })
  }

  /**
   * Lets the tenant's next one try. One at a time, and each that got room, or gave up, wakes the one after it: if
   * thousands tried whenever some became free, they would do nothing else. The one that doesn't fit waits again, and
   * what it waits for wakes the next: it fits where nothing is held.
   */
  wakeNext (tenant: string): void {
    this.#waiting.get(tenant)?.values().next().value?.()
  }

  #wake (): void {
    this.freed++
    for (const tenant of this.#waiting.keys()) this.wakeNext(tenant)
  }
}

/** When the turn of who waited for room should have come, in milliseconds. */
const soon = 50

/** What one request is answered, or each of a batch's operations. */
export class Answers implements Room {
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

  async read<T> (
    maxBytes: number, turn: Turn, read: () => Promise<[T, number]>, patience = this.#room.patience
  ): Promise<T> {
    const until = performance.now() + patience
    let freed = 0
    let answer: T
    const attempt = () => turn(async () => {
      freed = this.#room.freed
      const taken = this.take(maxBytes)
      if (taken === null) return false
      let used = 0
      try {
        [answer, used] = await read()
        return true
      } finally {
        this.keep(taken, used)
      }
    })
    if (!await attempt()) await this.#line(() => this.#whenFree(attempt, until, () => freed))
    return answer!
  }

  /** @param freed how often some had become free at the last attempt */
  async #whenFree (attempt: () => Promise<boolean>, until: number, freed: () => number): Promise<void> {
    const wakeNext = () => this.#room.wakeNext(this.tenant)
    try {
      for (let isRead = false; !isRead;) {
        const left = until - performance.now()
        if (left <= 0) throw new Problem('unavailable', noRoom)
        await this.#room.more(this.tenant, freed(), left)
        // Where its turn doesn't come, what became free is for another.
        const timer = setTimeout(wakeNext, soon)
        isRead = await attempt().finally(() => clearTimeout(timer))
      }
    } finally {
      wakeNext()
    }
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

/** Gives each request room for its answer, until that is sent. */
export function useAnswerRoom (app: FastifyInstance, room: AnswerRoom): void {
  app.decorateRequest('answers', undefined)
  app.decorateRequest('room', function (this: FastifyRequest) {
    if (this.answers === undefined) {
      const answers = this.answers = room.open(this.caller.tenant)
      this.onOver(() => answers.end())
    }
    return this.answers
  })
}
