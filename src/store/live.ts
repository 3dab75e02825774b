import { LRUCache } from 'lru-cache'
import { Unavailable } from '../core/errors.ts'
import type { Lanes } from '../redis/lanes.ts'
import type { Scripts } from '../redis/scripts.ts'
import type { KeyNames } from './key-names.ts'
import { inGroups } from './lists.ts'
import { tagged } from './replies.ts'

/** How many lists one call counts where one Redis has them all, and how many calls are under way at once. */
const callSizes = { listsACall: 256, callsAtOnce: { oneRedis: 2, cluster: 64 } }
/** Of how many tenants and agents a Cluster's counts are kept by partition: 8 MB. */
const maxKept = 1000

/** The name of the run of what an agent with a limit passed (lua/lib/runs.lua). */
export function agentsRun (agent: string): string {
  return `*:${agent}`
}

/** Counts live handoffs: of a tenant, or those that an agent passed whose number is limited. */
export class LiveHandoffs {
  readonly #lanes: Lanes
  readonly #scripts: Scripts
  readonly #keyNames: KeyNames
  readonly #tags: readonly string[]
  /** Whether one call may use keys of several partitions. In a Cluster a count is a call for each. */
  readonly #isOneRedis: boolean
  /** The last counts of a Cluster's partitions, for those whose master isn't reached. */
  readonly #kept = new LRUCache<string, Float64Array>({ max: maxKept })

  constructor (
    lanes: Lanes, scripts: Scripts, keyNames: KeyNames, tags: readonly string[], isOneRedis: boolean
  ) {
    this.#lanes = lanes
    this.#scripts = scripts
    this.#keyNames = keyNames
    this.#tags = tags
    this.#isOneRedis = isOneRedis
  }

  /**
   * In a Cluster, what a master has that isn't reached counts as it was.
   * @param agent null for all of the tenant
   * @throws {Unavailable}
   */
  async count (tenant: string, agent: string | null): Promise<number> {
    const listIn = (tag: string) => agent === null
      ? this.#keyNames.due(tag, tenant)
      : this.#keyNames.run(tag, 'run', tenant, agentsRun(agent))
    if (!this.#isOneRedis) return this.#countByPartition(`${tenant}/${agent ?? ''}`, listIn)
    const lists = [...new Set(this.#tags.map(listIn))]
    let count = 0
    for (const some of inGroups(inGroups(lists, callSizes.listsACall), callSizes.callsAtOnce.oneRedis)) {
      for (const found of await Promise.all(some.map(keys => this.#count(this.#tags[0]!, keys)))) count += found
    }
    return count
  }

  async #countByPartition (name: string, listIn: (tag: string) => string): Promise<number> {
    const counts = this.#kept.get(name) ?? new Float64Array(this.#tags.length).fill(NaN)
    this.#kept.set(name, counts)
    const isDue = (tag: string, place: number) => Number.isNaN(counts[place]) || this.#lanes.reaches(tag)
    const places = this.#tags.map((tag, place) => ({ tag, place })).filter(({ tag, place }) => isDue(tag, place))
    for (const some of inGroups(places, callSizes.callsAtOnce.cluster)) {
      await Promise.all(some.map(async ({ tag, place }) => {
        counts[place] = await this.#count(tag, [listIn(tag)]).catch(error => {
          if (!(error instanceof Unavailable) || Number.isNaN(counts[place])) throw error
          return counts[place]!
        })
      }))
    }
    return counts.reduce((sum, count) => sum + count, 0)
  }

  #count (tag: string, keys: string[]): Promise<number> {
    return this.#lanes.call({
      script: this.#scripts.count, tag, keys, texts: [], decode: reply => tagged(reply)[1] as number
    })
  }
}
