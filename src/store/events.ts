import type { Lanes } from '../redis/lanes.ts'
import type { Scripts } from '../redis/scripts.ts'
import type { Subscriptions } from '../redis/subscriptions.ts'
import { homeTagOf } from './partitions.ts'
import type { KeyNames } from './key-names.ts'
import { Paced } from './leases.ts'
import { tagged } from './replies.ts'

/**
 * How long readers of a feed aren't woken again, in milliseconds: a thousand events a second are read ten at once,
 * instead of one by one.
 */
const pace = 10
/** How many events one call removes from an outbox. */
const trimmedAtOnce = 1000
/** How long a feed's length counts after it was read, in milliseconds. */
const lengthLifetime = 60_000

/**
 * Events of one tenant and partition, as they stand in the outbox, and the number of the event before them; 0 where
 * they are its first.
 */
export interface EventBatch { tag: string, from: string, events: readonly string[] }

/** A partition with events that the feed lacks: the number of the last event that the feed has. */
export interface Missing { tag: string, moved: string }

/** An event as the feed keeps it (lua/lib/events.lua). */
export interface FeedEntry { id: string, text: string }

/** A part of a feed (lua/feed.lua). */
export interface FeedPage {
  /** The id of the last event that was ever given, and of the first that is kept; null where none is kept. */
  newest: string | null
  oldest: string | null
  /** Redis's, in milliseconds. */
  clock: number
  /**
   * Events that were written from then on are kept, unless they are too old (ms); null if that wasn't noted, or wasn't
   * read; undefined if it can't be read now.
   */
  since: number | null | undefined
  /** Whether that is noted for as long as anybody may go on from now. */
  isNoted: boolean
  entries: FeedEntry[]
}

/** The outboxes and feeds in Redis: one method a script. */
export class Events {
  readonly #lanes: Lanes
  readonly #scripts: Scripts
  readonly #keyNames: KeyNames
  readonly #tags: readonly string[]
  readonly #retention: string
  readonly #news: Paced
  /** Of the feeds that were read within that time, the last one read at the end. */
  readonly #lengths = new Map<string, { length: number, at: number }>()
  /** How long a feed keeps an event, in milliseconds. */
  readonly retention: number

  constructor (
    lanes: Lanes, scripts: Scripts, keyNames: KeyNames, tags: readonly string[], retention: number,
    subscriptions: Subscriptions
  ) {
    this.#lanes = lanes
    this.#scripts = scripts
    this.#keyNames = keyNames
    this.#tags = tags
    this.retention = retention
    this.#retention = String(retention)
    this.#news = new Paced(subscriptions, pace)
  }

  /**
   * Calls `wake` when a tenant has new events, a few milliseconds apart at least. Resolves, once that is so, with what
   * ends it.
   */
  listen (tenant: string, wake: () => void): Promise<() => void> {
    return this.#news.listen(this.#keyNames.feed(homeTagOf(tenant, this.#tags), tenant), wake)
  }

  /**
   * Appends events to a tenant's feed, each once, however often it is moved. A batch without events only asks whether
   * all up to `from` are there.
   * @returns the partitions of which something is missing, so that their batch was not appended
   */
  relay (tenant: string, batches: readonly EventBatch[]): Promise<Missing[]> {
    const tag = homeTagOf(tenant, this.#tags)
    const heads = batches.map(({ tag, from, events }) => `${tag} ${from} ${events.length}`).join(' ')
    const lines = batches.flatMap(({ events }) => events.map(event => `${event}\n`)).join('')
    const keys = [this.#keyNames.feed(tag, tenant), this.#keyNames.relayed(tag, tenant)]
    return this.#lanes.call({
      script: this.#scripts.relay, tag, keys, texts: [this.#retention, heads, lines], decode: readMissing
    })
  }

  /** An outbox's events after this number, at most so many. */
  outbox (tag: string, tenant: string, after: string, max: number): Promise<string[]> {
    const keys = [this.#keyNames.outbox(tag, tenant)]
    return this.#lanes.call({
      script: this.#scripts.outbox,
      tag,
      keys,
      texts: [after, String(max)],
      decode: reply => tagged(reply).slice(1).map(String)
    })
  }

  /** Removes an outbox's events up to this number, which are in the feed. @returns how many */
  async trim (tag: string, tenant: string, upto: string): Promise<number> {
    const keys = [this.#keyNames.outbox(tag, tenant), this.#keyNames.outboxes(tag)]
    const texts = [upto, tenant, String(trimmedAtOnce)]
    for (let all = 0; ;) {
      const removed = await this.#lanes.call({
        script: this.#scripts.trim, tag, keys, texts, decode: reply => tagged(reply)[1] as number
      })
      all += removed
      if (removed < trimmedAtOnce) return all
    }
  }

  /** Reads a tenant's feed after an id. @param after null: only the newest and the oldest id are asked for */
  read (tenant: string, after: string | null, max: number): Promise<FeedPage> {
    const tag = homeTagOf(tenant, this.#tags)
    const [feed, note] = this.#feedKeys(tag, tenant)
    return this.#lanes.call({
      script: this.#scripts.feed,
      tag,
      keys: [feed],
      texts: [after ?? '', String(max), this.#retention, note],
      decode: reply => this.#readFeed(tenant, reply)
    })
  }

  /** Nothing is kept: notes since when nothing was lost. @returns Redis's clock; null if something is kept by now */
  note (tenant: string): Promise<number | null> {
    const tag = homeTagOf(tenant, this.#tags)
    const keys = this.#feedKeys(tag, tenant)
    return this.#lanes.call({
      script: this.#scripts['feed-note'],
      tag,
      keys,
      texts: [this.#retention],
      decode: reply => tagged(reply)[0] === 'noted' ? Number(tagged(reply)[1]) : null
    })
  }

  #feedKeys (tag: string, tenant: string): [string, string] {
    return [this.#keyNames.feed(tag, tenant), this.#keyNames.feedSince(tag, tenant)]
  }

  /**
   * How many events the longest feed has that this replica read within the last minute; null if it read none.
   */
  maxLength (): number | null {
    this.#dropOldLengths(performance.now())
    return this.#lengths.size === 0 ? null : Math.max(...[...this.#lengths.values()].map(({ length }) => length))
  }

  /** With each read: the tenant with the longest feed may never be read again. */
  #dropOldLengths (now: number): void {
    for (const [tenant, { at }] of this.#lengths) {
      if (at >= now - lengthLifetime) return
      this.#lengths.delete(tenant)
    }
  }

  #readFeed (tenant: string, reply: unknown): FeedPage {
    const [, newest, oldest, length, clock, since, noted, ...parts] = tagged(reply)
    const at = performance.now()
    this.#dropOldLengths(at)
    this.#lengths.delete(tenant)
    this.#lengths.set(tenant, { length: length as number, at })
    const entries: FeedEntry[] = []
    for (let at = 0; at < parts.length; at += 2) entries.push({ id: String(parts[at]), text: String(parts[at + 1]) })
    const known = String(since)
    return {
      newest: String(newest) || null,
      oldest: String(oldest) || null,
      clock: Number(clock),
      since: known === '' ? null : known === '?' ? undefined : Number(known),
      isNoted: noted === 1,
      entries
    }
  }
}

function readMissing (reply: unknown): Missing[] {
  const [, , ...parts] = tagged(reply)
  const missing: Missing[] = []
  for (let at = 0; at < parts.length; at += 2) missing.push({ tag: String(parts[at]), moved: String(parts[at + 1]) })
  return missing
}

/** Events in one call, which holds Redis up for a microsecond or two each. */
export const eventsPerCall = 256

/** The number of an event, as it stands in the outbox. */
export function numberOf (event: string): string {
  return event.slice(0, event.indexOf(' '))
}

/** Batches for one call each. */
export function inCalls (batches: EventBatch[]): EventBatch[][] {
  const calls: EventBatch[][] = []
  let left = 0
  for (const batch of batches.flatMap(inParts)) {
    if (left <= 0) {
      calls.push([])
      left = eventsPerCall
    }
    calls.at(-1)!.push(batch)
    left -= Math.max(1, batch.events.length)
  }
  return calls
}

/**
 * No more events than a call takes: Lua can't unpack thousands. A part follows the one before it, and never what that
 * one itself waits for.
 */
function inParts ({ tag, from, events }: EventBatch): EventBatch[] {
  const parts: EventBatch[] = []
  for (let at = 0; at < events.length; at += eventsPerCall) {
    const before = at === 0 ? from : String(Math.max(Number(from), Number(numberOf(events[at - 1]!))))
    parts.push({ tag, from: before, events: events.slice(at, at + eventsPerCall) })
  }
  return parts
}
