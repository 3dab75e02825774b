import { Random } from '../random.ts'
import { Time } from './time.ts'
import type { Process } from './time.ts'
import type { Modelled, Script } from './scripts.ts'
import { scripts } from './scripts.ts'
import type { Connection } from './connection.ts'

/** A deliberate fault, to show that the simulator finds it. */
export interface Mutation {
  readonly name: string
  /** In scripts, as they run. */
  script? (name: Modelled, script: Script): Script
  /** In a lane's connection, before its use. */
  connection? (connection: Connection): void
  /** In the store's guarantees. */
  replicas? (replicas: number): number
  /** In failovers. */
  readonly hasty?: boolean
}

/** Everything outside the services: clients, servers and the network. */
export const outside: Process = { name: 'outside', skew: 0, pausedUntil: 0, dead: false }

/** What one simulation shares: its time, its dice, its script engine and, for who wants to read it, what happened. */
export class World {
  readonly random: Random
  readonly time = new Time(outside)
  /** The number of connections so far: each has a port of its own. */
  ports = 0
  readonly mutation: Mutation | null
  readonly scripts: Readonly<Record<Modelled, Script>>
  /** Null if nobody reads it. */
  readonly trace: string[] | null

  constructor (seed: number, mutation: Mutation | null, trace: string[] | null) {
    this.random = new Random(seed)
    this.mutation = mutation
    this.trace = trace
    this.scripts = mutation?.script === undefined ? scripts : mutated(mutation.script)
  }

  /** Runs something outside the services after so many milliseconds. */
  after (milliseconds: number, run: () => void): void {
    this.time.after(milliseconds, outside, run)
  }

  at (moment: number, run: () => void): void {
    this.time.at(moment, outside, run)
  }

  /** A random network latency: mostly short, sometimes long. */
  latency (): number {
    const { random } = this
    if (!random.chance(0.03)) return 0.1 + random.next()
    return random.chance(0.8) ? 1 + 60 * random.next() : 1500 * random.next()
  }

  tell (line: string): void {
    this.trace?.push(`${this.time.now.toFixed(3)} ${line}`)
  }
}

function mutated (change: NonNullable<Mutation['script']>): Record<Modelled, Script> {
  return Object.fromEntries(Object.entries(scripts).map(([name, script]) => [name, change(name as Modelled, script)])) as Record<Modelled, Script>
}
