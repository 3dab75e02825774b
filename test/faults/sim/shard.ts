import { Link } from './link.ts'
import type { Server } from './server.ts'
import { View } from './slots.ts'
import type { World } from './world.ts'

/** What a shard needs of its Cluster. */
export interface Gossip {
  readonly world: World
  readonly views: ReadonlyMap<Server, View>
  /** Tells all nodes, one after another, that the first server's slots are the other's. */
  tookOver (from: Server, to: Server): void
  /** Tells a node who has each slot. */
  tell (server: Server): void
}

/** A master of a Cluster with its replica, which replaces it when it dies, pauses, or is told to. */
export class Shard {
  readonly #cluster: Gossip
  readonly servers: readonly Server[]
  master: Server
  failing = false
  /** Whether it gives or takes a slot. */
  isMoving = false
  /** How much of the master's log its replica must have before the master may die: keys came and went without a WAIT. */
  moved = 0

  constructor (cluster: Gossip, servers: readonly [Server, Server]) {
    this.#cluster = cluster
    this.servers = servers
    this.master = servers[0]
    new Link(servers[0], servers[1]) // eslint-disable-line no-new -- its ends hold it
  }

  /** Whether it is whole: only then may something befall it. */
  get isWhole (): boolean {
    const [link] = this.master.links
    return !this.failing && !this.isMoving && this.master.up && !this.master.isPaused && link !== undefined && (link.acknowledged >= this.moved || this.#cluster.world.mutation?.hasty === true)
  }

  stall (): void {
    const { world } = this.#cluster
    for (const link of this.master.links) {
      link.stalledUntil = world.time.now + 1500 * world.random.next()
      world.tell(`${link.replica.name} stalls until ${link.stalledUntil.toFixed(0)}`)
    }
  }

  fail (how: 'dies' | 'pauses' | 'is told to'): void {
    if (!this.isWhole) return
    this.failing = true
    const { world } = this.#cluster
    const { random } = world
    const old = this.master
    if (how === 'is told to') return this.#handOver(old)
    // cluster-node-timeout, and a vote.
    const election = 1000 + 700 * random.next()
    if (how === 'dies' && random.chance(0.6)) {
      // First it loses its replica, while services still reach it.
      for (const link of old.links) link.stalledUntil = Infinity
      world.tell(`${old.name} is cut off from its replica`)
      world.after(600 * random.next(), () => {
        old.crash()
        world.after(election, () => this.#elect(old))
      })
      return
    }
    if (how === 'dies') old.crash()
    else old.pause(election * (0.7 + random.next()))
    world.after(election, () => this.#elect(old))
  }

  /** CLUSTER FAILOVER: the master serves nobody until its replica has everything. */
  #handOver (old: Server): void {
    const { world } = this.#cluster
    const [link] = old.links
    const next = link!.replica
    world.tell(`${old.name} hands over to ${next.name}`)
    for (const change of old.db.log.slice(link!.received)) next.db.apply(change)
    this.#promote(old, next)
    this.#demote(old)
  }

  #elect (old: Server): void {
    const { world } = this.#cluster
    const next = this.servers.find(server => server !== old) as Server
    for (const link of old.links) {
      link.close(false)
      world.after(world.latency(), () => old.whenAwake(() => { old.links.delete(link) }))
    }
    this.#promote(old, next)
    world.after(world.random.chance(0.5) ? 1000 * world.random.next() : 10, () => {
      // A master that starts again asks the others before it serves anybody.
      if (!old.up) {
        old.restart()
        this.#cluster.views.get(old)!.isDown = true
      }
      world.after(1000 * world.random.next(), () => old.whenAwake(() => this.#demote(old)))
    })
  }

  #promote (old: Server, next: Server): void {
    next.master = null
    this.master = next
    this.moved = 0
    this.#cluster.world.tell(`${next.name} is the master now`)
    this.#cluster.tookOver(old, next)
  }

  /** The old master hears who has its slots. */
  #demote (old: Server): void {
    const { world, views } = this.#cluster
    for (const link of old.links) link.close()
    world.tell(`${old.name} hears that it is a replica`)
    this.#cluster.tell(old)
    views.get(old)!.isDown = false
    old.master = this.master
    for (const session of old.sessions) session.interrupt()
    world.after(200 * world.random.next(), () => {
      new Link(this.master, old) // eslint-disable-line no-new -- its ends hold it
      this.failing = false
    })
  }
}
