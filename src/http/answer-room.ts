import pLimit from 'p-limit'
import { Problem } from '../errors.ts'

/** How long an operation waits for room, in milliseconds: less than a client waits for its answer. */
const patience = 5000

/** The answer to an operation for whose answer there is no room. */
const noRoom = { detail: 'The service holds as many answers of batches as it can and did not process the operation; send it again after Retry-After.', headers: { 'retry-after': '1' } }

/**
 * Bounds the bytes that the answers of all batches hold at once, from before they are read until they are sent: 10 KB of operations can ask for
 * 100 MB. A tenant may hold as much as it leaves free, so half at most. One batch at a time may go beyond that. So a batch that is alone is always
 * answered, however large, and of those that wait for each other's room one goes on.
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
  #beyond: BatchAnswers | undefined

  /** @param limit bytes @param wait milliseconds; tests have another one */
  constructor (limit: number, wait = patience) {
    this.#limit = limit
    this.patience = wait
  }

  /** Room for one batch's answers. It has to be ended. */
  open (tenant: string): BatchAnswers {
    return new BatchAnswers(this, tenant)
  }

  /** @returns how many of the bytes count; null if there is no room */
  take (batch: BatchAnswers, bytes: number): number | null {
    if ((this.#tenants.get(batch.tenant) ?? 0) + bytes <= this.#limit - this.held - bytes) {
      this.change(batch, bytes)
      return bytes
    }
    this.#beyond ??= batch
    return this.#beyond === batch ? 0 : null
  }

  /** @param by bytes, negative where some become free */
  change ({ tenant }: BatchAnswers, by: number): void {
    const held = (this.#tenants.get(tenant) ?? 0) + by
    if (held === 0) this.#tenants.delete(tenant)
    else this.#tenants.set(tenant, held)
    this.held += by
    if (by < 0) this.#wake()
  }

  /** The batch holds nothing any more. */
  leave (batch: BatchAnswers): void {
    if (this.#beyond !== batch) return
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

/** The answers of one batch. */
export class BatchAnswers {
  readonly tenant: string
  readonly #room: AnswerRoom
  /** One operation at a time waits for room, with the others behind it: each that waits is tried whenever some becomes free. */
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
  async read<T> (most: number, turn: (operation: () => Promise<T | null>) => Promise<T | null>, read: () => Promise<[T, number]>): Promise<T> {
    const came = performance.now()
    let freed = 0
    const attempt = () => turn(async () => {
      freed = this.#room.freed
      const counted = this.#isOver ? 0 : this.#room.take(this, most)
      if (counted === null) return null
      this.#count(counted)
      let used = 0
      try {
        const [answer, bytes] = await read()
        used = bytes
        return answer
      } finally {
        // What has been ended meanwhile counts no more.
        if (counted > 0 && !this.#isOver) {
          this.#room.change(this, used - counted)
          this.#count(used - counted)
        }
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

  /** Call it when the answers are sent, or nobody gets them. */
  end (): void {
    if (this.#isOver) return
    this.#isOver = true
    if (this.#counted > 0) this.#room.change(this, -this.#counted)
    this.#room.leave(this)
  }

  #count (bytes: number): void {
    this.#counted += bytes
  }
}
