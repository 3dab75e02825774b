import type { Redis } from 'ioredis'
import { connect } from './connect.ts'
import type { ConnectionLog } from './connect.ts'
import type { Sentinels, Standalone } from '../redis-url.ts'

/** A server that takes writes. One connection is for calls, another for subscriptions: a subscribed RESP2 connection can do little else. */
export interface Master {
  /** Its name in metrics: `host:port` in a Cluster. */
  readonly name: string
  readonly calls: Redis
  readonly subscriber: Redis
  /** The tags of its partitions, as far as known. */
  tags: readonly string[]
  /** The last connection error; undefined while connected. */
  trouble?: Error | undefined
}

/** @param open makes one connection to it */
export function openMaster (name: string, open: () => Redis, tags: readonly string[]): Master {
  const master: Master = { name, calls: open(), subscriber: open(), tags, trouble: undefined }
  master.calls.on('error', (error: Error) => { master.trouble = error })
  master.calls.on('ready', () => { master.trouble = undefined })
  return master
}

/** The masters of the partitions. */
export interface Masters {
  /** The master of this partition, as far as known. */
  of (tag: string): Master | undefined
  all (): Iterable<Master>
  /** Calls `listener` with each current and future master, before any call to it. */
  each (listener: (master: Master) => void): void
  /** Calls `listener` whenever a partition has moved, or its master has become known. */
  onChange (listener: () => void): void
  /** Reports that a reply or a broken connection makes the known map doubtful. */
  doubt (): void
  /**
   * A node redirected a call.
   * @param error its reply: `MOVED 3999 127.0.0.1:6381`, `ASK 3999 127.0.0.1:6381`
   * @returns the other master; undefined outside a Cluster
   */
  toldBy (error: string): Master | undefined
  /** Why no master is known at all; undefined if that has never happened. */
  readonly trouble?: Error | undefined
  close (): void
}

/** The only master: a single server, or the Sentinels' master, which ioredis resolves, so that it is one master here. */
export class OneMaster implements Masters {
  readonly #master: Master
  #closed = false

  constructor (address: Standalone | Sentinels, tags: readonly string[], log: ConnectionLog) {
    this.#master = openMaster('redis', () => connect(address, log), tags)
    const { calls, subscriber } = this.#master
    // If a failover is announced while ioredis asks the Sentinels, ioredis treats it as disconnect() and stays in 'end'.
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
