import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import slotOf from 'cluster-key-slot'
import type { Redis } from 'ioredis'
import type { ClusterNodes, Host, Sentinels, Standalone } from '../core/redis-url.ts'
import { Round } from '../core/round.ts'
import { isCut } from './call.ts'
import { connect, connectNode, nodeName, reasonsLogged } from './connect.ts'
import type { ConnectionLog } from './connect.ts'
import type { Script } from './scripts.ts'

/**
 * A server that takes writes. One connection is for calls, another for subscriptions: a subscribed RESP2 connection can
 * do little else.
 */
export interface Master {
  /** Its name in metrics: `host:port` in a Cluster. */
  readonly name: string
  readonly calls: Redis
  readonly subscriber: Redis
  /** The tags of its partitions, as far as known. */
  tags: readonly string[]
  /** The last connection error; undefined while connected. */
  trouble?: Error | undefined
  /** Finds out which scripts are refused. Awaited on each new connection, before any call. */
  learnRights?: () => Promise<void>
  /**
   * The scripts that would break off half way, because the user lacks a right or the server a command, and why. A
   * script's writes before that would stay.
   */
  refused?: ReadonlyMap<Script, string> | undefined
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
  redirected (error: string): Master | undefined
  /** Why no master is known at all; undefined if that has never happened. */
  readonly trouble?: Error | undefined
  close (): void
}

/**
 * The only master: a single server, or the Sentinels' master, which ioredis resolves, so that it is one master here.
 */
export class OneMaster implements Masters {
  readonly #master: Master
  #closed = false

  constructor (address: Standalone | Sentinels, tags: readonly string[], log: ConnectionLog) {
    this.#master = openMaster('redis', () => connect(address, log), tags)
    const { calls, subscriber } = this.#master
    // If a failover is announced while ioredis asks the Sentinels, ioredis treats it as disconnect() and stays in
    // 'end'.
    for (const redis of [
      calls, subscriber
    ]) redis.on('end', () => { if (!this.#closed) redis.connect().catch(() => {}) })
  }

  of (): Master { return this.#master }
  all (): Iterable<Master> { return [this.#master] }
  each (listener: (master: Master) => void): void { listener(this.#master) }
  onChange (): void {}
  doubt (): void {}
  redirected (): undefined {}

  close (): void {
    this.#closed = true
    this.#master.calls.disconnect()
    this.#master.subscriber.disconnect()
  }
}

/** Slots `start` to `end`, both included, and their nodes. */
interface SlotRange { start: number, end: number, master: Host, replicas: Host[] }

/** How long to wait for a node's slot map, in milliseconds. */
const answerTimeout = 500

/**
 * The slot map, as this node knows it.
 * @param node the address of the node: in its reply it leaves out its own host if it doesn't know that
 * @throws if it doesn't answer in time
 */
export async function askSlots (redis: Redis, node: Host): Promise<SlotRange[]> {
  const over = new AbortController()
  const { signal } = over
  try {
    const tooLate =
      sleep(answerTimeout, undefined, { signal }).then(() => { throw new Error('it does not say who has which slot') })
    const reply = await Promise.race([reached(redis, signal).then(() => redis.cluster('SLOTS')), tooLate])
    return (reply as unknown as SlotsReply).map(([start, end, ...nodes]) => {
      const [master, ...replicas] = nodes.map(([host, port, , more]) =>
        ({ host: hostOf(host, more) ?? node.host, port: Number(port) }))
      return { start: Number(start), end: Number(end), master: master as Host, replicas }
    })
  } finally {
    // Listeners are removed, because an unreachable master is asked repeatedly.
    over.abort()
  }
}

/** CLUSTER SLOTS: for each range its ends, then its master and its replicas, each beginning with its address. */
type SlotsReply = Array<[start: number, end: number, ...nodes: Node[]]>
/** The id is followed by further metadata, a flat list of names and values; Redis 7.0 may leave it out. */
type Node = [host: string | null, port: number, id: string, more?: string[]]

/** Redis's placeholder for a node without a host name, if names are preferred (cluster-preferred-endpoint-type). */
const nameless = '?'

/** @returns undefined for the asked node itself */
function hostOf (host: string | null, more: readonly string[] = []): string | undefined {
  return host === nameless ? more[more.indexOf('ip') + 1] : host || undefined
}

/** Resolves once connected; rejects if that failed. */
async function reached (redis: Redis, signal: AbortSignal): Promise<void> {
  if (redis.status === 'ready') return
  const closed = once(redis, 'close', { signal }).then(() => { throw new Error('it is not reached') })
  await Promise.race([once(redis, 'ready', { signal }), closed]).catch((error: Error) => {
    // The next attempt reports what Redis said as it closed this one.
    if (!isCut(error)) throw error
    return once(redis, 'ready', { signal })
  })
}

/**
 * How often the nodes are asked for the slot map, in milliseconds: while it is in doubt or a master is away, and
 * otherwise.
 */
const whileInDoubt = 200
const whileWell = 10_000
/**
 * How long the nodes are asked often after a doubt, in milliseconds: a node that hasn't heard of a change yet gives an
 * old map.
 */
const doubtLasts = 2000

/** How long a master without slots stays after a redirection to it, in milliseconds: slots are moving to it. */
const emptyMasterLifetime = 10_000

export const slotCount = 16384

/**
 * The masters of a Redis Cluster: the slot map, as its nodes report it, and a connection to each master with slots. Not
 * ioredis's own Cluster, because that retries by itself, without token and deadline, and hides what a lane must know:
 * the slot's master, and the connection on which a group's WAIT follows its calls.
 */
export class ClusterMasters implements Masters {
  readonly #address: ClusterNodes
  readonly #slotsByTag: ReadonlyMap<string, number>
  readonly #log: ConnectionLog
  readonly #open: typeof connectNode
  readonly #masters = new Map<string, Master>()
  /** When MOVED or ASK last redirected to it. */
  readonly #sentAt = new WeakMap<Master, number>()
  #bySlot: Array<Master | undefined> = new Array(slotCount).fill(undefined)
  /** The masters and replicas of the latest slot map. */
  #known: Host[] = []
  readonly #newcomer: Array<(master: Master) => void> = []
  readonly #change: Array<() => void> = []
  readonly #rounds = new Round({
    interval: whileInDoubt,
    run: async () => {
      await this.#askAround()
      return this.#isWell() ? whileWell : whileInDoubt
    },
    onFault: error => { throw error }
  })

  #doubtedAt = -Infinity
  #turn = 0
  trouble: Error | undefined
  /** Why no node has answered, as far as the log has it. */
  readonly #reasons = new Set<string>()

  /** @param open connects to one node; the simulator passes its own */
  constructor (
    address: ClusterNodes, tags: readonly string[], log: ConnectionLog, open: typeof connectNode = connectNode
  ) {
    this.#address = address
    this.#open = open
    this.#slotsByTag = new Map(tags.map(tag => [tag, slotOf(tag)]))
    this.#log = log
    this.doubt()
  }

  of (tag: string): Master | undefined {
    return this.#bySlot[this.#slotsByTag.get(tag) as number]
  }

  all (): Iterable<Master> {
    return this.#masters.values()
  }

  each (listener: (master: Master) => void): void {
    this.#newcomer.push(listener)
    for (const master of this.#masters.values()) listener(master)
  }

  onChange (listener: () => void): void {
    this.#change.push(listener)
  }

  doubt (): void {
    this.#doubtedAt = performance.now()
    // The nodes that are being read may have the new map already.
    if (!this.#rounds.isUnderWay) this.#rounds.wake()
  }

  redirected (error: string): Master | undefined {
    const [how, slot, name = ''] = error.split(' ')
    const colon = name.lastIndexOf(':')
    // ASK doesn't mean that the map has changed.
    if (how === 'MOVED') this.doubt()
    // Without a host it is the same host with another port, which a read of all slots shows.
    if (colon <= 0) return undefined
    const master = this.#masterAt({ host: name.slice(0, colon), port: Number(name.slice(colon + 1)) })
    this.#sentAt.set(master, performance.now())
    if (how === 'MOVED' && this.#bySlot[Number(slot)] !== master) {
      this.#bySlot[Number(slot)] = master
      this.#notifyChange()
    }
    return master
  }

  close (): void {
    this.#rounds.stop()
    for (const master of this.#masters.values()) hangUp(master)
  }

  #isWell (): boolean {
    if (performance.now() - this.#doubtedAt < doubtLasts) return false
    return this.#masters.size > 0 && [...this.#masters.values()].every(({ calls }) => calls.status === 'ready')
  }

  /**
   * Reads the map from one node after another until one answers. Each time another node is first: a node that is cut
   * off has an old map.
   */
  async #askAround (): Promise<void> {
    const hosts = [...this.#known, ...this.#address.nodes]
    const first = this.#turn++ % hosts.length
    for (const host of [...hosts.slice(first), ...hosts.slice(0, first)]) {
      const ranges = await this.#slotRanges(host).catch((error: Error) => this.#unanswered(host, error))
      if (this.#rounds.signal.aborted) return
      if (ranges.length > 0) return this.#learn(ranges)
    }
  }

  /**
   * Logs why no node has ever answered, since nothing else does: each reason once, because all are asked repeatedly.
   * A later one may be the one to mend: whom a full Redis refuses hears now and again only that the connection ended.
   */
  #unanswered (host: Host, error: Error): SlotRange[] {
    if (this.#masters.size > 0 || this.#rounds.signal.aborted) return []
    if (!this.#reasons.has(error.message) && this.#reasons.size < reasonsLogged) {
      this.#reasons.add(error.message)
      this.#log.warn({ node: nodeName(host), reason: error.message }, 'no node of the Cluster is reached')
    }
    this.trouble = error
    return []
  }

  async #slotRanges (host: Host): Promise<SlotRange[]> {
    const master = this.#masters.get(nodeName(host))
    if (master !== undefined) return askSlots(master.calls, host)
    const redis = this.#open(host, this.#address)
    try {
      return await askSlots(redis, host)
    } finally {
      redis.disconnect()
    }
  }

  #learn (ranges: readonly SlotRange[]): void {
    this.trouble = undefined
    const before = this.#bySlot
    this.#bySlot = new Array(slotCount).fill(undefined)
    this.#known = []
    for (const { start, end, master, replicas } of ranges) {
      this.#bySlot.fill(this.#masterAt(master), start, end + 1)
      this.#known.push(master, ...replicas)
    }
    const left = [...this.#masters].filter(([, master]) => !this.#bySlot.includes(master) && !this.#isExpected(master))
    for (const [name, master] of left) {
      this.#masters.delete(name)
      hangUp(master)
    }
    // Only the partitions' slots are anybody's concern.
    if (left.length > 0 || [...this.#slotsByTag.values()].some(slot => before[slot] !== this.#bySlot[slot])) {
      this.#notifyChange()
    }
  }

  /** Whether it has no slots yet, or none in the map of the node that answered. */
  #isExpected (master: Master): boolean {
    return performance.now() - (this.#sentAt.get(master) ?? -Infinity) < emptyMasterLifetime
  }

  #masterAt (host: Host): Master {
    const name = nodeName(host)
    let master = this.#masters.get(name)
    if (master === undefined) {
      master = openMaster(name, () => this.#open(host, this.#address, this.#log), [])
      master.calls.on('close', () => this.doubt())
      this.#masters.set(name, master)
      for (const listener of this.#newcomer) listener(master)
    }
    return master
  }

  #notifyChange (): void {
    for (const master of this.#masters.values()) master.tags = []
    for (const [tag, slot] of this.#slotsByTag) (this.#bySlot[slot]?.tags as string[] | undefined)?.push(tag)
    for (const listener of this.#change) listener()
  }
}

/** Its unanswered calls come back as from a broken connection, and are sent to their slots' current masters. */
function hangUp (master: Master): void {
  master.calls.disconnect()
  master.subscriber.disconnect()
}
