import type { LimitRecords } from '../store/limits.ts'

/** The limits of a tenant, in requests a minute: of all its agents together (null for none), and of single ones. */
interface TenantLimits { all: number | null, agents: ReadonlyMap<string, number> }

type LimitsByTenant = Map<string, { all: number | null, agents: Map<string, number> }>

/** A change of the log: `agent` is empty for all of the tenant, `limit` (requests a minute) for no limit. */
interface LimitChange { tenant: string, agent: string, limit?: string }

/**
 * The limits that operators set, as this replica knows them, so that a request without one needs no call to Redis. The
 * log of keys has their changes too (auth/key-log.ts): so a change holds within 2 s. Until they were read once no
 * request is let in without them (`whenKnown`). While Redis is away those last known hold.
 */
export class LimitTable {
  readonly #records: Pick<LimitRecords, 'list'>
  #byTenant: LimitsByTenant | undefined
  /** Reads so far, and the latest whose result is here: an earlier one may end after it. */
  #begun = 0
  #known = 0
  #underWay = 0
  #first: Promise<void> | undefined

  constructor (records: Pick<LimitRecords, 'list'>) {
    this.#records = records
  }

  /** Were they read since the start? */
  get isKnown (): boolean {
    return this.#byTenant !== undefined
  }

  /** The tenant's limits; undefined if it has none. */
  of (tenant: string): TenantLimits | undefined {
    return this.#byTenant?.get(tenant)
  }

  /** Resolves once they were read. All that ask meanwhile share one call. @throws {Unavailable} */
  async whenKnown (): Promise<void> {
    if (this.isKnown) return
    this.#first ??= this.read().finally(() => { this.#first = undefined })
    await this.#first
  }

  /** Why requests can't be served without the limits; null if they can. */
  whyUnknown (): Promise<string | null> {
    return this.whenKnown().then(() => null, () => 'The limits of agents can’t be read from Redis.')
  }

  /**
   * Takes over the log's changes, in their order. A call is needed only if all limits are being read just now: that
   * read may be older than the change.
   * @throws {Unavailable}
   */
  async change (changes: readonly LimitChange[]): Promise<void> {
    if (changes.length === 0) return
    if (this.#byTenant === undefined || this.#underWay > 0) return this.read()
    for (const { tenant, agent, limit = '' } of changes) {
      this.#set(this.#byTenant, tenant, agent === '' ? null : agent, limit === '' ? null : Number(limit))
    }
  }

  /** Reads all limits. @throws {Unavailable} */
  async read (): Promise<void> {
    const number = ++this.#begun
    this.#underWay++
    try {
      const byTenant: LimitsByTenant = new Map()
      for (const { tenant, agent, ratePerMinute } of await this.#records.list()) {
        this.#set(byTenant, tenant, agent, ratePerMinute)
      }
      if (number < this.#known) return
      this.#known = number
      this.#byTenant = byTenant
    } finally {
      this.#underWay--
    }
  }

  #set (
    byTenant: LimitsByTenant, tenant: string, agent: string | null, ratePerMinute: number | null
  ): void {
    const limits = byTenant.get(tenant) ?? { all: null, agents: new Map() }
    if (agent === null) limits.all = ratePerMinute
    else if (ratePerMinute === null) limits.agents.delete(agent)
    else limits.agents.set(agent, ratePerMinute)
    if (limits.all === null && limits.agents.size === 0) byTenant.delete(tenant)
    else byTenant.set(tenant, limits)
  }
}
