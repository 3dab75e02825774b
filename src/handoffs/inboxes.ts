import { setTimeout as sleep } from 'node:timers/promises'
import { Problem, Unavailable } from '../core/errors.ts'
import { digestToken, inboxTag, otherInboxTag, randomToken, tagOfDigest } from '../core/ids.ts'
import type { Caller } from '../core/model.ts'
import type { Subscriptions } from '../redis/subscriptions.ts'
import type { Claim, InboxPlace, Inboxes, TakeReply, TakenHandoff, InboxTurns, Wanted } from '../store/inboxes.ts'
import { sizeOf } from './answers.ts'
import { InboxQueue } from './inbox-queue.ts'
import type { Ticket, WatchedList } from './inbox-queue.ts'
import { untilEndsAreNoticed } from './waiter.ts'
import type { Listen, WaitOptions, Waiter } from './waiter.ts'

/** The answer of a catch from an inbox: each item is like the answer of a catch by id. */
export interface InboxCatch { items: TakenHandoff[], replayed: boolean }

/**
 * A catch from an inbox. `bytes` are the request's: with the same Idempotency-Key and the same bytes it is the
 * same request.
 */
export interface InboxRequest { inbox: string, max: number, bytes: Buffer }

/** What all calls of an operation have. */
type Operation = Pick<Wanted, 'token' | 'lifetime' | 'request' | 'asker'>

interface InboxLookRequest extends InboxRequest { isWaiting: boolean }

/**
 * What a look found. `isMore`: there may be more after it. `isLeft`: another request with the same Idempotency-Key is
 * taking for both.
 */
interface Found extends InboxCatch { isMore: boolean, isLeft?: boolean }

/**
 * How long an empty home list counts as empty, in milliseconds. A message about an approval may have
 * been lost meanwhile.
 */
const homeLookLifetime = 1000
/**
 * How long one look goes on past entries that can't be caught any more, in milliseconds. Each call drops 32 of them.
 */
const maxLookTime = 1000
/** The longest pause before the next look after that, in milliseconds. */
const maxPause = 100
/**
 * For how long what a look read of the home list may be used to take by it, in milliseconds, where the number of caught
 * handoffs is limited in a Cluster. A call is given up 2 s after it began, so nothing is taken by it later than 7 s
 * after (lua/lib/room.lua keeps places for longer than two of these).
 */
const readingLifetime = 5000
/** For how long a limited inbox's home list is read at once, in milliseconds. */
const limitedFor = 10_000
/** How often a request looks while another request with the same key is taking for both, in milliseconds. */
const sameKeyPause = 5
/** How often unused queues are looked for, in milliseconds. */
const tidying = 5000

/** Catches from inboxes. */
export class InboxService {
  /** Plain numbers, for metrics. */
  readonly counts = { taken: 0, empty: 0 }
  readonly #inboxes: Inboxes
  readonly #subscriptions: Subscriptions
  readonly #waiter: Waiter
  readonly #workTtl: number
  readonly #queues = new Map<string, InboxQueue>()
  #tidier: NodeJS.Timeout | undefined

  /** @param workTtl milliseconds */
  constructor (inboxes: Inboxes, subscriptions: Subscriptions, waiter: Waiter, workTtl: number) {
    this.#inboxes = inboxes
    this.#subscriptions = subscriptions
    this.#waiter = waiter
    this.#workTtl = workTtl
  }

  /** How many requests of this replica wait for an inbox. */
  get waiting (): number {
    let waiting = 0
    for (const { size } of this.#queues.values()) waiting += size
    return waiting
  }

  async catch (
    caller: Caller, request: InboxRequest, key: string | undefined, waiting: WaitOptions | null
  ): Promise<InboxCatch> {
    refuseOthers(caller, request)
    const places = placesOf(caller.tenant, request.inbox)
    const batch = await (key === undefined
      ? this.#wait(places, caller, request, null, waiting)
      : this.#catchOnce(places, caller, request, key, waiting))
    if (batch.items.length === 0) this.counts.empty++
    else if (!batch.replayed) this.counts.taken += batch.items.length
    return batch
  }

  close (): void {
    clearInterval(this.#tidier)
  }

  /** Catches with an Idempotency-Key. The same request again gets what the key took, whichever inbox that was. */
  async #catchOnce (
    places: Places, caller: Caller, request: InboxRequest, key: string, waiting: WaitOptions | null
  ): Promise<InboxCatch> {
    const scope = `${caller.tenant} ${caller.agent}`
    const token = digestToken(`catch-next ${scope}`, key, undefined)
    const keyed = {
      token,
      request: digestToken('request', '', request.bytes),
      asker: randomToken(),
      tag: tagOfDigest(`key ${scope} ${key}`)
    }
    const claim = await this.#inboxes.claim(keyed, this.#workTtl)
    if (claim === 'reused') throw new Problem('idempotency_key_reused')
    const before = claim === 'known' ? await this.#lookAgain(places, caller, keyed) : null
    const batch = before ?? await this.#wait(places, caller, request, keyed, waiting).catch(async error => {
      // After a Problem (the API key has ended, say) nothing was taken. After any other error, such as a lost
      // connection, something may have been.
      if (error instanceof Problem && claim === 'claimed') await this.#inboxes.unclaim(keyed)
      throw error
    })
    // Nothing was taken. Another request with this key may still wait: it makes the claim again if it catches
    // something.
    if (batch.items.length === 0 && !batch.replayed && claim === 'claimed') await this.#inboxes.unclaim(keyed)
    const workTime = Math.max(0, ...batch.items.map(({ record }) => record!.caught!.deadline - record!.caught!.at))
    // The claim must last as long as the work. One that an earlier request made may be gone: that request may have
    // found nothing and released it.
    if (batch.items.length > 0 && (claim === 'known' || workTime > this.#workTtl)) {
      await this.#inboxes.claim(keyed, Math.max(workTime, this.#workTtl))
    }
    return batch
  }

  /** What this key took before; null if it took nothing. */
  async #lookAgain ({ own, home }: Places, caller: Caller, keyed: Claim): Promise<InboxCatch | null> {
    const look = (
      place: InboxPlace, max: number, turns: string[] | null = null
    ) => this.#takeFrom(place, caller, { ...this.#operationOf(keyed), max, size: 0, turns })
    const [first, second] = await Promise.all([look(own, 0), home === null ? null : look(home, 0)])
    if (!first.replayed && second?.replayed !== true) return null
    // The first request may have broken off between the two lists. Then its part of the home list is taken now.
    const rest = home !== null && second?.replayed !== true && first.elsewhere > 0
      ? await look(home, first.elsewhere, [])
      : second
    return { items: inTurn(first.items, rest?.items ?? []), replayed: true }
  }

  async #wait (
    places: Places, caller: Caller, request: InboxRequest, keyed: Claim | null, waiting: WaitOptions | null
  ): Promise<InboxCatch> {
    const queue = this.#queueOf(places)
    const look = () => this.#look(queue, places, caller, { ...request, isWaiting: waiting !== null }, keyed)
    if (waiting === null) return look()
    // With a key it looks at once, even if others wait: no other look finds what its key took before, as that is no
    // longer in the inbox.
    let pause = 1
    const ticket: Ticket = { hasTurn: keyed !== null || (queue.size === 0 && queue.isOwed), wake: () => {} }
    const lookInTurn = async (now = caller) => {
      refuseOthers(now, request)
      // Where no message could come, Redis is request, and the answer is 503 if it is away.
      if (!ticket.hasTurn && queue.isUpToDate) return nothing
      queue.looks()
      await untilEndsAreNoticed()
      if (waiting.isGone()) return nothing
      queue.begin(ticket)
      const found = await look().catch(error => {
        ticket.hasTurn = false
        queue.giveTurn()
        throw error
      })
      // No other request knows of what this look left, or of what entered while all were looking. A replayed answer
      // was no look at the inbox.
      const isMore = found.isMore || found.replayed || queue.isOwed
      ticket.hasTurn = isMore && found.items.length === 0 && !found.replayed
      if (isMore && !ticket.hasTurn) queue.giveTurn()
      return found
    }
    return this.#waiter.waitOn(keyed === null
      ? queue.join(ticket)
      : this.#joinWithKey(queue, places, ticket, keyed), waiting, lookInTurn, ({ items, replayed }) => {
      if (items.length > 0 || replayed) return null
      // Something entered while it looked, or what comes first can't be caught any more. It pauses a little longer each
      // time, so as not to poll.
      pause = ticket.hasTurn ? Math.min(maxPause, 2 * pause) : 1
      return ticket.hasTurn ? pause : waiting.milliseconds
    })
  }

  /**
   * Joins the queue, and also looks at once when another request takes something with the same key: that is this
   * request's answer too.
   */
  #joinWithKey (queue: InboxQueue, { own, home }: Places, ticket: Ticket, { token }: Claim): Listen {
    return async wake => {
      const look = () => {
        ticket.hasTurn = true
        wake()
      }
      const channels = [own, ...home === null ? [] : [home]].map(place => this.#inboxes.takenChannelOf(place, token))
      const stops = await Promise.all([
        queue.join(ticket)(wake), ...channels.map(channel => this.#subscriptions.listen(channel, look))
      ])
      // No message reported what the key took before these subscriptions, so this request gets a turn now.
      ticket.hasTurn = true
      return () => { for (const stop of stops) stop() }
    }
  }

  /**
   * Takes what there is. If the first entries can't be caught any more, it looks after them, for at most
   * `maxLookTime`.
   */
  async #look (
    queue: InboxQueue, places: Places, caller: Caller, request: InboxLookRequest, keyed: Claim | null
  ): Promise<Found> {
    const end = performance.now() + maxLookTime
    for (;;) {
      const found = await this.#take(queue, places, caller, request, keyed)
      if (found.items.length > 0 || found.replayed || !found.isMore || performance.now() > end) return found
      if (found.isLeft === true) await sleep(sameKeyPause)
    }
  }

  /**
   * If something was approved, merges the two lists by turn: reads the home list's turns, takes from the own list, then
   * from the home list.
   */
  async #take (
    queue: InboxQueue, places: Places, caller: Caller, request: InboxLookRequest, keyed: Claim | null,
    mustReadHome = false
  ): Promise<Found> {
    const { own, home } = places
    const operation = this.#operationOf(keyed)
    const began = performance.now()
    queue.touch()
    const isHomeRead = home !== null &&
      (mustReadHome || queue.isLimited || queue.home.isWorthALook(homeLookLifetime))
    const atHome = isHomeRead ? await this.#turnsOf(home, queue.home, request.max) : unread
    const { turns } = atHome
    const isOld = () => performance.now() - began > readingLifetime
    const taken = await this.#takeFrom(own, caller, {
      ...operation,
      max: request.max,
      size: 0,
      turns: turns.length === 0 ? null : turns,
      known: isHomeRead && !isOld() ? atHome : null
    })
    if (taken.outcome === 'limited') {
      queue.limit(limitedFor)
      return isHomeRead ? looksAgain : this.#take(queue, places, caller, request, keyed)
    }
    if (taken.outcome === 'closed') return nothing
    // What the other request has taken from the home list meanwhile is this request's answer too.
    if (taken.isLeft === true && home !== null) {
      const others = await this.#takeFrom(home, caller, { ...operation, max: 0, size: 0, turns: null })
      return { ...taken, ...others, isMore: true, isLeft: true }
    }
    // A request that doesn't wait gets no message later, for example about an approval just now. So before it gets
    // nothing, the home list is read.
    const isUnseen = !request.isWaiting && taken.items.length === 0 && !taken.replayed && taken.elsewhere === 0 &&
      turns.length === 0 && atHome.isMore
    if (home === null || (taken.elsewhere === 0 && !isUnseen)) {
      return { ...taken, isMore: taken.isMore || turns.length > 0 }
    }
    // Other requests with this key must see in the own list's partition that this one looks at the home list. That note
    // needs the home's turns.
    if (isUnseen && keyed !== null && !mustReadHome) return this.#take(queue, places, caller, request, keyed, true)
    const { isPlaced = false } = taken
    if (isPlaced && isOld()) return { ...taken, isMore: true }
    const rest = await this.#takeFrom(home, caller, {
      ...operation,
      max: isUnseen ? request.max : taken.elsewhere,
      size: sizeOf(taken.items),
      turns: [],
      known: isPlaced ? 'placed' : null
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

  async #turnsOf (place: InboxPlace, list: WatchedList, max: number): Promise<InboxTurns> {
    const isEmpty = list.begin()
    const found = await this.#inboxes.turns(place, max)
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

  #queueOf ({ own, home }: Places): InboxQueue {
    const name = `${own.tenant} ${own.inbox}`
    let queue = this.#queues.get(name)
    if (queue === undefined) {
      queue = new InboxQueue(this.#subscriptions, this.#inboxes.channelOf(own), this.#inboxes.channelOf(home ?? own))
      this.#queues.set(name, queue)
      this.#tidier ??= setInterval(() => this.#tidy(), tidying).unref()
    }
    queue.touch()
    return queue
  }

  #tidy (): void {
    const now = performance.now()
    for (const [name, queue] of this.#queues) {
      if (!queue.isIdle(now)) continue
      this.#queues.delete(name)
      queue.close().catch(() => {})
    }
    if (this.#queues.size > 0) return
    clearInterval(this.#tidier)
    this.#tidier = undefined
  }
}

/** A key may be held to inboxes. @throws {Problem} not_addressee */
function refuseOthers ({ inboxes }: Caller, { inbox }: InboxRequest): void {
  if (inboxes !== null && !inboxes.has(inbox)) throw new Problem('not_addressee')
}

/** What is known about a list that wasn't read. */
const unread: InboxTurns = { turns: [], isMore: true, caught: 0, readAt: 0 }
const nothing: Found = { items: [], replayed: false, isMore: false }
/** What was read is out of date. */
const looksAgain: Found = { ...nothing, isMore: true }

/**
 * An inbox's two lists: its own, and the one in its tenant's home partition, of what a person approved; null if one
 * partition has both.
 */
export interface Places { own: InboxPlace, home: InboxPlace | null }

export function placesOf (tenant: string, inbox: string): Places {
  const tag = inboxTag(tenant, inbox)
  const home = otherInboxTag(tag, tenant, inbox)
  if (home === null) return { own: { tenant, inbox, tag }, home: null }
  return { own: { tenant, inbox, tag, other: home }, home: { tenant, inbox, tag: home, other: tag } }
}

/** Merges what came from both lists, each in order. Where one gave nothing, the other's turns may be unknown. */
export function inTurn (own: readonly TakenHandoff[], home: readonly TakenHandoff[]): TakenHandoff[] {
  return [...own, ...home].sort((one, other) => one.turn - other.turn)
}
