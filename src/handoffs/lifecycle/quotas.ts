import { setTimeout as sleep } from 'node:timers/promises'
import { LRUCache } from 'lru-cache'
import pLimit from 'p-limit'
import type { LimitFunction } from 'p-limit'
import type { LimitTable } from '../../auth/limit-table.ts'
import { Unavailable } from '../../core/errors.ts'
import type { Caller } from '../../core/model.ts'
import { agentsRun } from '../../store/live.ts'
import type { LiveHandoffs } from '../../store/live.ts'
import type { Store } from '../../store/store.ts'

/**
 * In milliseconds: how old a count may be, and from which age on it is made anew. A pass that the old one lets through
 * doesn't wait for the new one. One that it refuses does, unless others' counts come first.
 */
const ages = { used: 2000, renewed: 1000 }
/**
 * When the next count may begin that is made only for what this replica let through: so many milliseconds after the
 * last one began, or so many times as long as that one took. So such counts have a tenth of a replica's time at most.
 */
const again = { after: 100, perCost: 10 }
/** How many are made at once, of all tenants and agents: each goes through all partitions. */
const countsAtOnce = 2
/** Of how many tenants and agents the counts are kept. */
const maxCounts = 10_000

/** What limits how many handoffs may be live that a caller passes. */
interface Quota {
  /** The word by which what it passes counts as its agent's (lua/lib/record.lua); empty if that has no limit. */
  words: string
  /** Lets one more through. @returns undoes that; null if as many are live as may be @throws {Unavailable} */
  take (): Promise<(() => void) | null>
}

/** The limits of how many handoffs may be live, of a tenant and of what an agent passed. */
export class Quotas {
  readonly #limits: Pick<LimitTable, 'maxLiveOf'>
  readonly #live: LiveHandoffs
  readonly #turn = pLimit(countsAtOnce)
  readonly #counts = new LRUCache<string, LiveCount>({ max: maxCounts })

  constructor (limits: LimitTable, { live, indexer, attempts }: Pick<Store, 'live' | 'indexer' | 'attempts'>) {
    this.#limits = limits
    this.#live = live
    indexer.limited = () => limits.maxLives()
    attempts.limited = tenant => limits.maxLiveOf(tenant)?.agents.keys() ?? []
    limits.onMaxLive = tenant => indexer.countLive(tenant)
  }

  /** Undefined if there is no limit, as for most. */
  of ({ tenant, agent }: Pick<Caller, 'tenant' | 'agent'>): Quota | undefined {
    const limits = this.#limits.maxLiveOf(tenant)
    if (limits === undefined) return undefined
    const own = limits.agents.get(agent)
    const both = [
      ...own === undefined ? [] : [{ max: own, count: this.#countOf(tenant, agent) }],
      ...limits.all === null ? [] : [{ max: limits.all, count: this.#countOf(tenant, null) }]
    ]
    if (both.length === 0) return undefined
    return { words: own === undefined ? '' : ` J${agentsRun(agent)}`, take: () => takeAll(both) }
  }

  #countOf (tenant: string, agent: string | null): LiveCount {
    const name = `${tenant}/${agent ?? ''}`
    const known = this.#counts.get(name)
    if (known !== undefined) return known
    const count = new LiveCount(() => this.#live.count(tenant, agent), this.#turn)
    this.#counts.set(name, count)
    return count
  }
}

/** Of each, or of none. */
async function takeAll (all: Array<{ max: number, count: LiveCount }>): Promise<(() => void) | null> {
  const taken: Array<() => void> = []
  const undo = () => taken.forEach(giveBack => giveBack())
  for (const { max, count } of all) {
    const giveBack = await count.take(max)
    if (giveBack === null) {
      undo()
      return null
    }
    taken.push(giveBack)
  }
  return undo
}

/**
 * `begun`: by this process's monotonic clock. `took`: how long it took, in milliseconds. `passed`: how many this
 * replica let through since.
 */
interface LiveFigure { begun: number, took: number, live: number, passed: number }

/**
 * How many are live, as far as this replica knows: the last count, and what it let through since that began. What other
 * replicas let through is in the next count.
 */
class LiveCount {
  readonly #read: () => Promise<number>
  readonly #turn: LimitFunction
  #last: LiveFigure = { begun: -Infinity, took: 0, live: 0, passed: 0 }
  #next: LiveFigure | undefined
  #renewing: { ended: Promise<void>, isQueued: boolean } | undefined
  #soon: Promise<void> | undefined

  constructor (read: () => Promise<number>, turn: LimitFunction) {
    this.#read = read
    this.#turn = turn
  }

  async take (max: number): Promise<(() => void) | null> {
    const came = performance.now()
    const age = this.#age()
    if (age > ages.renewed) {
      const { ended, isQueued } = this.#renew()
      if (age > ages.used || (this.#isFull(max) && !isQueued)) await ended
      // Those who need it will meet its failure.
      else ended.catch(() => {})
    }
    // Of what this replica let through, some may have ended: only a count says how many. All that wait share it. A
    // count that is at the limit by itself refuses at once, for as long as Retry-After says: so where as many are live
    // as may be, refusals need no count.
    while (this.#isFull(max) && this.#last.live < max && this.#last.begun < came) await this.#countAgain()
    if (this.#isFull(max)) return null
    // One that is being counted may be in that count or not.
    const counts = this.#next === undefined ? [this.#last] : [this.#last, this.#next]
    for (const count of counts) count.passed++
    return () => { for (const count of counts) count.passed-- }
  }

  #isFull (max: number): boolean {
    return this.#last.live + this.#last.passed >= max
  }

  #age (): number {
    return performance.now() - this.#last.begun
  }

  /** All that ask meanwhile share one count. `isQueued`: others' counts come first. */
  #renew (): { ended: Promise<void>, isQueued: boolean } {
    if (this.#renewing !== undefined) return this.#renewing
    const ended = this.#count().finally(() => { this.#renewing = this.#next = undefined })
    this.#renewing = { ended, isQueued: this.#turn.pendingCount > 0 }
    // It is read a moment later: what is let through from now on counts in it.
    if (!this.#renewing.isQueued) this.#next = begunNow()
    return this.#renewing
  }

  /** Waits for the count that is under way, or for the next one. */
  #countAgain (): Promise<void> {
    if (this.#renewing !== undefined) return this.#renewing.ended
    const { took } = this.#last
    const pause = Math.min(ages.renewed, Math.max(again.after, again.perCost * took)) - this.#age()
    this.#soon ??= sleep(pause).then(() => this.#renew().ended).finally(() => { this.#soon = undefined })
    return this.#soon
  }

  /** Behind a slow Redis those that have waited for long are given up: no request waits for all that come first. */
  #count (): Promise<void> {
    return new Promise((resolve, reject) => {
      let isLate = false
      const timer = setTimeout(() => {
        isLate = true
        reject(new Unavailable('Redis did not answer in time'))
      }, ages.used)
      this.#turn(async () => {
        clearTimeout(timer)
        if (!isLate) await this.#countNow()
      }).then(resolve, reject)
    })
  }

  async #countNow (): Promise<void> {
    const count = this.#next ??= begunNow()
    count.live = await this.#read()
    count.took = performance.now() - count.begun
    this.#last = count
  }
}

function begunNow (): LiveFigure {
  return { begun: performance.now(), took: 0, live: 0, passed: 0 }
}
