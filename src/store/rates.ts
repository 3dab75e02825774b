import { LRUCache } from 'lru-cache'
import type { Lanes } from '../redis/lanes.ts'
import type { Scripts } from '../redis/scripts.ts'
import { digest } from './api-keys.ts'
import { tagByDigest } from './key-names.ts'
import type { KeyNames } from './key-names.ts'
import { tagged } from './replies.ts'

/** The length of a rate window, in milliseconds. */
export const rateWindow = 60_000

/** How many agents a replica remembers at a time: some 3 MB. For a forgotten one Redis still knows what was taken. */
const maxAgents = 10_000

/**
 * Limits agents' requests across all replicas. Each agent's count is in one partition, chosen by the hash of its name.
 */
export class Rates {
  readonly #lanes: Lanes
  readonly #scripts: Scripts
  readonly #keyNames: KeyNames
  readonly #tags: readonly string[]
  readonly #budgets = new LRUCache<string, RateBudget>({ max: maxAgents })

  constructor (lanes: Lanes, scripts: Scripts, keyNames: KeyNames, tags: readonly string[]) {
    this.#lanes = lanes
    this.#scripts = scripts
    this.#keyNames = keyNames
    this.#tags = tags
  }

  /**
   * The agent's budget under this limit (requests per window). Keys of one agent with different limits count together
   * in Redis.
   */
  of (tenant: string, agent: string, limit: number): RateBudget {
    const name = `${tenant}/${agent} ${limit}`
    let budget = this.#budgets.get(name)
    if (budget === undefined) {
      budget = this.#make(tenant, agent, limit)
      this.#budgets.set(name, budget)
    }
    return budget
  }

  /** The budget of all the tenant's agents together. */
  ofTenant (tenant: string, limit: number): RateBudget {
    return this.of(tenant, '*', limit)
  }

  #make (tenant: string, agent: string, limit: number): RateBudget {
    const tag = tagByDigest(digest(`rate ${tenant} ${agent}`), this.#tags)
    const keys = [this.#keyNames.rate(tag, tenant, agent)]
    const [limitText, windowText] = [String(limit), String(rateWindow)]
    return new RateBudget(limit, (needed, spare) =>
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

/** What lua/rate.lua gave: how many requests, how many are left in the window for others; times by Redis's clock. */
interface RateGrant { given: number, left: number, now: number, ends: number }

/** Takes as many as are needed now, and some more to hold. @throws {Unavailable} */
type Take = (needed: number, spare: number) => Promise<RateGrant>

/** Called with whether a request is allowed, or with an error if Redis can't say. */
type RateCallback = (error: Error | null, allowed: boolean) => void

/** What requests are spent from: a RateBudget, or two of them. */
export interface Budget {
  /** Requests per window. */
  readonly limit: number
  /** How many requests are left in this window, as far as this replica knows. */
  readonly remaining: number
  /** Milliseconds until the next window begins, at the latest. */
  resetsIn (now: number): number
  /** Spends one request. @returns whether it is allowed; undefined if Redis must be asked */
  spend (now: number): boolean | undefined
  /** Asks Redis for one request. */
  ask (answer: RateCallback): void
}

/**
 * How long an exhausted window counts as exhausted, in milliseconds. Then Redis is asked again: its clock may have
 * changed.
 */
const budgetLifetime = 1000

/**
 * The part of an agent's window that this replica holds, and spends without asking Redis. What it holds already counts
 * as spent in Redis, so all replicas together never allow more than the limit. They may allow less: what another
 * replica holds when the last request is gone. A replica holds at most a tenth of what is left, and no more than it has
 * spent in this window. So at least half of the limit is allowed however many replicas there are, and with one replica
 * all of it. Times are this process's monotonic milliseconds.
 */
export class RateBudget implements Budget {
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
  #asking = false
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

  /** Puts back one that was spent from this window and isn't used, as long as the window lasts. */
  giveBack (window: number, now: number): void {
    if (window !== this.#ends || now >= this.#spendUntil) return
    this.#held++
    this.#spent--
  }

  /** Asks Redis for one request. All requests that come meanwhile share the next call. */
  ask (answer: RateCallback): void {
    this.#waiting.push(answer)
    if (!this.#asking) this.#askRedis()
  }

  #askRedis (): void {
    this.#asking = true
    const waiting = this.#waiting
    const requestedAt = performance.now()
    if (requestedAt >= this.#spendUntil) this.#spent = 0
    const taking = this.#take(waiting.length, this.#spent + waiting.length)
    taking.then(taken => this.#got(taken, requestedAt), (error: Error) => {
      this.#asking = false
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
    this.#refuseUntil = left === 0 ? Math.min(this.#resets, here + budgetLifetime) : 0
    this.#held = given
    this.#left = left
    this.#asking = false
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
        return this.#askRedis()
      }
    }
  }
}

/**
 * An agent's budget and its tenant's: a request needs both. The agent's comes first, so one that is over its own limit
 * takes nothing from the others. What is said of how much is left is that of the tighter one.
 */
export class JointBudget implements Budget {
  readonly #agent: RateBudget
  readonly #tenant: RateBudget

  constructor (agent: RateBudget, tenant: RateBudget) {
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

  ask (answer: RateCallback): void {
    spendOrAsk(this.#agent, (error, allowed) => {
      if (error !== null || !allowed) return answer(error, false)
      const { window } = this.#agent
      spendOrAsk(this.#tenant, (error, allowed) => {
        if (!allowed) this.#agent.giveBack(window, performance.now())
        answer(error, allowed)
      })
    })
  }

  /** Where as much is left of both, the one that says so for longer. */
  get #tighter (): RateBudget {
    const [agent, tenant] = [this.#agent, this.#tenant]
    if (agent.remaining !== tenant.remaining) return agent.remaining < tenant.remaining ? agent : tenant
    const now = performance.now()
    return agent.resetsIn(now) > tenant.resetsIn(now) ? agent : tenant
  }
}

function spendOrAsk (budget: RateBudget, answer: RateCallback): void {
  const known = budget.spend(performance.now())
  if (known === undefined) budget.ask(answer)
  else answer(null, known)
}
