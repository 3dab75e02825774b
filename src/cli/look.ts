import { loadConfig } from '../config.ts'
import type { Config } from '../config.ts'
import { isId, tagOf } from '../handoff/id.ts'
import type { Store } from '../store/store.ts'
import { Failure } from './failure.ts'
import { describe, reportOf } from './handoff-report.ts'
import type { Found } from './life-lines.ts'
import { print } from './output.ts'
import { whereabouts } from './place.ts'
import { withStore } from './redis.ts'

export interface LookOptions {
  tenant?: string | undefined
  json?: boolean
  /** Whether to show what was passed and the result. */
  payload?: boolean
}

/** Shows a handoff, and where it is stored. Changes nothing and needs no key: whoever has Redis's password is the operator. */
export async function look (id: string, { tenant, json = false, payload = false }: LookOptions): Promise<void> {
  if (!isId(id)) throw new Failure('that is no handoff’s id: an id has 25 characters of A-Z a-z 0-9 - _, as pass answered it')
  const config = loadConfig()
  // Doesn't wait for replicas: an operator who looks for a fault must see the handoff while replicas are away.
  const report = await withStore(config, 0, async store => {
    const found = await find(store, config, id, tenant)
    const where = whereabouts(store.masters, config.keyPrefix, found.tenant, id)
    // The TTL isn't in the record, and this Redis user may not be allowed to read it.
    const keptUntil = await store.masters.of(tagOf(id))?.calls.pexpiretime(where.key).then(Number, () => null) ?? null
    return reportOf(found, { ...where, keptUntil }, payload)
  })
  print(json ? report.json : describe(report))
}

/**
 * An id tells its partition but not its tenant, and the Redis key contains the tenant. So this looks in every known tenant, all in the
 * one partition and at once. A scan would keep a Redis with millions of keys busy for seconds.
 * @throws {Failure} no such handoff
 */
async function find (store: Store, config: Config, id: string, tenant: string | undefined): Promise<Found> {
  const near = tenant === undefined ? ['default', ...config.apiKeys.map(({ caller }) => caller.tenant)] : [tenant]
  const found = await findIn(near, store, id) ?? (tenant === undefined ? await findIn(await tenantsOfKeys(store), store, id) : undefined)
  if (found === undefined) throw new Failure('no such handoff: it never existed, is gone, or belongs to a tenant without keys (--tenant)')
  return found
}

async function findIn (tenants: readonly string[], store: Store, id: string): Promise<Found | undefined> {
  const looks = await Promise.all([...new Set(tenants)].map(async tenant => {
    const place = { tenant, id, tag: tagOf(id) }
    const [inspection, status] = await Promise.all([store.approvals.inspect(place), store.handoffs.status(place)])
    if (inspection.outcome === 'not_found' || status.outcome === 'not_found') return undefined
    return { id, tenant, ...inspection, result: status.result, told: status.told }
  }))
  return looks.find(look => look !== undefined)
}

async function tenantsOfKeys (store: Store): Promise<string[]> {
  return (await store.keyRecords.list()).map(({ tenant }) => tenant)
}
