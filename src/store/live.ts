import { LRUCache } from 'lru-cache'
import { Unavailable } from '../core/errors.ts'
import { within } from '../core/round.ts'
import { callBudget } from '../redis/lanes.ts'
import type { Lanes } from '../redis/lanes.ts'
import type { Scripts } from '../redis/scripts.ts'
import type { KeyNames } from './key-names.ts'
import { inGroups } from './lists.ts'
import { tagged } from './replies.ts'

/** How many lists one call counts where one Redis has them all; how many calls of a Cluster's count are under way. */
const callSizes = { listsACall: 256, callsAtOnce: 64 }
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
  readonly #masterOf: (tag: string) => string | undefined
  /** The last counts of a Cluster's partitions, for those whose master isn't reached. */
  readonly #kept = new LRUCache<string, Float64Array>({ max: maxKept })

  /** @param masterOf the name of the partition's master, as far as known */
  constructor (
    lanes: Lanes, scripts: Scripts, keyNames: KeyNames, tags: readonly string[], isOneRedis: boolean,
    masterOf: (tag: string) => string | undefined
  ) {
    this.#lanes = lanes
    this.#scripts = scripts
    this.#keyNames = keyNames
    this.#tags = tags
    this.#isOneRedis = isOneRedis
    this.#masterOf = masterOf
  }

  /**
   * It takes no longer than one call may. In a Cluster, what a master has that isn't reached, or doesn't answer in that
   * time, counts as it was, and as 0 where it was never counted. So an outage of one master refuses no pass to others.
   * @param agent null for all of the tenant
   * @throws {Unavailable} where one Redis has all partitions
   */
  async count (tenant: string, agent: string | null): Promise<number> {
    const listIn = (tag: string) => agent === null
      ? this.#keyNames.due(tag, tenant)
      : this.#keyNames.run(tag, 'run', tenant, agentsRun(agent))
    if (!this.#isOneRedis) return this.#countByPartition(`${tenant}/${agent ?? ''}`, listIn)
    const lists = [...new Set(this.#tags.map(listIn))]
    const counts = inGroups(lists, callSizes.listsACall).map(some => this.#count(this.#tags[0]!, some))
    return (await Promise.all(counts)).reduce((sum, count) => sum + count, 0)
  }

  async #countByPartition (name: string, listIn: (tag: string) => string): Promise<number> {
    const counts = this.#kept.get(name) ?? new Float64Array(this.#tags.length)
    this.#kept.set(name, counts)
    const masters = new Map<string | undefined, number[]>()
    for (const [place, tag] of this.#tags.entries()) {
      const master = this.#masterOf(tag)
      const places = masters.get(master)
      if (places === undefined) masters.set(master, [place])
      else places.push(place)
    }
    const atOnce = Math.ceil(callSizes.callsAtOnce / masters.size)
    const until = performance.now() + callBudget
    // Each master's go on by themselves: the others don't wait for one that is silent.
    await within(callBudget, Promise.all([...masters.values()].map(async places => {
      for (const some of inGroups(places, atOnce)) {
        if (performance.now() >= until || !await this.#countAll(some, listIn, counts)) return
      }
    })))
    return counts.reduce((sum, count) => sum + count, 0)
  }

  /** Counts partitions of one master. @returns false if it isn't reached: then it isn't asked again in this count */
  async #countAll (places: number[], listIn: (tag: string) => string, counts: Float64Array): Promise<boolean> {
    const tags = places.map(place => this.#tags[place]!)
    if (!this.#lanes.reaches(tags[0]!)) return false
    try {
      await Promise.all(tags.map(async (tag, at) => { counts[places[at]!] = await this.#count(tag, [listIn(tag)]) }))
      return true
    } catch (error) {
      if (error instanceof Unavailable) return false
      throw error
    }
  }

  #count (tag: string, keys: string[]): Promise<number> {
    return this.#lanes.call({
      script: this.#scripts.count, tag, keys, texts: [], decode: reply => tagged(reply)[1] as number
    })
  }
}
