import { setTimeout as sleep } from 'node:timers/promises'
import { Unavailable } from '../core/errors.ts'
import { Round } from '../core/round.ts'
import type { Memory } from '../store/health.ts'
import type { Counted, InboxPlace, NamedInbox } from '../store/inboxes.ts'
import type { Store } from '../store/store.ts'

/**
 * In milliseconds: how often rounds begin and Redis's memory is read, how soon after a failure, how old figures are to
 * be at most, and how often it is seen to.
 */
const standardTimes = { round: 10_000, afterFailure: 3000, maxAge: 15_000, tick: 250 }
/**
 * From when on a round hurries, in milliseconds, since the last figures grow old: it doesn't pause between its calls.
 * When it can't end in time any more, it pauses again: there are too many inboxes, and that must not load Redis.
 */
const hurry = { from: 2000, until: 7000 }
/**
 * How many places a round tidies at most: empty ones, and those with caught or delayed handoffs.
 */
const tidied = { empty: 100, stale: 20 }
/** How many tenants have a figure of their own. */
const maxTenants = 1000

/** An inbox's figures, of both partitions. `oldestAge`: of its pending handoffs, in milliseconds; 0 without any. */
interface InboxFigures {
  tenant: string
  inbox: string
  pending: number
  caught: number
  failed: number
  oldestAge: number
}

/** How many handoffs of a tenant wait for a person. */
interface TenantFigure { tenant: string, waiting: number }

/** A round's figures. */
interface Found { inboxes: InboxFigures[], approvals: TenantFigure[] }

/**
 * `memory` is null where Redis doesn't report it. `live`: of the tenants where that is limited, by rounds of its own.
 * `age`: how long ago the round began that found the rest, in milliseconds.
 */
export interface Figures extends Found {
  memory: Memory | null
  live: Array<{ tenant: string, live: number }>
  age: number
}

/**
 * Counts what all inboxes have, in rounds, while this replica sweeps. Only the sweeping one does, so that a sum over
 * all replicas counts each handoff once. /metrics shows the last round: it doesn't call Redis itself.
 */
export class InboxRounds {
  readonly #store: Pick<Store, 'inboxes' | 'memory' | 'sweeper' | 'live'>
  readonly #maxInboxes: number
  readonly #times: typeof standardTimes
  readonly #rounds: Round
  /** A Cluster takes long to count what many tenants have: inboxes don't wait for that. */
  readonly #liveRounds: Round
  readonly #onFault: (error: unknown) => void
  /** The tenants whose live handoffs are limited, all of their agents' together. */
  limited: () => string[] = () => []
  #nextAt = 0
  #last: Found & { at: number } | undefined
  #live: Figures['live'] = []
  #memory: { read: Memory | null, at: number } = { read: null, at: -Infinity }

  /** @param maxInboxes how many inboxes have figures of their own @param times tests have shorter ones */
  constructor (
    store: Pick<Store, 'inboxes' | 'memory' | 'sweeper' | 'live'>, maxInboxes: number,
    onFault: (error: unknown) => void, times = standardTimes
  ) {
    this.#store = store
    this.#maxInboxes = maxInboxes
    this.#times = times
    this.#onFault = onFault
    const isMine = () => this.#isSweeping
    this.#rounds = new Round({
      interval: times.tick,
      isMine,
      notMine: () => {
        this.#last = undefined
        this.#nextAt = 0
      },
      run: () => this.#roundIfDue(),
      onFault,
    })
    this.#liveRounds = new Round({
      interval: times.tick,
      isMine,
      notMine: () => { this.#live = [] },
      run: async () => {
        await this.countLive()
        return times.round
      },
      onFault,
    })
  }

  /** The last round's figures, however old. Null if this replica doesn't sweep, and before its first round. */
  get figures (): Figures | null {
    if (this.#last === undefined || !this.#isSweeping) return null
    const { at, ...found } = this.#last
    return { ...found, live: this.#live, memory: this.#memory.read, age: performance.now() - at }
  }

  /** The first round begins as soon as this replica sweeps. */
  start (): void {
    this.#rounds.wake(this.#times.tick)
    this.#liveRounds.wake(this.#times.tick)
  }

  async stop (): Promise<void> {
    await Promise.all([this.#rounds.stop(), this.#liveRounds.stop()])
  }

  get #isSweeping (): boolean {
    return this.#store.sweeper.isSweeping
  }

  async #roundIfDue (): Promise<void> {
    const now = performance.now()
    if (now < this.#nextAt) return
    this.#nextAt = now + this.#times.round
    await this.round().catch(error => {
      this.#nextAt = performance.now() + this.#times.afterFailure
      throw error
    })
  }

  /** One round. It ends early, without figures, if this replica stops sweeping. */
  async round (): Promise<void> {
    const at = performance.now()
    await this.#readMemory()
    const inboxes = new Largest<InboxFigures>(
      this.#maxInboxes, { size: sizeOf, owner: ({ tenant }) => tenant }, addInbox
    )
    const approvals = new Largest<TenantFigure>(
      maxTenants, { size: ({ waiting }) => waiting, owner: () => '' }, addTenant
    )
    const [empty, stale] = [new Sample<InboxPlace>(tidied.empty), new Sample<InboxPlace>(tidied.stale)]
    let before = at
    for await (const part of this.#store.inboxes.allNamed()) {
      for (const named of part) {
        if (named.inbox === '') approvals.add(tenantFigureOf(named))
        else inboxes.add(figuresOf(named))
        for (const { tag, counted } of named.places) {
          const place = { tag, tenant: named.tenant, inbox: named.inbox }
          if (isEmpty(counted)) empty.add(place)
          else if (typeof counted === 'number' || counted.caught + counted.delayed > 0 ||
            counted.maxCaughtPerGroup !== null) stale.add(place)
        }
      }
      if (this.#rounds.signal.aborted || !this.#isSweeping) return
      const now = performance.now()
      // As long as the calls took: half of the time is left to others.
      if (now < at + hurry.from || now > at + hurry.until) await sleep(now - before, undefined, { ref: false })
      if (now > this.#memory.at + this.#times.round) await this.#readMemory()
      before = performance.now()
    }
    // A long round is followed sooner: the next one is to end before these figures are too old.
    const took = performance.now() - at
    this.#nextAt = at + Math.min(this.#times.round, Math.max(0, 0.9 * this.#times.maxAge - took))
    this.#last = { inboxes: inboxes.all(), approvals: approvals.all(), at }
    for (const place of [...empty.items, ...stale.items]) {
      if (this.#rounds.signal.aborted || !this.#isSweeping) return
      await this.#store.inboxes.tidy(place)
    }
  }

  /** It ends early, without figures, if this replica stops sweeping. A tenant whose count fails has none this time. */
  async countLive (): Promise<void> {
    const found: Figures['live'] = []
    for (const tenant of this.limited().slice(0, maxTenants)) {
      const before = performance.now()
      try {
        found.push({ tenant, live: await this.#store.live.count(tenant, null) })
      } catch (error) {
        if (!(error instanceof Unavailable)) this.#onFault(error)
      }
      if (this.#liveRounds.signal.aborted || !this.#isSweeping) return
      await sleep(performance.now() - before, undefined, { ref: false })
    }
    this.#live = found
  }

  /** In a long round several times: it doesn't depend on how many inboxes there are. */
  async #readMemory (): Promise<void> {
    this.#memory = { read: await this.#store.memory(), at: performance.now() }
  }
}

/** By its pending handoffs. An inbox with only zeros has nothing. */
function sizeOf ({ pending, caught, failed }: InboxFigures): number {
  return pending + caught + failed === 0 ? -1 : pending
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

/** Nothing is there, and nothing is set: each of its counts and settings is 0, false or null. */
function isEmpty (counted: Counted | number): boolean {
  return typeof counted === 'number' ? counted === 0 : Object.values(counted).every(value => !value)
}

/**
 * Keeps the largest of many entries, and adds up the rest, so its memory is bounded. Owners take turns: first the
 * largest entry of each owner, then the second of each, until there are enough. So an owner of many large entries
 * leaves the others their share, and unused shares are shared too.
 */
class Largest<T> {
  readonly #max: number
  readonly #of: Traits<T>
  readonly #addUp: (sum: T | undefined, more: T) => T
  #owner: string | undefined
  #own: T[] = []
  #kept: Array<Ranked<T>> = []
  #rest: T | undefined

  /** @param addUp adds one to the sum of the rest; undefined: it is the first */
  constructor (max: number, traits: Traits<T>, addUp: (sum: T | undefined, more: T) => T) {
    this.#max = max
    this.#of = traits
    this.#addUp = addUp
  }

  /** An owner's entries come one after the other. Among entries of equal size, the first ones are kept. */
  add (one: T): void {
    const owner = this.#of.owner(one)
    if (owner !== this.#owner) this.#endOwner()
    this.#owner = owner
    this.#own.push(one)
    if (this.#own.length >= this.#most) this.#cutOwn()
  }

  /** The kept entries, and behind them the sum of the rest, if there is any. */
  all (): T[] {
    this.#endOwner()
    this.#cutKept()
    const kept = this.#kept.map(({ one }) => one)
    return this.#rest === undefined ? kept : [...kept, this.#rest]
  }

  /** How many it holds before it cuts them. */
  get #most (): number {
    return 2 * this.#max + 64
  }

  /** An entry's place is how many of its owner's entries are larger. More than `max` of an owner are never kept. */
  #endOwner (): void {
    this.#cutOwn()
    for (const [rank, one] of this.#own.entries()) this.#kept.push({ one, rank, size: this.#of.size(one) })
    this.#own = []
    if (this.#kept.length >= this.#most) this.#cutKept()
  }

  #cutOwn (): void {
    const { size } = this.#of
    this.#own.sort((one, other) => size(other) - size(one))
    for (const one of this.#own.splice(this.#max)) this.#rest = this.#addUp(this.#rest, one)
  }

  #cutKept (): void {
    this.#kept.sort(inTurn)
    for (const { one } of this.#kept.splice(this.#max)) this.#rest = this.#addUp(this.#rest, one)
  }
}

/** `size`: below 0 for an empty entry: these come after all others, of any tenant. */
interface Traits<T> { size: (one: T) => number, owner: (one: T) => string }

interface Ranked<T> { one: T, rank: number, size: number }

function inTurn (one: Ranked<unknown>, other: Ranked<unknown>): number {
  return Number(one.size < 0) - Number(other.size < 0) || one.rank - other.rank || other.size - one.size
}

/** Some of many entries, each with the same chance. */
class Sample<T> {
  readonly items: T[] = []
  readonly #max: number
  #seen = 0

  constructor (max: number) {
    this.#max = max
  }

  add (one: T): void {
    this.#seen++
    const place = this.items.length < this.#max ? this.items.length : Math.floor(Math.random() * this.#seen)
    if (place < this.#max) this.items[place] = one
  }
}
