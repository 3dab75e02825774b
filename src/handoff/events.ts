import { Problem } from '../errors.ts'
import type { Events } from '../store/events.ts'
import type { Handoffs } from '../store/handoffs.ts'
import { isBehind, passes, timeIn } from './event-answer.ts'
import type { Event, EventFilter } from './event-answer.ts'
import { FeedReader, placeBehind } from './feed-reader.ts'
import type { Place } from './feed-reader.ts'
import { tagOf } from './id.ts'
import type { WaitOptions, Waiter } from './waiter.ts'

/** Pages that one look reads at most, 5,000 events: filters may leave out everything, and a feed may have millions. */
const pagesPerLook = 10
/** How far the clocks of a Cluster's masters may be apart, in milliseconds, and how late an event may be in the feed. */
const clockMargin = 10_000

/** `next` is where to go on, past what the filter left out. */
export interface EventPage { items: Event[], next: string, isReset: boolean }

interface Seen extends EventPage { isMore: boolean }

/** How a handoff's own events are found: by when it was passed, and for how long it is known after its end (ms). */
export interface HandoffsKnown { handoffs: Pick<Handoffs, 'status'>, retention: number }

/** Reads tenants' feeds. */
export class EventService {
  readonly #events: Events | null
  readonly #waiter: Waiter
  readonly #known: HandoffsKnown | null
  readonly #reader: FeedReader | null

  /** @param events null where events are off @param known null: a handoff's events are searched for from where a reader begins */
  constructor (events: Events | null, waiter: Waiter, known: HandoffsKnown | null = null) {
    this.#events = events
    this.#waiter = waiter
    this.#known = known
    this.#reader = events === null ? null : new FeedReader(events)
  }

  /** @throws {Problem} events are off */
  get feed (): Events {
    if (this.#events === null) throw new Problem('events_off')
    return this.#events
  }

  /** @throws {Problem} events are off */
  get reader (): FeedReader {
    if (this.#reader === null) throw new Problem('events_off')
    return this.#reader
  }

  /** At most `limit` events behind `after`; without it those from now on. Where it waits, until there is one. */
  async page (tenant: string, filter: EventFilter, after: string | undefined, limit: number, waiting: WaitOptions | null): Promise<EventPage> {
    const { reader, feed } = this
    let place = await this.start(tenant, after)
    let isFar = false
    const look = async (): Promise<Seen> => {
      const { place: reached, ...seen } = await this.#look(tenant, filter, place, limit, isFar)
      place = reached
      isFar = seen.isMore
      return seen
    }
    if (waiting === null) return look()
    const listen = (wake: () => void) => feed.listen(tenant, () => {
      reader.changed(tenant)
      // All that wait are told in one go, and share what is read then. Only those that it is for look again.
      queueMicrotask(() => {
        reader.next(tenant, place).then(({ events, place: reached, isReset, isMore }) => {
          if (isReset || isMore || events.some(event => passes(event, filter))) wake()
          else place = reached
        }, wake)
      })
    })
    // It reads now and then, so that its place doesn't become older than what is kept.
    const untilNext = Math.min(waiting.milliseconds, feed.retention / 2)
    return this.#waiter.waitOn(listen, waiting, look, ({ items, isReset, isMore }) => items.length > 0 || isReset ? null : isMore ? 1 : untilNext)
  }

  /** Where to begin. */
  async start (tenant: string, after: string | undefined): Promise<Place> {
    return after === undefined ? this.reader.now(tenant) : placeBehind(after)
  }

  /** @param isFar it goes on where a look before has ended, before the end of the feed: then it takes turns */
  async #look (tenant: string, filter: EventFilter, from: Place, limit: number, isFar: boolean): Promise<Seen & { place: Place }> {
    const items: Event[] = []
    let place = from
    let isReset = false
    let quiet: Quiet | undefined
    for (let pages = 0; pages < pagesPerLook; pages++) {
      const read = await this.reader.next(tenant, place, isFar || pages > 0)
      isReset ||= read.isReset
      place = read.place
      for (const event of read.events) {
        if (!passes(event, filter) || items.push(event) < limit) continue
        return { items, next: event.id, isReset, isMore: true, place: placeBehind(event.id) }
      }
      if (!read.isMore) return { items, next: place.next, isReset, isMore: false, place }
      if (filter.handoffId === null) continue
      quiet ??= await this.#quietOf(tenant, filter.handoffId)
      place = pastQuiet(quiet, place)
    }
    return { items, next: place.next, isReset, isMore: true, place }
  }

  /**
   * When nothing of a handoff can have happened. Its own events begin when it was passed. Another one with the same id has been over for as long
   * as ended ones are known before this one was passed, or before now, if there is none: nothing in between is of either. A look asks once: its
   * master may be away, and the feed's not, and then each question takes seconds.
   */
  async #quietOf (tenant: string, id: string): Promise<Quiet> {
    if (this.#known === null) return never
    const { handoffs, retention } = this.#known
    const reply = await handoffs.status({ tenant, id, tag: tagOf(id) }).catch(() => null)
    if (reply === null) return never
    const passedAt = reply.outcome === 'found' ? reply.record.createdAt : (await this.feed.read(tenant, null, 1)).clock
    return { from: passedAt - retention + clockMargin, to: passedAt - clockMargin }
  }
}

/** From when to when (ms). */
interface Quiet { from: number, to: number }

const never: Quiet = { from: Infinity, to: 0 }

/** The place from which to read on. */
function pastQuiet (quiet: Quiet, place: Place): Place {
  const to = `${Math.max(0, quiet.to)}-0`
  return timeIn(place.after) >= quiet.from && isBehind(to, place.after) ? placeBehind(to) : place
}
