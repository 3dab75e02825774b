import type { KeyChange } from '../store/api-keys.ts'

/**
 * What operators set, as this replica knows it, so that a request needs no call to Redis for it. The log of keys has
 * the changes (auth/key-log.ts): so a change holds within 2 s. Until it was read once no request is let in without it
 * (`whenKnown`).
 */
export abstract class LogTable<Entry> {
  readonly #list: () => Promise<Entry[]>
  /** Reads so far, and the latest whose result is here: an earlier one may end after it. */
  #begun = 0
  #known = 0
  #underWay = 0
  #first: Promise<void> | undefined
  /** When the latest read began whose result is here, by this process's monotonic clock. */
  readAt = -Infinity

  /** @param list reads all entries */
  constructor (list: () => Promise<Entry[]>) {
    this.#list = list
  }

  /** Was it read since the start? */
  get isKnown (): boolean {
    return this.#known > 0
  }

  /** Resolves once it was read. All that ask meanwhile share one call. @throws {Unavailable} */
  async whenKnown (): Promise<void> {
    if (!this.isKnown) await this.readOnce()
  }

  /** Reads it. All that ask meanwhile share one call. @throws {Unavailable} */
  async readOnce (): Promise<void> {
    this.#first ??= this.read().finally(() => { this.#first = undefined })
    await this.#first
  }

  /**
   * Takes over the log's changes, in their order. A call is needed only if all entries are being read just now: that
   * read may be older than the change.
   * @throws {Unavailable}
   */
  async change (changes: readonly KeyChange[]): Promise<void> {
    const entries = changes.map(change => this.entryOf(change)).filter(entry => entry !== undefined)
    if (entries.length === 0) return
    if (!this.isKnown || this.#underWay > 0) return this.read()
    this.take(entries)
  }

  /** Reads all entries. @throws {Unavailable} */
  async read (): Promise<void> {
    const number = ++this.#begun
    const begun = performance.now()
    this.#underWay++
    try {
      const entries = await this.#list()
      if (number < this.#known) return
      this.#known = number
      this.readAt = begun
      this.clear()
      this.take(entries)
    } finally {
      this.#underWay--
    }
  }

  /** The entry that a change of the log sets; undefined if the change is none of this table's. */
  protected abstract entryOf (change: KeyChange): Entry | undefined
  protected abstract clear (): void
  protected abstract take (entries: readonly Entry[]): void
}
