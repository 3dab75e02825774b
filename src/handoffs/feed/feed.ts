import { Unavailable } from '../../core/errors.ts'
import { homeTag } from '../../core/ids.ts'
import { iso } from '../../core/iso.ts'
import { hasLabels, labelsMember } from '../../core/labels.ts'
import type { Labels } from '../../core/labels.ts'
import { Shared } from '../../core/shared.ts'
import type { FeedEntry, Events, FeedPage } from '../../store/events.ts'
import { pageFor } from '../lifecycle/answers.ts'
import { Reads } from '../../store/reads.ts'

/** From the oldest event that is kept. */
export const fromOldest = '0-0'
/** Events that a search reads from Redis at once, in a slot. */
export const pageSize = 500
/**
 * Events that are read without a slot, most of which are new: an event may have a kilobyte, and many may read at once,
 * each from another place.
 */
const newsSize = 50

/** Where a reader is. */
export interface FeedPlace {
  /** The event after which it reads. */
  after: string
  /** Where a client goes on from here. Where nothing is kept it is a time: nothing before it is missing. */
  next: string
  /** When it had last read to the end, by Redis's clock (ms); null if it hasn't yet. */
  seen: number | null
}

/** The next events. `isReset`: events after the place are lost, or never were. `isMore`: the end may not be reached. */
export interface Read { events: Event[], place: FeedPlace, isReset: boolean, isMore: boolean }

interface Page extends Omit<FeedPage, 'entries'> { events: Event[] }

/**
 * Reads feeds, for pages and streams alike: readers at one place share a read, and a reader of much waits for a slot.
 */
export class FeedReader {
  readonly #feed: Events
  readonly #baseUrl: () => string
  readonly #pages = new Shared<Page>()
  readonly #reads: Reads

  /** @param baseUrl the beginning of links in events @param reads for searches */
  constructor (feed: Events, baseUrl: () => string, reads = new Reads()) {
    this.#feed = feed
    this.#reads = reads
    this.#baseUrl = baseUrl
  }

  /** Where a reader begins that wants what happens from now on. */
  async now (tenant: string): Promise<FeedPlace> {
    const { newest, clock } = await this.#feed.read(tenant, null, 1)
    return newest !== null
      ? { after: newest, next: newest, seen: clock }
      : (await this.next(tenant, placeAfter(fromOldest))).place
  }

  /** The feed changed: a read that others share now may have begun before. */
  changed (tenant: string): void {
    this.#pages.forget(`${tenant} `)
  }

  /** @param isSearch it follows a full page: then it reads more, in a slot */
  async next (tenant: string, place: FeedPlace, isSearch = false): Promise<Read> {
    const found = await this.#page(tenant, place.after, isSearch)
    const isReset = isLost(place, found, this.#feed.retention)
    const isBeyond = isReset && found.oldest !== null && isAfter(place.after, found.oldest)
    const page = isBeyond ? await this.#page(tenant, fromOldest, isSearch) : found
    const { events, oldest, clock } = page
    const isMore = events.length === (isSearch ? pageSize : newsSize)
    const last = events.at(-1)?.id
    if (last !== undefined) {
      return { events, isReset, isMore, place: { after: last, next: last, seen: isMore ? null : clock } }
    }
    if (oldest !== null) return { events, isReset, isMore, place: { ...place, seen: clock } }
    const at = page.isNoted ? clock : await this.#feed.note(tenant)
    // Something came meanwhile.
    if (at === null) return { events, isReset, isMore: true, place: isReset ? placeAfter(fromOldest) : place }
    // The same as long as it is recent: so a reader that goes on to the end sees that this is it. An event of this
    // millisecond may still come.
    const isRecent = !isReset && timeIn(place.next) >= at - this.#feed.retention / 2
    return {
      events, isReset, isMore, place: { after: fromOldest, next: isRecent ? place.next : `${at - 1}-0`, seen: at }
    }
  }

  #page (tenant: string, after: string, isSearch: boolean): Promise<Page> {
    const max = isSearch ? pageSize : newsSize
    const read = () => this.#feed.read(tenant, after, max).then(({ entries, ...more }) =>
      ({ ...more, events: entries.map(entry => readEvent(entry, this.#baseUrl())) }))
    return this.#pages.get(`${tenant} ${after} ${max}`, () =>
      isSearch ? this.#reads.page(tenant, [homeTag(tenant)], read) : read())
  }
}

/** The place after an event, or after a time. */
export function placeAfter (after: string): FeedPlace {
  return { after, next: after, seen: null }
}

/** Is anything missing that came after this place, or was the place never there? The one rule for pages and streams. */
function isLost (
  { after, seen }: FeedPlace, { newest, oldest, clock, since }: Omit<Page, 'events'>, retention: number
): boolean {
  if (after === fromOldest && seen === null) return false
  if (oldest !== null && newest !== null && !isAfter(oldest, after)) {
    return isAfter(after, newest) && timeIn(after) > clock
  }
  // A position is a time. A reader at the end is as far as that moment, however old the last event is.
  const time = Math.max(timeIn(after), seen === null ? 0 : seen - 1)
  if (since === undefined) throw new Unavailable('since when the feed is whole can’t be known while its slot moves')
  return time > clock || time < clock - retention || since === null || time < since
}

/** Which events a reader wants; null for any. */
export interface EventFilter {
  types: ReadonlySet<string> | null
  handoffId: string | null
  /** The inbox that the handoff is for. */
  inbox: string | null
  /** The handoff has all of these. */
  labels: Labels | null
}

/** An event as readers get it. `text` is its JSON. */
export interface Event {
  id: string
  type: string
  handoffId: string | null
  inbox: string | null
  labels: Labels
  /** The next attempt, if the same step made it, or the event tells of that. */
  reissuedAs: string | null
  text: string
}

/**
 * Reads an entry of a feed. Its time is in its id: when it was written there.
 * @param baseUrl what its links start with
 */
export function readEvent ({ id, text }: FeedEntry, baseUrl: string): Event {
  const { type, data, labels } = eventIn(text, baseUrl)
  let json: string | undefined
  return {
    id,
    type,
    handoffId: (data as { handoff_id?: string }).handoff_id ?? null,
    inbox: (data as { to?: string }).to ?? null,
    labels,
    reissuedAs: (data as { reissued_as?: string }).reissued_as ?? null,
    // Most events don't pass a reader's filter. Those that do may be sent to many.
    get text () {
      json ??= messageText({ id, type, time: iso(timeIn(id)) }, data, labels)
      return json
    },
  }
}

/** The JSON of a message: its own members, and the event's data. */
export function messageText (members: object, data: object, labels: Labels): string {
  // Neither object is empty.
  return `${JSON.stringify(members).slice(0, -1)},"data":${JSON.stringify(data).slice(0, -1)}${labelsMember(labels)}}}`
}

/** An event's type, read off its text. */
export function typeIn (text: string): string {
  const space = text.indexOf(' ')
  const word = space < 0 ? text : text.slice(0, space)
  return word.startsWith('webhook.') ? word : `handoff.${word}`
}

/** An event, read off its text: its type, its data without the labels, and the labels (core/labels.ts). */
export function eventIn (text: string, baseUrl: string): { type: string, data: object, labels: Labels } {
  const words = text.split(' ')
  const type = typeIn(text)
  return type.startsWith('webhook.')
    ? {
        type,
        data: { webhook_id: words[1], reason: words.length > 2 ? words.slice(2).join(' ') : undefined },
        labels: []
      }
    : {
        type,
        data: handoffData(words, baseUrl),
        labels: words.slice(headWords).filter(word => word.startsWith('j')).map(word => word.slice(1))
      }
}

/** How many words every event of a handoff has, before the optional ones. */
const headWords = 5

/** The words are those of lua/lib/events.lua; lua/lib/record.lua has the letters. */
function handoffData ([name, status, id, passedBy, caughtBy, ...more]: string[], baseUrl: string): object {
  const found = new Map(more.map(word => [word[0], word.slice(1)]))
  // JSON leaves out undefined members.
  return {
    handoff_id: id,
    status,
    to: found.get('t'),
    group: found.get('G'),
    passed_by: passedBy,
    caught_by: caughtBy === '-' ? undefined : caughtBy,
    parent: found.get('p'),
    attempt: found.has('n') ? Number(found.get('n')) : undefined,
    reissue_of: found.get('o'),
    schedule: found.get('S'),
    scheduled_for: found.has('T') ? iso(Number(found.get('T'))) : undefined,
    reissued_as: found.get('i'),
    expired_because: found.get('b'),
    ...found.has('q') && {
      ask_id: found.get('q'),
      of: found.get('f'),
      answer_url: found.get('f') === 'person' ? pageFor(baseUrl, id!) : undefined,
      answered_by: found.get('y'),
      state: found.get('s'),
    },
    approval_url: name === 'approval_requested' ? pageFor(baseUrl, id!) : undefined,
    expires_at: found.has('e') ? iso(Number(found.get('e'))) : undefined,
  }
}

export function passes (event: Event, { types, handoffId, inbox, labels }: EventFilter): boolean {
  return (types === null || types.has(event.type)) && (handoffId === null || event.handoffId === handoffId) &&
    (inbox === null || event.inbox === inbox) && (labels === null || hasLabels(event.labels, labels))
}

/** Does one id of a feed come after another? */
export function isAfter (one: string, other: string): boolean {
  const [oneTime, oneCount] = partsOf(one)
  const [time, count] = partsOf(other)
  return oneTime === time ? oneCount > count : oneTime > time
}

/** The time in an id, in milliseconds. */
export function timeIn (id: string): number {
  return Number(id.slice(0, id.indexOf('-')))
}

function partsOf (id: string): [bigint, bigint] {
  const dash = id.indexOf('-')
  return [BigInt(id.slice(0, dash)), BigInt(id.slice(dash + 1))]
}

const idPartLimit = 2n ** 64n

/** Can it be an id: two numbers of 64 bits with a hyphen between them? */
export function isEventId (text: string): boolean {
  return /^\d{1,20}-\d{1,20}$/.test(text) && partsOf(text).every(part => part < idPartLimit)
}
