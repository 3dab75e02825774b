import { Failure, UsageError, print, table } from '../clients/typescript/command/output.ts'
import { maxLimits } from '../store/limits.ts'
import type { Limit, LimitKind } from '../store/limits.ts'
import { author, withRecords } from './keys.ts'
import { printJson } from './output.ts'

/** Whose limits: an agent's, or those of all agents of the tenant together. */
interface Whose { tenant: string, agent?: string, json?: boolean }

type Given = number | 'none' | undefined

const kinds: ReadonlyArray<[LimitKind, string]> = [['ratePerMinute', 'requests a minute'], ['maxLive', 'live handoffs']]

/** Sets how many requests a minute they may make, and how many handoffs that they passed may be live. */
export async function setLimit (
  { tenant, agent = null, rateLimit, maxLive, json = false }:
    Omit<Whose, 'agent'> & { agent?: string | null, rateLimit?: Given, maxLive?: Given }
): Promise<void> {
  if (rateLimit === undefined && maxLive === undefined) {
    throw new UsageError('nothing to set: give --max-live, --rate-limit, or both')
  }
  const change = { tenant, agent, ratePerMinute: orNull(rateLimit), maxLive: orNull(maxLive) }
  const reply = await withRecords(store => store.keyRecords.limits.set(change, author()))
  if (reply.outcome === 'too_many') {
    throw new Failure(`there are ${maxLimits} limits, and no more are possible: remove some`)
  }
  const { limit, before } = reply
  if (json) return printJson(members(limit))
  const lines = kinds.filter(([kind]) => limit[kind] !== null || before[kind] !== null).map(([kind, unit]) => {
    const now = limit[kind] === null ? `no limit in ${unit}` : `${limit[kind]} ${unit}`
    return `\nlimit  ${now}${before[kind] === null || before[kind] === limit[kind] ? '' : ` (before: ${before[kind]})`}`
  })
  const isSame = kinds.every(([kind]) => limit[kind] === before[kind])
  const isFirst = limit.agent !== null && limit.maxLive !== null && before.maxLive === null
  const note = '\nnote   what it passed before is counted first: with very many that takes longer than 2 s'
  print(`${isSame ? 'it was so before; nothing changed' : 'set: within 2 s this holds everywhere'}\n` +
    `for    ${words(limit)}${lines.join('')}${isFirst ? note : ''}`)
}

/** Takes their limits away. Without one nothing changes, and that is no error. */
export async function removeLimit ({ tenant, agent, json = false }: Whose): Promise<void> {
  const whose = { tenant, agent: agent ?? null }
  const reply = await withRecords(store =>
    store.keyRecords.limits.set({ ...whose, ratePerMinute: null, maxLive: null }, author()))
  const removed = reply.outcome === 'set' && kinds.some(([kind]) => reply.before[kind] !== null)
  if (json) return printJson({ ...whose, removed })
  print(removed
    ? `removed: within 2 s there is no limit for ${words(whose)}`
    : `there was no limit for ${words(whose)}; nothing changed`)
}

/** Lists all limits, and how many handoffs are live where that is limited. */
export async function listLimits ({ tenant, json = false }: Partial<Whose>): Promise<void> {
  const shown = await withRecords(async ({ keyRecords, live }) => {
    const all = await keyRecords.limits.list()
    const counted = []
    for (const limit of tenant === undefined ? all : all.filter(limit => limit.tenant === tenant)) {
      counted.push({ limit, live: limit.maxLive === null ? null : await live.count(limit.tenant, limit.agent) })
    }
    return counted
  })
  if (json) return printJson(shown.map(({ limit, live }) => ({ ...members(limit), live })))
  if (shown.length === 0) return print('there are no limits')
  const rows = shown.map(({ limit: { tenant, agent, ratePerMinute, maxLive }, live }) =>
    [tenant, agent ?? 'all together', textOf(ratePerMinute), textOf(maxLive), textOf(live)])
  print(table([['tenant', 'agent', 'requests a minute', 'live at most', 'live'], ...rows]))
}

function orNull (given: Given): number | null | undefined {
  return given === 'none' ? null : given
}

function textOf (count: number | null): string {
  return count === null ? '-' : String(count)
}

function words ({ tenant, agent }: Pick<Limit, 'tenant' | 'agent'>): string {
  return agent === null ? `all agents of tenant ${tenant} together` : `${agent} of tenant ${tenant}`
}

function members ({ tenant, agent, ratePerMinute, maxLive }: Limit): object {
  return { tenant, agent, rate_per_minute: ratePerMinute, max_live: maxLive }
}
