import { LRUCache } from 'lru-cache'
import type { Lanes } from '../redis/lanes.ts'
import type { Scripts } from '../redis/scripts.ts'
import { digest } from './api-keys.ts'
import { tagByDigest } from './partitions.ts'
import type { KeyNames } from './key-names.ts'
import { tagged } from './replies.ts'

/** The length of a rate window, in milliseconds. */
export const rateWindow = 60_000

/** How many agents a replica remembers at a time: some 3 MB. Redis still knows a forgotten agent's window. */
const maxAgents = 10_000

/**
 * Limits agents' requests across all replicas. Each agent's count is in one partition, chosen by the hash of its name.
 */
export class Rates {
  readonly #lanes: Lanes
  readonly #scripts: Scripts
  readonly #keyNames: KeyNames
  readonly #tags: readonly string[]
  readonly #allowances = new LRUCache<string, RateAllowance>({ max: maxAgents })

  constructor (lanes: Lanes, scripts: Scripts, keyNames: KeyNames, tags: readonly string[]) {
    this.#lanes = lanes
    this.#scripts = scripts
    this.#keyNames = keyNames
    this.#tags = tags
  }

  /**
   * The agent's allowance under this limit (requests per window). Keys of one agent with different limits count
   * together in Redis.
   */
  of (tenant: string, agent: string, limit: number): RateAllowance {
    const name = `${tenant}/${agent} ${limit}`
    let allowance = this.#allowances.get(name)
    if (allowance === undefined) {
      allowance = this.#make(tenant, agent, limit)
      this.#allowances.set(name, allowance)
    }
    return allowance
  }

  /** The allowance of all the tenant's agents together. */
  ofTenant (tenant: string, limit: number): RateAllowance {
    return this.of(tenant, '*', limit)
  }

  #make (tenant: string, agent: string, limit: number): RateAllowance {
    const tag = tagByDigest(digest(`rate ${tenant} ${agent}`), this.#tags)
    const keys = [this.#keyNames.rate(tag, tenant, agent)]
    const [limitText, windowText] = [String(limit), String(rateWindow)]
    return new RateAllowance(limit, (needed, spare) =>
      this.#lanes.call({
        script: this.#scripts.rate,
        tag,
        keys,
        texts: [limitText, windowText, String(needed), String(spare)],
        decode: readTaken
      }))
  }
}

function readTaken (reply: unknown): RateGrant {
  const [, given, left, now, ends] = tagged(reply) as [string, number, number, number, number]
  return { given, left, now, ends }
}

/** The reply of lua/rate.lua: requests given, and left in the window for others; times by Redis's clock. */
interface RateGrant { given: number, left: number, now: number, ends: number }

/** Takes as many as are needed now, and some more to hold. @throws {Unavailable} */
type Take = (needed: number, spare: number) => Promise<RateGrant>

/** Called with whether a request is allowed, or with an error if Redis can't say. */
type RateCallback = (error: Error | null, allowed: boolean) => void

/** A RateAllowance, or two of them. */
export interface Allowance {
  /** Requests per window. */
  readonly limit: number
  /** How many requests are left in this window, as far as this replica knows. */
  readonly remaining: number
  /** Milliseconds until the next window begins, at the latest. */
  resetsIn (now: number): number
  /** Spends one request. @returns whether it is allowed; undefined if Redis must be asked */
  spend (now: number): boolean | undefined
  /** Asks Redis for one request. */
  settle (answer: RateCallback): void
}

/**
 * How long an exhausted window counts as exhausted, in milliseconds. Then Redis is asked again: its clock may have
 * changed.
 */
const allowanceLifetime = 1000

/**
 * The part of an agent's window that this replica holds, and spends without asking Redis. What it holds already counts
 * as spent in Redis, so all replicas together never allow more than the limit. They may allow less, by the requests
 * that other replicas hold at the end. A replica holds at most a tenth of the rest, and no more than it has spent in
 * this window. So at least half of the limit is allowed however many replicas there are, and with one replica
 * all of it. Times are this process's monotonic milliseconds.
 */
export class RateAllowance implements Allowance {
  readonly limit: number
  readonly #take: Take
  #held = 0
  /** How much this replica has spent in this window. */
  #spent = 0
  /** How much was left in Redis at the last call. */
  #left = 0
  /** Until when the held part may be spent: never after the window's end. */
  #spendUntil = 0
  #refuseUntil = 0
  /** The latest end of the window. */
  #resets = 0
  /** The window's end by Redis's clock, which identifies the window. */
  #ends = 0
  #isRefilling = false
  #waiting: RateCallback[] = []

  constructor (limit: number, take: Take) {
    this.limit = limit
    this.#take = take
  }

  /** How many requests are left in this window, as far as this replica knows. */
  get remaining (): number {
    return this.#held + this.#left
  }

  /** Milliseconds until the next window begins, at the latest. */
  resetsIn (now: number): number {
    return Math.max(0, this.#resets - now)
  }

  /** Spends one request. @returns whether it is allowed; undefined if Redis must be asked */
  spend (now: number): boolean | undefined {
    if (this.#held > 0 && now < this.#spendUntil) {
      this.#held--
      this.#spent++
      return true
    }
    return now < this.#refuseUntil ? false : undefined
  }

  /** The window that was spent from last. */
  get window (): number {
    return this.#ends
  }

  /** Puts back a request that was spent from this window and isn't used, as long as the window lasts. */
  giveBack (window: number, now: number): void {
    if (window !== this.#ends || now >= this.#spendUntil) return
    this.#held++
    this.#spent--
  }

  /** Asks Redis for one request. All requests that come meanwhile share the next call. */
  settle (answer: RateCallback): void {
    this.#waiting.push(answer)
    if (!this.#isRefilling) this.#refill()
  }

  #refill (): void {
    this.#isRefilling = true
    const waiting = this.#waiting
    const requestedAt = performance.now()
    if (requestedAt >= this.#spendUntil) this.#spent = 0
    const taking = this.#take(waiting.length, this.#spent + waiting.length)
    taking.then(taken => this.#got(taken, requestedAt), (error: Error) => {
      this.#isRefilling = false
      this.#waiting = []
      for (const answer of waiting) answer(error, false)
    })
  }

  #got ({ given, left, now, ends }: RateGrant, requestedAt: number): void {
    const here = performance.now()
    if (ends !== this.#ends) this.#spent = 0
    this.#ends = ends
    // Counted from before the call, and a thousandth shorter, since the clocks may run at different rates: it may end
    // too early, never too late.
    this.#spendUntil = requestedAt + (ends - now) * 0.999
    this.#resets = here + (ends - now)
    this.#refuseUntil = left === 0 ? Math.min(this.#resets, here + allowanceLifetime) : 0
    this.#held = given
    this.#left = left
    this.#isRefilling = false
    const waiting = this.#waiting
    this.#waiting = []
    // Redis has just counted these requests, so they are in its window even if that has ended here meanwhile.
    for (const [index, answer] of waiting.entries()) {
      if (this.#held > 0) {
        this.#held--
        this.#spent++
        answer(null, true)
      } else if (left === 0) {
        answer(null, false)
      } else {
        // These came after the call was sent.
        this.#waiting = waiting.slice(index)
        return this.#refill()
      }
    }
  }
}

/**
 * An agent's allowance and its tenant's: a request needs both. The agent's comes first, so an agent over its own limit
 * takes nothing from the others. The answer shows the tighter one of the two.
 */
export class JointAllowance implements Allowance {
  readonly #agent: RateAllowance
  readonly #tenant: RateAllowance

  constructor (agent: RateAllowance, tenant: RateAllowance) {
    this.#agent = agent
    this.#tenant = tenant
  }

  get limit (): number {
    return this.#tighter.limit
  }

  get remaining (): number {
    return this.#tighter.remaining
  }

  resetsIn (now: number): number {
    return this.#tighter.resetsIn(now)
  }

  spend (now: number): boolean | undefined {
    const first = this.#agent.spend(now)
    if (first !== true) return first
    const second = this.#tenant.spend(now)
    if (second !== true) this.#agent.giveBack(this.#agent.window, now)
    return second
  }

  settle (answer: RateCallback): void {
    spendOrSettle(this.#agent, (error, allowed) => {
      if (error !== null || !allowed) return answer(error, false)
      const { window } = this.#agent
      spendOrSettle(this.#tenant, (error, allowed) => {
        if (!allowed) this.#agent.giveBack(window, performance.now())
        answer(error, allowed)
      })
    })
  }

  /** If both have as much left, the one whose window ends later. */
  get #tighter (): RateAllowance {
    const [agent, tenant] = [this.#agent, this.#tenant]
    if (agent.remaining !== tenant.remaining) return agent.remaining < tenant.remaining ? agent : tenant
    const now = performance.now()
    return agent.resetsIn(now) > tenant.resetsIn(now) ? agent : tenant
  }
}

function spendOrSettle (allowance: RateAllowance, answer: RateCallback): void {
  const known = allowance.spend(performance.now())
  if (known === undefined) allowance.settle(answer)
  else answer(null, known)
}
