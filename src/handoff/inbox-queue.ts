import type { Subscriptions } from '../redis/subscriptions.ts'
import type { Listen } from './waiter.ts'

/** How long a list that nobody waits for is listened to yet, in milliseconds: who waits next needn't look first, and who asks looks at one list. */
const lingering = 5000

/** A list of an inbox, as far as this replica knows it: may there be something in it? Known only while it is listened to. */
export class WatchedList {
  #mayHave = true
  #version = 0
  #looked = -Infinity
  #isHeard = false

  /** @param changed called when there may be more than was known */
  constructor (subscriptions: Subscriptions, channel: string, changed: () => void) {
    this.heard = subscriptions.listen(channel, () => {
      this.#version++
      this.#mayHave = true
      changed()
    }).then(stop => {
      this.#isHeard = true
      return stop
    })
  }

  /** Resolves when it is listened to, with what ends that. */
  readonly heard: Promise<() => void>

  /** May there be something, or is it so long since somebody looked that a message may have been lost? @param believed milliseconds */
  isWorthALook (believed: number): boolean {
    return this.#mayHave || performance.now() - this.#looked > believed
  }

  /** Call it before a look. @returns what to call when that has found nothing, or all there was: whatever came meanwhile counts */
  begin (): () => void {
    const seen = this.#version
    const wasHeard = this.#isHeard
    this.#looked = performance.now()
    return () => { if (wasHeard && seen === this.#version) this.#mayHave = false }
  }
}

/** A request that waits for an inbox. It looks when it is its turn, and not before: so a handoff wakes one, not all. */
export interface Ticket {
  hasTurn: boolean
  wake (): void
}

/**
 * Those who wait at this replica for one inbox, longest first. Each message gives one of them a turn. A message that finds nobody without a
 * turn is owed one: whoever ends a look then looks once more, or hands the turn on; and so does who leaves with a turn that it didn't use, or
 * left something behind. So whatever comes, somebody looks after it came, and nobody asks Redis while nothing comes.
 */
export class InboxQueue {
  readonly own: WatchedList
  /** Of what a person approved; the same as its own where both are of one partition. */
  readonly home: WatchedList
  /** Is there, or may there be, something that nobody has been given a turn for? */
  isOwed = true
  readonly #tickets = new Set<Ticket>()
  #left = performance.now()

  constructor (subscriptions: Subscriptions, ownChannel: string, homeChannel: string) {
    const changed = () => this.giveTurn()
    this.own = new WatchedList(subscriptions, ownChannel, changed)
    this.home = homeChannel === ownChannel ? this.own : new WatchedList(subscriptions, homeChannel, changed)
    // What came before it was listened to nobody told of.
    Promise.all([this.own.heard, this.home.heard]).then(changed, () => {})
  }

  /** How many wait. */
  get size (): number {
    return this.#tickets.size
  }

  /** Has nobody waited or asked for so long that it needn't be listened to? */
  isIdle (now: number): boolean {
    return this.#tickets.size === 0 && now - this.#left > lingering
  }

  touch (): void {
    this.#left = performance.now()
  }

  /** Joins at the end. */
  readonly join = (ticket: Ticket): Listen => async wake => {
    ticket.wake = wake
    this.#tickets.add(ticket)
    await Promise.all([this.own.heard, this.home.heard])
    // Those with a turn see to what is owed when their look ends.
    if (this.isOwed && ![...this.#tickets].some(({ hasTurn }) => hasTurn)) this.giveTurn()
    return () => this.#leave(ticket)
  }

  /** Who has waited longest of those that have no turn looks next. */
  giveTurn (): void {
    for (const ticket of this.#tickets) {
      if (ticket.hasTurn) continue
      ticket.hasTurn = true
      ticket.wake()
      return
    }
    this.isOwed = true
  }

  async close (): Promise<void> {
    const stops = await Promise.all([this.own.heard, ...this.home === this.own ? [] : [this.home.heard]])
    for (const stop of stops) stop()
  }

  #leave (ticket: Ticket): void {
    this.#tickets.delete(ticket)
    this.touch()
    if (ticket.hasTurn) this.giveTurn()
  }
}
