import slotOf from 'cluster-key-slot'
import { openMaster } from './masters.ts'
import type { Master, Masters } from './masters.ts'
import { connectNode, nodeName } from './connect.ts'
import type { ConnectionLog } from './connect.ts'
import type { ClusterNodes, Host } from '../redis-url.ts'
import { askSlots } from './slots.ts'
import type { SlotRange } from './slots.ts'

/** How often the nodes are asked who has what, in milliseconds: while a master is away, and while all is well. */
const whileInDoubt = 200
const whileWell = 10_000
/** How long the nodes are asked often after a doubt, in milliseconds: one that has not heard yet tells of old times. */
const doubtLasts = 2000

/** How long a master without slots is kept after we were sent there, in milliseconds: they are on their way to it. */
const keptFor = 10_000

const slotCount = 16384

/**
 * The masters of a Redis Cluster: who has which slot, as its nodes tell it, and a connection to each that has any. Not ioredis's
 * own Cluster: that one asks again by itself, without token and deadline, and keeps to itself what a lane has to know, the
 * slot's master and the connection on which a group's WAIT follows its calls.
 */
export class ClusterMasters implements Masters {
  readonly #address: ClusterNodes
  readonly #slotsByTag: ReadonlyMap<string, number>
  readonly #log: ConnectionLog
  readonly #masters = new Map<string, Master>()
  /** When we were last sent to it, by MOVED or ASK. */
  readonly #sentAt = new WeakMap<Master, number>()
  #bySlot: Array<Master | undefined> = new Array(slotCount).fill(undefined)
  /** Masters and replicas that were told of last. */
  #known: Host[] = []
  readonly #newcomer: Array<(master: Master) => void> = []
  readonly #change: Array<() => void> = []
  #timer: NodeJS.Timeout | undefined
  #asking = false
  #doubtedAt = -Infinity
  #turn = 0
  #closed = false
  trouble: Error | undefined

  constructor (address: ClusterNodes, tags: readonly string[], log: ConnectionLog) {
    this.#address = address
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
    // ASK doesn't say that anything has changed yet.
    if (how === 'MOVED') this.doubt()
    // Without a host it is whoever was asked, at another port; that is found out by asking for all slots.
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

  /** Asks one after another until one tells. Another is first each time: one that is cut off from the rest tells of old times. */
  async #askAround (): Promise<void> {
    const hosts = [...this.#known, ...this.#address.nodes]
    const first = this.#turn++ % hosts.length
    for (const host of [...hosts.slice(first), ...hosts.slice(0, first)]) {
      const ranges = await this.#ask(host).catch((error: Error) => this.#untold(host, error))
      if (this.#closed) return
      if (ranges.length > 0) return this.#learn(ranges)
    }
  }

  /** Where no node has ever told, nothing else is there to say why: once, since all are asked again and again. */
  #untold (host: Host, error: Error): SlotRange[] {
    if (this.#masters.size > 0 || this.#closed) return []
    if (this.trouble === undefined) this.#log.warn({ node: nodeName(host), reason: error.message }, 'no node of the Cluster is reached')
    this.trouble = error
    return []
  }

  async #ask (host: Host): Promise<SlotRange[]> {
    const master = this.#masters.get(nodeName(host))
    if (master !== undefined) return askSlots(master.calls, host)
    const redis = connectNode(host, this.#address)
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
    if (left.length > 0 || this.#bySlot.some((master, slot) => before[slot] !== master)) this.#tellChange()
  }

  /** Has it no slots yet, or none that whoever told of it has heard of? */
  #isExpected (master: Master): boolean {
    return performance.now() - (this.#sentAt.get(master) ?? -Infinity) < keptFor
  }

  #masterAt (host: Host): Master {
    const name = nodeName(host)
    let master = this.#masters.get(name)
    if (master === undefined) {
      master = openMaster(name, () => connectNode(host, this.#address, this.#log), [])
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

/** What it was asked and hasn't answered comes back as a broken connection's, and is asked of whoever has its slot now. */
function hangUp (master: Master): void {
  master.calls.disconnect()
  master.subscriber.disconnect()
}
