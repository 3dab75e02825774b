import { setTimeout as sleep } from 'node:timers/promises'
import type { Grant } from '../../auth/grant.ts'
import { Problem, Unavailable } from '../../core/errors.ts'
import { tagOf } from '../../core/ids.ts'
import type { Events } from '../../store/events.ts'
import type { Handoffs } from '../../store/handoffs.ts'
import type { Reads } from '../../store/reads.ts'
import { FeedReader, isAfter, passes, placeAfter, timeIn } from './feed.ts'
import type { Event, EventFilter, FeedPlace, Read } from './feed.ts'
import { Streams, keepAlive } from '../wait/streams.ts'
import type { OpenStream, Stream } from '../wait/streams.ts'
import type { WaitOptions, Waiter, WaitingRequester } from '../wait/waiter.ts'

/** Pages that one look reads at most, 4,550 events: filters may leave out everything, and a feed may have millions. */
const pagesPerLook = 10
/**
 * How far the clocks of a Cluster's masters may be apart, in milliseconds, and how late an event may be in the feed.
 */
const clockMargin = 10_000

/** `next` is where to go on, past the events that the filter left out. */
interface EventPage { items: Event[], next: string, isReset: boolean }

interface Seen extends EventPage { isMore: boolean }

/** How a handoff's own events are found: by when it was passed, and for how long it is known after its end (ms). */
interface HandoffsKnown { handoffs: Pick<Handoffs, 'status'>, retention: number }

/** Reads tenants' feeds. */
export class EventService {
  readonly #events: Events | null
  readonly #waiter: Waiter
  readonly #known: HandoffsKnown | null
  readonly #reader: FeedReader | null

  /**
   * @param events null where events are off
   * @param baseUrl the beginning of the links in them
   * @param known null: a handoff's events are searched for from the reader's place
   * @param reads for searches
   */
  constructor (
    events: Events | null, waiter: Waiter, baseUrl: () => string, known: HandoffsKnown | null = null,
    reads?: Reads
  ) {
    this.#events = events
    this.#waiter = waiter
    this.#known = known
    this.#reader = events === null ? null : new FeedReader(events, baseUrl, reads)
  }

  get isOn (): boolean {
    return this.#events !== null
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

  /** At most `limit` events after `after`; without it those from now on. Where it waits, until there is one. */
  async page (
    tenant: string, filter: EventFilter, after: string | undefined, limit: number, waiting: WaitOptions | null
  ): Promise<EventPage> {
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
      // All waiting requests are woken in one go, and share a read. Only those that its events are for look again.
      queueMicrotask(() => {
        reader.next(tenant, place).then(({ events, place: reached, isReset, isMore }) => {
          if (isReset || isMore || events.some(event => passes(event, filter))) wake()
          else place = reached
        }, wake)
      })
    })
    // It reads now and then, so that its place doesn't become older than the feed.
    const untilNext = Math.min(waiting.milliseconds, feed.retention / 2)
    return this.#waiter.waitOn(
      listen, waiting, look, ({ items, isReset, isMore }) => items.length > 0 || isReset ? null : isMore ? 1 : untilNext
    )
  }

  /** Where to begin. */
  async start (tenant: string, after: string | undefined): Promise<FeedPlace> {
    // First, also where nothing is to be read: the answer of a stream begins right after this.
    const { reader } = this
    return after === undefined ? reader.now(tenant) : placeAfter(after)
  }

  /** @param isFar it goes on where a look before has ended, before the end of the feed: then it reads in slots */
  async #look (
    tenant: string, filter: EventFilter, from: FeedPlace, limit: number, isFar: boolean
  ): Promise<Seen & { place: FeedPlace }> {
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
        return { items, next: event.id, isReset, isMore: true, place: placeAfter(event.id) }
      }
      if (!read.isMore) return { items, next: place.next, isReset, isMore: false, place }
      if (filter.handoffId === null) continue
      quiet ??= await this.#quietOf(tenant, filter.handoffId)
      place = pastQuiet(quiet, place)
    }
    return { items, next: place.next, isReset, isMore: true, place }
  }

  /**
   * When no events of a handoff's id can have happened: before its pass, but not further back than ended handoffs are
   * known, as an earlier handoff may have had this id. Without a handoff that time ends now. A look reads it once:
   * while its master is away, each read takes seconds.
   */
  async #quietOf (tenant: string, id: string): Promise<Quiet> {
    if (this.#known === null) return never
    const { handoffs, retention } = this.#known
    const reply = await handoffs.status({ tenant, id, tag: tagOf(id) }, 0, 0).catch(() => null)
    if (reply === null) return never
    const passedAt = reply.outcome === 'found' ? reply.record.createdAt : (await this.feed.read(tenant, null, 1)).clock
    return { from: passedAt - retention + clockMargin, to: passedAt - clockMargin }
  }
}

/** From when to when (ms). */
interface Quiet { from: number, to: number }

const never: Quiet = { from: Infinity, to: 0 }

/** The place from which to read on. */
function pastQuiet (quiet: Quiet, place: FeedPlace): FeedPlace {
  const to = `${Math.max(0, quiet.to)}-0`
  return timeIn(place.after) >= quiet.from && isAfter(to, place.after) ? placeAfter(to) : place
}

/** How long a client waits before it connects again, in milliseconds (`retry:`). */
const reconnectAfter = 2000
const streamsPerKey = 10
/** How long a stream waits before it asks Redis again, when Redis is away, in milliseconds. */
const retryPause = 1000

const reset = 'event: reset\ndata: {}\n\n'

/** Streams of events. A stream has a place in the feed; when it is silent, it says how far it has read. */
export class EventStreams {
  readonly #service: EventService
  readonly #streams = new Streams(streamsPerKey, 'events')

  constructor (service: EventService) {
    this.#service = service
  }

  /** How many are open. */
  get count (): number {
    return this.#streams.count
  }

  /** The service stops: each stream ends, and its client connects to another replica. */
  drain (): void {
    this.#streams.drain()
  }

  /** @param key of the caller, which may have ten at once @throws {Problem} the key has ten */
  open (
    tenant: string, key: unknown, filter: EventFilter, start: FeedPlace, requester: WaitingRequester
  ): OpenStream {
    return this.#streams.open(key, requester, {
      opening: `retry: ${reconnectAfter}\n\n`,
      listen: wake => this.#service.feed.listen(tenant, () => {
        this.#service.reader.changed(tenant)
        wake()
      }),
      write: stream => this.#frames(tenant, filter, start, stream, requester.grant())
    })
  }

  async * #frames (
    tenant: string, filter: EventFilter, start: FeedPlace, stream: Stream, grant: Grant
  ): AsyncGenerator<string> {
    const { retention } = this.#service.feed
    let lastSent = performance.now()
    let isMore = false
    for (let place = start; !stream.isOver;) {
      stream.begin()
      const read = await this.#read(tenant, place, isMore, grant)
      if (read === 'refused' || stream.isOver) return
      place = read?.place ?? place
      isMore = read?.isMore ?? false
      const frames = (read?.isReset === true ? reset : '') +
        (read?.events ?? []).filter(event => passes(event, filter)).map(frameOf).join('')
      const silence = performance.now() - lastSent
      if (frames !== '' || silence >= keepAlive) {
        yield frames || `: keep-alive\nid: ${place.next}\n\n`
        lastSent = performance.now()
      } else if (read !== undefined && !isMore) {
        await stream.sleep(Math.min(keepAlive - silence, retention / 2))
      }
    }
  }

  /** The next events; undefined while Redis is away: a client that reads a 503 may not come back. */
  async #read (tenant: string, place: FeedPlace, isMore: boolean, grant: Grant): Promise<Read | undefined | 'refused'> {
    try {
      await grant.authorise()
      return await this.#service.reader.next(tenant, place, isMore)
    } catch (error) {
      if (!(error instanceof Unavailable) && !(error instanceof Problem && error.code === 'unavailable')) {
        return 'refused'
      }
      await sleep(retryPause)
      return undefined
    }
  }
}

function frameOf ({ id, type, text }: Event): string {
  return `id: ${id}\nevent: ${type}\ndata: ${text}\n\n`
}
