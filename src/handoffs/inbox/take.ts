import { setTimeout as sleep } from 'node:timers/promises'
import { Problem, TooLarge } from '../../core/errors.ts'
import { homeTag, inboxTag, randomToken } from '../../core/ids.ts'
import type { Caller } from '../../core/model.ts'
import { Shared } from '../../core/shared.ts'
import type { CaughtElsewhere } from '../../store/inbox-room.ts'
import type { Claim, CountedAt, InboxPlace, Inboxes, TakenHandoff, TakeReply, Wanted } from '../../store/inboxes.ts'
import type { Reads } from '../../store/reads.ts'
import type { Requester } from '../../store/requester.ts'
import type { InboxQueue } from './queue.ts'
import type { WaitOptions } from '../wait/waiter.ts'

/** The answer of a catch from an inbox: each item is like the answer of a catch by id. */
export interface InboxCatch { items: TakenHandoff[], replayed: boolean }

/**
 * A look's result. `isMore`: there may be more. `isLeft`: another request with the same key takes for both. `isClosed`:
 * the inbox is paused, or as many are caught as may be.
 */
export interface Found extends InboxCatch { isMore: boolean, isLeft?: boolean, isClosed?: boolean }

/**
 * The partitions of an inbox: its own, and the tenant's home partition, where version 0.2.0 kept what a person had
 * approved; null if one partition is both. The version after this one may leave `home` out.
 */
export interface Places { own: InboxPlace, home: InboxPlace | null }

/** An inbox as a request sees it here. */
export interface InboxHere { places: Places, queue: InboxQueue }

/**
 * A request to take. Times are of `performance.now()`. `end`: until when it goes on past entries that can't be caught;
 * `until`: by when it must begin to take. `waiting`: null if it doesn't wait.
 */
interface TakeRequest {
  caller: Caller
  max: number
  /** What the worker calls itself. */
  worker: string | undefined
  requester: Requester
  waiting: WaitOptions | null
  keyed: Claim | null
  end: number
  until: number
  /**
   * How many bytes the payloads may have together: with more it throws TooLarge and takes nothing. Left out, large
   * handoffs are taken in a slot.
   */
  maxBytes?: number | undefined
}

/** The arguments that all calls of an operation share. */
type Operation = Pick<Wanted, 'token' | 'lifetime' | 'request'>
/** The arguments of a take, but for what is caught elsewhere. */
type Taking = Omit<Wanted, 'caughtElsewhere'>

/** How long an empty home list counts as empty, in milliseconds: a message about an approval may be lost. */
const homeLookLifetime = 5000
/** How long it is known that an inbox's other partition is empty, in milliseconds, and of how many inboxes. */
const besideKept = { keptFor: 1000, max: 1000 }
/** For how long a call takes by what it kept, in milliseconds. It lasts less than what is left (lua/inbox-room.lua). */
const keepsFor = 5000
/** How often a call counts anew before it takes from the home partition, where others take at the same time. */
const countsAtMost = 5
/**
 * How long one look goes on past entries that can't be caught any more, in milliseconds, at all inboxes of its request
 * together. Each call drops 32 of them.
 */
export const maxLookTime = 1000
/** How many bytes a catch of several handoffs takes at most (lua/lib/taking.lua). */
export const maxTaken = 4 * 1024 * 1024
/** How often a request looks while another request with the same key is taking for both, in milliseconds. */
export const sameKeyPause = 5

/** Takes from one inbox at a time: first what version 0.2.0 left in its home list, which is older. */
export class InboxTaker {
  readonly #inboxes: Inboxes
  readonly #reads: Reads
  readonly #workTtl: number
  readonly #beside = new Shared<CountedAt>(besideKept)

  /** @param workTtl milliseconds */
  constructor (inboxes: Inboxes, reads: Reads, workTtl: number) {
    this.#inboxes = inboxes
    this.#reads = reads
    this.#workTtl = workTtl
  }

  /** Takes handoffs. If the first entries can't be caught any more, it goes on behind them, until `end`. */
  async take (inbox: InboxHere, request: TakeRequest): Promise<Found> {
    let { end } = request
    // The wait for a slot doesn't count.
    const begin = () => { end = Math.max(end, performance.now() + maxLookTime) }
    for (;;) {
      const found = await this.#takeSized(inbox, request, begin)
      if (found.items.length > 0 || found.replayed || !found.isMore) return found
      if (performance.now() > end || request.waiting?.requester.isGone() === true) return found
      if (found.isLeft === true) await sleep(sameKeyPause)
    }
  }

  /** May there be something? Takes nothing. */
  async peek ({ places: { own, home }, queue }: InboxHere): Promise<Found> {
    const isHomeKnown = home === null || !queue.home.isWorthALook(homeLookLifetime)
    return { ...nothing, isMore: !isHomeKnown || (await this.#inboxes.count(own)).pending > 0 }
  }

  /** The handoffs that this key took before; null if it took none. @param maxBytes as in TakeRequest */
  before (
    places: Places, caller: Caller, requester: Requester, keyed: Claim, maxBytes?: number
  ): Promise<InboxCatch | null> {
    const look = (max?: number, now = caller) => {
      refuseOthers(now, [places.own.inbox])
      return this.#before(places, now, keyed, max)
    }
    return maxBytes === undefined ? this.#reads.read(places.own, requester, look, maxTaken) : look(maxBytes)
  }

  async #before ({ own, home }: Places, caller: Caller, keyed: Claim, maxBytes?: number): Promise<InboxCatch | null> {
    const wanted = { ...this.#operationOf(keyed), agent: caller.agent, max: 0, maxBytes }
    const look = async (place: InboxPlace) => takenOf(await this.#inboxes.take(place, wanted), wanted)
    const [first, second] = await Promise.all([look(own), home === null ? null : look(home)])
    if (!first.replayed && second?.replayed !== true) return null
    return { items: [...second?.items ?? [], ...first.items], replayed: true }
  }

  /** Takes large handoffs in a slot, after another look. @param begin called in the slot */
  #takeSized (inbox: InboxHere, request: TakeRequest, begin: () => void): Promise<Found> {
    const { requester, caller, waiting, maxBytes } = request
    if (maxBytes !== undefined) return this.#takeOnce(inbox, request)
    const { own } = inbox.places
    return this.#reads.read(own, waiting?.requester ?? requester, (max = Infinity, now = caller) => {
      refuseOthers(now, [own.inbox])
      if (max === Infinity) begin()
      return this.#takeOnce(inbox, { ...request, caller: now, maxBytes: max })
    }, request.max > 1 ? maxTaken : 0)
  }

  async #takeOnce ({ places: { own, home }, queue }: InboxHere, request: TakeRequest): Promise<Found> {
    const { caller, max, worker, keyed, until, maxBytes } = request
    const wanted = { ...this.#operationOf(keyed), agent: caller.agent, worker, max, maxBytes }
    if (home !== null && queue.home.isWorthALook(homeLookLifetime)) {
      const found = await queue.home.look(() => this.#takeFormer(own, home, wanted))
      if (found.items.length > 0 || found.replayed) return { ...found, isMore: true }
      // The client may have gone meanwhile: then nothing is taken.
      if (performance.now() > until || request.waiting?.requester.isGone() === true) return looksAgain
    }
    return await this.#takeOwn({ own, home }, wanted)
  }

  /** The arguments that identify the operation, the same for both lists. */
  #operationOf (keyed: Claim | null): Operation {
    return {
      token: keyed?.token ?? randomToken(),
      lifetime: keyed && this.#workTtl,
      request: keyed?.request ?? '-',
    }
  }

  async #takeOwn ({ own, home }: Places, wanted: Taking): Promise<Found> {
    const take = (caughtElsewhere?: CaughtElsewhere) => this.#inboxes.take(own, { ...wanted, caughtElsewhere })
    const known = await this.#knownBeside(own)
    let reply = await take(known)
    if (reply.outcome === 'limited') reply = await take(await this.#countBeside(own, known !== undefined))
    if (reply.outcome !== 'elsewhere' && reply.outcome !== 'unsettled') return takenOf(reply, wanted)
    const found = takenOf(await this.#inboxes.take(home!, { ...wanted, max: 0 }), wanted)
    if (found.replayed || reply.outcome !== 'unsettled') return found
    // Its calls are over, and by what the home partition knows they took nothing.
    await this.#inboxes.room.give(own, reply.taker, this.#settled([]), wanted)
    return looksAgain
  }

  /** What is in the home partition. */
  async #takeFormer (own: InboxPlace, home: InboxPlace, wanted: Taking): Promise<Found> {
    const keyed = wanted.request === '-' ? null : wanted
    // Without a key, and without max_caught in a Cluster, it needn't tell the own partition.
    const reply = keyed === null ? await this.#inboxes.take(home, wanted) : null
    if (reply !== null && reply.outcome !== 'limited') return takenOf(reply, wanted)
    const call = randomToken()
    const begun = performance.now()
    const most = await this.#keepRoom(own, home, call, wanted)
    if (most === 'reused') throw new Problem('idempotency_key_reused')
    if (most === 'empty') return nothing
    // What this key took, or that another request takes by it, the own partition says.
    if (typeof most === 'string') return looksAgain
    const give = (items: readonly TakenHandoff[]) =>
      this.#inboxes.room.give(own, call, this.#settled(items), keyed).catch(() => {})
    // After a pause, others may count on what it kept.
    if (performance.now() - begun > keepsFor) {
      await give([])
      return looksAgain
    }
    try {
      const found = takenOf(await this.#inboxes.take(home, { ...wanted, max: most, caughtElsewhere: 'room' }), wanted)
      await give(found.items)
      return found
    } catch (error) {
      // After any other error something may be caught: then the room is kept until it ends.
      if (error instanceof TooLarge) await give([])
      throw error
    }
  }

  /** How taking these went. */
  #settled (items: readonly TakenHandoff[]) {
    const works = items.map(({ record }) => record!.caught!)
    return {
      taken: items.length,
      at: this.#inboxes.isOneRedis ? null : works[0]?.at ?? 0,
      keptFor: Math.max(this.#workTtl, ...works.map(({ at, deadline }) => deadline - at))
    }
  }

  /** @returns for how many; or why not: `empty`, there is nothing to take */
  async #keepRoom (own: InboxPlace, home: InboxPlace, call: string, { token, request, max }: Taking) {
    for (let tries = 1; ; tries++) {
      const counted = await this.#inboxes.count(home)
      if (counted.pending === 0) return 'empty'
      const keyed = request === '-' ? null : { token, request }
      const elsewhere = this.#inboxes.isOneRedis ? null : counted
      const most = await this.#inboxes.room.keep(own, call, Math.min(max, counted.pending), elsewhere, keyed)
      // Others take there, within a millisecond of the count.
      if (most !== 'limited' || tries === countsAtMost) return most
    }
  }

  /** In a Cluster: what is caught in an inbox's other partition, where that is empty. So a limit costs few calls. */
  async #knownBeside (place: InboxPlace): Promise<CaughtElsewhere | undefined> {
    const known = await this.#beside.known(besideOf(place))
    return known !== undefined && isBare(known) ? known : undefined
  }

  /** @param isOld the last count is too old */
  async #countBeside (place: InboxPlace, isOld: boolean): Promise<CaughtElsewhere> {
    const { tenant, inbox, other } = place
    const count = () => this.#inboxes.count({ tenant, inbox, tag: other! })
    if (isOld) this.#beside.forget(besideOf(place))
    const counted = await this.#beside.get(besideOf(place), count)
    return isBare(counted) ? counted : await count()
  }
}

/** @throws {Problem} idempotency_key_reused */
function takenOf (reply: TakeReply, { request }: Taking): Found {
  if (reply.outcome === 'reused') throw new Problem('idempotency_key_reused')
  if (reply.outcome === 'closed') return { ...nothing, isClosed: true }
  if (reply.outcome === 'limited') return looksAgain
  // Of `before`, which looks there too.
  if (reply.outcome === 'elsewhere' || reply.outcome === 'unsettled') return nothing
  if (!('items' in reply)) return { ...nothing, isMore: true, isLeft: true }
  return { ...reply, replayed: request !== '-' && reply.outcome === 'replayed' }
}

/**
 * Is there nothing that could be caught by its id, or be tried again, while a count is kept? What replicas of 0.2.0
 * pass there meanwhile, and is caught by its id at once, isn't seen.
 */
function isBare ({ pending, waiting, delayed, blocked, caught, failed }: CountedAt): boolean {
  return pending + waiting + delayed + blocked + caught + failed === 0
}

/** The name of what is read of an inbox's other partition. */
function besideOf ({ tenant, inbox, other }: InboxPlace): string {
  return `${tenant} ${inbox} ${other}`
}

/** A key may be held to inboxes. @throws {Problem} not_addressee */
export function refuseOthers ({ inboxes }: Caller, wanted: readonly string[]): void {
  if (inboxes !== null && !wanted.every(inbox => inboxes.has(inbox))) throw new Problem('not_addressee')
}

export const nothing: Found = { items: [], replayed: false, isMore: false }
const looksAgain: Found = { ...nothing, isMore: true }

export function placesOf (tenant: string, inbox: string): Places {
  const [tag, home] = [inboxTag(tenant, inbox), homeTag(tenant)]
  if (home === tag) return { own: { tenant, inbox, tag }, home: null }
  return { own: { tenant, inbox, tag, other: home }, home: { tenant, inbox, tag: home, other: tag } }
}
