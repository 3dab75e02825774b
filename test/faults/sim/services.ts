import { Approvals } from '../../../src/store/approvals.ts'
import { Asks } from '../../../src/store/asks.ts'
import { Attempts } from '../../../src/store/attempts.ts'
import { Handoffs } from '../../../src/store/handoffs.ts'
import { Inboxes } from '../../../src/store/inboxes.ts'
import { Lanes, callBudget } from '../../../src/redis/lanes.ts'
import type { Operation } from '../history.ts'
import { Desk } from './answers.ts'
import type { Request, Sent, TakeRequest } from './answers.ts'
import { scriptsFor, startRelay } from './relaying.ts'
import type { Telling } from './relaying.ts'
import type { Process } from './time.ts'
import type { Topology } from './topology.ts'
import type { World } from './world.ts'

/** How long handoffs are kept after their end, in milliseconds: longer than a simulation. */
const retention = 600_000

/** How much later than the budget an answer may be: overdue calls are looked for every 50 ms. */
const lateness = 60

/** Nobody waits here, and no message comes: what is known of a list is what was read. */
const subscriptions = { listen: () => new Promise<never>(() => {}) } as never

/** What all replicas of the service have in common. @property workTtl milliseconds */
export interface Settings { workTtl: number, telling: Telling }

/** One replica of the service: its own code in a simulated process. */
export class Service {
  readonly process: Process
  readonly handoffs: Handoffs
  readonly #world: World
  readonly #desk: Desk
  readonly #topology: Topology
  /** Waiting clients, which learn of its death. */
  readonly #waiting = new Set<() => void>()
  /** How long it has been paused in total. */
  paused = 0
  /** Answers that came later than the budget allows. */
  readonly late: Operation[] = []
  /** What it would have logged as its own mistakes. */
  readonly faults: string[] = []

  constructor (world: World, topology: Topology, name: string, { workTtl, telling }: Settings) {
    this.#world = world
    this.#topology = topology
    this.process = { name, skew: 1e6 * world.random.next(), pausedUntil: 0, dead: false }
    const outsider = world.time.process
    world.time.process = this.process
    const { replicas } = topology
    const lifetimes = { workTtl, retention }
    const { scripts, keys } = scriptsFor(telling, lifetimes)
    const masters = topology.mastersFor(this.process)
    const relay = telling === 'relayed' ? startRelay(() => lanes, masters, topology, name, this.faults) : undefined
    const lanes: Lanes = new Lanes(masters, replicas === 0 ? null : { replicas, barrierKey: tag => keys.barrier(tag) }, relay?.take)
    if (world.mutation?.noRound !== true) relay?.start()
    this.handoffs = new Handoffs(lanes, scripts, keys, lifetimes, false)
    this.#desk = new Desk({
      handoffs: this.handoffs,
      attempts: new Attempts(lanes, scripts, keys, lifetimes),
      inboxes: new Inboxes(lanes, scripts, keys, { ...lifetimes, tags: topology.tags, isOneRedis: false }),
      approvals: new Approvals(lanes, scripts, keys, retention),
      asks: new Asks(lanes, scripts, keys, lifetimes, false),
    }, subscriptions, workTtl)
    world.time.process = outsider
  }

  /** Sends it a request over the network. @returns null if there will be no answer */
  ask (request: Request): Promise<Sent | null> {
    const { time } = this.#world
    return this.#over(async () => {
      const began = time.now
      const pausedBefore = this.paused
      const answered = await this.#desk.answer(request)
      if (time.now - began > callBudget + lateness + this.paused - pausedBefore) this.late.push(request.operation)
      return answered
    })
  }

  /** The same for a catch from an inbox, which takes several calls. */
  take (request: TakeRequest): Promise<Sent | null> {
    return this.#over(() => this.#desk.take(request))
  }

  #over (serve: () => Promise<Sent>): Promise<Sent | null> {
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
        serve().then(answered => {
          if (this.process.dead) return
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
    for (const connection of this.#topology.connections) if (connection.process === this.process) connection.leave()
    for (const gone of this.#waiting) gone()
  }
}
