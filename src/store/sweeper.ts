import { SweepStatistics } from './sweep-statistics.ts'
import type { SweepCounts } from './sweep-statistics.ts'
import type { Handoffs } from './handoffs.ts'
import type { Leases } from './leases.ts'
import { Unavailable } from '../redis/lanes.ts'

/** The time between two parts of a round, in milliseconds. */
const tick = 50
/** Partitions per part: all 1,024 take 49 ticks, 2.45 s, so that what is due is reached within 3 s. */
const partitionsPerTick = 21
/**
 * How many handoffs a first call expires at most in one partition. All calls of a part are sent at once, and Redis is busy until all of them are
 * done.
 */
const glance = 5
/** How many handoffs each further call expires, if the first found that many: half a millisecond of Redis. */
const batch = 40
/**
 * How many further calls are under way at once at one master. Other calls to it wait behind no more than these, however much is due. Two, so that it
 * always has the next one and gives the backlog all the time that others leave.
 */
const callsAtOnce = 2
/**
 * How long a part or a call is waited for, in milliseconds. A call that takes longer (its master doesn't answer, or lacks replicas that
 * acknowledge) goes on by itself, as long as a call may take, and its partition gets no other call meanwhile.
 */
const partTimeout = 250
/** How long a dead sweeper's lease keeps the others off, in milliseconds. A living one renews it three times as often. */
const leaseDuration = 1500
const ticksPerLease = leaseDuration / 3 / tick

export interface SweeperOptions {
  /** Every partition's hash tag. */
  tags: readonly string[]
  /** The lease's key in a partition. */
  leaseKey (tag: string): string
  /** The name of the partition's master, as far as known. */
  masterOf (tag: string): string | undefined
  /** Is the partition's master connected? */
  reaches (tag: string): boolean
  onFault (error: unknown): void
  /** Called for each handoff that expires. If it is left out, Redis doesn't name them. */
  onExpired?: ((tenant: string, id: string) => void) | undefined
}

/**
 * Moves what is due to `expired` and frees its payload. One replica at a time does it for all, by a lease. Nothing depends on it: every script
 * compares deadlines itself, and every key has a TTL; and sweeping twice at once does no harm. So if a master is away, the other masters'
 * partitions are still swept, and its own when it is back. The lease is in the first partition whose master takes it (store/leases.ts); two replicas
 * may disagree about that for a while.
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
  /** First calls under way, by partition: the master of each. */
  readonly #glances = new Map<string, string | undefined>()
  /** Partitions whose first call is next, in the order of their turns. */
  readonly #awaited = new Set<string>()
  /** Partitions with more due than their last call took, in the order of their turns. */
  readonly #backlog = new Set<string>()
  /** What takes calls from the backlog, and for which master. */
  readonly #drains = new Map<Promise<void>, string | undefined>()
  readonly #statistics: SweepStatistics
  /** How many handoffs this replica has expired, how many of them missed a heartbeat, and how many have a successor, by what they missed. */
  expired = 0
  stalled = 0
  readonly reissued = { stalled: 0, not_done: 0 }

  constructor (handoffs: Handoffs, leases: Leases, options: SweeperOptions) {
    this.#handoffs = handoffs
    this.#leases = leases
    this.#options = options
    this.#statistics = new SweepStatistics(options.tags)
  }

  /** What there is to sweep; undefined if this replica isn't the one that sweeps. */
  get counts (): SweepCounts | undefined {
    return this.#statistics.read()
  }

  start (): void {
    this.#timer = setInterval(() => {
      // A part that takes longer than a tick is waited for, up to the timeout, and not overtaken.
      this.#part ??= this.#sweepPart().catch(error => this.#failed(error)).finally(() => { this.#part = undefined })
    }, tick)
    this.#timer.unref()
  }

  /** Stops after the calls that are under way, or the timeout. The lease simply runs out. */
  async stop (): Promise<void> {
    clearInterval(this.#timer)
    await this.#part
    this.#setMine(false)
    await Promise.all(this.#drains.keys())
  }

  async #sweepPart (): Promise<void> {
    const { tags, masterOf, reaches, leaseKey } = this.#options
    if (this.#ticks++ % ticksPerLease === 0) this.#setMine(await this.#leases.takeReached(tags, reaches, leaseKey, leaseDuration))
    if (!this.#mine) return
    for (const tag of tags.slice(this.#next, this.#next + partitionsPerTick)) this.#awaited.add(tag)
    this.#next = this.#next + partitionsPerTick < tags.length ? this.#next + partitionsPerTick : 0
    // These first calls are of a part that was given up. Another part would wait for their masters too, so these have no turn until they have answered,
    // and then catch up.
    const late = new Set(this.#glances.values())
    const part = [...this.#awaited].filter(tag => !late.has(masterOf(tag))).slice(0, 2 * partitionsPerTick)
    for (const tag of part) this.#awaited.delete(tag)
    await withinTimeout(Promise.all(part.filter(tag => reaches(tag) && !this.#underWay.has(tag) && !this.#backlog.has(tag)).map(tag => this.#glance(tag))))
    for (const tag of this.#backlog) {
      const master = masterOf(tag)
      if ([...this.#drains.values()].filter(one => one === master).length < callsAtOnce) this.#startDrain(master)
    }
  }

  async #glance (tag: string): Promise<void> {
    this.#glances.set(tag, this.#options.masterOf(tag))
    await this.#sweepPartition(tag, glance).finally(() => this.#glances.delete(tag))
  }

  #startDrain (master: string | undefined): void {
    const drain = this.#drain(master).catch(error => this.#failed(error)).finally(() => this.#drains.delete(drain))
    this.#drains.set(drain, master)
  }

  /** Sweeps each partition that this master has in the backlog in turn, one call at a time, until none is left. */
  async #drain (master: string | undefined): Promise<void> {
    const { masterOf, reaches } = this.#options
    // The loop also reaches partitions that are put back meanwhile, behind the others.
    for (const tag of this.#backlog) {
      if (masterOf(tag) !== master) continue
      this.#backlog.delete(tag)
      if (this.#mine && reaches(tag)) await withinTimeout(this.#sweepPartition(tag, batch))
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
      // The other partitions can still be swept.
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

/** Waits for the work, but no longer than the timeout. */
function withinTimeout (work: Promise<unknown>): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, partTimeout)
    timer.unref()
    work.then(() => resolve(), reject).finally(() => clearTimeout(timer))
  })
}
