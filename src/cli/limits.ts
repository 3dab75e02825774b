import { maxLimits } from '../store/limits.ts'
import type { Limit, LimitRecords } from '../store/limits.ts'
import { author, withKeys } from './keys.ts'
import { Failure, print, table } from '../clients/typescript/command/output.ts'
import { printJson } from './output.ts'

/** Whose limit: an agent's, or that of all agents of the tenant together. */
export interface Whose { tenant: string, agent?: string, json?: boolean }

/** Sets how many requests a minute they may make. */
export async function setLimit (
  { tenant, agent, rateLimit, json = false }: Whose & { rateLimit: number }
): Promise<void> {
  const limit = { tenant, agent: agent ?? null, ratePerMinute: rateLimit }
  const reply = await withLimits(limits => limits.set(tenant, limit.agent, rateLimit, author()))
  if (reply.outcome === 'full') throw new Failure(`there are ${maxLimits} limits, and no more are possible: remove some`)
  if (json) return printJson(members(limit))
  print(`${reply.before === rateLimit ? 'it was so before; nothing changed' : 'set: within 2 s this holds everywhere'}\n` +
    `for    ${words(limit)}\n` +
    `limit  ${rateLimit} requests a minute${reply.before === null ? '' : ` (before: ${reply.before})`}`)
}

/** Takes their limit away. Without one nothing changes, and that is no error. */
export async function removeLimit ({ tenant, agent, json = false }: Whose): Promise<void> {
  const limit = { tenant, agent: agent ?? null }
  const reply = await withLimits(limits => limits.set(tenant, limit.agent, null, author()))
  const removed = reply.outcome === 'set' && reply.before !== null
  if (json) return printJson({ ...limit, removed })
  print(removed
    ? `removed: within 2 s there is no limit for ${words(limit)}`
    : `there was no limit for ${words(limit)}; nothing changed`)
}

export async function listLimits ({ tenant, json = false }: Partial<Whose>): Promise<void> {
  const all = await withLimits(limits => limits.list())
  const shown = tenant === undefined ? all : all.filter(limit => limit.tenant === tenant)
  if (json) return printJson(shown.map(members))
  if (shown.length === 0) return print('there are no limits')
  const rows = shown.map(({ tenant, agent, ratePerMinute }) =>
    [tenant, agent ?? 'all together', String(ratePerMinute)])
  print(table([['tenant', 'agent', 'requests a minute'], ...rows]))
}

function withLimits<T> (use: (limits: LimitRecords) => Promise<T>): Promise<T> {
  return withKeys(keys => use(keys.limits))
}

function words ({ tenant, agent }: Pick<Limit, 'tenant' | 'agent'>): string {
  return agent === null ? `all agents of tenant ${tenant} together` : `${agent} of tenant ${tenant}`
}

function members ({ tenant, agent, ratePerMinute }: Limit): object {
  return { tenant, agent, rate_per_minute: ratePerMinute }
}
