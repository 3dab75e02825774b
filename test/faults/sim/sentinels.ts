import { Connection } from './connection.ts'
import { Link } from './link.ts'
import type { Server } from './server.ts'
import { someTags } from './stories.ts'
import { commonFaults, newServer, oneMaster, seenBy } from './topology.ts'
import type { Topology } from './topology.ts'
import type { World } from './world.ts'

/**
 * A master with replicas, one of which replaces it when it dies or pauses. The simulation tries exactly what is promised: if all
 * replicas acknowledge, any of them may become master while the old one lives on. If one of two does, the one with more data becomes
 * master, both have left the old master by then, and the old master doesn't resume before that.
 */
export function sentinels (world: World): Topology {
  const { random } = world
  const all = random.chance(0.5)
  const count = all ? random.between(1, 2) : 2
  const servers = ['a', 'b', 'c'].slice(0, count + 1).map(name => newServer(world, name))
  const group = new Group(world, servers, all)
  const topology = { connections: [] as Connection[] }
  group.connections = topology.connections
  return {
    ...topology,
    servers,
    replicas: world.mutation?.replicas?.(all ? count : 1) ?? (all ? count : 1),
    tags: someTags,
    mastersFor: process => oneMaster(seenBy(topology, () => new Connection(world, process, () => group.found(), true), someTags)),
    faults: [
      ...commonFaults(world, servers),
      () => group.stall(),
      () => group.fail('dies'),
      () => group.fail('pauses'),
      ...(all || world.mutation?.hasty === true ? [() => group.fail('is well')] : []),
      () => { if (!group.failing) group.master.pause(600 * random.next()) },
    ],
    isWell: () => !group.failing && servers.every(({ isPaused }) => !isPaused),
    masters: () => [group.master],
  }
}

class Group {
  readonly #world: World
  readonly #servers: readonly Server[]
  /** Whether all replicas must acknowledge. */
  readonly #all: boolean
  /** The master, as the Sentinels have decided. */
  master: Server
  #before: Server | null = null
  failing = false
  connections: readonly Connection[] = []

  constructor (world: World, servers: readonly Server[], all: boolean) {
    this.#world = world
    this.#servers = servers
    this.#all = all
    this.master = servers[0] as Server
    for (const replica of servers.slice(1)) new Link(this.master, replica) // eslint-disable-line no-new -- its ends hold it
  }

  /** A Sentinel's answer; it may not know of the failover yet. */
  found (): Server {
    return this.#before !== null && this.#world.random.chance(0.3) ? this.#before : this.master
  }

  stall (): void {
    const links = [...this.master.links]
    if (links.length === 0) return
    const link = this.#world.random.pick(links)
    link.stalledUntil = this.#world.time.now + 1500 * this.#world.random.next()
    this.#world.tell(`${link.replica.name} stalls until ${link.stalledUntil.toFixed(0)}`)
  }

  fail (how: 'dies' | 'pauses' | 'is well'): void {
    if (this.failing || this.master.isPaused || this.master.links.size < this.#servers.length - 1) return
    this.failing = true
    const { random } = this.#world
    const old = this.master
    // down-after-milliseconds, and a vote.
    const election = how === 'is well' ? 1 : 1000 + 700 * random.next()
    if (how === 'dies' && random.chance(0.6)) {
      // First it loses its replicas, while services still reach it.
      for (const link of old.links) link.stalledUntil = Infinity
      this.#world.tell(`${old.name} is cut off from its replicas`)
      this.#world.after(600 * random.next(), () => {
        old.crash()
        this.#world.after(election, () => this.#elect(old))
      })
      return
    }
    if (how === 'dies') old.crash()
    // If not all replicas must acknowledge, it doesn't resume before they have left it.
    if (how === 'pauses') old.pause(this.#all ? election * (0.7 + random.next()) : election + 1 + 2000 * random.next())
    this.#world.after(election, () => this.#elect(old))
  }

  #elect (old: Server): void {
    const { random } = this.#world
    const replicas = this.#servers.filter(server => server !== old)
    const anyone = this.#all || this.#world.mutation?.hasty === true
    const next = anyone ? random.pick(replicas) : replicas.reduce((one, other) => other.db.log.length > one.db.log.length ? other : one)
    for (const link of old.links) {
      if (link.replica !== next && anyone) continue
      link.close(false)
      this.#world.after(this.#world.latency(), () => old.whenAwake(() => { old.links.delete(link) }))
    }
    next.master = null
    this.master = next
    this.#before = old
    this.#world.tell(`${next.name} is the master now`)
    for (const other of replicas) if (other !== next) this.#world.after(5 + 300 * random.next(), () => this.#follow(other, old))
    for (const connection of this.connections) {
      // A Sentinel announces the failover, sooner or later.
      if (random.chance(0.8)) this.#world.time.after(500 * random.next(), connection.process, () => { if (connection.isTo(old)) connection.disconnect(true) })
    }
    this.#world.after(random.chance(0.5) ? 1000 * random.next() : 10, () => this.#comeBack(old))
  }

  /** @param old the master that it followed */
  #follow (server: Server, old: Server): void {
    for (const link of old.links) {
      if (link.replica !== server) continue
      link.close(false)
      this.#world.after(this.#world.latency(), () => old.whenAwake(() => { old.links.delete(link) }))
    }
    new Link(this.master, server) // eslint-disable-line no-new -- its ends hold it
  }

  /** The old master, restarted or resumed, believes it is the master until it is told otherwise. */
  #comeBack (old: Server): void {
    if (!old.up) old.restart()
    this.#world.after(1000 * this.#world.random.next(), () => old.whenAwake(() => {
      for (const link of old.links) link.close()
      this.#world.tell(`${old.name} is told that it is a replica`)
      old.master = this.master
      for (const session of old.sessions) session.interrupt()
      old.hangUpAll()
      this.#world.after(200 * this.#world.random.next(), () => {
        new Link(this.master, old) // eslint-disable-line no-new -- its ends hold it
        this.#before = null
        this.failing = false
      })
    }))
  }
}
