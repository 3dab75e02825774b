import { openMaster } from '../../../src/redis/masters.ts'
import type { Master, Masters } from '../../../src/redis/masters.ts'
import { someTags } from './stories.ts'
import { Connection } from './connection.ts'
import { Server } from './server.ts'
import type { Process } from './time.ts'
import type { World } from './world.ts'

/** Servers, how a service finds them, and their faults. */
export interface Topology {
  readonly servers: readonly Server[]
  /** How many replicas must acknowledge; 0 if the master is enough. */
  readonly replicas: number
  /** The tags of the partitions in use. */
  readonly tags: readonly string[]
  readonly connections: Connection[]
  mastersFor (process: Process): Masters
  /** The possible faults, one at a time or together. */
  readonly faults: ReadonlyArray<() => void>
  /** Whether nothing happens that may keep a request from being served. */
  readonly isCalm?: boolean
  /** From now on nothing begins by itself. */
  rest? (): void
  /** Whether all faults are over. */
  isWell (): boolean
  /** The current masters. */
  masters (): readonly Server[]
}

/** The largest error of servers' clocks, in milliseconds. */
export const clockSpread = 20

export function newServer (world: World, name: string): Server {
  return new Server(world, name, clockSpread * (2 * world.random.next() - 1))
}

/** A master as a service sees it, with as many connections as that makes. */
export function seenBy (topology: Pick<Topology, 'connections'>, open: () => Connection, itsTags: readonly string[]): Master {
  return openMaster('seen', () => {
    const connection = open()
    topology.connections.push(connection)
    return connection as never
  }, itsTags)
}

/** Like OneMaster in src/redis/masters.ts. */
export function oneMaster (master: Master): Masters {
  return { of: () => master, all: () => [master], each: listener => listener(master), onChange () {}, doubt () {}, redirected: () => undefined, close () {} }
}

/** Faults that any server may have. */
export function commonFaults (world: World, servers: readonly Server[]): Array<() => void> {
  const { random } = world
  return [
    () => {
      const server = random.pick(servers)
      world.tell(`${server.name} forgets its scripts`)
      server.known.clear()
    },
    () => {
      const server = random.pick(servers)
      server.skew = clockSpread * (2 * random.next() - 1)
      world.tell(`${server.name} has its clock set to ${server.skew.toFixed(1)}`)
    },
    () => {
      const server = random.pick(servers)
      server.full = true
      world.tell(`${server.name} is full`)
      world.after(400 * random.next(), () => { server.full = false })
    },
  ]
}

/** One server that writes to disk what it acknowledges. */
export function alone (world: World): Topology {
  const { random } = world
  const server = newServer(world, 'redis')
  const topology = { connections: [] as Connection[] }
  const dies = () => {
    world.after(random.chance(0.3) ? 2500 * random.next() : 300 * random.next(), () => server.restart())
  }
  return {
    ...topology,
    servers: [server],
    replicas: 0,
    tags: someTags,
    mastersFor: process => oneMaster(seenBy(topology, () => new Connection(world, process, () => server, false), someTags)),
    faults: [
      ...commonFaults(world, [server]),
      () => server.pause(random.chance(0.5) ? 4000 * random.next() : 300 * random.next()),
      () => {
        if (!server.up) return
        server.crash()
        dies()
      },
      () => {
        if (!server.up || server.doomed) return
        server.doomed = true
        const look = () => {
          if (server.up && server.doomed) world.after(20, look)
          else if (!server.up) dies()
        }
        look()
      },
    ],
    isWell: () => server.up && !server.isPaused,
    masters: () => [server],
  }
}
