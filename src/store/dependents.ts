import { tagOf } from '../core/ids.ts'
import { Unavailable } from '../core/errors.ts'
import type { Status } from '../core/model.ts'
import type { Blocked, HandoffPlace } from './handoffs.ts'
import { memberOf } from './key-names.ts'
import type { KeyNames } from './key-names.ts'
import type { Lanes } from '../redis/lanes.ts'
import type { Scripts } from '../redis/scripts.ts'
import { tagged } from './replies.ts'

/**
 * How something stands that a handoff comes after: open, gone, or how its last attempt ended; the id that was named,
 * and that of the last attempt.
 */
export interface Stand { named: string, last: string, standing: 'open' | 'gone' | Status }

/** How many that have ended, and how many that are blocked, are seen to at once. */
const atOnce = { ended: 64, blocked: 16 }

/** `rest`: what was cancelled by the call, and has dependents left. */
interface Released { outcome: 'released' | 'blocked' | 'unchanged' | 'cancelled', rest: string[] }

/** Handoffs that come after others (lua/lib/after.lua). */
export class Dependents {
  readonly #lanes: Lanes
  readonly #scripts: Scripts
  readonly #keyNames: KeyNames
  readonly #isOneRedis: boolean
  readonly #ended: Turns
  readonly #blocked: Turns
  #isStopped = false

  constructor (
    lanes: Lanes, scripts: Scripts, keyNames: KeyNames, isOneRedis: boolean, onFault: (error: unknown) => void
  ) {
    this.#lanes = lanes
    this.#scripts = scripts
    this.#keyNames = keyNames
    this.#isOneRedis = isOneRedis
    this.#ended = new Turns(atOnce.ended, onFault)
    this.#blocked = new Turns(atOnce.blocked, onFault)
  }

  /**
   * Notes at each of these handoffs that `dependent` comes after it, before that one is passed, so that no end is
   * missed. What is noted for one that isn't passed then does nothing.
   */
  async note (tenant: string, dependent: string, ids: readonly string[]): Promise<Stand[]> {
    const calls = this.#isOneRedis ? [ids] : byPartition(ids)
    const found = new Map<string, Stand>()
    await Promise.all(calls.map(async named => {
      for (const one of await this.#note(tenant, dependent, named)) found.set(one.named, one)
    }))
    return ids.map(id => found.get(id)!)
  }

  #note (tenant: string, dependent: string, named: readonly string[]): Promise<Stand[]> {
    const members = named.map(id => memberOf(tenant, id))
    return this.#lanes.call({
      script: this.#scripts.after,
      tag: tagOf(named[0]!),
      keys: named.map((id, at) => this.#keyNames.handoff(tagOf(id), members[at]!)),
      texts: [dependent, members.join(' ')],
      decode: reply => {
        const [, ...parts] = tagged(reply)
        return named.map((id, at) => ({
          named: id, standing: String(parts[2 * at]) as Stand['standing'], last: String(parts[2 * at + 1])
        }))
      }
    })
  }

  /** Tells a blocked handoff how something ended that it comes after. Telling it twice changes nothing. */
  release (tenant: string, id: string, { named, last, standing }: Stand): Promise<Released> {
    const tag = tagOf(id)
    const member = memberOf(tenant, id)
    return this.#lanes.call({
      script: this.#scripts.release,
      tag,
      keys: [this.#keyNames.handoff(tag, member), this.#keyNames.due(tag)],
      texts: [member, named, last, standing],
      decode: reply => {
        const [outcome, ...rest] = tagged(reply)
        return { outcome: outcome as Released['outcome'], rest: rest.map(String) }
      }
    })
  }

  /** Some of those that come after a handoff and wait for it still. */
  async of ({ tenant, id, tag }: HandoffPlace, limit: number): Promise<string[]> {
    const found = await this.#lanes.call({
      script: this.#scripts.around,
      tag,
      keys: [this.#keyNames.dependents(tag, memberOf(tenant, id))],
      texts: [String(limit)],
      decode: reply => tagged(reply).slice(1).map(dependent => String(dependent).split('/')[0]!)
    })
    return [...new Set(found)]
  }

  /**
   * Sees to what the sweep found. Not waited for: where it fails, the sweep finds it again.
   * @param ended those that have ended, and have dependents
   */
  swept (ended: ReadonlyArray<{ tenant: string, id: string }>, blocked: readonly Blocked[]): void {
    for (const { tenant, id } of ended) this.#ended.add(memberOf(tenant, id), () => this.#settle(tenant, [id]))
    for (const one of blocked) this.ask(one)
  }

  /** Asks soon how those stand that a blocked handoff waits for: an end may have been missed, or a note. */
  ask (one: Blocked): void {
    this.#blocked.add(memberOf(one.tenant, one.id), () => this.#ask(one))
  }

  /** Waits until all that the sweep found has been seen to. */
  async settled (): Promise<void> {
    await Promise.all([this.#ended.settled(), this.#blocked.settled()])
  }

  /** Ends the steps that are under way, and begins nothing more: another replica's sweep finds it. */
  async stop (): Promise<void> {
    this.#isStopped = true
    this.#ended.stop()
    this.#blocked.stop()
    await this.settled()
  }

  /**
   * Releases all that comes after handoffs that have ended, a hundred at a time, and what comes after those that are
   * cancelled by it.
   */
  async #settle (tenant: string, ids: readonly string[]): Promise<void> {
    const queue = [...ids]
    for (const one of queue) {
      for (let released: string[] = []; !this.#isStopped;) {
        const reply = await this.#dependents({ tenant, id: one, tag: tagOf(one) }, released)
        if (reply === null || reply.dependents.length === 0) break
        await Promise.all(reply.dependents.map(async dependent => {
          const [next, named] = dependent.split('/') as [string, string]
          const { rest } = await this.release(tenant, next, { named, last: one, standing: reply.standing })
          queue.push(...rest)
        }))
        released = reply.dependents
      }
    }
  }

  /** @param released those that needn't be named again @returns null if it hasn't ended */
  #dependents (
    { tenant, id, tag }: HandoffPlace, released: readonly string[]
  ): Promise<{ standing: 'gone' | Status, dependents: string[] } | null> {
    const member = memberOf(tenant, id)
    return this.#lanes.call({
      script: this.#scripts.dependents,
      tag,
      keys: [
        this.#keyNames.handoff(tag, member), this.#keyNames.dependents(tag, member), this.#keyNames.due(tag)
      ],
      texts: [member, released.join(' ')],
      decode: reply => {
        const [outcome, standing, ...dependents] = tagged(reply)
        return outcome === 'open'
          ? null
          : { standing: String(standing) as Status, dependents: dependents.map(String) }
      }
    })
  }

  async #ask ({ tenant, id, open }: Blocked): Promise<void> {
    for (const stand of await this.note(tenant, id, open)) {
      if (stand.standing === 'open') continue
      const { outcome, rest } = await this.release(tenant, id, stand)
      await this.#settle(tenant, rest)
      if (outcome === 'cancelled' || outcome === 'released') return
    }
  }
}

/** Runs so many at once, each member's once, and the others after them. */
class Turns {
  readonly #limit: number
  readonly #onFault: (error: unknown) => void
  readonly #waiting = new Map<string, () => Promise<void>>()
  readonly #underWay = new Map<string, Promise<void>>()

  constructor (limit: number, onFault: (error: unknown) => void) {
    this.#limit = limit
    this.#onFault = onFault
  }

  add (member: string, run: () => Promise<void>): void {
    if (!this.#underWay.has(member)) this.#waiting.set(member, run)
    this.#start()
  }

  stop (): void {
    this.#waiting.clear()
  }

  async settled (): Promise<void> {
    while (this.#underWay.size > 0) await Promise.all(this.#underWay.values())
  }

  #start (): void {
    for (const [member, run] of this.#waiting) {
      if (this.#underWay.size >= this.#limit) return
      this.#waiting.delete(member)
      this.#underWay.set(member, run().catch(error => {
        if (!(error instanceof Unavailable)) this.#onFault(error)
      }).finally(() => {
        this.#underWay.delete(member)
        this.#start()
      }))
    }
  }
}

function byPartition (ids: readonly string[]): string[][] {
  const groups = new Map<string, string[]>()
  for (const id of ids) groups.set(tagOf(id), [...groups.get(tagOf(id)) ?? [], id])
  return [...groups.values()]
}
