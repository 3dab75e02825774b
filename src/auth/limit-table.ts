import type { KeyChange } from '../store/api-keys.ts'
import type { LimitRecords } from '../store/limits.ts'
import { LogTable } from './log-table.ts'

/** The limits of a tenant, in requests a minute: of all its agents together (null for none), and of single ones. */
interface TenantLimits { all: number | null, agents: Map<string, number> }

/** `agent` is null for all of the tenant, `ratePerMinute` for no limit. */
interface LimitEntry { tenant: string, agent: string | null, ratePerMinute: number | null }

/** The limits that operators set. While Redis is away those last known hold. */
export class LimitTable extends LogTable<LimitEntry> {
  readonly #byTenant = new Map<string, TenantLimits>()

  constructor (records: Pick<LimitRecords, 'list'>) {
    super(() => records.list())
  }

  /** The tenant's limits; undefined if it has none. */
  of (tenant: string): { all: number | null, agents: ReadonlyMap<string, number> } | undefined {
    return this.#byTenant.get(tenant)
  }

  /** Why requests can't be served without the limits; null if they can. */
  whyUnknown (): Promise<string | null> {
    return this.whenKnown().then(() => null, () => 'The limits of agents can’t be read from Redis.')
  }

  protected entryOf ({ id, action, tenant, agent, limit = '' }: KeyChange): LimitEntry | undefined {
    if (id !== undefined || !action.startsWith('limit')) return undefined
    return { tenant, agent: agent === '' ? null : agent, ratePerMinute: limit === '' ? null : Number(limit) }
  }

  protected clear (): void {
    this.#byTenant.clear()
  }

  protected take (entries: readonly LimitEntry[]): void {
    for (const { tenant, agent, ratePerMinute } of entries) {
      const limits = this.#byTenant.get(tenant) ?? { all: null, agents: new Map() }
      if (agent === null) limits.all = ratePerMinute
      else if (ratePerMinute === null) limits.agents.delete(agent)
      else limits.agents.set(agent, ratePerMinute)
      if (limits.all === null && limits.agents.size === 0) this.#byTenant.delete(tenant)
      else this.#byTenant.set(tenant, limits)
    }
  }
}
