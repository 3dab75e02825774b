import type { Grant, GrantListener } from '../../auth/grant.ts'
import type { Caller } from '../../core/model.ts'
import type { Subscriptions } from '../../redis/subscriptions.ts'
import type { Requester } from '../../store/requester.ts'

/** A request that waits: it is woken when its grant ends or changes, or its client goes. */
export interface WaitingRequester extends Requester {
  grant (): Grant
  onGone (listener: () => void): () => void
}

/** How a request waits: how long at most, and for whom. */
export interface WaitOptions {
  milliseconds: number
  requester: WaitingRequester
}

/**
 * A look at the state that a request waits for. `now` is its caller as the key is now; at the first look, right after
 * the request came, it is left out.
 */
type Look<T> = (now?: Caller) => Promise<T>

/** Calls `wake` at each change from then on. Resolves, once that is so, with the function that stops it. */
export type Listen = (wake: () => void) => Promise<() => void>

/** Lets requests wait for a change without polling Redis. */
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

  /** Listens to a channel, for a `Listen` of several. Read the state after this has resolved. */
  listen (channel: string, wake: () => void): Promise<() => void> {
    return this.#subscriptions.listen(channel, wake)
  }

  /**
   * Looks, and looks again at each change until `left` says that it is enough, the time is over, or the service drains.
   * Then returns its last look. A look may be a catch, so the grant is checked before each look, and none begins once
   * the client has gone.
   * @param left milliseconds until the state changes by itself; null if it is enough
   * @throws {Error} the grant's own error, once it has ended
   */
  wait<T> (
    channel: string, options: WaitOptions, look: Look<T>, left: (seen: T) => number | null
  ): Promise<T> {
    return this.waitOn(wake => this.#subscriptions.listen(channel, wake), options, look, left)
  }

  /** The same with the changes of several channels. */
  waitOnSome<T> (
    channels: readonly string[], options: WaitOptions, look: Look<T>, left: (seen: T) => number | null
  ): Promise<T> {
    const listen: Listen = async wake => {
      const leaving = await Promise.all(channels.map(channel => this.#subscriptions.listen(channel, wake)))
      return () => { for (const leave of leaving) leave() }
    }
    return this.waitOn(listen, options, look, left)
  }

  /**
   * The same, with `listen` as the source of changes. It is one function, and keeps only its last look: with functions
   * for the looks and for the sleep, and the first look kept, a waiting request took 1.3 KB more.
   */
  async waitOn<T> (
    listen: Listen, options: WaitOptions, look: Look<T>, left: (seen: T) => number | null
  ): Promise<T> {
    let seen = await look()
    if (left(seen) === null || this.#draining) return seen
    const { requester } = options
    const sleeper = new Sleeper(requester.grant())
    const leaving = [requester.onGone(sleeper.wake)]
    this.#waiting.add(sleeper.wake)
    try {
      // One after the other: if the second fails, the first is left all the same.
      leaving.push(await sleeper.grant.onEnd(sleeper))
      leaving.push(await listen(sleeper.wake))
      const end = performance.now() + options.milliseconds
      while (!requester.isGone()) {
        // Before the look, so that a change during the look wakes it too.
        sleeper.begin()
        const now = sleeper.refusal === undefined ? await sleeper.grant.authorise() : undefined
        // Checked right before the look: the grant may have ended, or the client gone, while it was authorised.
        if (sleeper.refusal !== undefined) throw sleeper.refusal
        if (requester.isGone()) break
        seen = await look(now)
        const untilChange = left(seen)
        const untilEnd = end - performance.now()
        if (untilChange === null || untilEnd <= 0 || this.#draining) break
        await sleeper.sleep(Math.max(1, Math.ceil(Math.min(untilChange, untilEnd))))
      }
      return seen
    } finally {
      for (const leave of leaving) leave()
      this.#waiting.delete(sleeper.wake)
    }
  }

  /** The service is stopping: from now on every waiting request is answered at once with the present state. */
  drain (): void {
    this.#draining = true
    for (const wake of this.#waiting) wake()
  }
}

/**
 * A waiting request's sleep: until it is woken or the time is over, whichever comes first. A wake before the sleep
 * counts, from `begin` on. It makes a promise only to sleep: the last look of a request needs none.
 */
class Sleeper implements GrantListener {
  readonly grant: Grant
  /** The error to answer with, once the grant has ended. */
  refusal: Error | undefined
  #isWoken = false
  #timer: NodeJS.Timeout | undefined
  #resolve: (() => void) | undefined

  constructor (grant: Grant) {
    this.grant = grant
  }

  begin (): void {
    this.#isWoken = false
  }

  readonly wake = () => {
    this.#isWoken = true
    clearTimeout(this.#timer)
    this.#resolve?.()
  }

  ended (why: Error): void {
    this.refusal = why
    this.wake()
  }

  changed (): void {
    this.wake()
  }

  sleep (milliseconds: number): Promise<void> {
    return new Promise(resolve => {
      if (this.#isWoken) return resolve()
      this.#resolve = resolve
      this.#timer = setTimeout(this.wake, milliseconds)
    })
  }
}
