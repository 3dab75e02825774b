/** What the sweep knows of all partitions. Times in milliseconds. */
export interface SweepCounts {
  /** How long ago the partition was looked at that has waited longest. */
  lag: number
  /** Handoffs in the due indexes, and how long ago the first of them was due (0: none is overdue); null before a whole round. */
  whole: { live: number, oldestDueAge: number } | null
}

/**
 * Adds up what the sweep's calls say of their partitions, so that nobody has to ask all of them for it. Of each it is as old as the
 * sweep's last look, up to a round (2.5 s): what was done since and was due meanwhile counts as overdue until the next.
 */
export class SweepStatistics {
  readonly #places: ReadonlyMap<string, number>
  readonly #live: Float64Array
  /** When the first is due and when it was looked at, in this process's monotonic milliseconds, so that no clocks are compared. */
  readonly #dueAt: Float64Array
  readonly #seenAt: Float64Array
  #begunAt: number | undefined

  constructor (tags: readonly string[]) {
    this.#places = new Map(tags.map((tag, place) => [tag, place]))
    this.#live = new Float64Array(tags.length)
    this.#dueAt = new Float64Array(tags.length)
    this.#seenAt = new Float64Array(tags.length)
  }

  /** From now on this replica sweeps. What it knew before is out of date. */
  begin (): void {
    this.#begunAt = performance.now()
    this.#seenAt.fill(this.#begunAt)
    // Until it is looked at.
    this.#live.fill(NaN)
  }

  /** Another replica sweeps, or none. */
  end (): void {
    this.#begunAt = undefined
  }

  /** @param untilDue milliseconds until the first of those that live is due, below 0 where it is overdue; null where none lives */
  saw (tag: string, live: number, untilDue: number | null): void {
    const place = this.#places.get(tag) as number
    const now = performance.now()
    this.#live[place] = live
    this.#dueAt[place] = untilDue === null ? Infinity : now + untilDue
    this.#seenAt[place] = now
  }

  /** Undefined where this replica doesn't sweep. */
  read (): SweepCounts | undefined {
    if (this.#begunAt === undefined) return undefined
    const now = performance.now()
    const live = this.#live.reduce((sum, one) => sum + one, 0)
    const oldestDueAge = Math.max(0, now - Math.min(...this.#dueAt))
    return { lag: now - Math.min(...this.#seenAt), whole: Number.isNaN(live) ? null : { live, oldestDueAge } }
  }
}
