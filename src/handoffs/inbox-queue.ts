import type { Subscriptions } from '../redis/subscriptions.ts'
import type { Listen } from './waiter.ts'

/**
 * How long a list stays subscribed after the last request for it, in milliseconds. Within this time the next waiting
 * request needn't begin with a look, and one that doesn't wait looks at one list only.
 */
const lingering = 5000

/**
 * How long the result of a look at an inbox holds, in milliseconds, whatever messages come: one may be lost while a
 * slot moves. After that, a request looks without a turn, when it comes or when its time is over.
 */
const lookLifetime = 5000

/**
 * What this replica knows about one list of an inbox: may there be something in it? Known only while the replica is
 * subscribed to the list's channel.
 */
export class WatchedList {
  #mayHave = true
  #version = 0
  #looked = -Infinity
  #isSubscribed = false
  readonly #isConnected: () => boolean

  /** @param changed called when there may be more in the list than was known */
  constructor (subscriptions: Subscriptions, channel: string, changed: () => void) {
    this.#isConnected = () => subscriptions.isConnected(channel)
    this.subscribed = subscriptions.listen(channel, () => {
      this.#version++
      this.#mayHave = true
      changed()
    }).then(stop => {
      this.#isSubscribed = true
      return stop
    })
  }

  /** Resolves once the replica is subscribed, with the function that unsubscribes. */
  readonly subscribed: Promise<() => void>

  /** Does the replica get a message of each change? */
  get isConnected (): boolean {
    return this.#isConnected()
  }

  /**
   * Is a look worthwhile? Yes if there may be something in the list, or if the last look is so long ago that a message
   * may have been lost.
   * @param lifetime how long a look's result holds, in milliseconds
   */
  isWorthALook (lifetime: number): boolean {
    return this.#mayHave || performance.now() - this.#looked > lifetime
  }

  /**
   * Call it before a look.
   * @returns what to call if the look found nothing, or took all there was. That has no effect if a message came during
   * the look, or if the replica wasn't subscribed when it began.
   */
  begin (): () => void {
    const seen = this.#version
    const wasSubscribed = this.#isSubscribed
    this.#looked = performance.now()
    return () => { if (wasSubscribed && seen === this.#version) this.#mayHave = false }
  }
}

/**
 * A request that waits for an inbox. It looks only when it has a turn, so one handoff wakes one request, not all. (A
 * handoff's own turn is its place in the list.) One that waits for several has a ticket for each, and hands on the
 * turns that it didn't need.
 */
export interface Ticket {
  hasTurn: boolean
  wake (): void
}

/** What a look says. `isMore`: there may be more. `replayed`: it is what the request took before. */
interface Looked { items: readonly unknown[], replayed: boolean, isMore: boolean }

/**
 * The requests that wait at this replica for one inbox, the one that has waited longest first. Each message gives one
 * request a turn to look; the others sleep on. If every request has a turn when a message comes, the queue remembers
 * that it owes a turn (`isOwed`). The next request that ends its look then looks again or hands its turn on. A request
 * also hands its turn on when it leaves before using it, and when its look left something. So whatever enters,
 * some request begins a look after it; and while nothing enters, Redis isn't asked, but for a look every five seconds
 * at most, in case a message was lost.
 */
export class InboxQueue {
  readonly own: WatchedList
  /** The list of what a person approved. It is the same object as `own` if both lists are in one partition. */
  readonly home: WatchedList
  /** May there be something in the inbox that no request has a turn for? */
  isOwed = true
  /** How many requests name it now, waiting or not. */
  users = 0
  readonly #tickets = new Set<Ticket>()
  #left = performance.now()
  #looked = performance.now()
  #limitedUntil = 0

  constructor (subscriptions: Subscriptions, ownChannel: string, homeChannel: string) {
    const changed = () => this.giveTurn()
    this.own = new WatchedList(subscriptions, ownChannel, changed)
    this.home = homeChannel === ownChannel ? this.own : new WatchedList(subscriptions, homeChannel, changed)
    // No message reported what entered before the replica was subscribed.
    Promise.all([this.own.subscribed, this.home.subscribed]).then(changed, () => {})
  }

  /** How many requests wait. */
  get size (): number {
    return this.#tickets.size
  }

  /**
   * If no request has a turn, is the inbox empty? Not if this replica gets no message of what enters, and not
   * forever.
   */
  get isUpToDate (): boolean {
    return this.own.isConnected && this.home.isConnected && performance.now() - this.#looked < lookLifetime
  }

  /**
   * Is the number of its caught handoffs limited, as far as known? Then each look reads the home list first, where that
   * is in another slot of a Cluster.
   */
  get isLimited (): boolean {
    return performance.now() < this.#limitedUntil
  }

  /** @param duration for how long it is known, in milliseconds */
  limit (duration: number): void {
    this.#limitedUntil = performance.now() + duration
  }

  /** Call it when a request is about to look. */
  looks (): void {
    this.#looked = performance.now()
  }

  /**
   * A request's look. It has the turn then, even if it came without one: any that it were given during its look would
   * be lost. Afterwards it has one only if it is to look again.
   */
  async look<T extends Looked> (ticket: Ticket, look: () => Promise<T>): Promise<T> {
    this.isOwed = false
    ticket.hasTurn = true
    const found = await look().catch(error => {
      this.handOn(ticket)
      throw error
    })
    // No other request knows of what this look left, or of what entered while all were looking. A replayed answer
    // was no look at the inbox.
    const isMore = found.isMore || found.replayed || this.isOwed
    ticket.hasTurn = isMore && found.items.length === 0 && !found.replayed
    if (isMore && !ticket.hasTurn) this.giveTurn()
    return found
  }

  /** The request has no use for its turn now: it is another's. */
  handOn (ticket: Ticket): void {
    if (ticket.hasTurn) this.giveTurn(ticket)
    ticket.hasTurn = false
  }

  /** Has it been unused for so long that its lists needn't stay subscribed? */
  isIdle (now: number): boolean {
    return this.users === 0 && now - this.#left > lingering
  }

  /** Call it when nobody uses it any more. */
  touch (): void {
    this.#left = performance.now()
  }

  /** Joins at the end of the queue. */
  readonly join = (ticket: Ticket): Listen => async wake => {
    ticket.wake = wake
    this.#tickets.add(ticket)
    await Promise.all([this.own.subscribed, this.home.subscribed])
    // If any request has a turn, it sees to the owed one when its look ends.
    if (this.isOwed && ![...this.#tickets].some(({ hasTurn }) => hasTurn)) this.giveTurn()
    return () => this.#leave(ticket)
  }

  /** Gives the turn to the request that has waited longest without one. */
  giveTurn (except?: Ticket): void {
    for (const ticket of this.#tickets) {
      if (ticket.hasTurn || ticket === except) continue
      ticket.hasTurn = true
      ticket.wake()
      return
    }
    this.isOwed = true
  }

  async close (): Promise<void> {
    const stops = await Promise.all([this.own.subscribed, ...this.home === this.own ? [] : [this.home.subscribed]])
    for (const stop of stops) stop()
  }

  #leave (ticket: Ticket): void {
    this.#tickets.delete(ticket)
    this.handOn(ticket)
  }
}
