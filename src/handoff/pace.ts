import { setTimeout as sleep } from 'node:timers/promises'

/** One run of the work: `over` resolves when the next run may begin; `next` is that run, once somebody has asked for it. */
interface Turn<T> { over: Promise<unknown>, next: Promise<T> | undefined }

/**
 * Runs work that many callers ask for repeatedly, at most once per interval for each key. A caller who asks too soon shares the next run
 * with all others who ask meanwhile. So every caller gets the result of a run that began after the call.
 */
export class Pace<T> {
  readonly #interval: number
  readonly #turns = new Map<string, Turn<T>>()

  /** @param interval milliseconds */
  constructor (interval: number) {
    this.#interval = interval
  }

  run (key: string, work: () => Promise<T>): Promise<T> {
    const turn = this.#turns.get(key)
    if (turn === undefined) return this.#begin(key, work)
    turn.next ??= turn.over.then(() => this.#begin(key, work))
    return turn.next
  }

  #begin (key: string, work: () => Promise<T>): Promise<T> {
    const turn: Turn<T> = { over: sleep(this.#interval), next: undefined }
    this.#turns.set(key, turn)
    // This runs before anything else that waits for `over`. So a caller at that moment either starts a new run or has joined the next one
    // before.
    turn.over.then(() => { if (turn.next === undefined) this.#turns.delete(key) })
    return work()
  }
}
