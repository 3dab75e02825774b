import { LRUCache } from 'lru-cache'
import { RateBudget } from './rate-budget.ts'
import type { Taken } from './rate-budget.ts'
import { digest } from './key-secret.ts'
import { tagByDigest } from './key-names.ts'
import type { KeyNames } from './key-names.ts'
import type { Lanes } from '../redis/lanes.ts'
import { tagged } from './replies.ts'
import type { Scripts } from '../redis/scripts.ts'

/** Milliseconds. */
export const rateWindow = 60_000

/** How many agents a replica knows at a time, some 3 MB. Of one that it has forgotten Redis knows what was taken. */
const agentsAtMost = 10_000

/** How many requests agents may make, all replicas together. Each agent's count is in one partition, by the hash of its names. */
export class Rates {
  readonly #lanes: Lanes
  readonly #scripts: Scripts
  readonly #keyNames: KeyNames
  readonly #tags: readonly string[]
  readonly #window: number
  readonly #budgets = new LRUCache<string, RateBudget>({ max: agentsAtMost })

  /** @param window milliseconds */
  constructor (lanes: Lanes, scripts: Scripts, keyNames: KeyNames, tags: readonly string[], window = rateWindow) {
    this.#lanes = lanes
    this.#scripts = scripts
    this.#keyNames = keyNames
    this.#tags = tags
    this.#window = window
  }

  /** What an agent may do under this limit (requests a window). Keys of one agent with different limits count together in Redis. */
  of (tenant: string, agent: string, limit: number): RateBudget {
    const name = `${tenant}/${agent} ${limit}`
    let budget = this.#budgets.get(name)
    if (budget === undefined) {
      budget = this.#make(tenant, agent, limit)
      this.#budgets.set(name, budget)
    }
    return budget
  }

  #make (tenant: string, agent: string, limit: number): RateBudget {
    const tag = tagByDigest(digest(`rate ${tenant} ${agent}`), this.#tags)
    const keys = [this.#keyNames.rate(tag, tenant, agent)]
    const [limitText, windowText] = [String(limit), String(this.#window)]
    return new RateBudget(limit, (needed, spare) =>
      this.#lanes.call({ script: this.#scripts.rate, tag, keys, texts: [limitText, windowText, String(needed), String(spare)], decode: readTaken }))
  }
}

function readTaken (reply: unknown): Taken {
  const [, given, left, now, ends] = tagged(reply) as [string, number, number, number, number]
  return { given, left, now, ends }
}
