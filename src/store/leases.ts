import type { Lane } from './lane.ts'
import { tagged } from './replies.ts'
import type { Scripts } from './scripts.ts'

/** Names in Redis that one holder has at a time, for a while. */
export class Leases {
  readonly #lane: Lane
  readonly #scripts: Scripts
  readonly #holder: string

  /** @param holder who this replica is, the same at every asking */
  constructor (lane: Lane, scripts: Scripts, holder: string) {
    this.#lane = lane
    this.#scripts = scripts
    this.#holder = holder
  }

  /** Takes or renews the lease for so many milliseconds. @returns whether it is ours from now on */
  take (key: string, duration: number): Promise<boolean> {
    return this.#lane.call(this.#scripts.lease, [key], [this.#holder, String(duration)], reply => tagged(reply)[0] === 'held')
  }
}
