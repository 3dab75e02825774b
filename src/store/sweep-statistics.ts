/** What the sweep knows about all partitions. Times in milliseconds. */
export interface SweepCounts {
  /** The age of the oldest look among all partitions. */
  lag: number
  /** Handoffs in the due indexes, and how long ago the first of them was due (0: none is overdue); null before the first whole round. */
  whole: { live: number, oldestDueAge: number } | null
}

/**
 * Adds up what the sweep's calls report about their partitions, so that nobody has to query them all. The figures are as old as the sweep's last
 * look, up to one round (2.5 s): a handoff that was due since then and is already done counts as overdue until the next look.
 */
export class SweepStatistics {
  readonly #places: ReadonlyMap<string, number>
  readonly #live: Float64Array
  /**
   * When each partition's first handoff is due and when the partition was last looked at, in this process's monotonic milliseconds. So no clocks
   * are compared.
   */
  readonly #dueAt: Float64Array
  readonly #seenAt: Float64Array
  #begunAt: number | undefined

  constructor (tags: readonly string[]) {
    this.#places = new Map(tags.map((tag, place) => [tag, place]))
    this.#live = new Float64Array(tags.length)
    this.#dueAt = new Float64Array(tags.length)
    this.#seenAt = new Float64Array(tags.length)
  }

  /** This replica sweeps from now on. What it knew before is out of date. */
  begin (): void {
    this.#begunAt = performance.now()
    this.#seenAt.fill(this.#begunAt)
    // NaN until the partition is looked at.
    this.#live.fill(NaN)
  }

  /** This replica no longer sweeps. */
  end (): void {
    this.#begunAt = undefined
  }

  /** @param untilDue milliseconds until the first live handoff is due, below 0 if it is overdue; null if there is none */
  saw (tag: string, live: number, untilDue: number | null): void {
    const place = this.#places.get(tag) as number
    const now = performance.now()
    this.#live[place] = live
    this.#dueAt[place] = untilDue === null ? Infinity : now + untilDue
    this.#seenAt[place] = now
  }

  /** Undefined if this replica doesn't sweep. */
  read (): SweepCounts | undefined {
    if (this.#begunAt === undefined) return undefined
    const now = performance.now()
    const live = this.#live.reduce((sum, one) => sum + one, 0)
    const oldestDueAge = Math.max(0, now - Math.min(...this.#dueAt))
    return { lag: now - Math.min(...this.#seenAt), whole: Number.isNaN(live) ? null : { live, oldestDueAge } }
  }
}
