import { setImmediate } from 'node:timers/promises'
import type { Subscriptions } from '../redis/subscriptions.ts'
import type { Grant } from '../auth/grant.ts'

/** How a request waits: for how many milliseconds at the most, by what it was let in, and who tells when its client has gone. */
export interface WaitOptions {
  milliseconds: number
  /** Asked for where it comes to waiting. */
  grant (): Grant
  /** Has its client gone? */
  isGone (): boolean
  /** @returns what ends the listening */
  onGone (stop: () => void): () => void
}

/** How many turns of the event loop the end of a connection may take to be known: it is read in one, and told in the next. */
const turnsToHear = 2

/**
 * Before `isGone` is asked. A connection's end is read behind all that came by it, so where both came while this process stood still, the client
 * would seem to be there, and what is caught for it is lost.
 */
export async function untilEndsAreHeard (): Promise<void> {
  for (let turn = 0; turn < turnsToHear; turn++) await setImmediate()
}

/** Has `wake` called at each change from then on; resolves with what stops it. */
export type Listen = (wake: () => void) => Promise<() => void>

/** Lets requests wait for a change without asking Redis meanwhile. */
export class Waiter {
  readonly #subscriptions: Subscriptions
  readonly #waiting = new Set<() => void>()
  #draining = false

  constructor (subscriptions: Subscriptions) {
    this.#subscriptions = subscriptions
  }

  /** How many requests wait. */
  get count (): number {
    return this.#waiting.size
  }

  /**
   * Looks, and while what is seen isn't enough looks again at each change, until the time is over or the service drains; then
   * answers with what was seen last. A look may be a catch: so each is authorised anew, and none begins once the client has gone.
   * @param left milliseconds until what was seen changes by itself; null where it is enough
   * @throws {Error} what the grant has to say when it has ended
   */
  wait<T> (channel: string, options: WaitOptions, look: () => Promise<T>, left: (seen: T) => number | null): Promise<T> {
    return this.waitOn(wake => this.#subscriptions.listen(channel, wake), options, look, left)
  }

  /** The same, told of changes by `listen`. */
  async waitOn<T> (listen: Listen, options: WaitOptions, look: () => Promise<T>, left: (seen: T) => number | null): Promise<T> {
    const first = await look()
    if (left(first) === null || this.#draining) return first
    const turn = new Turn(options.grant())
    const stopListening = options.onGone(turn.stop)
    this.#waiting.add(turn.wake)
    const leaving = await Promise.all([listen(turn.wake), turn.grant.onEnd(turn.refuse)])
    try {
      return await this.#lookAgain(turn, performance.now() + options.milliseconds, first, look, left)
    } finally {
      for (const leave of [...leaving, stopListening]) leave()
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
      if (turn.refusal === undefined) await turn.grant.authorise()
      // Now, with nothing between this and the look: meanwhile it may have ended, or the client gone.
      if (turn.refusal !== undefined) throw turn.refusal
      if (turn.stopped) return seen
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
  readonly grant: Grant
  stopped = false
  /** What it is answered since what let it in has ended. */
  refusal: Error | undefined
  #resolve = () => {}

  constructor (grant: Grant) {
    this.grant = grant
  }

  readonly wake = () => { this.#resolve() }

  readonly stop = () => {
    this.stopped = true
    this.#resolve()
  }

  readonly refuse = (why: Error) => {
    this.refusal = why
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
