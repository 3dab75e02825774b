import { LRUCache } from 'lru-cache'
import type { LimitTable } from '../../auth/limit-table.ts'
import type { Caller } from '../../core/model.ts'
import { agentsRun } from '../../store/live.ts'
import type { LiveHandoffs } from '../../store/live.ts'
import type { Store } from '../../store/store.ts'

/**
 * In milliseconds: how old a count may be that lets a pass through, from which age on it is made anew meanwhile, and
 * how old one may be that refuses a pass: a Cluster makes a call for each partition.
 */
const ages = { admits: 2000, renewed: 1000, refuses: { oneRedis: 100, cluster: 1000 } }
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
  readonly #refusesFor: number
  readonly #counts = new LRUCache<string, LiveCount>({ max: maxCounts })

  constructor (limits: LimitTable, { live, indexer }: Pick<Store, 'live' | 'indexer'>) {
    this.#limits = limits
    this.#live = live
    indexer.limited = () => limits.maxLives()
    limits.onMaxLive = tenant => indexer.countLive(tenant)
    this.#refusesFor = live.isOneRedis ? ages.refuses.oneRedis : ages.refuses.cluster
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
    const count = new LiveCount(() => this.#live.count(tenant, agent), this.#refusesFor)
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

/** `begun`: by this process's monotonic clock. `passed`: how many this replica let through since. */
interface LiveFigure { begun: number, live: number, passed: number }

/**
 * How many are live, as far as this replica knows: the last count, and what it let through since that began. What other
 * replicas let through is in the next count.
 */
class LiveCount {
  readonly #read: () => Promise<number>
  readonly #refusesFor: number
  #last: LiveFigure = { begun: -Infinity, live: 0, passed: 0 }
  #next: LiveFigure | undefined
  #reading: Promise<void> | undefined

  constructor (read: () => Promise<number>, refusesFor: number) {
    this.#read = read
    this.#refusesFor = refusesFor
  }

  async take (max: number): Promise<(() => void) | null> {
    const age = this.#age()
    if (age > ages.admits) await this.#renew()
    // Those who need it will meet its failure.
    else if (age > ages.renewed) this.#renew().catch(() => {})
    if (this.#isFull(max) && this.#age() > this.#refusesFor) await this.#renew()
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

  /** All that ask meanwhile share one count. */
  #renew (): Promise<void> {
    this.#reading ??= this.#count().finally(() => { this.#reading = this.#next = undefined })
    return this.#reading
  }

  async #count (): Promise<void> {
    const count = this.#next = { begun: performance.now(), live: 0, passed: 0 }
    count.live = await this.#read()
    this.#last = count
  }
}
