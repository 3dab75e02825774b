import { tagIn } from '../redis/hash-tag.ts'
import { Unavailable } from '../redis/lanes.ts'
import type { Lanes } from '../redis/lanes.ts'
import { tagged } from './replies.ts'
import type { Scripts } from '../redis/scripts.ts'

/** How long a master that didn't take a lease is passed over, in milliseconds. A call to it may take 2 s, in which nobody holds the lease. */
const passedOverFor = 30_000

/** Leases in Redis: names that one holder at a time has for a while. */
export class Leases {
  readonly #lanes: Lanes
  readonly #scripts: Scripts
  readonly #holder: string
  readonly #masterOf: (tag: string) => string | undefined
  /** Until when a master is passed over, in this process's monotonic milliseconds. */
  readonly #passedOver = new Map<string | undefined, number>()

  /** @param holder this replica's name, the same in every call @param masterOf the name of a partition's master, as far as known */
  constructor (lanes: Lanes, scripts: Scripts, holder: string, masterOf: (tag: string) => string | undefined) {
    this.#lanes = lanes
    this.#scripts = scripts
    this.#holder = holder
    this.#masterOf = masterOf
  }

  /**
   * The same in the first partition with a connection. A master that is connected may still take no writes, or lack replicas that acknowledge
   * them: then another one has the lease, so that the others' partitions don't depend on it. For a while, two replicas may differ in which
   * partition it is.
   * @param keyOf the lease's key in a partition
   */
  async takeReached (tags: readonly string[], reaches: (tag: string) => boolean, keyOf: (tag: string) => string, duration: number): Promise<boolean> {
    const isPassedOver = (tag: string) => (this.#passedOver.get(this.#masterOf(tag)) ?? -Infinity) > performance.now()
    const tag = tags.find(tag => reaches(tag) && !isPassedOver(tag)) ?? tags.find(tag => reaches(tag))
    if (tag === undefined) return false
    const master = this.#masterOf(tag)
    try {
      return await this.take(keyOf(tag), duration)
    } catch (error) {
      if (error instanceof Unavailable) this.#passedOver.set(master, performance.now() + passedOverFor)
      throw error
    }
  }

  /** Takes or renews the lease for so many milliseconds. @returns whether this replica holds it now */
  take (key: string, duration: number): Promise<boolean> {
    return this.#lanes.call({
      script: this.#scripts.lease, tag: tagIn(key), keys: [key], texts: [this.#holder, String(duration)], decode: reply => tagged(reply)[0] === 'held',
    })
  }
}
