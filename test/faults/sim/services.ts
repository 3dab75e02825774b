import { Approvals } from '../../../src/store/approvals.ts'
import { Handoffs } from '../../../src/store/handoffs.ts'
import type { Place } from '../../../src/store/handoffs.ts'
import { KeyNames } from '../../../src/store/key-names.ts'
import { Lanes, callBudget } from '../../../src/redis/lanes.ts'
import { loadScripts } from '../../../src/redis/scripts.ts'
import type { Answered, Operation } from '../history.ts'
import { answerTo } from './answers.ts'
import type { Connection } from './connection.ts'
import type { Process } from './time.ts'
import type { Topology } from './topology.ts'
import type { World } from './world.ts'

export const keys = new KeyNames('sim')
const scripts = loadScripts()
const retention = 600_000

/** How much later than the budget an answer may be: overdue calls are looked for every 50 ms. */
const lateness = 60

/** One replica of the service: the store's own code in a simulated process. */
export class Service {
  readonly process: Process
  readonly handoffs: Handoffs
  readonly #world: World
  readonly #approvals: Approvals
  readonly #connections: readonly Connection[]
  /** Waiting clients, which learn of its death. */
  readonly #waiting = new Set<() => void>()
  /** How long it has been paused in total. */
  paused = 0
  /** Answers that came later than the budget allows. */
  readonly late: Operation[] = []

  constructor (world: World, topology: Topology, name: string, workTtl: number) {
    this.#world = world
    this.process = { name, skew: 1e6 * world.random.next(), pausedUntil: 0, dead: false }
    const outsider = world.time.process
    world.time.process = this.process
    const before = topology.connections.length
    const { replicas } = topology
    const lanes = new Lanes(topology.mastersFor(this.process), replicas === 0 ? null : { replicas, barrierKey: tag => keys.barrier(tag) })
    this.#connections = topology.connections.slice(before)
    this.handoffs = new Handoffs(lanes, scripts, keys, { workTtl, retention })
    this.#approvals = new Approvals(lanes, scripts, keys, retention)
    world.time.process = outsider
  }

  /** Sends it a request over the network. @returns null if there will be no answer */
  ask (operation: Operation, place: Place): Promise<Answered | null> {
    const world = this.#world
    const network = () => 0.1 + world.random.next()
    return new Promise(resolve => {
      const gone = () => world.after(network(), () => resolve(null))
      if (this.process.dead) {
        gone()
        return
      }
      this.#waiting.add(gone)
      world.time.after(network(), this.process, () => {
        const began = world.time.now
        const pausedBefore = this.paused
        answerTo(operation, place, { handoffs: this.handoffs, approvals: this.#approvals }).then(answered => {
          if (this.process.dead) return
          if (world.time.now - began > callBudget + lateness + this.paused - pausedBefore) this.late.push(operation)
          this.#waiting.delete(gone)
          world.after(network(), () => resolve(answered))
        })
      })
    })
  }

  pause (milliseconds: number): void {
    if (this.process.pausedUntil > this.#world.time.now) return
    this.#world.tell(`${this.process.name} stands still for ${milliseconds.toFixed(0)} ms`)
    this.process.pausedUntil = this.#world.time.now + milliseconds
    this.paused += milliseconds
  }

  /** kill -9. What it has sent still arrives. */
  kill (): void {
    this.#world.tell(`${this.process.name} dies`)
    this.process.dead = true
    for (const connection of this.#connections) connection.break(false)
    for (const gone of this.#waiting) gone()
  }
}
