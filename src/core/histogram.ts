/**
 * Durations, counted by bounds, from which metrics/ makes a Prometheus histogram when it is read. Plain numbers in one
 * piece of memory: an addition allocates nothing, looks nothing up by a label, and is all that the hot path pays.
 */
export class Histogram {
  /** Milliseconds, ascending. */
  readonly bounds: readonly number[]
  /** How many were up to each bound and above the one before; then those above all; last their sum in milliseconds. */
  readonly #numbers: Float64Array

  constructor (bounds: readonly number[]) {
    this.bounds = bounds
    this.#numbers = new Float64Array(bounds.length + 2)
  }

  add (milliseconds: number): void {
    const { bounds } = this
    const numbers = this.#numbers
    let at = 0
    while (at < bounds.length && milliseconds > bounds[at]!) at++
    numbers[at]!++
    numbers[bounds.length + 1]! += milliseconds
  }

  /** How many there were in each bucket, the last without a bound. */
  get counts (): readonly number[] {
    return [...this.#numbers.subarray(0, -1)]
  }

  /** Milliseconds. */
  get sum (): number {
    return this.#numbers.at(-1)!
  }
}
