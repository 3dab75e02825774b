import { Random } from '../random.ts'
import { Time } from './time.ts'
import type { Process } from './time.ts'
import type { Modelled, Script } from './scripts.ts'
import { scripts } from './scripts.ts'
import type { Connection } from './connection.ts'

/** A thing that is wrong on purpose, to show that it is found. */
export interface Mutation {
  readonly name: string
  /** On the scripts, each as it is run. */
  script? (name: Modelled, script: Script): Script
  /** On what a lane talks to, before it does. */
  connection? (connection: Connection): void
  /** On what the store promises. */
  replicas? (replicas: number): number
  /** On how a failover goes. */
  readonly hasty?: boolean
}

/** What is none of a service's own: clients, servers and the network. */
export const outside: Process = { name: 'outside', skew: 0, pausedUntil: 0, dead: false }

/** What one simulation shares: its time, its dice, its script engine and, for who wants to read it, what happened. */
export class World {
  readonly random: Random
  readonly time = new Time(outside)
  /** How many connections there have been: each comes from a port of its own. */
  ports = 0
  readonly mutation: Mutation | null
  readonly scripts: Readonly<Record<Modelled, Script>>
  /** Null where nobody reads it. */
  readonly trace: string[] | null

  constructor (seed: number, mutation: Mutation | null, trace: string[] | null) {
    this.random = new Random(seed)
    this.mutation = mutation
    this.trace = trace
    this.scripts = mutation?.script === undefined ? scripts : mutated(mutation.script)
  }

  /** What is outside happens after so many milliseconds. */
  after (milliseconds: number, run: () => void): void {
    this.time.after(milliseconds, outside, run)
  }

  at (moment: number, run: () => void): void {
    this.time.at(moment, outside, run)
  }

  /** How long something takes on the network: mostly little, now and then much. */
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
