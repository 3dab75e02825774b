import { setTimeout as sleep } from 'node:timers/promises'
import { Problem, TooLarge, Unavailable } from '../core/errors.ts'
import { inboxTag, otherInboxTag, randomToken } from '../core/ids.ts'
import type { Caller } from '../core/model.ts'
import { callBudget } from '../redis/lanes.ts'
import type { Claim, InboxPlace, Inboxes, InboxTurns, TakeReply, TakenHandoff, Wanted } from '../store/inboxes.ts'
import type { Reads } from '../store/reads.ts'
import { sizeOf } from './answers.ts'
import type { InboxQueue, WatchedList } from './inbox-queue.ts'
import type { Asker, WaitOptions } from './waiter.ts'

/** The answer of a catch from an inbox: each item is like the answer of a catch by id. */
export interface InboxCatch { items: TakenHandoff[], replayed: boolean }

/**
 * What a look found. `isMore`: there may be more after it. `isLeft`: another request with the same Idempotency-Key is
 * taking for both.
 */
export interface Found extends InboxCatch { isMore: boolean, isLeft?: boolean }

/**
 * An inbox's two lists: its own, and the one in its tenant's home partition, of what a person approved; null if one
 * partition has both.
 */
export interface Places { own: InboxPlace, home: InboxPlace | null }

/** An inbox as a request sees it here. */
export interface InboxHere { places: Places, queue: InboxQueue }

/**
 * What a request wants of it. Times are of `performance.now()`. `end`: until when it goes on past what can't be caught;
 * `until`: by when it must begin to take. `waiting`: null if it doesn't wait.
 */
interface TakeRequest {
  caller: Caller
  max: number
  /** What the worker calls itself. */
  worker: string | undefined
  asker: Asker
  waiting: WaitOptions | null
  keyed: Claim | null
  end: number
  until: number
  /**
   * How many bytes the payloads of what it takes may have together, Infinity for any: otherwise it throws TooLarge and
   * takes nothing. Left out, it takes what is large in a slot.
   */
  maxBytes?: number | undefined
}

/** What all calls of an operation have. */
type Operation = Pick<Wanted, 'token' | 'lifetime' | 'request' | 'asker'>

/**
 * How long an empty home list counts as empty, in milliseconds. A message about an approval may have
 * been lost meanwhile.
 */
const homeLookLifetime = 1000
/**
 * How long one look goes on past entries that can't be caught any more, in milliseconds, at all inboxes of its request
 * together. Each call drops 32 of them.
 */
export const maxLookTime = 1000
/**
 * For how long what a look read of the home list may be used to take by it, in milliseconds, where the number of caught
 * handoffs is limited in a Cluster. A call is given up 2 s after it began, so nothing is taken by it later than 7 s
 * after (lua/lib/taking.lua keeps places for longer than two of these).
 */
const readingLifetime = 5000
/** For how long a limited inbox's home list is read at once, in milliseconds. */
const limitedFor = 10_000
/** How many bytes one catch takes, if it takes several (lua/lib/taking.lua). */
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

  /** Takes what there is. If the first entries can't be caught any more, it looks after them, until `end`. */
  async take (inbox: InboxHere, request: TakeRequest): Promise<Found> {
    let { end } = request
    // What it waited for a turn doesn't count.
    const begin = () => { end = Math.max(end, performance.now() + maxLookTime) }
    for (;;) {
      const found = await this.#takeSized(inbox, request, begin)
      if (found.items.length > 0 || found.replayed || !found.isMore) return found
      if (performance.now() > end || request.waiting?.asker.isGone() === true) return found
      if (found.isLeft === true) await sleep(sameKeyPause)
    }
  }

  /** Looks whether there may be something, and takes nothing. */
  async peek ({ places: { own, home }, queue }: InboxHere): Promise<Found> {
    const lists = await Promise.all([
      this.#inboxes.turns(own, 1), home === null ? null : this.#turnsOf(home, queue.home, 1)
    ])
    return { ...nothing, isMore: lists.some(list => list !== null && (list.turns.length > 0 || list.isMore)) }
  }

  /** What this key took before; null if it took nothing. @param maxBytes as in TakeRequest */
  before (
    places: Places, caller: Caller, asker: Asker, keyed: Claim, maxBytes?: number
  ): Promise<InboxCatch | null> {
    const look = (max?: number, now = caller) => {
      refuseOthers(now, [places.own.inbox])
      return this.#before(places, now, keyed, max)
    }
    return maxBytes === undefined ? this.#reads.read(places.own, asker, look, maxTaken) : look(maxBytes)
  }

  async #before ({ own, home }: Places, caller: Caller, keyed: Claim, maxBytes?: number): Promise<InboxCatch | null> {
    const look = (
      place: InboxPlace, max: number, turns: string[] | null = null
    ) => this.#takeFrom(place, caller, { ...this.#operationOf(keyed), max, size: 0, turns, maxBytes })
    const [first, second] = await Promise.all([look(own, 0), home === null ? null : look(home, 0)])
    if (!first.replayed && second?.replayed !== true) return null
    // The first request may have broken off between the two lists. Then its part of the home list is taken now.
    const rest = home !== null && second?.replayed !== true && first.elsewhere > 0
      ? await look(home, first.elsewhere, [])
      : second
    return { items: inTurn(first.items, rest?.items ?? []), replayed: true }
  }

  /** Takes what is large in a slot, where it reads all again. @param begin called there */
  #takeSized (inbox: InboxHere, request: TakeRequest, begin: () => void): Promise<Found> {
    const { asker, caller, waiting, maxBytes } = request
    if (maxBytes !== undefined) return this.#takeOnce(inbox, request)
    const { own } = inbox.places
    return this.#reads.read(own, waiting?.asker ?? asker, (max = Infinity, now = caller) => {
      refuseOthers(now, [own.inbox])
      if (max === Infinity) begin()
      return this.#takeOnce(inbox, { ...request, caller: now, maxBytes: max })
    }, request.max > 1 ? maxTaken : 0)
  }

  /**
   * If something was approved, merges the two lists by turn: reads the home list's turns, takes from the own list, then
   * from the home list.
   */
  async #takeOnce (inbox: InboxHere, request: TakeRequest, mustReadHome = false): Promise<Found> {
    const { places: { own, home }, queue } = inbox
    const { caller, max, worker, keyed, until, maxBytes } = request
    const operation = this.#operationOf(keyed)
    const began = performance.now()
    const isHomeRead = home !== null &&
      (mustReadHome || queue.isLimited || queue.home.isWorthALook(homeLookLifetime))
    const atHome = isHomeRead ? await this.#turnsOf(home, queue.home, max, queue.isLimited) : unread
    const { turns } = atHome
    const isOld = () => performance.now() - began > readingLifetime
    if (maxBytes !== undefined && bytesOf(turns) > maxBytes) throw new TooLarge()
    // Its client may have gone while the home list was read, or since an earlier call: nothing is taken for it.
    if (performance.now() > until || request.waiting?.asker.isGone() === true) return looksAgain
    const taken = await this.#takeFrom(own, caller, {
      ...operation,
      worker,
      max,
      size: 0,
      turns: turns.length === 0 ? null : turns,
      known: isHomeRead && !isOld() ? atHome : null,
      maxBytes
    })
    if (taken.outcome === 'limited') {
      queue.limit(limitedFor)
      return atHome.caught === null ? this.#takeOnce(inbox, request) : looksAgain
    }
    if (taken.outcome === 'closed') return nothing
    // What the other request has taken from the home list meanwhile is this request's answer too.
    if (taken.isLeft === true && home !== null) {
      const others = await this.#takeFrom(home, caller, { ...operation, max: 0, size: 0, turns: null })
      return { ...taken, ...others, isMore: true, isLeft: true }
    }
    // A request that doesn't wait gets no message later, for example about an approval just now. So before it gets
    // nothing, the home list is read.
    const isUnseen = request.waiting === null && taken.items.length === 0 && !taken.replayed && taken.elsewhere === 0 &&
      turns.length === 0 && atHome.isMore
    if (home === null || (taken.elsewhere === 0 && !isUnseen)) {
      return { ...taken, isMore: taken.isMore || turns.length > 0 }
    }
    // Other requests with this key must see in the own list's partition that this one looks at the home list. That note
    // needs the home's turns.
    if (isUnseen && keyed !== null && !mustReadHome) return this.#takeOnce(inbox, request, true)
    const { isPlaced = false } = taken
    if (isPlaced && isOld()) return { ...taken, isMore: true }
    if (taken.items.length === 0 && performance.now() > until + callBudget) return looksAgain
    const rest = await this.#takeFrom(home, caller, {
      ...operation,
      worker,
      max: isUnseen ? max : taken.elsewhere,
      size: sizeOf(taken.items),
      turns: [],
      known: isPlaced ? 'placed' : null,
      // What is taken from the own list, or has a place there, is to be answered.
      maxBytes: taken.items.length === 0 && !isPlaced ? maxBytes : undefined
    })
    if (isPlaced) await this.#settle(own, operation.token, rest.items)
    const items = inTurn(taken.items, rest.items)
    const replayed = taken.replayed || (taken.items.length === 0 && rest.replayed)
    // Another request took the home list's handoffs first. Without the note about them this key can take from the own
    // list again.
    if (items.length === 0 && !replayed && keyed !== null && taken.elsewhere > 0) {
      await this.#inboxes.stay(own, keyed, taken.elsewhere)
    }
    return { items, replayed, isMore: taken.isMore || rest.isMore || turns.length > taken.elsewhere }
  }

  async #turnsOf (place: InboxPlace, list: WatchedList, max: number, counts = false): Promise<InboxTurns> {
    const isEmpty = list.begin()
    const found = await this.#inboxes.turns(place, max, counts)
    if (found.turns.length === 0 && !found.isMore) isEmpty()
    return found
  }

  /** What tells the operation from others: the same in both lists. */
  #operationOf (keyed: Claim | null): Operation {
    return {
      token: keyed?.token ?? randomToken(),
      lifetime: keyed && this.#workTtl,
      request: keyed?.request ?? '-',
      asker: keyed?.asker ?? '-',
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

/** How many bytes of an answer they take. */
function bytesOf (turns: readonly string[]): number {
  return turns.reduce((sum, turn) => sum + Number(turn.slice(turn.indexOf('/') + 1)), 0)
}

/** What is known about a list that wasn't read. */
const unread: InboxTurns = { turns: [], isMore: true, caught: null, readAt: 0 }
export const nothing: Found = { items: [], replayed: false, isMore: false }
/** What was read is out of date. */
const looksAgain: Found = { ...nothing, isMore: true }

export function placesOf (tenant: string, inbox: string): Places {
  const tag = inboxTag(tenant, inbox)
  const home = otherInboxTag(tag, tenant, inbox)
  if (home === null) return { own: { tenant, inbox, tag }, home: null }
  return { own: { tenant, inbox, tag, other: home }, home: { tenant, inbox, tag: home, other: tag } }
}

/** Merges what came from both lists, each in order. Where one gave nothing, the other's turns may be unknown. */
function inTurn (own: readonly TakenHandoff[], home: readonly TakenHandoff[]): TakenHandoff[] {
  return [...own, ...home].sort((one, other) => one.turn - other.turn)
}
