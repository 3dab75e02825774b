import { tagIn } from '../redis/hash-tag.ts'
import type { Lanes } from '../redis/lanes.ts'
import { tagged } from './replies.ts'
import type { Scripts } from '../redis/scripts.ts'

/** Names in Redis that one holder has at a time, for a while. */
export class Leases {
  readonly #lanes: Lanes
  readonly #scripts: Scripts
  readonly #holder: string

  /** @param holder who this replica is, the same at every asking */
  constructor (lanes: Lanes, scripts: Scripts, holder: string) {
    this.#lanes = lanes
    this.#scripts = scripts
    this.#holder = holder
  }

  /**
   * The same in the first partition that is reached: two replicas may differ in which one that is, for a while.
   * @param keyOf the lease's key in a partition
   */
  async takeReached (tags: readonly string[], reaches: (tag: string) => boolean, keyOf: (tag: string) => string, duration: number): Promise<boolean> {
    const tag = tags.find(tag => reaches(tag))
    return tag !== undefined && await this.take(keyOf(tag), duration)
  }

  /** Takes or renews the lease for so many milliseconds. @returns whether it is ours from now on */
  take (key: string, duration: number): Promise<boolean> {
    return this.#lanes.call({
      script: this.#scripts.lease, tag: tagIn(key), keys: [key], texts: [this.#holder, String(duration)], decode: reply => tagged(reply)[0] === 'held',
    })
  }
}
