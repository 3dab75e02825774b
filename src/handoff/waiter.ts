import type { Notices } from '../store/notices.ts'

/** How a request waits: for how many milliseconds at the most, and who tells when its client has gone. */
export interface Patience {
  milliseconds: number
  onGone (stop: () => void): void
}

/** Lets requests wait for a change without asking Redis meanwhile. */
export class Waiter {
  readonly #notices: Notices
  readonly #waiting = new Set<() => void>()
  #draining = false

  constructor (notices: Notices) {
    this.#notices = notices
  }

  /** How many requests wait. */
  get count (): number {
    return this.#waiting.size
  }

  /**
   * Looks, and while what is seen isn't enough looks again at each change, until the time is over or the service drains; then
   * answers with what was seen last. Once the client has gone it looks no more, since a look may be a catch.
   * @param left milliseconds until what was seen changes by itself; null where it is enough
   */
  async wait<T> (channel: string, patience: Patience, look: () => Promise<T>, left: (seen: T) => number | null): Promise<T> {
    const first = await look()
    if (left(first) === null || this.#draining) return first
    const turn = new Turn()
    patience.onGone(turn.stop)
    this.#waiting.add(turn.wake)
    const leave = await this.#notices.listen(channel, turn.wake)
    try {
      return await this.#lookAgain(turn, performance.now() + patience.milliseconds, first, look, left)
    } finally {
      leave()
      this.#waiting.delete(turn.wake)
    }
  }

  /** The service stops: whoever waits is answered with what is true, now and from now on. */
  drain (): void {
    this.#draining = true
    for (const wake of this.#waiting) wake()
  }

  async #lookAgain<T> (turn: Turn, end: number, first: T, look: () => Promise<T>, left: (seen: T) => number | null): Promise<T> {
    for (let seen = first; ;) {
      if (turn.stopped) return seen
      // Before looking: what changes while it looks is a change since.
      const woken = turn.next()
      seen = await look()
      const untilChange = left(seen)
      const untilEnd = end - performance.now()
      if (untilChange === null || untilEnd <= 0 || this.#draining) return seen
      await turn.sleep(woken, Math.max(1, Math.ceil(Math.min(untilChange, untilEnd))))
    }
  }
}

/** One waiting request's sleep: until it is woken, or a time is over, whichever is first. */
class Turn {
  stopped = false
  #resolve = () => {}

  readonly wake = () => { this.#resolve() }

  readonly stop = () => {
    this.stopped = true
    this.#resolve()
  }

  next (): Promise<void> {
    return new Promise(resolve => { this.#resolve = resolve })
  }

  async sleep (woken: Promise<void>, milliseconds: number): Promise<void> {
    const timer = setTimeout(this.wake, milliseconds)
    await woken
    clearTimeout(timer)
  }
}
