import { Problem } from '../errors.ts'
import type { Events } from '../store/events.ts'
import { isBehind, passes, readEvent } from './event-answer.ts'
import type { Event, EventFilter } from './event-answer.ts'
import type { WaitOptions, Waiter } from './waiter.ts'

/** From the oldest event that is kept. */
export const fromOldest = '0-0'
/** Events read from Redis at once. */
const pageSize = 500
/** Pages that one look reads at most: filters may leave out everything, and a feed may have millions. */
const pagesPerLook = 10

/** Where a reader goes on, and whether what it asked for is not there any more, or was never there. */
export interface Start { after: string, isReset: boolean }

/** `next` is where to go on, past what the filter left out. */
export interface EventPage { items: Event[], next: string, isReset: boolean }

interface Seen extends EventPage { isMore: boolean }

/** Reads tenants' feeds. */
export class EventService {
  readonly #events: Events | null
  readonly #waiter: Waiter

  /** @param events null where events are off */
  constructor (events: Events | null, waiter: Waiter) {
    this.#events = events
    this.#waiter = waiter
  }

  /** @throws {Problem} events are off */
  get feed (): Events {
    if (this.#events === null) throw new Problem('events_off')
    return this.#events
  }

  /** At most `limit` events behind `after`; without it those from now on. Where it waits, until there is one. */
  async page (tenant: string, filter: EventFilter, after: string | undefined, limit: number, waiting: WaitOptions | null): Promise<EventPage> {
    const { after: from, isReset } = await this.start(tenant, after)
    let next = from
    const look = async (): Promise<Seen> => {
      const seen = await this.#look(tenant, filter, next, limit)
      next = seen.next
      return { ...seen, isReset }
    }
    if (waiting === null) return look()
    return this.#waiter.waitOn(wake => this.feed.listen(tenant, wake), waiting, look, ({ items, isMore }) => items.length > 0 || isReset ? null : isMore ? 1 : waiting.milliseconds)
  }

  /** Where to begin. An id that is older than what is kept, or that the feed never gave, begins at the oldest event: a reset. */
  async start (tenant: string, after: string | undefined): Promise<Start> {
    const { newest, oldest } = await this.feed.read(tenant, null, 1)
    if (after === undefined) return { after: newest ?? fromOldest, isReset: false }
    const isKnown = after === fromOldest || (oldest !== null && newest !== null && !isBehind(oldest, after) && !isBehind(after, newest))
    return isKnown ? { after, isReset: false } : { after: fromOldest, isReset: true }
  }

  async #look (tenant: string, filter: EventFilter, after: string, limit: number): Promise<Seen> {
    const items: Event[] = []
    let next = after
    for (let pages = 0; pages < pagesPerLook; pages++) {
      const { entries } = await this.feed.read(tenant, next, pageSize)
      for (const entry of entries) {
        const event = readEvent(entry)
        next = event.id
        if (passes(event, filter) && items.push(event) === limit) return { items, next, isReset: false, isMore: true }
      }
      if (entries.length < pageSize) return { items, next, isReset: false, isMore: false }
    }
    return { items, next, isReset: false, isMore: true }
  }
}
