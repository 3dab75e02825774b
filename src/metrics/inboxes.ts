import { setTimeout as sleep } from 'node:timers/promises'
import { Unavailable } from '../core/errors.ts'
import type { Memory } from '../store/health.ts'
import type { Counted, InboxPlace, NamedInbox } from '../store/inboxes.ts'
import type { Store } from '../store/store.ts'
import { Largest, Sample } from './some-of-many.ts'

/**
 * In milliseconds: how often rounds begin, how soon after a failure, how old their figures may be, and how often it is
 * seen to.
 */
const standardTimes = { round: 10_000, afterFailure: 3000, maxAge: 15_000, tick: 250 }
/** For how long a round pauses between its calls, in milliseconds. Then it hurries, since the last figures grow old. */
const unhurried = 2000
/**
 * How many places a round tidies at most: of those that have nothing any more, and of those that have caught or delayed
 * ones.
 */
const tidied = { empty: 100, stale: 20 }
/** How many tenants have a figure of their own. */
const maxTenants = 1000

/** What an inbox has, in both of its partitions. `oldestAge`: of what is pending, in milliseconds; 0 if nothing is. */
export interface InboxFigures {
  tenant: string
  inbox: string
  pending: number
  caught: number
  failed: number
  oldestAge: number
}

/** How many handoffs of a tenant wait for a person. */
export interface TenantFigure { tenant: string, waiting: number }

/** What one round found. `memory` is null where Redis doesn't report it. */
export interface Figures { inboxes: InboxFigures[], approvals: TenantFigure[], memory: Memory | null }

/**
 * Counts what all inboxes have, in rounds, while this replica sweeps. Only the sweeping one does, so that a sum over
 * all replicas counts each handoff once. /metrics shows the last round: it doesn't call Redis itself.
 */
export class InboxRounds {
  readonly #store: Pick<Store, 'inboxes' | 'memory' | 'sweeper'>
  readonly #maxInboxes: number
  readonly #onFault: (error: unknown) => void
  readonly #times: typeof standardTimes
  #timer: NodeJS.Timeout | undefined
  #isStopped = false
  #underWay: Promise<void> | undefined
  #nextAt = 0
  #last: { figures: Figures, at: number } | undefined

  /** @param maxInboxes how many inboxes have figures of their own @param times tests have shorter ones */
  constructor (
    store: Pick<Store, 'inboxes' | 'memory' | 'sweeper'>, maxInboxes: number, onFault: (error: unknown) => void,
    times = standardTimes
  ) {
    this.#store = store
    this.#maxInboxes = maxInboxes
    this.#onFault = onFault
    this.#times = times
  }

  /** Null if this replica doesn't sweep, or the last round is too long ago. */
  get figures (): Figures | null {
    const last = this.#last
    if (last === undefined || !this.#isSweeping || performance.now() - last.at > this.#times.maxAge) return null
    return last.figures
  }

  /** The first round begins as soon as this replica sweeps. */
  start (): void {
    this.#nextAt = 0
    this.#timer = setInterval(() => this.#tick(), this.#times.tick).unref()
  }

  async stop (): Promise<void> {
    this.#isStopped = true
    clearInterval(this.#timer)
    await this.#underWay
  }

  get #isSweeping (): boolean {
    return this.#store.sweeper.isSweeping
  }

  #tick (): void {
    const now = performance.now()
    if (!this.#isSweeping) {
      this.#last = undefined
      this.#nextAt = 0
    } else if (this.#underWay === undefined && now >= this.#nextAt) {
      this.#nextAt = now + this.#times.round
      this.#underWay = this.round().catch(error => {
        this.#nextAt = performance.now() + this.#times.afterFailure
        if (!(error instanceof Unavailable)) this.#onFault(error)
      }).finally(() => { this.#underWay = undefined })
    }
  }

  /** One round. It ends early, without figures, if this replica stops sweeping. */
  async round (): Promise<void> {
    const at = performance.now()
    const inboxes = new Largest<InboxFigures>(this.#maxInboxes, ({ pending }) => pending, addInbox)
    const approvals = new Largest<TenantFigure>(maxTenants, ({ waiting }) => waiting, addTenant)
    const [empty, stale] = [new Sample<InboxPlace>(tidied.empty), new Sample<InboxPlace>(tidied.stale)]
    let before = at
    for await (const part of this.#store.inboxes.allNamed()) {
      for (const named of part) {
        if (named.inbox === '') approvals.add(tenantFigureOf(named))
        else inboxes.add(figuresOf(named))
        for (const { tag, counted } of named.places) {
          const place = { tag, tenant: named.tenant, inbox: named.inbox }
          if (isEmpty(counted)) empty.add(place)
          else if (typeof counted !== 'number' && counted.caught + counted.delayed > 0) stale.add(place)
        }
      }
      if (this.#isStopped || !this.#isSweeping) return
      // As long as the calls took: half of the time is left to others.
      if (performance.now() - at < unhurried) await sleep(performance.now() - before, undefined, { ref: false })
      before = performance.now()
    }
    const memory = await this.#store.memory()
    // A long round is followed sooner: the next one is to end before these figures are too old.
    const took = performance.now() - at
    this.#nextAt = at + Math.min(this.#times.round, Math.max(0, 0.9 * this.#times.maxAge - took))
    this.#last = { figures: { inboxes: inboxes.all(), approvals: approvals.all(), memory }, at }
    for (const place of [...empty.items, ...stale.items]) {
      if (this.#isStopped || !this.#isSweeping) return
      await this.#store.inboxes.tidy(place)
    }
  }
}

function figuresOf ({ tenant, inbox, places }: NamedInbox): InboxFigures {
  const figures = { tenant, inbox, pending: 0, caught: 0, failed: 0, oldestAge: 0 }
  for (const { counted, at } of places) {
    const { pending, caught, failed, oldestAt } = counted as Counted
    addInbox(figures, { ...figures, pending, caught, failed, oldestAge: oldestAt === null ? 0 : at - oldestAt })
  }
  return figures
}

function tenantFigureOf ({ tenant, places }: NamedInbox): TenantFigure {
  return { tenant, waiting: places.reduce((sum, { counted }) => sum + (counted as number), 0) }
}

function addInbox (figures: InboxFigures | undefined, more: InboxFigures): InboxFigures {
  if (figures === undefined) return { ...more, tenant: '', inbox: 'other' }
  figures.pending += more.pending
  figures.caught += more.caught
  figures.failed += more.failed
  figures.oldestAge = Math.max(figures.oldestAge, more.oldestAge)
  return figures
}

function addTenant (figure: TenantFigure | undefined, { waiting }: TenantFigure): TenantFigure {
  return { tenant: '', waiting: (figure?.waiting ?? 0) + waiting }
}

function isEmpty (counted: Counted | number): boolean {
  if (typeof counted === 'number') return counted === 0
  const { pending, waiting, delayed, caught, failed, paused, maxCaught, maxPending } = counted
  return pending + waiting + delayed + caught + failed === 0 && !paused && maxCaught === null && maxPending === null
}
