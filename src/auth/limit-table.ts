import type { KeyChange } from '../store/api-keys.ts'
import { limitedIn } from '../store/limits.ts'
import type { Limit, LimitKind, LimitRecords } from '../store/limits.ts'
import { LogTable } from './log-table.ts'

/** A tenant's limits of one kind: of all its agents together (null for none), and of single ones. */
export interface TenantLimits { all: number | null, agents: ReadonlyMap<string, number> }

/** Null is no limit; what is left out stays. */
type LimitEntry = Pick<Limit, 'tenant' | 'agent'> & { [Name in LimitKind]?: number | null }

/** The limits that operators set. While Redis is away those last known hold. */
export class LimitTable extends LogTable<LimitEntry> {
  readonly #rates = new KnownLimits()
  readonly #lives = new KnownLimits()
  /** Called with the tenant of an agent whose limit of live handoffs became known. */
  onMaxLive: ((tenant: string) => void) | undefined

  constructor (records: Pick<LimitRecords, 'list'>) {
    super(() => records.list())
  }

  /** The tenant's limits in requests a minute; undefined if it has none. */
  of (tenant: string): TenantLimits | undefined {
    return this.#rates.of(tenant)
  }

  /** The tenant's limits in live handoffs; undefined if it has none. */
  maxLiveOf (tenant: string): TenantLimits | undefined {
    return this.#lives.of(tenant)
  }

  /** All of these, by tenant. */
  maxLives (): ReadonlyMap<string, TenantLimits> {
    return this.#lives.byTenant
  }

  /** The tenants with such a limit of all their agents together. */
  withMaxLive (): string[] {
    return [...this.maxLives()].filter(([, { all }]) => all !== null).map(([tenant]) => tenant)
  }

  /** Why requests can't be served without the limits; null if they can. */
  whyUnknown (): Promise<string | null> {
    return this.whenKnown().then(() => null, () => 'The limits of agents can’t be read from Redis.')
  }

  protected entryOf (change: KeyChange): LimitEntry | undefined {
    const { id, action, tenant, agent, limit = '', of, max_live: live = '' } = change
    if (of !== undefined) return { ...limitedIn(of), maxLive: limitIn(live) }
    if (id !== undefined || !action.startsWith('limit')) return undefined
    return { tenant, agent: agent === '' ? null : agent, ratePerMinute: limitIn(limit) }
  }

  protected clear (): void {
    this.#rates.clear()
    this.#lives.clear()
  }

  protected take (entries: readonly LimitEntry[]): void {
    for (const { tenant, agent, ratePerMinute, maxLive } of entries) {
      if (ratePerMinute !== undefined) this.#rates.set(tenant, agent, ratePerMinute)
      if (maxLive === undefined) continue
      this.#lives.set(tenant, agent, maxLive)
      if (agent !== null && maxLive !== null) this.onMaxLive?.(tenant)
    }
  }
}

function limitIn (text: string): number | null {
  return text === '' ? null : Number(text)
}

/** The limits of one kind. */
class KnownLimits {
  readonly byTenant = new Map<string, { all: number | null, agents: Map<string, number> }>()

  of (tenant: string): TenantLimits | undefined {
    return this.byTenant.get(tenant)
  }

  clear (): void {
    this.byTenant.clear()
  }

  /** @param limit null for none */
  set (tenant: string, agent: string | null, limit: number | null): void {
    const limits = this.byTenant.get(tenant) ?? { all: null, agents: new Map() }
    if (agent === null) limits.all = limit
    else if (limit === null) limits.agents.delete(agent)
    else limits.agents.set(agent, limit)
    if (limits.all === null && limits.agents.size === 0) this.byTenant.delete(tenant)
    else this.byTenant.set(tenant, limits)
  }
}
