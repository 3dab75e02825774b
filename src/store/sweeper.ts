import { Unavailable } from '../core/errors.ts'
import { within } from '../core/round.ts'
import type { Handoffs } from './handoffs.ts'
import type { Swept } from './swept.ts'
import type { Leases } from './leases.ts'

/** The time between two parts of a round, in milliseconds. */
const tick = 50
/**
 * In how many milliseconds each partition has its turn, so that due handoffs are reached within 3 s. A late tick gives
 * all turns since the last tick.
 */
const roundTime = 2450
/**
 * How many handoffs a first call expires at most in one partition. All 21 calls of a part are sent at once, and Redis
 * is busy until the last is done.
 */
const glance = 5
/**
 * How many first calls are under way at once at one master, four parts' worth. A slow master gets no more until it has
 * answered, and others don't wait for it: the calls of all may take 200 ms, and those of one of two masters 400 ms,
 * before its round takes longer.
 */
const glancesAtOnce = 84
/** How many handoffs each further call expires, if the first found that many: half a millisecond of Redis. */
const batch = 40
/**
 * How many further calls are under way at once at one master. Other calls to it wait for no more than these, however
 * much is due. Two, so that it always has the next one and gives the backlog all the time that others leave.
 */
const callsAtOnce = 2
/**
 * How long the sweep waits for a further call, in milliseconds. A longer call (its master doesn't answer, or lacks
 * replicas that acknowledge) goes on by itself, and its partition gets no other call meanwhile.
 */
const patience = 250
/**
 * How long a dead sweeper's lease keeps the others off, in milliseconds. A living one renews it three times as often.
 */
const leaseDuration = 1500
const ticksPerLease = leaseDuration / 3 / tick
/** How long a count of many tenants' handoffs holds, in milliseconds: it costs as much as several looks. */
const countedFor = 15_000

export interface SweeperOptions {
  /** Every partition's hash tag. */
  tags: readonly string[]
  /** The lease's key in a partition. */
  leaseKey (tag: string): string
  /** The name of the partition's master, as far as known. */
  masterOf (tag: string): string | undefined
  /** Is the partition's master connected? */
  reaches (tag: string): boolean
  /** Or its slot may move. */
  isOneRedis: boolean
  onFault (error: unknown): void
  /** Called for each handoff that expires. If it is left out, Redis doesn't name them. */
  onExpired?: ((tenant: string, id: string) => void) | undefined
  /** Called with ended handoffs that have dependents, and with blocked ones that are to be checked. */
  onAfter?: ((ended: Swept['ended'], blocked: Swept['blocked']) => void) | undefined
  /** Called with the runs of a partition whose counts changed, in a Cluster. */
  onRuns?: ((tag: string, runs: Swept['runs']) => void) | undefined
}

/**
 * Moves due handoffs to `expired` and frees their payloads. One replica at a time does it for all, by a lease. Nothing
 * depends on it: every script compares deadlines itself, and every key has a TTL; and two sweeps at once do no harm. So
 * if a master is away, the other masters' partitions are still swept, and its own when it is back. The lease is in the
 * first partition whose master takes it (store/leases.ts); two replicas may disagree about that for a while.
 */
export class Sweeper {
  readonly #handoffs: Handoffs
  readonly #leases: Leases
  readonly #options: SweeperOptions
  #timer: NodeJS.Timeout | undefined
  #renewal: Promise<void> | undefined
  #next = 0
  /** Until when turns were given, in this process's monotonic milliseconds. */
  #givenUntil = 0
  #ticks = 0
  #mine = false
  readonly #underWay = new Set<string>()
  /**
   * The master of each partition when it was last swept, since this replica has had the lease: before that the slot may
   * have moved, and what moved is looked at by no other.
   */
  readonly #sweptAt = new Map<string, string>()
  /** First calls under way, and the master of each. */
  readonly #glances = new Map<Promise<void>, string | undefined>()
  /** Partitions whose first call is next, in the order of their turns. */
  readonly #awaited = new Set<string>()
  /**
   * Partitions with more due than their last call took, in the order of their turns. Within a partition tenants take
   * turns (lua/sweep.lua).
   */
  readonly #backlog = new Set<string>()
  /** The runs that take calls from the backlog, each for a master. */
  readonly #drains = new Map<Promise<void>, string | undefined>()
  readonly #statistics: SweepStatistics
  /**
   * How many handoffs this replica has expired, how many of them missed a heartbeat, and how many have a successor, by
   * what they missed.
   */
  expired = 0
  stalled = 0
  readonly reissued = { stalled: 0, not_done: 0 }

  constructor (handoffs: Handoffs, leases: Leases, options: SweeperOptions) {
    this.#handoffs = handoffs
    this.#leases = leases
    this.#options = options
    this.#statistics = new SweepStatistics(options.tags)
  }

  /** Does this replica sweep? */
  get isSweeping (): boolean {
    return this.#statistics.areBegun
  }

  /** The due handoffs; undefined if another replica sweeps. */
  get counts (): SweepCounts | undefined {
    return this.#statistics.read()
  }

  start (): void {
    this.#timer = setInterval(() => this.#tick(), tick)
    this.#timer.unref()
  }

  /** Stops after the calls that are under way, as far as they are waited for. The lease simply runs out. */
  async stop (): Promise<void> {
    clearInterval(this.#timer)
    await this.#renewal
    this.#setMine(false)
    await Promise.all([within(patience, Promise.allSettled(this.#glances.keys())), ...this.#drains.keys()])
  }

  #tick (): void {
    if (this.#ticks++ % ticksPerLease === 0) this.#renew()
    if (!this.#mine) return
    this.#giveTurns()
    this.#startGlances()
    for (const tag of this.#backlog) {
      const master = this.#options.masterOf(tag)
      if ([...this.#drains.values()].filter(one => one === master).length < callsAtOnce) this.#startDrain(master)
    }
  }

  /**
   * Not waited for: the sweep goes on while a master that has the lease doesn't answer, even if another replica then
   * takes another lease.
   */
  #renew (): void {
    const { tags, reaches, leaseKey } = this.#options
    this.#renewal ??= this.#leases.takeReached(tags, reaches, leaseKey, leaseDuration)
      .then(mine => this.#setMine(mine), error => this.#failed(error)).finally(() => { this.#renewal = undefined })
  }

  #giveTurns (): void {
    const { tags } = this.#options
    const perPartition = roundTime / tags.length
    const now = performance.now()
    // After a pause, one turn each.
    this.#givenUntil = Math.max(this.#givenUntil, now - roundTime)
    for (; this.#givenUntil + perPartition <= now; this.#givenUntil += perPartition) {
      this.#awaited.add(tags[this.#next++] as string)
      if (this.#next === tags.length) this.#next = 0
    }
  }

  #startGlances (): void {
    const { masterOf, reaches } = this.#options
    const started: Array<Promise<void>> = []
    const underWay = new Map<string | undefined, number>()
    for (const master of this.#glances.values()) underWay.set(master, (underWay.get(master) ?? 0) + 1)
    for (const tag of this.#awaited) {
      const master = masterOf(tag)
      const others = underWay.get(master) ?? 0
      if (others >= glancesAtOnce) continue
      this.#awaited.delete(tag)
      if (!reaches(tag) || this.#underWay.has(tag) || this.#backlog.has(tag)) continue
      const call = this.#sweepPartition(tag, glance).finally(() => this.#glances.delete(call))
      this.#glances.set(call, master)
      underWay.set(master, others + 1)
      started.push(call)
    }
    Promise.all(started).catch(error => this.#failed(error))
  }

  #startDrain (master: string | undefined): void {
    const drain = this.#drain(master).catch(error => this.#failed(error)).finally(() => this.#drains.delete(drain))
    this.#drains.set(drain, master)
  }

  /** Sweeps each partition that this master has in the backlog in turn, one call at a time, until none is left. */
  async #drain (master: string | undefined): Promise<void> {
    const { masterOf, reaches } = this.#options
    // The loop also reaches partitions that are put back meanwhile, after the others.
    for (const tag of this.#backlog) {
      if (masterOf(tag) !== master) continue
      this.#backlog.delete(tag)
      if (this.#mine && reaches(tag)) await within(patience, this.#sweepPartition(tag, batch))
    }
  }

  async #sweepPartition (tag: string, limit: number): Promise<void> {
    this.#underWay.add(tag)
    try {
      const { onExpired, onAfter, onRuns, masterOf, isOneRedis } = this.#options
      const master = masterOf(tag)
      const hasMoved = !isOneRedis && master !== undefined && this.#sweptAt.get(tag) !== master
      const {
        expired, live, untilDue, stalled, reissued, named, ended, blocked, runs
      } = await this.#handoffs.sweep(tag, limit, onExpired !== undefined, this.#statistics.isOld(tag), hasMoved)
      if (master !== undefined) this.#sweptAt.set(tag, master)
      this.expired += expired
      this.stalled += stalled
      this.reissued.stalled += reissued.stalled
      this.reissued.not_done += reissued.not_done
      this.#statistics.saw(tag, live, untilDue)
      for (const { tenant, id } of named) onExpired?.(tenant, id)
      if (ended.length + blocked.length > 0) onAfter?.(ended, blocked)
      if (runs.length > 0) onRuns?.(tag, runs)
      if (untilDue !== null && untilDue <= 0) this.#backlog.add(tag)
    } catch (error) {
      // The other partitions can still be swept.
      if (!(error instanceof Unavailable)) throw error
    } finally {
      this.#underWay.delete(tag)
    }
  }

  #setMine (mine: boolean): void {
    if (mine && !this.#mine) {
      this.#statistics.begin()
      this.#sweptAt.clear()
      this.#givenUntil = performance.now()
    }
    if (!mine) this.#statistics.end()
    this.#mine = mine
  }

  #failed (error: unknown): void {
    this.#setMine(false)
    this.#ticks = 0
    if (!(error instanceof Unavailable)) this.#options.onFault(error)
  }
}

/** The sweep's figures of all partitions. Times in milliseconds. */
export interface SweepCounts {
  /** The age of the oldest look among all partitions. */
  lag: number
  /**
   * Handoffs in the due indexes, and how long ago the first of them was due (0: none is overdue); null before the first
   * whole round.
   */
  whole: { live: number, oldestDueAge: number } | null
}

/**
 * Adds up the figures that the sweep's calls report about their partitions, which saves a query of them all. They are
 * as old as the sweep's last look, up to one round (2.5 s): a handoff that was due since then and is already done
 * counts as overdue until the next look.
 */
export class SweepStatistics {
  readonly #places: ReadonlyMap<string, number>
  /** How many handoffs are live in each, and when they were counted: many tenants' aren't at each look. */
  readonly #live: Float64Array
  readonly #countedAt: Float64Array
  /**
   * When each partition's first handoff is due and when the partition was last looked at, in this process's monotonic
   * milliseconds. So no clocks are compared.
   */
  readonly #dueAt: Float64Array
  readonly #seenAt: Float64Array
  #begunAt: number | undefined

  constructor (tags: readonly string[]) {
    this.#places = new Map(tags.map((tag, place) => [tag, place]))
    this.#live = new Float64Array(tags.length)
    this.#countedAt = new Float64Array(tags.length)
    this.#dueAt = new Float64Array(tags.length)
    this.#seenAt = new Float64Array(tags.length)
  }

  /** This replica sweeps from now on. Its earlier figures are out of date. */
  begin (): void {
    this.#begunAt = performance.now()
    this.#seenAt.fill(this.#begunAt)
    // NaN until the partition's are counted.
    this.#live.fill(NaN)
  }

  /** This replica no longer sweeps. */
  end (): void {
    this.#begunAt = undefined
  }

  /** Must the partition's handoffs be counted, however many tenants it has? */
  isOld (tag: string): boolean {
    const place = this.#places.get(tag)!
    return Number.isNaN(this.#live[place]) || performance.now() - this.#countedAt[place]! >= countedFor
  }

  /**
   * @param live how many handoffs are live there; null if they weren't counted
   * @param untilDue milliseconds until the first live handoff is due, below 0 if it is overdue; null if there is none
   */
  saw (tag: string, live: number | null, untilDue: number | null): void {
    const place = this.#places.get(tag) as number
    const now = performance.now()
    if (live !== null) {
      this.#live[place] = live
      this.#countedAt[place] = now
    }
    this.#dueAt[place] = untilDue === null ? Infinity : now + untilDue
    this.#seenAt[place] = now
  }

  get areBegun (): boolean {
    return this.#begunAt !== undefined
  }

  /** Goes over all partitions. Undefined if this replica doesn't sweep. */
  read (): SweepCounts | undefined {
    if (this.#begunAt === undefined) return undefined
    const now = performance.now()
    const live = this.#live.reduce((sum, one) => sum + one, 0)
    const oldestDueAge = Math.max(0, now - Math.min(...this.#dueAt))
    return { lag: now - Math.min(...this.#seenAt), whole: Number.isNaN(live) ? null : { live, oldestDueAge } }
  }
}
