import { SweepStatistics } from './sweep-statistics.ts'
import type { SweepCounts } from './sweep-statistics.ts'
import type { Handoffs } from './handoffs.ts'
import type { Leases } from './leases.ts'
import { Unavailable } from '../redis/lanes.ts'

/** Milliseconds between two parts of a round. */
const tick = 50
/** Partitions a part: all 1,024 in 49 ticks, 2.45 s, so that what is due is reached within 3 s. */
const partitionsPerTick = 21
/** Handoffs that a glance expires at most: a part's are asked at once, and hold Redis up for as long as all of them together take. */
const glance = 5
/** And one call of those that follow where a glance found that many: half a millisecond of Redis. */
const batch = 40
/**
 * How many of the latter are under way at once, of all partitions: what else is asked of Redis waits behind so many at the most,
 * however much is due. Two, so that Redis has the next when it has done one: what is due takes all that others leave of it.
 */
const callsAtOnce = 2
/**
 * How long a part or a call is waited for, in milliseconds. What takes longer (its master has fallen silent, or lacks the replicas
 * that acknowledge) goes on by itself, for as long as a call may take, and isn't begun anew meanwhile.
 */
const partTimeout = 250
/** How long a sweeper that died holds the others off, in milliseconds; it asks anew three times as often. */
const leaseDuration = 1500
const ticksPerLease = leaseDuration / 3 / tick

export interface SweeperOptions {
  /** Every partition's hash tag. */
  tags: readonly string[]
  /** The lease's key in a partition. */
  leaseKey (tag: string): string
  /** Is there a connection to the partition's master? */
  reaches (tag: string): boolean
  onFault (error: unknown): void
  /** Told each handoff that expires, where that is given; else Redis doesn't name them. */
  onExpired?: ((tenant: string, id: string) => void) | undefined
}

/**
 * Moves what is due to `expired` and frees its payload. One replica at a time does it for all, by a lease. Nothing depends on
 * it: every script compares deadlines itself, and every key has a TTL; and sweeping twice at once does what once does. So where
 * a master is away the others' partitions are swept all the same, its own when it is back; and the lease lies in the first
 * partition that is reached, of which two replicas may think differently for a while.
 */
export class Sweeper {
  readonly #handoffs: Handoffs
  readonly #leases: Leases
  readonly #options: SweeperOptions
  #timer: NodeJS.Timeout | undefined
  #part: Promise<void> | undefined
  #next = 0
  #ticks = 0
  #mine = false
  readonly #underWay = new Set<string>()
  /** Partitions that have more due than the last call took, the one whose turn it is first. */
  readonly #backlog = new Set<string>()
  readonly #drains = new Set<Promise<void>>()
  readonly #statistics: SweepStatistics
  /** How many handoffs it has expired; of these how many missed a heartbeat; and how many have a successor, by what they missed. */
  expired = 0
  stalled = 0
  readonly reissued = { stalled: 0, not_done: 0 }

  constructor (handoffs: Handoffs, leases: Leases, options: SweeperOptions) {
    this.#handoffs = handoffs
    this.#leases = leases
    this.#options = options
    this.#statistics = new SweepStatistics(options.tags)
  }

  /** What there is to sweep; undefined where another replica does, or none. */
  get counts (): SweepCounts | undefined {
    return this.#statistics.read()
  }

  start (): void {
    this.#timer = setInterval(() => {
      // A part that takes longer than a tick is waited for, within the timeout, not overtaken.
      this.#part ??= this.#sweepPart().catch(error => this.#failed(error)).finally(() => { this.#part = undefined })
    }, tick)
    this.#timer.unref()
  }

  /** Stops after the calls under way, within the timeout. The lease is left to run out. */
  async stop (): Promise<void> {
    clearInterval(this.#timer)
    await this.#part
    this.#setMine(false)
    await Promise.all(this.#drains)
  }

  async #sweepPart (): Promise<void> {
    const { tags, reaches, leaseKey } = this.#options
    if (this.#ticks++ % ticksPerLease === 0) this.#setMine(await this.#leases.takeReached(tags, reaches, leaseKey, leaseDuration))
    if (!this.#mine) return
    const part = tags.slice(this.#next, this.#next + partitionsPerTick)
    this.#next = this.#next + partitionsPerTick < tags.length ? this.#next + partitionsPerTick : 0
    const sweeps = part.filter(tag => reaches(tag) && !this.#underWay.has(tag) && !this.#backlog.has(tag)).map(tag => this.#sweepPartition(tag, glance))
    await withinTimeout(Promise.all(sweeps))
    while (this.#drains.size < Math.min(callsAtOnce, this.#backlog.size)) this.#startDrain()
  }

  #startDrain (): void {
    const drain = this.#drain().catch(error => this.#failed(error)).finally(() => this.#drains.delete(drain))
    this.#drains.add(drain)
  }

  /** Each partition of the backlog in turn, one call at a time, until none is left. */
  async #drain (): Promise<void> {
    // What is put back while this goes on comes up again, behind the others.
    for (const tag of this.#backlog) {
      this.#backlog.delete(tag)
      if (this.#mine && this.#options.reaches(tag)) await withinTimeout(this.#sweepPartition(tag, batch))
    }
  }

  async #sweepPartition (tag: string, limit: number): Promise<void> {
    this.#underWay.add(tag)
    try {
      const { onExpired } = this.#options
      const { lookedAt, expired, live, untilDue, stalled, reissued, named } = await this.#handoffs.sweep(tag, limit, onExpired !== undefined)
      this.expired += expired
      this.stalled += stalled
      this.reissued.stalled += reissued.stalled
      this.reissued.not_done += reissued.not_done
      this.#statistics.saw(tag, live, untilDue)
      for (const { tenant, id } of named) onExpired?.(tenant, id)
      if (lookedAt === limit) this.#backlog.add(tag)
    } catch (error) {
      // The others needn't be given up for it.
      if (!(error instanceof Unavailable)) throw error
    } finally {
      this.#underWay.delete(tag)
    }
  }

  #setMine (mine: boolean): void {
    if (mine && !this.#mine) this.#statistics.begin()
    if (!mine) this.#statistics.end()
    this.#mine = mine
  }

  #failed (error: unknown): void {
    this.#setMine(false)
    this.#ticks = 0
    if (!(error instanceof Unavailable)) this.#options.onFault(error)
  }
}

/** Waits for it, for the timeout at most. */
function withinTimeout (work: Promise<unknown>): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, partTimeout)
    timer.unref()
    work.then(() => resolve(), reject).finally(() => clearTimeout(timer))
  })
}
