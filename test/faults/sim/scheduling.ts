import { Problem, Unavailable } from '../../../src/core/errors.ts'
import { homeTag, inboxTag } from '../../../src/core/ids.ts'
import { cutMembers } from '../../../src/core/json.ts'
import { callerOf } from '../../../src/core/model.ts'
import { ScheduleCounts, Runner } from '../../../src/handoffs/schedules/runs.ts'
import type { Run } from '../../../src/handoffs/schedules/runs.ts'
import { ScheduleService } from '../../../src/handoffs/schedules/service.ts'
import { Ticker } from '../../../src/handoffs/schedules/ticker.ts'
import type { HandoffService } from '../../../src/handoffs/lifecycle/service.ts'
import type { Lanes } from '../../../src/redis/lanes.ts'
import type { Masters } from '../../../src/redis/masters.ts'
import type { Scripts } from '../../../src/redis/scripts.ts'
import type { Attempts } from '../../../src/store/attempts.ts'
import type { Handoffs } from '../../../src/store/handoffs.ts'
import type { KeyNames } from '../../../src/store/key-names.ts'
import { Leases } from '../../../src/store/leases.ts'
import { ScheduleStore } from '../../../src/store/schedules.ts'
import type { Random } from '../random.ts'
import { someTags } from './stories.ts'
import { epoch } from './time.ts'
import type { Process } from './time.ts'
import type { Topology } from './topology.ts'
import type { World } from './world.ts'

/** Schedules in a simulation: replicas that run them, a client that changes them, and what must hold at the end. */

/** A name whose partition is among those that a simulation uses. */
function nameIn (tagOf: (name: string) => string, tags: readonly string[], word: string): string {
  for (let n = 0; ; n++) if (tags.includes(tagOf(`${word}${n}`))) return `${word}${n}`
}

/** Its handoffs are no story's, so they have a tenant of their own. */
export const scheduling = nameIn(homeTag, someTags, 'nights')
const inboxes = someTags.map(tag => nameIn(name => inboxTag(scheduling, name), [tag], 'inbox'))
const owner = callerOf(scheduling, 'ann', ['pass', 'status'])
/** How often a replica looks, in milliseconds; in production it sleeps until something is due. */
const lookEvery = 120
/** How long after a tick's time it is noted, once all is well, in milliseconds. */
const settled = 6000
/** How much later at the most: also then packets are late, each by up to a second, and a schedule's ticks come one after the other. */
const untilRun = 60_000

/** What one replica needs for them. */
interface ScheduleParts { lanes: Lanes, scripts: Scripts, keys: KeyNames, masters: Masters, handoffs: Handoffs, attempts: Attempts, service: HandoffService }

/** A replica's part. */
export class Scheduling {
  readonly service: ScheduleService
  readonly #ticker: Ticker
  readonly #world: World
  readonly #process: Process

  constructor (world: World, process: Process, { tags }: Topology, { lanes, scripts, keys, masters, handoffs, attempts, service }: ScheduleParts, faults: string[]) {
    this.#world = world
    this.#process = process
    const connectionTo = (tag: string) => {
      const calls = masters.of(tag)?.calls
      return calls && { zrange: (...args: string[]) => (calls as unknown as { zrange (...args: string[]): Promise<string[]> }).zrange(...args), spublish: async () => 0 } as never
    }
    const schedules = new ScheduleStore(lanes, scripts, keys, { tags, replica: process.name, connectionTo })
    const counts = new ScheduleCounts()
    const runner = new Runner({ handoffs: service, store: handoffs, attempts, nested: [], onMoved: () => {} })
    const leases = new Leases(lanes, scripts, process.name, tag => masters.of(tag)?.name)
    this.service = new ScheduleService(schedules, runner, { validate: () => true, nested: [], schemas: null as never, acceptCallback: () => null, counts })
    this.#ticker = new Ticker({
      store: {
        schedules,
        subscriptions: { listen: () => new Promise<never>(() => {}) } as never,
        takeTicking: duration => leases.takeReached(tags, tag => lanes.reaches(tag), tag => keys.ticker(tag), duration),
        reachedTags: () => tags.filter(tag => lanes.reaches(tag)),
      },
      runner,
      counts,
      onFault: error => faults.push(`running schedules failed: ${String(error)}`),
    })
  }

  /** Looks again and again until the process dies. */
  start (): void {
    const look = () => {
      const again = () => this.#world.time.after(lookEvery * (0.5 + this.#world.random.next()), this.#process, look)
      this.#ticker.go(true).then(again, again)
    }
    look()
  }
}

interface Replica { process: Process, scheduling: Scheduling | null }

/** What was done to a schedule, as far as it matters for what must hold. */
interface Plan { name: string, every: number, startsAt: number, isSteady: boolean, madeAt: number }

/** Makes schedules, and changes what they say while they tick. */
export class Planner {
  readonly #world: World
  readonly #replicas: readonly Replica[]
  readonly #random: Random
  readonly plans: Plan[] = []

  constructor (world: World, replicas: readonly Replica[]) {
    this.#world = world
    this.#replicas = replicas
    this.#random = world.random
  }

  /** @param within milliseconds */
  async play (within: number): Promise<void> {
    const { random } = this.#world
    await Promise.all(Array.from({ length: random.between(1, 2) }, async (_, at) => {
      const plan: Plan = { name: `s${at}`, every: random.pick([0.3, 0.7, 1]), startsAt: epoch + 200 + Math.floor(600 * random.next()), isSteady: random.chance(0.5), madeAt: Infinity }
      if (!await this.#insist(service => this.#put(service, plan, {}))) return
      plan.madeAt = epoch + this.#world.time.now
      this.plans.push(plan)
      const end = this.#world.time.now + within
      while (this.#world.time.now < end) {
        await this.#sleep(600 * random.next())
        await this.#insist(service => this.#change(service, plan))
      }
      if (!plan.isSteady) await this.#insist(service => service.pause(owner, plan.name, false))
    }))
  }

  #put (service: ScheduleService, { name, every, startsAt, isSteady }: Plan, more: object): Promise<unknown> {
    const handoff = `{"task":"For {{scheduled_for}}","to":"${this.#random.pick(inboxes)}","expires_in":3600}`
    const body = { every, starts_at: new Date(startsAt).toISOString(), overlap: isSteady ? 'allow' : this.#random.pick(['allow', 'skip', 'cancel']), catch_up: isSteady ? 300 : this.#random.pick([1, 300]), ...more }
    return service.put(owner, name, body as never, cutMembers(Buffer.from(`{"handoff":${handoff}}`)))
  }

  async #change (service: ScheduleService, plan: Plan): Promise<unknown> {
    const random = this.#random
    // Of one that isn't steady a tick may rightly be missing.
    if (plan.isSteady || random.chance(0.6)) return await this.#put(service, plan, {})
    if (random.chance(0.7)) return await service.pause(owner, plan.name, random.chance(0.5))
    const now = this.#world.time.now + epoch
    const time = (at: number) => new Date(Math.floor(at)).toISOString()
    return await service.backfill(owner, plan.name, { since: time(plan.startsAt), until: time(now - 50) })
  }

  /** Asks a replica that is alive, until one answers. @returns whether one did */
  async #insist (ask: (service: ScheduleService) => Promise<unknown>): Promise<boolean> {
    for (let times = 0; times < 6; times++) {
      const alive = this.#replicas.filter(({ process }) => !process.dead)
      const { process, scheduling } = this.#random.pick(alive)
      const answered = await new Promise<boolean>((resolve, reject) => {
        // From the network, not from within the process.
        const settle = (isAnswered: boolean) => this.#world.after(0.1, () => resolve(isAnswered))
        // If the process dies, nobody answers.
        this.#world.after(4000, () => resolve(false))
        this.#world.time.after(1, process, () => {
          ask(scheduling!.service).then(() => settle(true), error => {
            if (error instanceof Unavailable) settle(false)
            else if (error instanceof Problem) settle(true)
            else reject(error)
          })
        })
      })
      if (answered) return true
    }
    return false
  }

  #sleep (milliseconds: number): Promise<void> {
    return new Promise(resolve => this.#world.after(milliseconds, resolve))
  }
}

interface Found { ids: Map<string, string[]>, runs: Map<string, Run[]> }

function found (topology: Topology): Found {
  const ids = new Map<string, string[]>()
  const runs = new Map<string, Run[]>()
  for (const { db } of topology.masters()) {
    for (const key of db.values.keys()) {
      const behind = key.slice(key.indexOf('}:') + 2)
      if (behind.startsWith(`h:${scheduling}:`)) {
        const { x = '' } = db.content(key, 'hash') ?? {}
        const [, name, time] = / S(\S+) T(\d+)/.exec(x) ?? []
        const tick = `${name} ${new Date(Number(time)).toISOString()}`
        ids.set(tick, [...ids.get(tick) ?? [], behind.slice(behind.lastIndexOf(':') + 1)])
      } else if (behind.startsWith(`schedule:${scheduling}:`) && behind.endsWith(':runs')) {
        runs.set(behind.split(':')[2]!, (db.content(key, 'list') ?? []).map(text => JSON.parse(text) as Run))
      }
    }
  }
  return { ids, runs }
}

/** What is wrong once all ticks that are due now have had their time. */
export async function scheduleFaults (world: World, topology: Topology, plans: readonly Plan[]): Promise<string[]> {
  const sleep = (milliseconds: number) => new Promise<void>(resolve => world.after(milliseconds, resolve))
  const until = epoch + world.time.now
  await sleep(settled)
  for (let times = untilRun / 500; ; times--) {
    const faults = faultsUntil(until, topology, plans)
    if (faults.length === 0 || times === 0) return faults
    await sleep(500)
  }
}

/** No tick has two handoffs, each one that is noted is there, none is noted twice, and none of a steady schedule's is missing. */
function faultsUntil (until: number, topology: Topology, plans: readonly Plan[]): string[] {
  const { ids, runs } = found(topology)
  const faults = [...ids].filter(([, all]) => all.length > 1).map(([tick, all]) => `I19 ${tick} has ${all.length} handoffs: ${all.join(', ')}`)
  for (const [name, all] of runs) {
    const seen = new Set<string>()
    for (const { scheduled_for: time, by, outcome, handoff_id: id } of all) {
      if (by === 'tick' && seen.has(time)) faults.push(`I19 ${name} ${time} is noted twice`)
      if (by === 'tick') seen.add(time)
      if (outcome === 'passed' && !(ids.get(`${name} ${time}`) ?? []).includes(id!)) faults.push(`I19 ${name} ${time}: ${id} is noted, and isn’t there`)
    }
  }
  for (const { name, every, startsAt, madeAt } of plans.filter(plan => plan.isSteady)) {
    const all = runs.get(name) ?? []
    // The newest hundred are kept.
    const kept = all.length < 100 ? -Infinity : Date.parse(all[0]!.scheduled_for)
    const first = Math.max(startsAt, startsAt + Math.ceil((madeAt - startsAt) / (every * 1000)) * every * 1000)
    for (let tick = first; tick < until; tick += every * 1000) {
      const time = new Date(tick).toISOString()
      if (tick > kept && !ids.has(`${name} ${time}`)) faults.push(`I19 ${name} ${time} is missing`)
    }
  }
  return faults
}
