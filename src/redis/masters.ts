import type { Redis } from 'ioredis'
import { connect } from './connect.ts'
import type { ConnectionLog } from './connect.ts'
import type { Sentinels, Standalone } from '../redis-url.ts'

/** A server that takes writes. One connection is for calls, another for who listens: one that subscribes can do little else. */
export interface Master {
  /** What figures call it: `host:port` in a Cluster. */
  readonly name: string
  readonly calls: Redis
  readonly subscriber: Redis
  /** The tags of the partitions that it has, as far as is known. */
  tags: readonly string[]
  /** What last kept us from connecting; undefined while we are connected. */
  trouble?: Error | undefined
}

/** @param open makes one connection to it */
export function openMaster (name: string, open: () => Redis, tags: readonly string[]): Master {
  const master: Master = { name, calls: open(), subscriber: open(), tags, trouble: undefined }
  master.calls.on('error', (error: Error) => { master.trouble = error })
  master.calls.on('ready', () => { master.trouble = undefined })
  return master
}

/** The masters that the partitions lie on. */
export interface Masters {
  /** Who has this partition, as far as is known. */
  of (tag: string): Master | undefined
  all (): Iterable<Master>
  /** Calls `listener` with each master, those there are and those to come, before anything is asked of it. */
  each (listener: (master: Master) => void): void
  /** Calls `listener` whenever a partition has changed hands, or its master is known at last. */
  onChange (listener: () => void): void
  /** A reply or a broken connection says that what is known may be out of date. */
  doubt (): void
  /**
   * A node said that a slot is another's.
   * @param error its words: `MOVED 3999 127.0.0.1:6381`, `ASK 3999 127.0.0.1:6381`
   * @returns the other; undefined where there can be none
   */
  toldBy (error: string): Master | undefined
  /** Why no master is known at all; undefined where that was never so. */
  readonly trouble?: Error | undefined
  close (): void
}

/** The one master of a server that stands alone, or of the Sentinels: ioredis finds out which that is, here it is one. */
export class OneMaster implements Masters {
  readonly #master: Master
  #closed = false

  constructor (address: Standalone | Sentinels, tags: readonly string[], log: ConnectionLog) {
    this.#master = openMaster('redis', () => connect(address, log), tags)
    const { calls, subscriber } = this.#master
    // ioredis takes a switch that it hears of while it asks the Sentinels anew for a wish to hang up, and leaves it at that: 'end'.
    for (const redis of [calls, subscriber]) redis.on('end', () => { if (!this.#closed) redis.connect().catch(() => {}) })
  }

  of (): Master { return this.#master }
  all (): Iterable<Master> { return [this.#master] }
  each (listener: (master: Master) => void): void { listener(this.#master) }
  onChange (): void {}
  doubt (): void {}
  toldBy (): undefined {}

  close (): void {
    this.#closed = true
    this.#master.calls.disconnect()
    this.#master.subscriber.disconnect()
  }
}
