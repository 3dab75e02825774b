import { setTimeout as sleep } from 'node:timers/promises'
import { Problem, TooLarge, Unavailable } from '../../core/errors.ts'
import { inboxTag, otherInboxTag, randomToken } from '../../core/ids.ts'
import type { Caller } from '../../core/model.ts'
import { callBudget } from '../../redis/lanes.ts'
import type {
  Claim, InboxPlace, InboxPositions, Inboxes, TakeReply, TakenHandoff, Wanted
} from '../../store/inboxes.ts'
import type { Reads } from '../../store/reads.ts'
import type { Requester } from '../../store/requester.ts'
import { sizeOf } from '../lifecycle/answers.ts'
import type { InboxQueue, WatchedList } from './queue.ts'
import type { WaitOptions } from '../wait/waiter.ts'

/** The answer of a catch from an inbox: each item is like the answer of a catch by id. */
export interface InboxCatch { items: TakenHandoff[], replayed: boolean }

/** A look's result. `isMore`: there may be more. `isLeft`: another request with the same key takes for both. */
export interface Found extends InboxCatch { isMore: boolean, isLeft?: boolean }

/**
 * An inbox's two lists: its own, and that of the handoffs that a person approved, in its tenant's home partition; null
 * if one partition has both.
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
type Operation = Pick<Wanted, 'token' | 'lifetime' | 'request' | 'requester'>

/** How long an empty home list counts as empty, in milliseconds: a message about an approval may be lost. */
const homeLookLifetime = 1000
/**
 * How long one look goes on past entries that can't be caught any more, in milliseconds, at all inboxes of its request
 * together. Each call drops 32 of them.
 */
export const maxLookTime = 1000
/**
 * For how long a look may use its reading of the home list, in milliseconds, if a Cluster's inbox limits its caught
 * handoffs. A call is given up 2 s after it began, so the reading is used for at most 7 s (lua/lib/taking.lua keeps
 * places for more than twice as long).
 */
const readingLifetime = 5000
/** For how long an inbox counts as limited after a script said so, in milliseconds. */
const limitedFor = 10_000
/** How many bytes a catch of several handoffs takes at most (lua/lib/taking.lua). */
export const maxTaken = 4 * 1024 * 1024
/** How often a request looks while another request with the same key is taking for both, in milliseconds. */
export const sameKeyPause = 5

/** Takes from one inbox at a time: from both of its lists, as if they were one. */
export class InboxTaker {
  readonly #inboxes: Inboxes
  readonly #reads: Reads
  readonly #workTtl: number

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
    const lists = await Promise.all([
      this.#inboxes.positions(own, 1), home === null ? null : this.#positionsOf(home, queue.home, 1)
    ])
    return { ...nothing, isMore: lists.some(list => list !== null && (list.positions.length > 0 || list.isMore)) }
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
    const look = (
      place: InboxPlace, max: number, positions: string[] | null = null
    ) => this.#takeFrom(place, caller, { ...this.#operationOf(keyed), max, size: 0, positions, maxBytes })
    const [first, second] = await Promise.all([look(own, 0), home === null ? null : look(home, 0)])
    if (!first.replayed && second?.replayed !== true) return null
    // The first request may have broken off between the two lists: then this one takes its part of the home list.
    const rest = home !== null && second?.replayed !== true && first.elsewhere > 0
      ? await look(home, first.elsewhere, [])
      : second
    return { items: byPosition(first.items, rest?.items ?? []), replayed: true }
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

  /**
   * Merges the two lists by position, if the home list has something: reads its positions, takes from the own list,
   * then from the home list.
   */
  async #takeOnce (inbox: InboxHere, request: TakeRequest, mustReadHome = false): Promise<Found> {
    const { places: { own, home }, queue } = inbox
    const { caller, max, worker, keyed, until, maxBytes } = request
    const operation = this.#operationOf(keyed)
    const began = performance.now()
    const isHomeRead = home !== null &&
      (mustReadHome || queue.isLimited || queue.home.isWorthALook(homeLookLifetime))
    const atHome = isHomeRead ? await this.#positionsOf(home, queue.home, max, queue.isLimited) : unread
    const { positions } = atHome
    const isOld = () => performance.now() - began > readingLifetime
    if (maxBytes !== undefined && bytesOf(positions) > maxBytes) throw new TooLarge()
    // The client may have gone meanwhile: then nothing is taken.
    if (performance.now() > until || request.waiting?.requester.isGone() === true) return looksAgain
    const taken = await this.#takeFrom(own, caller, {
      ...operation,
      worker,
      max,
      size: 0,
      positions: positions.length === 0 ? null : positions,
      known: isHomeRead && !isOld() ? atHome : null,
      maxBytes
    })
    if (taken.outcome === 'limited') {
      queue.limit(limitedFor)
      return atHome.caught === null ? this.#takeOnce(inbox, request) : looksAgain
    }
    if (taken.outcome === 'closed') return nothing
    // Handoffs that the other request has taken from the home list are this request's answer too.
    if (taken.isLeft === true && home !== null) {
      const others = await this.#takeFrom(home, caller, { ...operation, max: 0, size: 0, positions: null })
      return { ...taken, ...others, isMore: true, isLeft: true }
    }
    // A request that doesn't wait hears of no approval later. So before it gets nothing, the home list is read.
    const isUnseen = request.waiting === null && taken.items.length === 0 && !taken.replayed && taken.elsewhere === 0 &&
      positions.length === 0 && atHome.isMore
    if (home === null || (taken.elsewhere === 0 && !isUnseen)) {
      return { ...taken, isMore: taken.isMore || positions.length > 0 }
    }
    // A note in the own list's partition must keep other requests with this key from taking, while this one looks at
    // the home list. That note needs the home list's positions.
    if (isUnseen && keyed !== null && !mustReadHome) return this.#takeOnce(inbox, request, true)
    const { isPlaced = false } = taken
    if (isPlaced && isOld()) return { ...taken, isMore: true }
    if (taken.items.length === 0 && performance.now() > until + callBudget) return looksAgain
    const rest = await this.#takeFrom(home, caller, {
      ...operation,
      worker,
      max: isUnseen ? max : taken.elsewhere,
      size: sizeOf(taken.items),
      positions: [],
      known: isPlaced ? 'placed' : null,
      // Once handoffs were taken from the own list, or places kept there, the answer may be large.
      maxBytes: taken.items.length === 0 && !isPlaced ? maxBytes : undefined
    })
    if (isPlaced) await this.#settle(own, operation.token, rest.items)
    const items = byPosition(taken.items, rest.items)
    const replayed = taken.replayed || (taken.items.length === 0 && rest.replayed)
    // Another request took the home list's handoffs first. Without the note about them this key can take from the own
    // list again.
    if (items.length === 0 && !replayed && keyed !== null && taken.elsewhere > 0) {
      await this.#inboxes.stay(own, keyed, taken.elsewhere)
    }
    return { items, replayed, isMore: taken.isMore || rest.isMore || positions.length > taken.elsewhere }
  }

  async #positionsOf (place: InboxPlace, list: WatchedList, max: number, counts = false): Promise<InboxPositions> {
    const isEmpty = list.begin()
    const found = await this.#inboxes.positions(place, max, counts)
    if (found.positions.length === 0 && !found.isMore) isEmpty()
    return found
  }

  /** The arguments that identify the operation, the same for both lists. */
  #operationOf (keyed: Claim | null): Operation {
    return {
      token: keyed?.token ?? randomToken(),
      lifetime: keyed && this.#workTtl,
      request: keyed?.request ?? '-',
      requester: keyed?.requester ?? '-',
    }
  }

  async #takeFrom (
    place: InboxPlace, { agent }: Caller, wanted: Omit<Wanted, 'agent'>
  ): Promise<Found & { elsewhere: number, outcome: TakeReply['outcome'], isPlaced?: boolean }> {
    const reply = await this.#inboxes.take(place, { ...wanted, agent })
    if (reply.outcome === 'reused') throw new Problem('idempotency_key_reused')
    if (!('items' in reply)) {
      const { outcome } = reply
      return { ...nothing, outcome, isMore: outcome !== 'closed', isLeft: outcome === 'left', elsewhere: 0 }
    }
    return { ...reply, replayed: wanted.request !== '-' && reply.outcome === 'replayed' }
  }

  /** Gives back the places for what was taken from the home list. If that fails, they end by themselves. */
  async #settle (own: InboxPlace, token: string, items: readonly TakenHandoff[]): Promise<void> {
    const at = Math.max(...items.map(({ record }) => record!.caught!.at))
    await this.#inboxes.settle(own, token, items.length === 0 ? null : at).catch(error => {
      if (!(error instanceof Unavailable)) throw error
    })
  }
}

/** A key may be held to inboxes. @throws {Problem} not_addressee */
export function refuseOthers ({ inboxes }: Caller, wanted: readonly string[]): void {
  if (inboxes !== null && !wanted.every(inbox => inboxes.has(inbox))) throw new Problem('not_addressee')
}

/** How many bytes of an answer the handoffs at these positions take. */
function bytesOf (positions: readonly string[]): number {
  return positions.reduce((sum, one) => sum + Number(one.slice(one.indexOf('/') + 1)), 0)
}

/** The positions of a list that wasn't read. */
const unread: InboxPositions = { positions: [], isMore: true, caught: null, readAt: 0 }
export const nothing: Found = { items: [], replayed: false, isMore: false }
const looksAgain: Found = { ...nothing, isMore: true }

export function placesOf (tenant: string, inbox: string): Places {
  const tag = inboxTag(tenant, inbox)
  const home = otherInboxTag(tag, tenant, inbox)
  if (home === null) return { own: { tenant, inbox, tag }, home: null }
  return { own: { tenant, inbox, tag, other: home }, home: { tenant, inbox, tag: home, other: tag } }
}

/** Merges the handoffs of both lists. If one list gave none, the other's positions may be unknown (all 0). */
function byPosition (own: readonly TakenHandoff[], home: readonly TakenHandoff[]): TakenHandoff[] {
  return [...own, ...home].sort((one, other) => one.position - other.position)
}
