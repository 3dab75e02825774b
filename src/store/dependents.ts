import { setTimeout as sleep } from 'node:timers/promises'
import pLimit from 'p-limit'
import { tagOf } from '../core/ids.ts'
import { Unavailable } from '../core/errors.ts'
import type { Status } from '../core/model.ts'
import type { HandoffPlace } from './handoffs.ts'
import type { Blocked } from './swept.ts'
import { memberOf } from './key-names.ts'
import type { KeyNames } from './key-names.ts'
import type { Lanes } from '../redis/lanes.ts'
import type { Script, Scripts } from '../redis/scripts.ts'
import { tagged } from './replies.ts'
import type { Replied } from './replies.ts'
import { TenantTurns } from './tenant-turns.ts'

/**
 * How something stands that a handoff comes after: open, gone, or how its last attempt ended; the id that was named,
 * and that of the last attempt. `isNoted`: it is open, and has the note of the one that asks.
 */
export interface Stand { named: string, last: string, standing: 'open' | 'gone' | Status, isNoted?: boolean }

/** Bounds how many calls of one request are under way at once. */
export type Fan = <T>(call: () => Promise<T>) => Promise<T>

/**
 * How many steps are under way at once, each with so many calls at once: 48 calls in all at most, so other calls to the
 * same Redis come between them. `ended`: steps of ended handoffs; `fresh` and `blocked`: of blocked ones, at the first
 * look and later. `capacity`: how many handoffs, an id each, may wait for their step.
 */
const steps = {
  ended: { atOnce: 4, capacity: 10_000 },
  fresh: { atOnce: 4, capacity: 10_000 },
  blocked: { atOnce: 2, capacity: 10_000 }
}
const callsAtOnce = { ended: 6, blocked: 4 }
/**
 * How long a step with a blocked one rests for each id that it asked about, in milliseconds. This net asks again and
 * again while nothing happens, so two steps at once take 670 ids a second at the most: a hundredth of Redis's time.
 */
const rest = 3
/** How many calls of one request are under way at once, and how long one may wait for that, in milliseconds. */
const fan = { atOnce: 16, patience: 2000 }

/** `rest`: the handoffs that the call cancelled and that have dependents left, or notes at others. */
interface Released { outcome: Replied<'release'>, rest: string[] }

/** An ended handoff's dependents, and the ids that it still waited for. */
interface Left { standing: 'gone' | Status, waitedFor: string[], dependents: string[] }

/** Handoffs that come after others (lua/lib/after.lua). */
export class Dependents {
  readonly #lanes: Lanes
  readonly #scripts: Scripts
  readonly #keyNames: KeyNames
  readonly #isOneRedis: boolean
  readonly #ended: TenantTurns
  readonly #fresh: TenantTurns
  readonly #blocked: TenantTurns

  constructor (
    lanes: Lanes, scripts: Scripts, keyNames: KeyNames, isOneRedis: boolean, onFault: (error: unknown) => void
  ) {
    this.#lanes = lanes
    this.#scripts = scripts
    this.#keyNames = keyNames
    this.#isOneRedis = isOneRedis
    this.#ended = new TenantTurns(steps.ended, (tenant, id) => this.#settle(tenant, id), onFault)
    this.#fresh = new TenantTurns(steps.fresh, (tenant, id) => this.#check(tenant, id, true), onFault)
    this.#blocked = new TenantTurns(steps.blocked, (tenant, id) => this.#check(tenant, id, false), onFault)
  }

  /** How these stand, without changing anything. @param dependent whose notes are looked for; left out, nobody's */
  look (tenant: string, ids: readonly string[], run: Fan = fanOf(), dependent?: string): Promise<Stand[]> {
    return this.#stands(
      this.#scripts.stands, tenant, ids, members => dependent === undefined ? [members] : [members, dependent], run
    )
  }

  /**
   * Notes at each of these handoffs that are open, that `dependent` comes after it, and says how all stand then. Once
   * it is noted, whatever ends such a handoff releases the dependent.
   */
  note (tenant: string, dependent: string, ids: readonly string[], run: Fan = fanOf()): Promise<Stand[]> {
    return this.#stands(this.#scripts.after, tenant, ids, members => [dependent, members], run)
  }

  /**
   * Notes a new handoff at those that it comes after. If one of them ended between the look and the note, its end found
   * nothing to release, so this releases the new handoff.
   */
  async wait (tenant: string, id: string, open: readonly string[], run: Fan = fanOf()): Promise<void> {
    await this.#releaseFrom(tenant, id, await this.note(tenant, id, open, run))
  }

  async #stands (
    script: Script, tenant: string, ids: readonly string[], texts: (members: string) => string[], run: Fan
  ): Promise<Stand[]> {
    const found = new Map<string, Stand>()
    await Promise.all(this.#together(ids).map(named => run(async () => {
      for (const one of await this.#call(script, tenant, named, texts, standsIn)) found.set(one.named, one)
    })))
    return ids.map(id => found.get(id)!)
  }

  /** In a Cluster, one call has keys of one partition. */
  #together (ids: readonly string[]): string[][] {
    return this.#isOneRedis && ids.length > 0 ? [[...ids]] : byPartition(ids)
  }

  #call<T> (
    script: Script, tenant: string, named: readonly string[], texts: (members: string) => string[],
    decode: (parts: unknown[], named: readonly string[]) => T
  ): Promise<T> {
    const members = named.map(id => memberOf(tenant, id))
    return this.#lanes.call({
      script,
      tag: tagOf(named[0]!),
      keys: named.map((id, at) => this.#keyNames.handoff(tagOf(id), members[at]!)),
      texts: texts(members.join(' ')),
      decode: reply => decode(tagged(reply).slice(1), named)
    })
  }

  /** Releases a blocked handoff from something that has ended. The second time it changes nothing. */
  release (tenant: string, id: string, { named, last, standing }: Stand): Promise<Released> {
    const tag = tagOf(id)
    const member = memberOf(tenant, id)
    return this.#lanes.call({
      script: this.#scripts.release,
      tag,
      keys: [this.#keyNames.handoff(tag, member), this.#keyNames.due(tag, tenant)],
      texts: [member, named, last, standing],
      decode: reply => {
        const [outcome, ...rest] = tagged<Released['outcome']>(reply)
        return { outcome, rest: rest.map(String) }
      }
    })
  }

  /** Some dependents that still wait for a handoff. */
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
   * Takes the sweep's finds, without a wait: the sweep finds again what fails, or exceeds the capacity.
   * @param ended handoffs that have ended, and have dependents
   */
  swept (ended: ReadonlyArray<{ tenant: string, id: string }>, blocked: readonly Blocked[]): void {
    for (const { tenant, id } of ended) this.#ended.add(tenant, id)
    for (const { tenant, id, isFresh } of blocked) {
      if (isFresh) this.#fresh.add(tenant, id)
      else this.#blocked.add(tenant, id)
    }
  }

  /** Checks soon the handoffs that a blocked one waits for: an end may have been missed, or a note. */
  check ({ tenant, id }: { tenant: string, id: string }): void {
    this.#fresh.add(tenant, id)
  }

  /** Waits until all that the sweep found has been seen to. */
  async settled (): Promise<void> {
    await Promise.all([this.#fresh.settled(), this.#blocked.settled()])
    await this.#ended.settled()
  }

  /** Ends the steps that are under way, and begins nothing more: another replica's sweep finds it. */
  async stop (): Promise<void> {
    for (const turns of [this.#ended, this.#fresh, this.#blocked]) turns.stop()
    await this.settled()
  }

  /**
   * One step: releases up to a hundred dependents of an ended handoff, and removes its notes at the handoffs that it
   * waited for itself. A dependent that is cancelled gets a step of its own.
   * @returns whether it has more dependents
   */
  async #settle (tenant: string, id: string): Promise<boolean> {
    const place = { tenant, id, tag: tagOf(id) }
    const left = await this.#dependents(place, [], false)
    if (left === null || left.dependents.length + left.waitedFor.length === 0) return false
    const run = untilOneFails(callsAtOnce.ended)
    const released: string[] = []
    // The calls to a master that is away would only be waited for.
    const there = left.waitedFor.filter(named => this.#lanes.reaches(tagOf(named)))
    const forgotten = this.#together(there).map(named => run(() => this.#forget(tenant, id, named)))
    const outcomes = await Promise.allSettled([...forgotten, ...left.dependents.map(dependent => run(async () => {
      const [next, named] = dependent.split('/') as [string, string]
      if (!this.#lanes.reaches(tagOf(next))) return
      const { rest } = await this.release(tenant, next, { named, last: id, standing: left.standing })
      for (const one of rest) this.#ended.add(tenant, one)
      released.push(dependent)
    }))])
    const areForgotten = there.length === left.waitedFor.length &&
      outcomes.slice(0, forgotten.length).every(({ status }) => status === 'fulfilled')
    const next = await this.#dependents(place, released, areForgotten)
    const failed = outcomes.find(outcome => outcome.status === 'rejected')
    if (failed !== undefined) throw failed.reason
    return released.length > 0 && next !== null && next.dependents.length > 0
  }

  /**
   * @param released dependents that needn't be named again
   * @param areForgotten whether no notes are left at the handoffs that it waited for
   * @returns null if it hasn't ended
   */
  #dependents (
    { tenant, id, tag }: HandoffPlace, released: readonly string[], areForgotten: boolean
  ): Promise<Left | null> {
    const member = memberOf(tenant, id)
    return this.#lanes.call({
      script: this.#scripts.dependents,
      tag,
      keys: [
        this.#keyNames.handoff(tag, member), this.#keyNames.dependents(tag, member), this.#keyNames.due(tag, tenant)
      ],
      texts: [member, released.join(' '), areForgotten ? '1' : '0'],
      decode: reply => {
        const [outcome, standing, waitedFor, ...dependents] = tagged(reply)
        return outcome === 'open'
          ? null
          : { standing: String(standing) as Status, waitedFor: wordsIn(waitedFor), dependents: dependents.map(String) }
      }
    })
  }

  #forget (tenant: string, id: string, named: readonly string[]): Promise<void> {
    return this.#call(this.#scripts.forget, tenant, named, members => [id, members], () => {})
  }

  /**
   * One step of the net: checks the handoffs that a blocked one waits for. Soon after the pass it writes the blocked
   * one's notes there. Later it only reads, and writes only those that are missing.
   */
  async #check (tenant: string, id: string, isFresh: boolean): Promise<boolean> {
    const all = await this.#waitsFor(tenant, id)
    if (all === null) return await this.#settle(tenant, id)
    // The calls to a master that is away would only be waited for.
    const open = all.filter(named => this.#lanes.reaches(tagOf(named)))
    const run = untilOneFails(callsAtOnce.blocked)
    if (isFresh) {
      await this.wait(tenant, id, open, run)
      return false
    }
    const stands = await this.look(tenant, open, run, id)
    if (await this.#releaseFrom(tenant, id, stands)) return false
    const missing = stands.filter(({ standing, isNoted }) => standing === 'open' && isNoted !== true)
    await this.wait(tenant, id, missing.map(({ named }) => named), run)
    await sleep(rest * open.length)
    return false
  }

  /** @returns whether it waits for nothing any more */
  async #releaseFrom (tenant: string, id: string, stands: readonly Stand[]): Promise<boolean> {
    for (const stand of stands) {
      if (stand.standing === 'open') continue
      const { outcome, rest } = await this.release(tenant, id, stand)
      for (const one of rest) this.#ended.add(tenant, one)
      if (outcome === 'cancelled' || outcome === 'released') return true
    }
    return false
  }

  /** The ids that a handoff waits for; null if it isn't blocked. */
  #waitsFor (tenant: string, id: string): Promise<string[] | null> {
    return this.#lanes.call({
      script: this.#scripts.status,
      tag: tagOf(id),
      keys: [this.#keyNames.handoff(tagOf(id), memberOf(tenant, id))],
      texts: ['0', '0'],
      decode: reply => {
        const parts = tagged(reply)
        const isBlocked = /^[35]:/.test(String(parts[2]))
        return isBlocked ? wordsIn(parts[9]).filter(word => !word.includes('/')) : null
      }
    })
  }
}

/** A request's calls, so many at once. A call that has waited for long is given up: the client waits for all. */
export function fanOf (): Fan {
  const limit = pLimit(fan.atOnce)
  return call => {
    const sent = performance.now()
    return limit(() => {
      if (performance.now() - sent > fan.patience) throw new Unavailable('Redis did not answer in time')
      return call()
    })
  }
}

/** So many at once, until one fails: then those that have not begun fail too. */
function untilOneFails (atOnce: number): Fan {
  const limit = pLimit(atOnce)
  let failure: unknown
  return call => limit(async () => {
    if (failure !== undefined) throw failure
    try {
      return await call()
    } catch (error) {
      failure = error
      throw error
    }
  })
}

/** How each of `named` stands, from a reply's parts. */
function standsIn (parts: unknown[], named: readonly string[]): Stand[] {
  return named.map((id, at) => {
    const standing = String(parts[2 * at])
    const isNoted = standing === 'noted'
    return {
      named: id, standing: (isNoted ? 'open' : standing) as Stand['standing'], last: String(parts[2 * at + 1]), isNoted
    }
  })
}

function wordsIn (text: unknown): string[] {
  return String(text ?? '').split(' ').filter(word => word !== '')
}

function byPartition (ids: readonly string[]): string[][] {
  const groups = new Map<string, string[]>()
  for (const id of ids) {
    const group = groups.get(tagOf(id))
    if (group === undefined) groups.set(tagOf(id), [id])
    else group.push(id)
  }
  return [...groups.values()]
}
