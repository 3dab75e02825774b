import type { Facts } from './facts.ts'
import type { Operation, Track } from './history.ts'
import { unborn } from './state.ts'
import type { State } from './state.ts'
import { stepsOf } from './steps.ts'
import type { Step, Tolerance } from './steps.ts'

/**
 * Is the history linearizable: could the operations, one after the other, have got these answers? The algorithm is Wing and Gong's: each
 * operation takes effect at one moment between its sending and its answer.
 */

/** Why there is no order: where the longest one ends, and what doesn't fit there. */
export interface Stuck { after: Operation[], state: State, left: Operation[] }

/** @returns null if there is an order */
export function findStuck (track: Track, facts: Facts, tolerance: Tolerance): Stuck | null {
  return new Search(stepsOf(track, facts, tolerance), tolerance.slack).run()
}

class Search {
  readonly #steps: Step[]
  readonly #slack: number
  readonly #taken: Uint8Array
  readonly #order: Step[] = []
  /** Dead ends: the steps taken and the state. */
  readonly #dead = new Set<string>()
  #best: { after: Step[], state: State } = { after: [], state: unborn }

  constructor (steps: Step[], slack: number) {
    this.#steps = steps
    this.#slack = slack
    this.#taken = new Uint8Array(steps.length)
  }

  run (): Stuck | null {
    const known = this.#steps.filter(step => step.known).length
    if (this.#goOn(unborn, -Infinity, known)) return null
    const { after, state } = this.#best
    const left = this.#steps.filter(step => step.known && !after.includes(step))
    return { after: operationsOf(after), state, left: operationsOf(left) }
  }

  /**
   * @param now no further step can come before this time
   * @param left known steps without a place yet
   */
  #goOn (state: State, now: number, left: number): boolean {
    if (left === 0) return true
    if (this.#order.length > this.#best.after.length) this.#best = { after: [...this.#order], state }
    const until = this.#firstEnd(true)
    const options: Array<{ index: number, next: State, now: number }> = []
    for (let index = 0; index < this.#steps.length; index++) {
      const step = this.#steps[index] as Step
      if (step.from > until) break
      if (this.#taken[index] === 1) continue
      const next = step.next(state)
      if (next === null) continue
      const moves = next !== state
      const time = Math.max(now, step.from, moves && step.at !== null ? step.at - this.#slack : -Infinity)
      if (time > until || time > this.#latest(step, moves)) continue
      // A step that changes nothing and prevents nothing can be placed at once.
      if (!moves && (step.from <= now || step.from <= this.#firstEnd(false))) return this.#take(index, next, time, left)
      options.push({ index, next, now: time })
    }
    if (options.length < 2) return options.some(option => this.#take(option.index, option.next, option.now, left))
    const key = this.#keyOf(state)
    if (this.#dead.has(key)) return false
    if (options.some(option => this.#take(option.index, option.next, option.now, left))) return true
    this.#dead.add(key)
    return false
  }

  #take (index: number, next: State, now: number, left: number): boolean {
    const step = this.#steps[index] as Step
    this.#taken[index] = 1
    this.#order.push(step)
    const found = this.#goOn(next, now, step.known ? left - 1 : left)
    this.#order.pop()
    this.#taken[index] = 0
    return found
  }

  /** The earliest end among the steps without a place: of the known ones, or of all, with the earliest end that they may have. */
  #firstEnd (known: boolean): number {
    let first = Infinity
    for (let index = 0; index < this.#steps.length; index++) {
      const step = this.#steps[index] as Step
      if (this.#taken[index] === 1 || (known && !step.known)) continue
      first = Math.min(first, this.#latest(step, !known))
    }
    return first
  }

  #latest ({ to, at }: Step, moves: boolean): number {
    return moves && at !== null ? Math.min(to, at + this.#slack) : to
  }

  #keyOf (state: State): string {
    const { pass, decided, caught, ended, expired, blocked, open, requested, succeeded, asked, answered, lapsed } = state
    return `${this.#taken.join('')} ${pass?.n} ${decided?.n} ${caught?.n} ${ended?.n} ${expired} ${blocked} ${open} ${requested} ${succeeded} ${asked?.n} ${answered?.n} ${lapsed}`
  }
}

function operationsOf (steps: Step[]): Operation[] {
  return steps.flatMap(({ operation }) => operation ?? [])
}
