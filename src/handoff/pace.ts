import { setTimeout as sleep } from 'node:timers/promises'

/** One run of the work: when the next may begin, and that one, once somebody has asked for it. */
interface Turn<T> { over: Promise<unknown>, next: Promise<T> | undefined }

/**
 * Work that many ask for again and again, for each key at most once an interval: who asks too soon gets what the next run finds, with
 * all the others who asked meanwhile. Each is given what a run has found that began after the asking.
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
    // Before anything that waits for the same moment: whoever asks then begins anew or has asked before.
    turn.over.then(() => { if (turn.next === undefined) this.#turns.delete(key) })
    return work()
  }
}
