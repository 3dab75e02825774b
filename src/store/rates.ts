import { LRUCache } from 'lru-cache'
import { Allowance } from './allowance.ts'
import type { Taken } from './allowance.ts'
import { digest } from './key-secret.ts'
import { tagByDigest } from './keys.ts'
import type { Keys } from './keys.ts'
import type { Lanes } from './lanes.ts'
import { tagged } from './replies.ts'
import type { Scripts } from './scripts.ts'

/** Milliseconds. */
export const rateWindow = 60_000

/** How many agents a replica knows at a time, some 3 MB. Of one that it has forgotten Redis knows what was taken. */
const agentsAtMost = 10_000

/** How many requests agents may make, all replicas together. Each agent's count is in one partition, by the hash of its names. */
export class Rates {
  readonly #lanes: Lanes
  readonly #scripts: Scripts
  readonly #keys: Keys
  readonly #tags: readonly string[]
  readonly #window: number
  readonly #allowances = new LRUCache<string, Allowance>({ max: agentsAtMost })

  /** @param window milliseconds */
  constructor (lanes: Lanes, scripts: Scripts, keys: Keys, tags: readonly string[], window = rateWindow) {
    this.#lanes = lanes
    this.#scripts = scripts
    this.#keys = keys
    this.#tags = tags
    this.#window = window
  }

  /** What an agent may do under this limit (requests a window). Keys of one agent with different limits count together in Redis. */
  of (tenant: string, agent: string, limit: number): Allowance {
    const name = `${tenant}/${agent} ${limit}`
    let allowance = this.#allowances.get(name)
    if (allowance === undefined) {
      allowance = this.#make(tenant, agent, limit)
      this.#allowances.set(name, allowance)
    }
    return allowance
  }

  #make (tenant: string, agent: string, limit: number): Allowance {
    const tag = tagByDigest(digest(`rate ${tenant} ${agent}`), this.#tags)
    const keys = [this.#keys.rate(tag, tenant, agent)]
    const [limitText, windowText] = [String(limit), String(this.#window)]
    return new Allowance(limit, (needed, spare) =>
      this.#lanes.call(this.#scripts.rate, tag, keys, [limitText, windowText, String(needed), String(spare)], readTaken))
  }
}

function readTaken (reply: unknown): Taken {
  const [, given, left, now, ends] = tagged(reply) as [string, number, number, number, number]
  return { given, left, now, ends }
}
