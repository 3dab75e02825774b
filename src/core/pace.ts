import { setTimeout as sleep } from 'node:timers/promises'

/**
 * One run of the work: `over` resolves when the next run may begin; `next` is that run, once it was asked for.
 */
interface Run<T> { over: Promise<unknown>, next: Promise<T> | undefined }

/**
 * Runs work that many callers ask for repeatedly, at most once per interval for each key. A caller who asks too soon
 * shares the next run with all others who ask meanwhile. So every caller gets the result of a run that began after the
 * call.
 */
export class Pace<T> {
  readonly #interval: number
  readonly #runs = new Map<string, Run<T>>()

  /** @param interval milliseconds */
  constructor (interval: number) {
    this.#interval = interval
  }

  run (key: string, work: () => Promise<T>): Promise<T> {
    const current = this.#runs.get(key)
    if (current === undefined) return this.#begin(key, work)
    current.next ??= current.over.then(() => this.#begin(key, work))
    return current.next
  }

  #begin (key: string, work: () => Promise<T>): Promise<T> {
    const current: Run<T> = { over: sleep(this.#interval), next: undefined }
    this.#runs.set(key, current)
    // This runs before anything else that waits for `over`. So a caller at that moment either starts a new run or has
    // joined the next one before.
    current.over.then(() => { if (current.next === undefined) this.#runs.delete(key) })
    return work()
  }
}
