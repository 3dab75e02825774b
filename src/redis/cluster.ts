import slotOf from 'cluster-key-slot'
import { openMaster } from './masters.ts'
import type { Master, Masters } from './masters.ts'
import { connectNode, nodeName } from './connect.ts'
import type { ConnectionLog } from './connect.ts'
import type { ClusterNodes, Host } from '../redis-url.ts'
import { askSlots } from './slots.ts'
import type { SlotRange } from './slots.ts'

/** How often the nodes are asked for the slot map, in milliseconds: while it is in doubt or a master is away, and otherwise. */
const whileInDoubt = 200
const whileWell = 10_000
/** How long the nodes are asked often after a doubt, in milliseconds: a node that hasn't heard of a change yet gives an old map. */
const doubtLasts = 2000

/** How long a master without slots is kept after a redirection to it, in milliseconds: slots are moving to it. */
const keptFor = 10_000

const slotCount = 16384

/**
 * The masters of a Redis Cluster: the slot map, as its nodes report it, and a connection to each master with slots. Not ioredis's
 * own Cluster, because that retries by itself, without token and deadline, and hides what a lane must know: the slot's master, and
 * the connection on which a group's WAIT follows its calls.
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
  #timer: NodeJS.Timeout | undefined
  #asking = false
  #doubtedAt = -Infinity
  #turn = 0
  #closed = false
  trouble: Error | undefined

  /** @param open connects to one node; the simulator passes its own */
  constructor (address: ClusterNodes, tags: readonly string[], log: ConnectionLog, open: typeof connectNode = connectNode) {
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
    if (!this.#asking && !this.#closed) this.#askIn(0)
  }

  toldBy (error: string): Master | undefined {
    const [how, slot, name = ''] = error.split(' ')
    const colon = name.lastIndexOf(':')
    // ASK doesn't mean that the map has changed.
    if (how === 'MOVED') this.doubt()
    // Without a host it is the same host with another port; asking for all slots finds that out.
    if (colon <= 0) return undefined
    const master = this.#masterAt({ host: name.slice(0, colon), port: Number(name.slice(colon + 1)) })
    this.#sentAt.set(master, performance.now())
    if (how === 'MOVED' && this.#bySlot[Number(slot)] !== master) {
      this.#bySlot[Number(slot)] = master
      this.#tellChange()
    }
    return master
  }

  close (): void {
    this.#closed = true
    clearTimeout(this.#timer)
    for (const master of this.#masters.values()) hangUp(master)
  }

  #askIn (milliseconds: number): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => {
      this.#asking = true
      this.#askAround().finally(() => {
        this.#asking = false
        if (!this.#closed) this.#askIn(this.#isWell() ? whileWell : whileInDoubt)
      })
    }, milliseconds)
    this.#timer.unref()
  }

  #isWell (): boolean {
    if (performance.now() - this.#doubtedAt < doubtLasts) return false
    return this.#masters.size > 0 && [...this.#masters.values()].every(({ calls }) => calls.status === 'ready')
  }

  /** Asks the nodes one after another until one answers. Each time another node is first: one that is cut off has an old map. */
  async #askAround (): Promise<void> {
    const hosts = [...this.#known, ...this.#address.nodes]
    const first = this.#turn++ % hosts.length
    for (const host of [...hosts.slice(first), ...hosts.slice(0, first)]) {
      const ranges = await this.#ask(host).catch((error: Error) => this.#untold(host, error))
      if (this.#closed) return
      if (ranges.length > 0) return this.#learn(ranges)
    }
  }

  /** Logs why no node has ever answered, since nothing else does: once, because all are asked repeatedly. */
  #untold (host: Host, error: Error): SlotRange[] {
    if (this.#masters.size > 0 || this.#closed) return []
    if (this.trouble === undefined) this.#log.warn({ node: nodeName(host), reason: error.message }, 'no node of the Cluster is reached')
    this.trouble = error
    return []
  }

  async #ask (host: Host): Promise<SlotRange[]> {
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
    if (left.length > 0 || [...this.#slotsByTag.values()].some(slot => before[slot] !== this.#bySlot[slot])) this.#tellChange()
  }

  /** Whether it has no slots yet, or none in the map of the node that answered. */
  #isExpected (master: Master): boolean {
    return performance.now() - (this.#sentAt.get(master) ?? -Infinity) < keptFor
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

  #tellChange (): void {
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
