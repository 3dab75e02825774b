/** What lua/rate.lua gave: so many requests, how many are left in the window for whoever asks next; times by Redis's clock. */
export interface Taken { given: number, left: number, now: number, ends: number }

/** Takes so many that are needed now, and some more to hold. @throws {Unavailable} */
export type Take = (needed: number, spare: number) => Promise<Taken>

/** Is told whether a request may be made, or that nobody knows. */
export type Answered = (error: Error | null, allowed: boolean) => void

/** How long it is believed that there is nothing left, in milliseconds: then Redis is asked again, whose clock may have been set. */
const believed = 1000

/**
 * What one replica holds of an agent's window, and spends without asking Redis. What is held has been counted there as if it were
 * spent, so all replicas together never allow more than the limit. They may allow less: what another one holds when the last
 * is gone. It takes a tenth of what is left at the most, and no more than it has spent in this window already, so at least half
 * of the limit is allowed however many replicas there are, and with one all of it. Times are this process's monotonic milliseconds.
 */
export class RateBudget {
  readonly limit: number
  readonly #take: Take
  #held = 0
  /** What was spent of this window here. */
  #spent = 0
  /** What was left in Redis when it was asked last. */
  #left = 0
  /** Until when what is held may be spent: never after the window's end. */
  #spendUntil = 0
  #refuseUntil = 0
  /** The window's end at the latest. */
  #resets = 0
  /** By Redis's clock: which window it is. */
  #ends = 0
  #asking = false
  #waiting: Answered[] = []

  constructor (limit: number, take: Take) {
    this.limit = limit
    this.#take = take
  }

  /** How many may still be made in this window, as far as this replica knows. */
  get remaining (): number {
    return this.#held + this.#left
  }

  /** Milliseconds until there is a new window: by then at the latest. */
  resetsIn (now: number): number {
    return Math.max(0, this.#resets - now)
  }

  /** One request. @returns whether it is allowed; undefined where Redis must be asked */
  spend (now: number): boolean | undefined {
    if (this.#held > 0 && now < this.#spendUntil) {
      this.#held--
      this.#spent++
      return true
    }
    return now < this.#refuseUntil ? false : undefined
  }

  /** Asks Redis for one request. All that ask meanwhile share the next call. */
  ask (answer: Answered): void {
    this.#waiting.push(answer)
    if (!this.#asking) this.#askRedis()
  }

  #askRedis (): void {
    this.#asking = true
    const waiting = this.#waiting
    const asked = performance.now()
    if (asked >= this.#spendUntil) this.#spent = 0
    this.#take(waiting.length, this.#spent + waiting.length).then(taken => this.#got(taken, asked), (error: Error) => {
      this.#asking = false
      this.#waiting = []
      for (const answer of waiting) answer(error, false)
    })
  }

  #got ({ given, left, now, ends }: Taken, asked: number): void {
    const here = performance.now()
    if (ends !== this.#ends) this.#spent = 0
    this.#ends = ends
    // From when it was asked on, and a thousandth less, by which clocks' rates may differ: too early, never too late.
    this.#spendUntil = asked + (ends - now) * 0.999
    this.#resets = here + (ends - now)
    this.#refuseUntil = left === 0 ? Math.min(this.#resets, here + believed) : 0
    this.#held = given
    this.#left = left
    this.#asking = false
    const waiting = this.#waiting
    this.#waiting = []
    // Redis counted them just now, so these are of its window even where that is over here by now.
    for (const [index, answer] of waiting.entries()) {
      if (this.#held > 0) {
        this.#held--
        this.#spent++
        answer(null, true)
      } else if (left === 0) {
        answer(null, false)
      } else {
        // They came after it was asked.
        this.#waiting = waiting.slice(index)
        return this.#askRedis()
      }
    }
  }
}
