import { setTimeout as sleep } from 'node:timers/promises'

interface Read<T> { found: Promise<T>, hasFailed: boolean, over: Promise<unknown>, next: Promise<T> | undefined }

/**
 * Makes one read for all callers that want the same at the same time. A read has a name, and serves further callers
 * until it is over, or for a while longer. A failure reaches the callers that share the read, and no later ones.
 */
export class Shared<T> {
  readonly #keptFor: number
  readonly #max: number
  readonly #reads = new Map<string, Read<T>>()

  /**
   * @param keptFor for how long a read counts at least, in milliseconds since it began
   * @param max how many reads count at once: one more, and the oldest no longer does
   */
  constructor ({ keptFor = 0, max = Infinity }: { keptFor?: number, max?: number } = {}) {
    this.#keptFor = keptFor
    this.#max = max
  }

  /** Joins the last read of this name if it still counts, else makes one. */
  get (name: string, read: () => Promise<T>): Promise<T> {
    const last = this.#reads.get(name)
    return last === undefined || last.hasFailed ? this.#begin(name, read) : last.found
  }

  /** The last read of this name if it still counts. */
  known (name: string): Promise<T> | undefined {
    const last = this.#reads.get(name)
    return last?.hasFailed === false ? last.found : undefined
  }

  /** Gives a read that begins after this call, once the last one no longer counts: all who ask before then share it. */
  next (name: string, read: () => Promise<T>): Promise<T> {
    const last = this.#reads.get(name)
    if (last === undefined) return this.#begin(name, read)
    last.next ??= last.over.then(() => this.#begin(name, read))
    return last.next
  }

  /** The data of these reads has changed: they serve no further callers. @param start of their names */
  forget (start: string): void {
    for (const name of this.#reads.keys()) if (name.startsWith(start)) this.#reads.delete(name)
  }

  #begin (name: string, read: () => Promise<T>): Promise<T> {
    const found = read()
    const over = Promise.allSettled([found, ...this.#keptFor > 0 ? [sleep(this.#keptFor, null, { ref: false })] : []])
    const one: Read<T> = { found, hasFailed: false, over, next: undefined }
    found.catch(() => { one.hasFailed = true })
    // Registered before `next` can be: where that is asked for, it takes this one's place without a gap.
    over.then(() => { if (one.next === undefined && this.#reads.get(name) === one) this.#reads.delete(name) })
    this.#reads.delete(name)
    if (this.#reads.size >= this.#max) this.#reads.delete(this.#reads.keys().next().value!)
    this.#reads.set(name, one)
    return found
  }
}
