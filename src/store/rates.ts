import { LRUCache } from 'lru-cache'
import { RateBudget } from './rate-budget.ts'
import type { Taken } from './rate-budget.ts'
import { digest } from './key-secret.ts'
import { tagByDigest } from './key-names.ts'
import type { KeyNames } from './key-names.ts'
import type { Lanes } from '../redis/lanes.ts'
import { tagged } from './replies.ts'
import type { Scripts } from '../redis/scripts.ts'

/** The length of a rate window, in milliseconds. */
export const rateWindow = 60_000

/** How many agents a replica remembers at a time: some 3 MB. For a forgotten one Redis still knows what was taken. */
const agentsAtMost = 10_000

/** Limits agents' requests across all replicas. Each agent's count is in one partition, chosen by the hash of its name. */
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

  /** The agent's budget under this limit (requests per window). Keys of one agent with different limits count together in Redis. */
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
