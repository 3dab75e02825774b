import { tagIn } from '../../../src/core/ids.ts'
import { ClusterMasters } from '../../../src/redis/masters.ts'
import type { Masters } from '../../../src/redis/masters.ts'
import { Connection } from './connection.ts'
import { moveSlot } from './migration.ts'
import type { Server } from './server.ts'
import { Shard } from './shard.ts'
import type { Gossip } from './shard.ts'
import { View, slotOfTag } from './slots.ts'
import type { Process } from './time.ts'
import { someTags } from './stories.ts'
import { commonFaults, newServer } from './topology.ts'
import type { Topology } from './topology.ts'
import type { World } from './world.ts'

const log = { info () {}, warn () {} }

/**
 * A Cluster: two or three masters, each with a replica, of which the last one has no slots at first. Services find them with the real
 * ClusterMasters. Where the master's word is enough, masters only hand over. What is promised: a master doesn't die before its replica has the
 * keys of the slots that moved to it (docs/reliability.md).
 */
export class Cluster implements Topology, Gossip {
  readonly world: World
  readonly servers: readonly Server[]
  readonly views: ReadonlyMap<Server, View>
  readonly connections: Connection[] = []
  readonly replicas: number
  readonly tags = someTags
  readonly faults: ReadonlyArray<() => void>
  /** When a slot had moved. */
  readonly movedAt = new Map<number, number>()
  readonly #shards: readonly Shard[]
  /** Who has each slot by the latest epoch. */
  readonly #owners = new Map<number, Server>()
  #epoch = 1
  #isResting = false
  /** Whether slots move, however slowly, and nothing else happens: then what needs only one key is served. */
  readonly isCalm: boolean

  constructor (world: World) {
    this.world = world
    const { random } = world
    const count = random.between(2, 3)
    const pairs = Array.from({ length: count }, (_, at) => ['m', 'r'].map(letter => newServer(world, `${letter}${at}:7000`)) as [Server, Server])
    this.servers = pairs.flat()
    this.views = new Map(this.servers.map(server => [server, new View(server)]))
    this.#shards = pairs.map(pair => new Shard(this, pair))
    for (const [server, view] of this.views) {
      server.route = (keys, isAsking) => view.route(keys, isAsking)
      server.isElsewhere = key => view.importing.get(slotOfTag(tagIn(key)))?.has(key) ?? false
      server.slots = () => this.#slotsBy(view)
    }
    this.tags.forEach((tag, at) => {
      const [owner] = pairs[at % (count - 1)]!
      this.#owners.set(slotOfTag(tag), owner)
      for (const view of this.views.values()) view.learn(slotOfTag(tag), owner, 1)
    })
    const light = random.chance(0.2)
    this.isCalm = world.isCalm = random.chance(0.15)
    this.replicas = world.mutation?.replicas?.(light ? 0 : 1) ?? (light ? 0 : 1)
    const anyShard = () => random.pick(this.#shards)
    const anySlot = () => slotOfTag(random.pick(this.tags))
    const moves = [
      ...[1, 2, 3, 4, 5].map(() => () => this.#begin(this.#moveOften(anySlot, anyShard))),
      () => this.#begin(this.#moveAll(anyShard(), anyShard())),
      () => this.#begin(this.#moveToAndFro(anySlot(), anyShard())),
    ]
    const all = [
      ...commonFaults(world, this.servers),
      () => { if (!light) anyShard().stall() },
      ...light ? [] : [() => anyShard().fail('dies'), () => anyShard().fail('pauses')],
      () => anyShard().fail('is told to'),
      () => { if (anyShard().isWhole) anyShard().master.pause(600 * random.next()) },
      ...moves,
    ]
    this.faults = this.isCalm ? moves : all
  }

  mastersFor (process: Process): Masters {
    const open = ({ host, port }: { host: string, port: number }) => {
      const connection = new Connection(this.world, process, () => this.servers.find(({ name }) => name === `${host}:${port}`) ?? null, false)
      this.connections.push(connection)
      return connection as never
    }
    const nodes = this.servers.map(({ name }) => ({ host: name.split(':')[0]!, port: 7000 }))
    return new ClusterMasters({ kind: 'cluster', nodes, tls: false } as never, this.tags, log, open)
  }

  rest (): void {
    this.#isResting = true
  }

  isWell (): boolean {
    return this.#shards.every(shard => shard.isWhole) && this.servers.every(server => server.up && !server.isPaused)
  }

  masters (): readonly Server[] {
    return this.#shards.map(({ master }) => master)
  }

  shardOf (slot: number): Shard {
    return this.#shards.find(({ servers }) => servers.includes(this.#owners.get(slot)!)) as Shard
  }

  newEpoch (slot: number, owner: Server): number {
    this.#owners.set(slot, owner)
    return ++this.#epoch
  }

  /** The nodes hear of a slot's new master, one after another. */
  spread (slot: number, owner: Server, epoch: number): void {
    const { world } = this
    for (const [server, view] of this.views) {
      world.after(300 * world.random.next(), () => server.whenAwake(() => view.learn(slot, owner, epoch)))
    }
  }

  tookOver (from: Server, to: Server): void {
    for (const [slot, owner] of this.#owners) {
      if (owner !== from) continue
      const epoch = this.newEpoch(slot, to)
      this.views.get(to)!.learn(slot, to, epoch)
      this.spread(slot, to, epoch)
    }
  }

  tell (server: Server): void {
    for (const [slot, owner] of this.#owners) this.views.get(server)!.learn(slot, owner, this.#epoch)
  }

  sleep (milliseconds: number): Promise<void> {
    return new Promise(resolve => this.world.after(milliseconds, resolve))
  }

  /** A move goes on by itself. What it throws is a mistake of the simulator's. */
  #begin (move: Promise<void>): void {
    move.catch(error => { this.world.time.at(this.world.time.now, this.world.time.process, () => { throw error }) })
  }

  async #moveAll (from: Shard, to: Shard): Promise<void> {
    for (const tag of this.tags) if (!this.#isResting && this.shardOf(slotOfTag(tag)) === from) await moveSlot(this, slotOfTag(tag), to)
  }

  async #moveOften (anySlot: () => number, anyShard: () => Shard): Promise<void> {
    for (let left = this.world.random.between(1, 8); left > 0 && !this.#isResting; left--) {
      await moveSlot(this, anySlot(), anyShard())
      await this.sleep(this.world.random.pick([10, 300]) * this.world.random.next())
    }
  }

  async #moveToAndFro (slot: number, other: Shard): Promise<void> {
    const before = this.shardOf(slot)
    await moveSlot(this, slot, other)
    await this.sleep(100 * this.world.random.next())
    if (!this.#isResting) await moveSlot(this, slot, before)
  }

  /** CLUSTER SLOTS. */
  #slotsBy (view: View): unknown {
    const known = this.tags.map(slotOfTag).filter(slot => view.ownerOf(slot) !== undefined)
    return known.map(slot => {
      const owner = view.ownerOf(slot) as Server
      const shard = this.#shards.find(({ servers }) => servers.includes(owner)) as Shard
      return [slot, slot, ...[owner, ...shard.servers.filter(server => server !== owner)].map(({ name }) => [name.split(':')[0], 7000, name, []])]
    })
  }
}
