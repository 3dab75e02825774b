import { PayloadKeys } from '../../../src/core/payload-keys.ts'
import { Approvals } from '../../../src/store/approvals.ts'
import { Asks } from '../../../src/store/asks.ts'
import { Attempts } from '../../../src/store/attempts.ts'
import { Dependents } from '../../../src/store/dependents.ts'
import { Handoffs } from '../../../src/store/handoffs.ts'
import { Inboxes } from '../../../src/store/inboxes.ts'
import { placesOf } from '../../../src/handoffs/inbox/take.ts'
import { Lanes, callBudget } from '../../../src/redis/lanes.ts'
import type { Operation } from '../history.ts'
import { Desk } from './answers.ts'
import { startDeliverer } from './calls.ts'
import type { Receivers } from './calls.ts'
import type { Request, Sent, TakeRequest } from './answers.ts'
import { Limiting } from './limiting.ts'
import type { Limits } from './limiting.ts'
import { Scheduling } from './scheduling.ts'
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

/**
 * What all replicas of the service have in common. @property workTtl milliseconds @property isOneRedis whether scripts may write to several partitions
 * @property hasSchedules whether they run schedules @property receivers of callbacks; null where there are none
 * @property limits of live handoffs @property payloadKeys of one replica; left out if nothing is encrypted
 */
export interface Settings { payloadKeys?: PayloadKeys | undefined, workTtl: number, telling: Telling, isOneRedis: boolean, hasSchedules: boolean, receivers: Receivers | null, limits?: Limits | undefined }

type ListedGroup = Awaited<ReturnType<Inboxes['groups']>>['groups'][number]

/** One replica of the service: its own code in a simulated process. */
export class Service {
  readonly process: Process
  readonly #handoffs: Handoffs
  readonly #dependents: Dependents
  readonly #world: World
  readonly #desk: Desk
  readonly #inboxes: Inboxes
  readonly #topology: Topology
  /** The master of each partition when this replica last swept it. */
  readonly #sweptAt = new Map<string, string>()
  readonly #masterOf: (tag: string) => string | undefined
  /** Null if they run none. */
  readonly scheduling: Scheduling | null
  /** Undefined if nothing is limited. */
  readonly #limiting: Limiting | undefined
  /** Waiting clients, which learn of its death. */
  readonly #waiting = new Set<() => void>()
  /** How long it has been paused in total. */
  paused = 0
  /** Answers that came later than the budget allows. */
  readonly late: Operation[] = []
  /** What it would have logged as its own mistakes. */
  readonly faults: string[] = []

  constructor (world: World, topology: Topology, name: string, { workTtl, telling, isOneRedis, hasSchedules, receivers, limits, payloadKeys = new PayloadKeys() }: Settings) {
    this.#world = world
    this.#topology = topology
    this.process = { name, skew: 1e6 * world.random.next(), pausedUntil: 0, dead: false }
    const outsider = world.time.process
    world.time.process = this.process
    const { replicas } = topology
    const lifetimes = { workTtl, retention }
    const { scripts, keys } = scriptsFor(telling, lifetimes, isOneRedis, payloadKeys.names)
    const masters = topology.mastersFor(this.process)
    this.#masterOf = tag => masters.of(tag)?.name
    const relay = telling === 'relayed' ? startRelay(() => lanes, masters, topology, name, this.faults) : undefined
    const lanes: Lanes = new Lanes(masters, replicas === 0 ? null : { replicas, barrierKey: tag => keys.barrier(tag) }, isOneRedis, relay?.take)
    if (world.mutation?.noRound !== true) relay?.start()
    if (receivers !== null) startDeliverer(receivers, lanes, scripts, keys, masters, topology, { isOneRedis, payloadKeys }, this.faults)
    this.#handoffs = new Handoffs(lanes, scripts, keys, lifetimes, isOneRedis, payloadKeys)
    this.#dependents = new Dependents(lanes, scripts, keys, isOneRedis, error => this.faults.push(`releasing failed: ${String(error)}`))
    const attempts = new Attempts(lanes, scripts, keys, lifetimes, payloadKeys)
    this.#inboxes = new Inboxes(lanes, scripts, keys, { ...lifetimes, tags: topology.tags, isOneRedis }, payloadKeys)
    this.#limiting = limits && new Limiting(limits, topology, { lanes, scripts, keys, isOneRedis, attempts }, this.faults)
    this.#desk = new Desk({
      handoffs: this.#handoffs,
      dependents: this.#dependents,
      attempts,
      inboxes: this.#inboxes,
      approvals: new Approvals(lanes, scripts, keys, retention, payloadKeys),
      asks: new Asks(lanes, scripts, keys, lifetimes, isOneRedis, payloadKeys),
      quotas: this.#limiting?.quotas ?? { of: () => undefined },
    }, subscriptions, workTtl)
    const parts = { lanes, scripts, keys, masters, handoffs: this.#handoffs, attempts, service: this.#desk.service }
    this.scheduling = hasSchedules ? new Scheduling(world, this.process, topology, parts, this.faults) : null
    this.scheduling?.start()
    world.time.process = outsider
  }

  /** Looks at a partition once, as src/store/sweeper.ts does. Resolves when what it found has been seen to. */
  async sweep (tag: string, limit: number): Promise<void> {
    const master = this.#masterOf(tag)
    const hasMoved = master !== undefined && this.#sweptAt.get(tag) !== master
    const { ended, blocked } = await this.#handoffs.sweep(tag, limit, false, true, hasMoved)
    if (master !== undefined) this.#sweptAt.set(tag, master)
    this.#dependents.swept(ended, blocked)
    await this.#dependents.settled()
  }

  /** Sends it a request over the network. @returns null if there will be no answer */
  ask (request: Request): Promise<Sent | null> {
    const { time } = this.#world
    return this.#over(async () => {
      const began = time.now
      const pausedBefore = this.paused
      const answered = await this.#desk.answer(request)
      // What comes after others takes a call before or behind its own, and another one for each of those, at once.
      // What is limited is counted before.
      const calls = (request.story.after.length > 0 ? 3 : 1) + (this.#limiting === undefined ? 0 : 2)
      if (time.now - began > calls * (callBudget + lateness) + this.paused - pausedBefore) this.late.push(request.operation)
      return answered
    })
  }

  /** The same for a catch from an inbox, which takes several calls. */
  take (request: TakeRequest): Promise<Sent | null> {
    return this.#over(() => this.#desk.take(request))
  }

  /** @returns whether it is known to be set */
  async limitGroups (inbox: string, most: number | null): Promise<boolean> {
    const set = () => this.#inboxes.set(placesOf('acme', inbox).own, { maxCaughtPerGroup: most }).then(() => true, () => false)
    return await this.#over(set) === true
  }

  /** All groups of an inbox, page by page. @returns null if they can't be read */
  listGroups (inbox: string): Promise<ListedGroup[] | null> {
    const read = async () => {
      const all: ListedGroup[] = []
      for (let after: string | null = null; ;) {
        const { groups, isMore } = await this.#inboxes.groups(placesOf('acme', inbox).own, after, 2)
        all.push(...groups)
        if (!isMore) return all
        after = all.at(-1)!.group ?? ''
      }
    }
    return this.#over(() => read().catch(() => null))
  }

  /** How many handoffs count for the agent with a limit. @returns null if that can't be read */
  countLive (): Promise<number | null> {
    return this.#over(() => this.#limiting!.count().catch(() => null))
  }

  /** Goes through all handoffs, as src/store/indexer.ts does now and then. */
  tidy (): Promise<void | null> {
    return this.#over(() => this.#limiting!.tidy())
  }

  #over<T> (serve: () => Promise<T>): Promise<T | null> {
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
