import type { Handoffs } from './handoffs.ts'
import type { Leases } from './leases.ts'
import { Unavailable } from './lanes.ts'

/** Milliseconds between two parts of a round. */
const tick = 50
/** Partitions a part: all 1,024 in 49 ticks, 2.45 s, so that what is due is reached within 3 s. */
const partitionsPerTick = 21
/** Handoffs that one script call expires at most, so that none holds Redis up for long. */
const batch = 200
/** How long a sweeper that died holds the others off, in milliseconds; it asks anew three times as often. */
const leaseDuration = 1500
const ticksPerLease = leaseDuration / 3 / tick

/**
 * Moves what is due to `expired` and frees its payload. One replica at a time does it for all, by a lease. Nothing depends on
 * it: every script compares deadlines itself, and every key has a TTL; and sweeping twice at once does what once does.
 */
export class Sweeper {
  readonly #handoffs: Handoffs
  readonly #leases: Leases
  readonly #leaseKey: string
  readonly #tags: readonly string[]
  readonly #onFault: (error: unknown) => void
  #timer: NodeJS.Timeout | undefined
  #part: Promise<void> | undefined
  #next = 0
  #ticks = 0
  #mine = false

  constructor (handoffs: Handoffs, leases: Leases, leaseKey: string, tags: readonly string[], onFault: (error: unknown) => void) {
    this.#handoffs = handoffs
    this.#leases = leases
    this.#leaseKey = leaseKey
    this.#tags = tags
    this.#onFault = onFault
  }

  start (): void {
    this.#timer = setInterval(() => {
      // A part that takes longer than a tick is waited for, not overtaken.
      this.#part ??= this.#sweepPart().catch(error => this.#stumble(error)).finally(() => { this.#part = undefined })
    }, tick)
    this.#timer.unref()
  }

  /** Stops after the part under way. The lease is left to run out. */
  async stop (): Promise<void> {
    clearInterval(this.#timer)
    await this.#part
  }

  async #sweepPart (): Promise<void> {
    if (this.#ticks++ % ticksPerLease === 0) this.#mine = await this.#leases.take(this.#leaseKey, leaseDuration)
    if (!this.#mine) return
    const part = this.#tags.slice(this.#next, this.#next + partitionsPerTick)
    this.#next = this.#next + partitionsPerTick < this.#tags.length ? this.#next + partitionsPerTick : 0
    await Promise.all(part.map(tag => this.#sweepPartition(tag)))
  }

  async #sweepPartition (tag: string): Promise<void> {
    let lookedAt = batch
    while (lookedAt === batch) lookedAt = (await this.#handoffs.sweep(tag, batch)).lookedAt
  }

  #stumble (error: unknown): void {
    this.#mine = false
    this.#ticks = 0
    if (!(error instanceof Unavailable)) this.#onFault(error)
  }
}
