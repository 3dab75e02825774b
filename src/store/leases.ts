import { tagIn } from '../redis/hash-tag.ts'
import type { Lanes } from '../redis/lanes.ts'
import { tagged } from './replies.ts'
import type { Scripts } from '../redis/scripts.ts'

/** Leases in Redis: names that one holder at a time has for a while. */
export class Leases {
  readonly #lanes: Lanes
  readonly #scripts: Scripts
  readonly #holder: string

  /** @param holder this replica's name, the same in every call */
  constructor (lanes: Lanes, scripts: Scripts, holder: string) {
    this.#lanes = lanes
    this.#scripts = scripts
    this.#holder = holder
  }

  /**
   * The same in the first partition with a connection. For a while, two replicas may differ in which one that is.
   * @param keyOf the lease's key in a partition
   */
  async takeReached (tags: readonly string[], reaches: (tag: string) => boolean, keyOf: (tag: string) => string, duration: number): Promise<boolean> {
    const tag = tags.find(tag => reaches(tag))
    return tag !== undefined && await this.take(keyOf(tag), duration)
  }

  /** Takes or renews the lease for so many milliseconds. @returns whether this replica holds it now */
  take (key: string, duration: number): Promise<boolean> {
    return this.#lanes.call({
      script: this.#scripts.lease, tag: tagIn(key), keys: [key], texts: [this.#holder, String(duration)], decode: reply => tagged(reply)[0] === 'held',
    })
  }
}
