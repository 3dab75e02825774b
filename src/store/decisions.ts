import type { Lanes } from '../redis/lanes.ts'
import type { Scripts } from '../redis/scripts.ts'
import type { HandoffPlace } from './handoffs.ts'
import type { KeyNames } from './key-names.ts'
import { inGroups } from './lists.ts'
import { tagged } from './replies.ts'

/** How many decisions of a tenant are mostDecisions. */
const mostDecisions = 1_000_000
/** Each so many-th decision that a replica makes has its tenant's counted. */
const countedEach = 1000
/** How many lists one call reads where one Redis has them all, and how many entries it removes of a list. */
const callLimits = { lists: 64, removed: 100 }

interface DecisionsOptions {
  tags: readonly string[]
  /** Whether one call may read lists of several partitions. */
  isOneRedis: boolean
  onFault: (error: unknown) => void
}

/** What people decided, and answered: forgotten, or too much of it. store/lists.ts lists it. */
export class Decisions {
  readonly #lanes: Lanes
  readonly #scripts: Scripts
  readonly #keyNames: KeyNames
  readonly #options: DecisionsOptions
  #made = 0

  constructor (lanes: Lanes, scripts: Scripts, keyNames: KeyNames, options: DecisionsOptions) {
    this.#lanes = lanes
    this.#scripts = scripts
    this.#keyNames = keyNames
    this.#options = options
  }

  /**
   * Removes the texts of what people decided on this handoff, and answered.
   * @returns how many decisions there are, and of how many the texts were removed; null if there are none
   */
  async forget ({ tag, tenant, id }: HandoffPlace): Promise<{ decisions: number, texts: number } | null> {
    const key = this.#keyNames.decisionsOf(tag, tenant, id)
    const [outcome, decisions, texts] = await this.#lanes.call({
      script: this.#scripts['decision-forget'], tag, keys: [key], texts: [], decode: tagged
    })
    return outcome === 'not_found' ? null : { decisions: decisions as number, texts: texts as number }
  }

  /** A person of this tenant has decided or answered. From time to time this removes the oldest of too many. */
  made (tenant: string): void {
    this.#made++
    if (this.#made % countedEach === 0) this.trim(tenant).catch(this.#options.onFault)
  }

  /** Removes of each partition its share of what is too much, the oldest. */
  async trim (tenant: string, most = mostDecisions): Promise<void> {
    const { tags } = this.#options
    let counts = await this.#remove(tenant, tags.map(() => 0))
    for (;;) {
      const sum = counts.reduce((all, count) => all + count, 0)
      const more = sum - most
      if (more <= 0) return
      counts = await this.#remove(tenant, counts.map(count =>
        Math.min(callLimits.removed, Math.ceil(count * more / sum))))
    }
  }

  /** @param removed how many of each partition's list @returns how many each has now */
  async #remove (tenant: string, removed: readonly number[]): Promise<number[]> {
    const { tags, isOneRedis } = this.#options
    const lists = tags.map((tag, n) => ({ tag, count: String(removed[n]) }))
    const counts: number[] = []
    for (const some of inGroups(lists, callLimits.lists)) {
      const calls = isOneRedis ? [some] : inGroups(some, 1)
      const replies = await Promise.all(calls.map(async call => await this.#lanes.call({
        script: this.#scripts['decisions-trim'],
        tag: call[0]!.tag,
        keys: call.map(({ tag }) => this.#keyNames.decisions(tag, tenant)),
        texts: call.map(({ count }) => count),
        decode: tagged
      })))
      counts.push(...replies.flatMap(([, ...found]) => found as number[]))
    }
    return counts
  }
}
