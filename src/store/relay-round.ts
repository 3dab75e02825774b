import type { Redis } from 'ioredis'
import { Unavailable } from '../redis/lanes.ts'
import type { Events, Missing } from './events.ts'
import type { Leases } from './leases.ts'
import type { Relay } from './relay.ts'
import { within } from './within.ts'

/** Milliseconds between two rounds: an event that the replica which told it has not moved is found at the second round after it. */
const interval = 500
/**
 * How long an outbox keeps an event that is in the feed, in milliseconds. Where a failover loses the end of the feed, the outbox still has it.
 */
const kept = 15_000
/** How long a relay that died holds the others off, in milliseconds. */
const leaseDuration = 1500
/** Partitions asked about in one call. */
const partitionsPerCall = 256
/**
 * How long the tenants' calls are waited for, in milliseconds. Those of a tenant that take longer (its feed's master lacks replicas that acknowledge)
 * go on by themselves, and the tenant gets no others meanwhile. Otherwise the lease would run out in each round, and nobody would get to the rest.
 */
const patience = 250

export interface RelayRoundOptions {
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
  /** What is removed next, up to this number, and since when it is there. */
  old: number
  since: number
}

/**
 * Goes round all outboxes, at one replica at a time: moves what its own replica did not move, and removes what is in the feed for long enough.
 * Nothing depends on who does it: moving twice does what moving once does.
 */
export class RelayRound {
  readonly #events: Events
  readonly #relay: Relay
  readonly #leases: Leases
  readonly #options: RelayRoundOptions
  readonly #seen = new Map<string, number>()
  readonly #watched = new Map<string, Watched>()
  /** Tenants with calls under way: those that check, and those that remove. Neither waits for the others, which may take as long in each round. */
  readonly #checking = new Set<string>()
  readonly #removing = new Set<string>()
  #timer: NodeJS.Timeout | undefined
  #round: Promise<void> | undefined
  /** The age of the oldest event that was found not to be in its feed, at the last round, in milliseconds. Undefined at the other replicas. */
  lag: number | undefined
  /** By how many milliseconds Redis’s clock is ahead of this machine’s. */
  #redisAhead = 0

  constructor (events: Events, relay: Relay, leases: Leases, options: RelayRoundOptions) {
    this.#events = events
    this.#relay = relay
    this.#leases = leases
    this.#options = options
  }

  start (): void {
    this.#timer = setInterval(() => {
      this.#round ??= this.#goRound().catch(error => this.#failed(error)).finally(() => { this.#round = undefined })
    }, interval)
    this.#timer.unref()
  }

  async stop (): Promise<void> {
    clearInterval(this.#timer)
    await this.#round
  }

  async #goRound (): Promise<void> {
    const { tags, reaches, leaseKey } = this.#options
    if (!await this.#leases.takeReached(tags, reaches, leaseKey, leaseDuration)) return this.#forget()
    this.lag = 0
    const found = [...this.#watched.values()]
    const clocks = new Map<Redis, Promise<number>>()
    await Promise.all(tags.filter(reaches).map(tag => this.#look(tag, clocks)))
    // Those that an earlier round saw: what they have since is still being moved.
    await this.#inCalls(this.#checking, found.filter(({ isChecked }) => !isChecked), (tenant, outboxes) => this.#check(tenant, outboxes))
    const now = performance.now()
    const old = found.filter(({ isChecked, since }) => isChecked && now - since > kept)
    await this.#inCalls(this.#removing, old, (tenant, outboxes) => this.#removeOld(tenant, outboxes))
  }

  /** Which outboxes have something new? Only a hint, so it needn't be durable. @param clocks each master's time in this round, in microseconds */
  async #look (tag: string, clocks: Map<Redis, Promise<number>>): Promise<void> {
    const { connectionTo, indexKey } = this.#options
    const redis = connectionTo(tag)
    if (redis === undefined) return
    const clock = clocks.get(redis) ?? redis.time().then(([seconds, micros]) => Number(seconds) * 1e6 + Number(micros))
    clocks.set(redis, clock)
    const seen = this.#seen.get(tag) ?? 0
    const [now, found] = await Promise.all([clock, redis.zrange(indexKey(tag), `(${seen}`, '+inf', 'BYSCORE', 'WITHSCORES')]).catch(() => [0, []] as [number, string[]])
    for (let at = 0; at < found.length; at += 2) {
      const [tenant, last] = [found[at]!, Number(found[at + 1])]
      const name = `${tag} ${tenant}`
      const known = this.#watched.get(name)
      if (known === undefined) this.#watched.set(name, { tag, tenant, last, isChecked: false, old: last, since: performance.now() })
      else Object.assign(known, { last, isChecked: false })
      // Where the clock was set back, numbers before this one are still to come.
      this.#seen.set(tag, Math.max(Math.min(last, now), this.#seen.get(tag) ?? 0))
    }
    if (now > 0) this.#redisAhead = now / 1000 - Date.now()
    // It was set back since, also by a failover: numbers below those that were seen may be new, so the next round looks at all.
    if (now > 0 && now < seen) this.#seen.delete(tag)
  }

  /** Moves what is missing in the feed. */
  async #check (tenant: string, outboxes: Watched[]): Promise<void> {
    const asked = new Map(outboxes.map(outbox => [outbox.tag, outbox.last]))
    const missing = await this.#events.relay(tenant, [...asked].map(([tag, last]) => ({ tag, from: String(last), events: [] })))
    // Numbers are moments in microseconds.
    for (const { tag } of missing) this.lag = Math.max(this.lag ?? 0, Date.now() + this.#redisAhead - asked.get(tag)! / 1000)
    const note = (outbox: Watched) => { if (outbox.last === asked.get(outbox.tag)) outbox.isChecked = true }
    for (const outbox of outboxes) if (!missing.some(({ tag }) => tag === outbox.tag)) note(outbox)
    // The next round asks for the others again.
    for (const outbox of await this.#catchUp(tenant, missing, outboxes)) note(outbox)
  }

  /** Removes what is in the feed for long enough. */
  async #removeOld (tenant: string, outboxes: Watched[]): Promise<void> {
    // Once more: a failover may have taken it from the feed.
    const missing = await this.#events.relay(tenant, outboxes.map(({ tag, old }) => ({ tag, from: String(old), events: [] })))
    const trim = (some: Watched[]) => Promise.all(some.map(outbox => this.#trim(outbox).catch(error => this.#failed(error))))
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
   * Moves what is missing, of each master one outbox after the other: a master that takes nothing holds up no other.
   * @returns the outboxes that have nothing: the feed has ended since, and what it had of them is forgotten
   */
  async #catchUp (tenant: string, missing: readonly Missing[], outboxes: readonly Watched[]): Promise<Watched[]> {
    const { connectionTo } = this.#options
    const masters = new Set(missing.map(({ tag }) => connectionTo(tag)))
    const empty = new Set<string>()
    await Promise.all([...masters].map(async master => {
      try {
        for (const { tag, moved } of missing) if (connectionTo(tag) === master && !await this.#relay.catchUp(tag, tenant, moved)) empty.add(tag)
      } catch (error) {
        this.#failed(error)
      }
    }))
    return outboxes.filter(({ tag }) => empty.has(tag))
  }

  /** Those of a tenant together, as many as a call takes; tenants side by side. @param busy tenants with such calls under way */
  async #inCalls (busy: Set<string>, outboxes: Watched[], call: (tenant: string, outboxes: Watched[]) => Promise<void>): Promise<void> {
    const byTenant = new Map<string, Watched[]>()
    for (const outbox of outboxes) {
      const theirs = byTenant.get(outbox.tenant)
      if (theirs === undefined) byTenant.set(outbox.tenant, [outbox])
      else theirs.push(outbox)
    }
    await within(patience, Promise.all([...byTenant].filter(([tenant]) => !busy.has(tenant)).map(async ([tenant, theirs]) => {
      busy.add(tenant)
      try {
        for (let at = 0; at < theirs.length; at += partitionsPerCall) await call(tenant, theirs.slice(at, at + partitionsPerCall))
      } catch (error) {
        this.#failed(error)
      } finally {
        busy.delete(tenant)
      }
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
