import type { Lanes } from '../redis/lanes.ts'
import type { Scripts } from '../redis/scripts.ts'
import type { KeyNames } from './key-names.ts'
import { tagged } from './replies.ts'

/** How many limits there may be: each replica knows all of them. */
export const maxLimits = 10_000
/** How much of the author's name is kept in the log, in bytes. */
const maxByLength = 256

/**
 * An agent's limits; or where `agent` is null, those of all agents of the tenant together: how many requests they may
 * make a minute, and how many handoffs they passed may be live. Null: any number.
 */
export interface Limit { tenant: string, agent: string | null, ratePerMinute: number | null, maxLive: number | null }

/** Whose limits, and what they become: null is none, what is left out stays. */
type LimitChange = Pick<Limit, 'tenant' | 'agent'> & { [Name in LimitKind]?: number | null | undefined }
export type LimitKind = 'ratePerMinute' | 'maxLive'

/**
 * The limits that operators set for agents and tenants, in Redis. They are in the partition of the API keys, whose log
 * has their changes too, so a replica learns of both with one read.
 */
export class LimitRecords {
  readonly #lanes: Lanes
  readonly #scripts: Scripts
  readonly #tag: string
  /** Both kinds: in requests a minute, and in live handoffs. */
  readonly #limits: readonly string[]
  readonly #log: string

  /** @param tag of the partition with the API keys */
  constructor (lanes: Lanes, scripts: Scripts, keyNames: KeyNames, tag: string) {
    this.#lanes = lanes
    this.#scripts = scripts
    this.#tag = tag
    this.#limits = [keyNames.limits(tag), keyNames.liveLimits(tag)]
    this.#log = keyNames.apiKeysLog(tag)
  }

  /**
   * @param by its author, for the log
   * @returns the limits as they are now and as they were; or that there are too many
   * @throws {Unavailable}
   */
  async set (
    { tenant, agent, ratePerMinute, maxLive }: LimitChange, by: string
  ): Promise<{ outcome: 'set', limit: Limit, before: Pick<Limit, LimitKind> } | { outcome: 'too_many' }> {
    const textOf = (limit: number | null | undefined) => limit === undefined ? '-' : String(limit ?? '')
    const [outcome, ...limits] = await this.#lanes.call({
      script: this.#scripts['limit-set'],
      tag: this.#tag,
      keys: [...this.#limits, this.#log],
      texts: [tenant, agent ?? '', textOf(ratePerMinute), textOf(maxLive), String(maxLimits)],
      bytes: authorBytes(by),
      decode: tagged
    })
    if (outcome === 'too_many') return { outcome }
    const [rate, live, rateBefore, liveBefore] = limits.map(limit => limit === null ? null : Number(limit))
    return {
      outcome: 'set',
      limit: { tenant, agent, ratePerMinute: rate!, maxLive: live! },
      before: { ratePerMinute: rateBefore!, maxLive: liveBefore! }
    }
  }

  /** All limits, by their names' bytes. @throws {Unavailable} */
  async list (): Promise<Limit[]> {
    const script = this.#scripts['limit-list']
    const [, ...found] = await this.#lanes.call({
      script, tag: this.#tag, keys: [...this.#limits], texts: [], decode: tagged
    })
    const [rates, lives] = (found as Buffer[][]).map(limitsByName) as [Map<string, number>, Map<string, number>]
    return [...new Set([...rates.keys(), ...lives.keys()])].map(name => ({
      ...limitedIn(name), ratePerMinute: rates.get(name) ?? null, maxLive: lives.get(name) ?? null
    })).sort((one, other) => nameOf(one) < nameOf(other) ? -1 : 1)
  }
}

/** By name. @param parts as ZRANGE gives them */
function limitsByName (parts: Buffer[]): Map<string, number> {
  const limits = new Map<string, number>()
  for (let at = 0; at < parts.length; at += 2) limits.set(String(parts[at]), Number(parts[at + 1]))
  return limits
}

/** Whose limit has this name in Redis. */
export function limitedIn (name: string): Pick<Limit, 'tenant' | 'agent'> {
  const [tenant, agent = null] = name.split('/') as [string, string?]
  return { tenant, agent }
}

function nameOf ({ tenant, agent }: Limit): string {
  return `${tenant} ${agent ?? ''}`
}

/** As bytes, since a name needn't be ASCII. */
export function authorBytes (by: string): Buffer {
  return Buffer.from(by).subarray(0, maxByLength)
}
