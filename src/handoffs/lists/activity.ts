import { Shared } from '../../core/shared.ts'
import type { EventService } from '../feed/events.ts'
import { isAfter, placeAfter, timeIn } from '../feed/feed.ts'
import type { Event, FeedPlace, FeedReader } from '../feed/feed.ts'

/** For how many minutes transitions are counted. */
const minutesCounted = 60
const minute = 60_000
/** How many pages of the feed a look reads at most: of new events, and of older ones. */
const pagesPerLook = { fresh: 6, past: 6 }
/** How many of the newest events are kept. */
const newestKept = 15
/** How long a tenant's counts are kept at least after the last look at them, in milliseconds. */
const keptFor = 5 * minute
/** How long requests share a look, in milliseconds. */
const sharedFor = 1000

/** How many transitions a minute had, by type. */
export interface Minute { at: number, counts: ReadonlyMap<string, number> }

/**
 * A tenant's transitions. `minutes`: of the last hour, the oldest first. `missing`: the minutes (ms) of which some
 * events are not counted yet. `newest`: the newest first. `since`: how far back events are kept, if less than an hour.
 */
export interface Activity {
  minutes: Minute[]
  missing: ReadonlySet<number>
  newest: Event[]
  now: number
  since: number
}

/** Events that are still to be counted: after a place, up to and with an id. */
interface Gap { place: FeedPlace, to: string }

/**
 * Counts the tenants' events by minute, for those who look. A look reads a bounded part of the feed: first new events,
 * then older ones that aren't counted yet. If too many are new, it goes on from the newest, and later looks count the
 * gap.
 */
export class Activities {
  readonly #events: EventService
  readonly #byTenant = new Map<string, TenantActivity>()
  /** One look at a tenant at a time: two would count the same events. */
  readonly #looks = new Shared<Activity>({ keptFor: sharedFor })
  #timer: NodeJS.Timeout | undefined

  constructor (events: EventService) {
    this.#events = events
  }

  /** @returns null where events are off */
  async look (tenant: string): Promise<Activity | null> {
    if (!this.#events.isOn) return null
    const { reader, feed } = this.#events
    const known = this.#byTenant.get(tenant) ?? new TenantActivity(tenant, reader, feed.retention)
    this.#byTenant.set(tenant, known)
    this.#forgetLater()
    return this.#looks.get(tenant, () => known.look())
  }

  /** By a timer, since there may be no other look. */
  #forgetLater (): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      const since = performance.now() - keptFor
      for (const [tenant, { lookedAt }] of this.#byTenant) if (lookedAt < since) this.#byTenant.delete(tenant)
      if (this.#byTenant.size > 0) this.#forgetLater()
    }, keptFor).unref()
  }
}

class TenantActivity {
  readonly #tenant: string
  readonly #reader: FeedReader
  readonly #retention: number
  readonly #minutes = new Map<number, Map<string, number>>()
  #newest: Event[] = []
  #gaps: Gap[] = []
  #place: FeedPlace | null = null
  lookedAt = performance.now()

  constructor (tenant: string, reader: FeedReader, retention: number) {
    this.#tenant = tenant
    this.#reader = reader
    this.#retention = retention
  }

  async look (): Promise<Activity> {
    this.lookedAt = performance.now()
    const end = await this.#reader.now(this.#tenant)
    const now = end.seen ?? timeIn(end.next)
    const start = Math.max(0, now - Math.min(this.#retention, minutesCounted * minute))
    this.#drop(start)
    await this.#readNew(end, start)
    await this.#read(start, pagesPerLook.past)
    const first = Math.floor(now / minute) - minutesCounted + 1
    const minutes = Array.from({ length: minutesCounted }, (_, n) => {
      const at = (first + n) * minute
      return { at, counts: this.#minutes.get(at) ?? none }
    })
    return { minutes, missing: this.#missing(), newest: this.#newest.toReversed(), now, since: start }
  }

  /** Forgets the minutes that are over for more than an hour. */
  #drop (start: number): void {
    for (const at of this.#minutes.keys()) if (at + minute <= start) this.#minutes.delete(at)
    this.#gaps = this.#gaps.filter(({ to }) => timeIn(to) >= start)
  }

  async #readNew (end: FeedPlace, start: number): Promise<void> {
    const fresh: Gap = { place: this.#place ?? placeAfter(`${start}-0`), to: end.after }
    this.#place = end
    if (!isAfter(end.after, fresh.place.after)) return
    this.#gaps.push(fresh)
    await this.#read(start, pagesPerLook.fresh, fresh)
    if (!this.#gaps.includes(fresh)) return
    // The newest second comes first, as far as it is read.
    const from = `${timeIn(end.after) - 1000}-0`
    if (!isAfter(from, fresh.place.after)) return
    this.#gaps.push({ place: placeAfter(from), to: end.after })
    fresh.to = from
  }

  /** Counts the rest of the gaps, the latest first. @param only of this gap */
  async #read (start: number, max: number, only?: Gap): Promise<void> {
    for (let pages = 0; pages < max; pages++) {
      const gap = this.#gaps.at(-1)
      if (gap === undefined || (only !== undefined && gap !== only)) return
      if (timeIn(gap.place.after) < start) gap.place = placeAfter(`${start}-0`)
      const read = await this.#reader.next(this.#tenant, gap.place, true)
      const events = read.events.filter(({ id }) => !isAfter(id, gap.to))
      this.#count(events)
      gap.place = read.place
      const isOver = !read.isMore || events.length < read.events.length || !isAfter(gap.to, read.place.after)
      if (isOver) this.#gaps.pop()
    }
  }

  #count (events: readonly Event[]): void {
    for (const { id, type } of events) {
      const at = Math.floor(timeIn(id) / minute) * minute
      const counts = this.#minutes.get(at) ?? new Map<string, number>()
      this.#minutes.set(at, counts)
      counts.set(type, (counts.get(type) ?? 0) + 1)
    }
    this.#newest = [...this.#newest, ...events.slice(-newestKept)]
      .sort((one, other) => isAfter(one.id, other.id) ? 1 : -1).slice(-newestKept)
  }

  #missing (): Set<number> {
    const missing = new Set<number>()
    for (const { place, to } of this.#gaps) {
      for (let at = Math.floor(timeIn(place.after) / minute) * minute; at <= timeIn(to); at += minute) missing.add(at)
    }
    return missing
  }
}

const none: ReadonlyMap<string, number> = new Map()
