import type { Subscriptions } from '../../redis/subscriptions.ts'
import type { Listen } from '../wait/waiter.ts'

/**
 * How long a list stays subscribed after its last request, in milliseconds. Meanwhile the next waiting request needn't
 * begin with a look, and a request that doesn't wait looks at one list only.
 */
const lingering = 5000

/**
 * How long the result of a look at an inbox holds without a message, in milliseconds: a message may be lost while a
 * slot moves. After that, a request looks without a wake, when it comes or when its time is over.
 */
const lookLifetime = 5000

/**
 * Whether a list of an inbox may have something, as this replica knows it while it is subscribed to the list's channel.
 */
class WatchedList {
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
   * @param look its result says whether there may be more. A message that comes meanwhile says so as well, and so does
   * a list that is closed: no message tells when it opens, if that is for what is caught elsewhere. It says nothing if
   * the replica wasn't subscribed when the look began.
   */
  async look<T extends { isMore: boolean, isClosed?: boolean }> (look: () => Promise<T>): Promise<T> {
    const seen = this.#version
    const wasSubscribed = this.#isSubscribed
    this.#looked = performance.now()
    const found = await look()
    const isEmpty = !found.isMore && found.isClosed !== true
    if (isEmpty && wasSubscribed && seen === this.#version) this.#mayHave = false
    return found
  }
}

/**
 * A request that waits for an inbox. It looks only when it has a wake, so one handoff wakes one request, not all. A
 * request that waits for several inboxes has a ticket for each, and hands on the wakes that it doesn't need.
 */
export interface Ticket {
  hasWake: boolean
  wake (): void
}

/** A look's result. `isMore`: there may be more. `replayed`: the request took these items before. */
interface Looked { items: readonly unknown[], replayed: boolean, isMore: boolean }

/**
 * The requests that wait at this replica for one inbox, the longest waiting first. Each message gives one request a
 * wake to look; the others sleep on. If all have a wake when a message comes, the queue remembers that it owes a wake
 * (`isOwed`): the next request that ends its look looks again, or hands its wake on. A request also hands its wake on
 * if it leaves before using it, or if its look left something. So after each entry some request begins a look. While
 * nothing enters, Redis is read every five seconds at most, in case a message was lost.
 */
export class InboxQueue {
  readonly own: WatchedList
  /** The list that version 0.2.0 kept in the home partition: the same object as `own` if one partition is both. */
  readonly home: WatchedList
  /** May there be a handoff in the inbox that no request has a wake for? */
  isOwed = true
  /** How many requests name it now, waiting or not. */
  users = 0
  readonly #tickets = new Set<Ticket>()
  #left = performance.now()
  #looked = performance.now()

  constructor (subscriptions: Subscriptions, ownChannel: string, homeChannel: string) {
    const changed = () => this.giveWake()
    this.own = new WatchedList(subscriptions, ownChannel, changed)
    this.home = homeChannel === ownChannel ? this.own : new WatchedList(subscriptions, homeChannel, changed)
    // No message reported what entered before the replica was subscribed.
    Promise.all([this.own.subscribed, this.home.subscribed]).then(changed, () => {})
  }

  /** How many requests wait. */
  get size (): number {
    return this.#tickets.size
  }

  /** If no request has a wake, is the inbox empty? Not known without a subscription, nor long after the last look. */
  get isUpToDate (): boolean {
    return this.own.isConnected && this.home.isConnected && performance.now() - this.#looked < lookLifetime
  }

  /** Call it when a request is about to look. */
  looks (): void {
    this.#looked = performance.now()
  }

  /**
   * A request's look. The request has a wake during the look, even if it came without one: a second wake would be lost.
   * Afterwards it has a wake only if it must look again.
   */
  async look<T extends Looked> (ticket: Ticket, look: () => Promise<T>): Promise<T> {
    this.isOwed = false
    ticket.hasWake = true
    const found = await look().catch(error => {
      this.handOn(ticket)
      throw error
    })
    // No other request knows of handoffs that this look left, or that entered while all were looking. A replayed answer
    // was no look at the inbox.
    const isMore = found.isMore || found.replayed || this.isOwed
    ticket.hasWake = isMore && found.items.length === 0 && !found.replayed
    if (isMore && !ticket.hasWake) this.giveWake()
    return found
  }

  /** Gives the request's wake to another one. */
  handOn (ticket: Ticket): void {
    if (ticket.hasWake) this.giveWake(ticket)
    ticket.hasWake = false
  }

  /** Has it been unused for so long that its lists needn't stay subscribed? */
  isIdle (now: number): boolean {
    return this.users === 0 && now - this.#left > lingering
  }

  /** Call it when its last request has gone. */
  touch (): void {
    this.#left = performance.now()
  }

  /** Joins at the end of the queue. */
  readonly join = (ticket: Ticket): Listen => async wake => {
    ticket.wake = wake
    this.#tickets.add(ticket)
    await Promise.all([this.own.subscribed, this.home.subscribed])
    // A request that has a wake sees to the owed one when its look ends.
    if (this.isOwed && ![...this.#tickets].some(({ hasWake }) => hasWake)) this.giveWake()
    return () => this.#leave(ticket)
  }

  /** Wakes the request that has waited longest without a wake. */
  giveWake (except?: Ticket): void {
    for (const ticket of this.#tickets) {
      if (ticket.hasWake || ticket === except) continue
      ticket.hasWake = true
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
