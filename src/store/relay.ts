import type { Redis } from 'ioredis'
import pLimit from 'p-limit'
import type { LimitFunction } from 'p-limit'
import { Unavailable } from '../core/errors.ts'
import { Round, within } from '../core/round.ts'
import type { EventBatch, Events, Missing } from './events.ts'
import { eventsPerCall, inCalls, numberOf } from './events.ts'
import { homeTagOf } from './partitions.ts'
import type { Leases } from './leases.ts'
import { inGroups } from './lists.ts'

/** How long events are collected before they are moved, in milliseconds: the more at once, the less each costs. */
const pause = 10
const newline = 10
/**
 * How many events of a tenant wait here while others of it are moved. Further events are read from the outbox: the next
 * event shows that some are missing, or the round finds them.
 */
const maxPending = 10_000

interface Growing extends EventBatch { events: string[], last: string }
/** A tenant's events that are to be moved, by partition, and their number. */
interface Pending { batches: Map<string, Growing>, count: number }

/**
 * Moves the events of this replica's own transitions to their tenants' feeds. The transition's reply has them, so they
 * needn't be read. Each comes with the number of the event before it: if the feed lacks that one, since another replica
 * wrote it and hasn't moved it yet, the outbox is read instead. An earlier event whose reply comes later, over another
 * connection, is then skipped. RelayRound finds in the outbox all that is lost here (the replica dies, a reply is
 * lost).
 */
export class Relay {
  readonly #events: Events
  readonly #onFault: (error: unknown) => void
  readonly #pending = new Map<string, Pending>()
  /**
   * The moves under way, by tenant: a tenant's next events wait for its move. Other tenants' don't: their feeds may be
   * at another master.
   */
  readonly #underWay = new Map<string, Promise<void>>()
  #timer: NodeJS.Timeout | undefined

  constructor (events: Events, onFault: (error: unknown) => void) {
    this.#events = events
    this.#onFault = onFault
  }

  /**
   * Takes the events off a script's reply: lines in front of its first word, or of the number that it is
   * (lua/lib/appending.lua). @returns the reply without them
   */
  readonly take = (tag: string, reply: unknown): unknown => {
    const parts = Array.isArray(reply) ? reply : [reply]
    const first: unknown = parts[0]
    const end = Buffer.isBuffer(first) ? first.lastIndexOf(newline) + 1 : 0
    if (end === 0) return reply
    const lines = (first as Buffer).toString('latin1', 0, end - 1).split('\n')
    for (const line of lines) {
      const [tenant, from] = line.split(' ', 2) as [string, string]
      this.#note(tag, tenant, from, line.slice(tenant.length + from.length + 2))
    }
    parts[0] = (first as Buffer).subarray(end)
    return Array.isArray(reply) ? reply : Number(String(parts[0]))
  }

  /**
   * Moves the events of an outbox that the feed lacks.
   * @param moved the number of the last event that the feed has
   * @returns whether there was any
   */
  async catchUp (tag: string, tenant: string, moved: string): Promise<boolean> {
    for (let from = moved; ;) {
      const events = await this.#events.outbox(tag, tenant, from, eventsPerCall)
      if (events.length === 0) return from !== moved
      const [missing] = await this.#events.relay(tenant, [{ tag, from, events }])
      // The feed lost its last events, with a master: they are still in the outbox.
      from = missing?.moved ?? numberOf(events.at(-1)!)
      if (missing === undefined && events.length < eventsPerCall) return true
    }
  }

  /** Moves what there is, and ends. */
  async stop (): Promise<void> {
    clearTimeout(this.#timer)
    await Promise.all(this.#underWay.values())
    await this.move()
  }

  #note (tag: string, tenant: string, from: string, event: string): void {
    let pending = this.#pending.get(tenant)
    if (pending === undefined) this.#pending.set(tenant, pending = { batches: new Map(), count: 0 })
    if (pending.count++ >= maxPending) return
    const { batches } = pending
    const batch = batches.get(tag)
    if (batch === undefined) {
      batches.set(tag, { tag, from, events: [event], last: numberOf(event) })
    } else if (Number(numberOf(event)) > Number(batch.last)) {
      // If another replica's event is between them, these wait for it: it is in the feed by then, or they are read from
      // the outbox.
      if (batch.last !== from) batch.from = from
      batch.events.push(event)
      batch.last = numberOf(event)
    }
    this.#moveSoon()
  }

  #moveSoon (): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      this.move()
    }, pause)
  }

  /** Moves what there is now, of each tenant that has nothing under way. */
  async move (): Promise<void> {
    const tenants = [...this.#pending].filter(([tenant]) => !this.#underWay.has(tenant))
    await Promise.all(tenants.map(([tenant, { batches }]) => {
      this.#pending.delete(tenant)
      const moving = this.#moveOf(tenant, [...batches.values()]).then(() => {
        this.#underWay.delete(tenant)
        if (this.#pending.has(tenant)) this.#moveSoon()
      })
      this.#underWay.set(tenant, moving)
      return moving
    }))
  }

  /** One call at a time, however many events a tenant has. If one fails, the round finds the rest in the outboxes. */
  async #moveOf (tenant: string, batches: EventBatch[]): Promise<void> {
    try {
      for (const part of inCalls(batches)) {
        for (const { tag, moved } of await this.#events.relay(tenant, part)) await this.catchUp(tag, tenant, moved)
      }
    } catch (error) {
      if (!(error instanceof Unavailable)) this.#onFault(error)
    }
  }
}

/**
 * Milliseconds between two rounds: an event that the replica that appended it has not moved is found at the second
 * round after it.
 */
const interval = 500
/**
 * How long an outbox keeps an event that is in the feed, in milliseconds. Where a failover loses the end of the feed,
 * the outbox still has it.
 */
const outboxRetention = 15_000
/** How long a relay that died holds the others off, in milliseconds. */
const leaseDuration = 1500
/** Partitions asked about in one call. */
const partitionsPerCall = 256
/** How many tenants whose feeds are at one master have calls under way at once. */
const tenantsAtOnce = 16
/** How many outboxes of a tenant are trimmed at once at one master. */
const trimsAtOnce = 16
/**
 * How long a round waits for the tenants' calls, in milliseconds. Longer calls (the feed's master lacks replicas that
 * acknowledge) go on by themselves, and their tenant gets no others meanwhile. Otherwise the lease would run out in
 * each round, and no replica would get to the rest.
 */
const patience = 250

interface RelayRoundOptions {
  /** Every partition's hash tag. */
  tags: readonly string[]
  leaseKey (tag: string): string
  /** Whether there is a connection to the partition's master. */
  reaches (tag: string): boolean
  /** The connection to the partition's master. */
  connectionTo (tag: string): Redis | undefined
  indexKey (tag: string): string
  onFault (error: unknown): void
}

/** An outbox that may have events to move or to remove. */
interface Watched {
  tag: string
  tenant: string
  /** The number of its last event. */
  last: number
  /** Whether the feed has been asked for that event. */
  isChecked: boolean
  /** Up to which number events are removed next, and since when they are there. */
  old: number
  since: number
}

/**
 * Goes round all outboxes, at one replica at a time: moves events that their own replica did not move, and removes
 * those that are in the feed for long enough. Two replicas may do it: a second move changes nothing.
 */
export class RelayRound {
  readonly #events: Events
  readonly #relay: Relay
  readonly #options: RelayRoundOptions
  readonly #seen = new Map<string, number>()
  readonly #watched = new Map<string, Watched>()
  /**
   * Tenants with calls under way, checks and removals. Neither kind waits for the other, which may take as long in each
   * round.
   */
  readonly #checking = new Calls()
  readonly #removing = new Calls()
  readonly #rounds: Round
  /**
   * The age of the oldest event that was found not to be in its feed, at the last round, in milliseconds. Undefined at
   * the other replicas.
   */
  lag: number | undefined
  /** By how many milliseconds Redis’s clock is ahead of this machine’s. */
  #redisAhead = 0

  constructor (events: Events, relay: Relay, leases: Leases, options: RelayRoundOptions) {
    this.#events = events
    this.#relay = relay
    this.#options = options
    const { tags, reaches, leaseKey, onFault } = options
    this.#rounds = new Round({
      interval,
      isMine: () => leases.takeReached(tags, reaches, leaseKey, leaseDuration),
      notMine: () => this.#forget(),
      run: () => this.#goRound(),
      onFault,
    })
  }

  start (): void { this.#rounds.wake(interval) }
  stop (): Promise<void> { return this.#rounds.stop() }

  async #goRound (): Promise<void> {
    const { tags, reaches } = this.#options
    this.lag = 0
    const found = [...this.#watched.values()]
    const clocks = new Map<Redis, Promise<number>>()
    await Promise.all(tags.filter(reaches).map(tag => this.#look(tag, clocks)))
    // An earlier round saw these outboxes: newer events are still being moved.
    await this.#inCalls(
      this.#checking, found.filter(({ isChecked }) => !isChecked), (tenant, outboxes) => this.#check(tenant, outboxes)
    )
    const now = performance.now()
    const old = found.filter(({ isChecked, since }) => isChecked && now - since > outboxRetention)
    await this.#inCalls(this.#removing, old, (tenant, outboxes) => this.#removeOld(tenant, outboxes))
  }

  /**
   * Which outboxes have something new? Only a hint, so it needn't be durable.
   * @param clocks each master's time in this round, in microseconds
   */
  async #look (tag: string, clocks: Map<Redis, Promise<number>>): Promise<void> {
    const { connectionTo, indexKey } = this.#options
    const redis = connectionTo(tag)
    if (redis === undefined) return
    const clock = clocks.get(redis) ?? redis.time().then(([seconds, micros]) => Number(seconds) * 1e6 + Number(micros))
    clocks.set(redis, clock)
    const seen = this.#seen.get(tag) ?? 0
    const [now, found] = await Promise.all([
      clock, redis.zrange(indexKey(tag), `(${seen}`, '+inf', 'BYSCORE', 'WITHSCORES')
    ]).catch(() => [0, []] as [number, string[]])
    for (let at = 0; at < found.length; at += 2) {
      const [tenant, last] = [found[at]!, Number(found[at + 1])]
      const name = `${tag} ${tenant}`
      const known = this.#watched.get(name)
      if (known === undefined) {
        this.#watched.set(
          name, { tag, tenant, last, isChecked: false, old: last, since: performance.now() }
        )
      } else Object.assign(known, { last, isChecked: false })
      // Where the clock was set back, numbers before this one are still to come.
      this.#seen.set(tag, Math.max(Math.min(last, now), this.#seen.get(tag) ?? 0))
    }
    if (now > 0) this.#redisAhead = now / 1000 - Date.now()
    // The clock was set back since, perhaps by a failover: lower numbers may be new, so the next round looks at all.
    if (now > 0 && now < seen) this.#seen.delete(tag)
  }

  /** Moves events that the feed lacks. */
  async #check (tenant: string, outboxes: Watched[]): Promise<void> {
    const checked = new Map(outboxes.map(outbox => [outbox.tag, outbox.last]))
    const missing =
      await this.#events.relay(tenant, [...checked].map(([tag, last]) => ({ tag, from: String(last), events: [] })))
    // Numbers are moments in microseconds.
    for (const {
      tag
    } of missing) this.lag = Math.max(this.lag ?? 0, Date.now() + this.#redisAhead - checked.get(tag)! / 1000)
    const note = (outbox: Watched) => { if (outbox.last === checked.get(outbox.tag)) outbox.isChecked = true }
    for (const outbox of outboxes) if (!missing.some(({ tag }) => tag === outbox.tag)) note(outbox)
    // The next round asks for the others again.
    for (const outbox of await this.#catchUp(tenant, missing, outboxes)) note(outbox)
  }

  /** Removes events that are in the feed for long enough. */
  async #removeOld (tenant: string, outboxes: Watched[]): Promise<void> {
    // Once more: a failover may have taken it from the feed.
    const missing =
      await this.#events.relay(tenant, outboxes.map(({ tag, old }) => ({ tag, from: String(old), events: [] })))
    const trim = (some: Watched[]) => this.#byMaster(some, async outboxes => {
      for (const few of inGroups(outboxes, trimsAtOnce)) {
        await Promise.all(few.map(outbox => this.#trim(outbox).catch(error => this.#failed(error))))
      }
    })
    await Promise.all([
      trim(outboxes.filter(outbox => !missing.some(({ tag }) => tag === outbox.tag))),
      this.#catchUp(tenant, missing, outboxes).then(trim),
    ])
  }

  async #trim (outbox: Watched): Promise<void> {
    const { tag, tenant, old } = outbox
    await this.#events.trim(tag, tenant, String(old))
    const name = `${tag} ${tenant}`
    // Another one has its place if the lease was lost meanwhile.
    if (outbox.last === old && this.#watched.get(name) === outbox) this.#watched.delete(name)
    else Object.assign(outbox, { old: outbox.last, since: performance.now() })
  }

  /**
   * Moves missing events, of each master one outbox after the other: a master that takes nothing holds up no other.
   * @returns the outboxes that have nothing: the feed has ended since, and its note of them is gone
   */
  async #catchUp (tenant: string, missing: readonly Missing[], outboxes: readonly Watched[]): Promise<Watched[]> {
    const empty = new Set<string>()
    await this.#byMaster(missing, async some => {
      for (const { tag, moved } of some) if (!await this.#relay.catchUp(tag, tenant, moved)) empty.add(tag)
    })
    return outboxes.filter(({ tag }) => empty.has(tag))
  }

  /** Does this with those of each master. */
  async #byMaster<T extends { tag: string }> (all: readonly T[], run: (some: T[]) => Promise<void>): Promise<void> {
    const { connectionTo } = this.#options
    const masters = new Set(all.map(({ tag }) => connectionTo(tag)))
    await Promise.all([...masters].map(master =>
      run(all.filter(({ tag }) => connectionTo(tag) === master)).catch(error => this.#failed(error))))
  }

  /**
   * A tenant's outboxes together, as many as a call takes; some tenants at a time.
   * @param calls such as are under way
   */
  async #inCalls (
    calls: Calls, outboxes: Watched[], call: (tenant: string, outboxes: Watched[]) => Promise<void>
  ): Promise<void> {
    const { tags, connectionTo } = this.#options
    const byTenant = new Map<string, Watched[]>()
    for (const outbox of outboxes) {
      const theirs = byTenant.get(outbox.tenant)
      if (theirs === undefined) byTenant.set(outbox.tenant, [outbox])
      else theirs.push(outbox)
    }
    const free = [...byTenant].filter(([tenant]) => !calls.tenants.has(tenant))
    await within(patience, Promise.all(free.map(([tenant, theirs]) => {
      calls.tenants.add(tenant)
      return calls.limitOf(connectionTo(homeTagOf(tenant, tags)))(async () => {
        try {
          for (const some of inGroups(theirs, partitionsPerCall)) await call(tenant, some)
        } catch (error) {
          this.#failed(error)
        } finally {
          calls.tenants.delete(tenant)
        }
      })
    })))
  }

  #forget (): void {
    this.lag = undefined
    this.#seen.clear()
    this.#watched.clear()
  }

  #failed (error: unknown): void {
    if (!(error instanceof Unavailable)) this.#options.onFault(error)
  }
}

/** Calls of one kind: the tenants that have some under way or next, and how many go at once to each master of feeds. */
class Calls {
  readonly tenants = new Set<string>()
  readonly #limits = new WeakMap<object, LimitFunction>()

  limitOf (master: object = this): LimitFunction {
    const limit = this.#limits.get(master) ?? pLimit(tenantsAtOnce)
    this.#limits.set(master, limit)
    return limit
  }
}
