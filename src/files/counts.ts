/** What came and went over this replica, for the metrics. */
export class TransferCounts {
  readonly bytes = { put: 0, got: 0 }
  readonly done = { put: 0, got: 0 }
  /** Cut, refused, or gone wrong. */
  readonly failed = { put: 0, got: 0 }
  underWay = 0

  /** Counts a transfer while it goes on, and how it ends. */
  async during (direction: 'put' | 'got', work: () => Promise<void>): Promise<void> {
    this.underWay++
    try {
      await work()
      this.done[direction]++
    } catch (error) {
      this.failed[direction]++
      throw error
    } finally {
      this.underWay--
    }
  }
}
