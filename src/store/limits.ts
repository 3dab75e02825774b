import type { Lanes } from '../redis/lanes.ts'
import type { Scripts } from '../redis/scripts.ts'
import type { KeyNames } from './key-names.ts'
import { tagged } from './replies.ts'

/** How many limits there may be: each replica knows all of them. */
export const maxLimits = 10_000
/** How much of the author's name is kept in the log, in bytes. */
const maxByLength = 256

/** How many requests a minute an agent may make; or, where `agent` is null, all agents of the tenant together. */
export interface Limit { tenant: string, agent: string | null, ratePerMinute: number }

/**
 * The limits that operators set for agents and tenants, in Redis. They are in the partition of the API keys, whose log
 * has their changes too, so a replica learns of both with one read.
 */
export class LimitRecords {
  readonly #lanes: Lanes
  readonly #scripts: Scripts
  readonly #tag: string
  readonly #limits: string
  readonly #log: string

  /** @param tag of the partition with the API keys */
  constructor (lanes: Lanes, scripts: Scripts, keyNames: KeyNames, tag: string) {
    this.#lanes = lanes
    this.#scripts = scripts
    this.#tag = tag
    this.#limits = keyNames.limits(tag)
    this.#log = keyNames.apiKeysLog(tag)
  }

  /**
   * @param ratePerMinute null to remove the limit @param by its author, for the log
   * @returns the former limit, null for none; or that there are too many
   * @throws {Unavailable}
   */
  async set (
    tenant: string, agent: string | null, ratePerMinute: number | null, by: string
  ): Promise<{ outcome: 'set', before: number | null } | { outcome: 'full' }> {
    const [outcome, before] = await this.#lanes.call({
      script: this.#scripts['limit-set'],
      tag: this.#tag,
      keys: [this.#limits, this.#log],
      texts: [tenant, agent ?? '', String(ratePerMinute ?? ''), String(maxLimits)],
      bytes: authorBytes(by),
      decode: tagged
    })
    return outcome === 'full' ? { outcome } : { outcome: 'set', before: before == null ? null : Number(before) }
  }

  /** All limits, by their names' bytes. @throws {Unavailable} */
  async list (): Promise<Limit[]> {
    const script = this.#scripts['limit-list']
    const [, found] = await this.#lanes.call({
      script, tag: this.#tag, keys: [this.#limits], texts: [], decode: tagged
    })
    const parts = (found as Buffer[]).map(String)
    const names = parts.filter((_, at) => at % 2 === 0)
    return names.map((name, at) => {
      const [tenant, agent = null] = name.split('/') as [string, string?]
      return { tenant, agent, ratePerMinute: Number(parts[2 * at + 1]) }
    }).sort((one, other) => nameOf(one) < nameOf(other) ? -1 : 1)
  }
}

function nameOf ({ tenant, agent }: Limit): string {
  return `${tenant} ${agent ?? ''}`
}

/** As bytes, since a name needn't be ASCII. */
export function authorBytes (by: string): Buffer {
  return Buffer.from(by).subarray(0, maxByLength)
}
