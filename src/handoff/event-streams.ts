import { setTimeout as sleep } from 'node:timers/promises'
import type { Grant } from '../auth/grant.ts'
import { Problem } from '../errors.ts'
import type { Subscriptions } from '../redis/subscriptions.ts'
import { Unavailable } from '../redis/lanes.ts'
import { passes, readEvent } from './event-answer.ts'
import type { Event, EventFilter } from './event-answer.ts'
import type { EventService, Start } from './events.ts'
import type { WaitOptions } from './waiter.ts'

/** How long a stream is silent at most, in milliseconds: then it says how far it has read. */
const keepAlive = 15_000
/** When a stream ends by itself, in milliseconds; its client goes on with another, at any replica. */
const longestStream = 3_600_000
/** How long a client waits before it connects again, in milliseconds (`retry:`). */
const reconnectAfter = 2000
const streamsPerKey = 10
const pageSize = 500
/** How long a stream waits before it asks Redis again, when Redis is away, in milliseconds. */
const retryPause = 1000

/** Streams of server-sent events (the HTML standard, 9.2). A stream has a place in the feed and no queue: a slow client reads later. */
export class EventStreams {
  readonly #service: EventService
  readonly #subscriptions: Subscriptions
  readonly #byKey = new Map<unknown, number>()
  readonly #pages = new Map<string, Promise<Event[]>>()
  readonly #open = new Set<() => void>()
  #draining = false

  constructor (service: EventService, subscriptions: Subscriptions) {
    this.#service = service
    this.#subscriptions = subscriptions
  }

  /** How many are open. */
  get count (): number {
    return this.#open.size
  }

  /** The service stops: each stream ends, and its client connects to another replica. */
  drain (): void {
    this.#draining = true
    for (const wake of this.#open) wake()
  }

  /**
   * The text of a stream.
   * @param key who may have ten at once
   * @throws {Problem} that key has as many
   */
  open (tenant: string, key: unknown, filter: EventFilter, start: Start, { grant, onGone }: Pick<WaitOptions, 'grant' | 'onGone'>): AsyncGenerator<string> {
    const open = this.#byKey.get(key) ?? 0
    if (open >= streamsPerKey) {
      throw new Problem('rate_limited', { detail: `This key has ${streamsPerKey} streams open at this replica; close one.`, headers: { 'retry-after': '2' } })
    }
    this.#byKey.set(key, open + 1)
    let isOpen = true
    const closed = () => {
      if (!isOpen) return
      isOpen = false
      const left = this.#byKey.get(key)! - 1
      if (left > 0) this.#byKey.set(key, left)
      else this.#byKey.delete(key)
    }
    // A client that has gone already is never sent anything, so the generator doesn't begin, nor end.
    const leave = onGone(closed)
    return this.#stream(tenant, filter, start, grant(), onGone, () => {
      leave()
      closed()
    })
  }

  async * #stream (tenant: string, filter: EventFilter, start: Start, grant: Grant, onGone: WaitOptions['onGone'], closed: () => void): AsyncGenerator<string> {
    const stream = new Sleeper()
    const leave = [closed, onGone(stream.stop), () => this.#open.delete(stream.wake)]
    this.#open.add(stream.wake)
    try {
      yield `retry: ${reconnectAfter}\n\n${start.isReset ? 'event: reset\ndata: {}\n\n' : ''}`
      const changed = () => {
        // What is being read for others may have been read before this change.
        for (const place of this.#pages.keys()) if (place.startsWith(`${tenant} `)) this.#pages.delete(place)
        stream.wake()
      }
      leave.push(await this.#subscriptions.listen(this.#service.feed.channelOf(tenant), changed), await grant.onEnd(stream.stop))
      yield * this.#frames(tenant, filter, start.after, stream, grant)
    } finally {
      for (const stop of leave) stop()
    }
  }

  async * #frames (tenant: string, filter: EventFilter, after: string, stream: Sleeper, grant: Grant): AsyncGenerator<string> {
    const end = performance.now() + longestStream
    let told = performance.now()
    for (let from = after; !stream.isStopped && !this.#draining && performance.now() < end;) {
      stream.begin()
      const events = await this.#read(tenant, from, grant)
      if (events === 'refused' || stream.isStopped) return
      from = events.at(-1)?.id ?? from
      const frames = events.filter(event => passes(event, filter)).map(frameOf).join('')
      if (frames !== '') yield frames
      else if (performance.now() - told >= keepAlive) yield `: keep-alive\nid: ${from}\n\n`
      else {
        if (events.length < pageSize) await stream.sleep(told + keepAlive - performance.now())
        continue
      }
      told = performance.now()
    }
  }

  /** The next events; none while Redis is away: a client that reads a 503 may not come back. */
  async #read (tenant: string, from: string, grant: Grant): Promise<Event[] | 'refused'> {
    try {
      await grant.authorise()
      return await this.#page(tenant, from)
    } catch (error) {
      if (!(error instanceof Unavailable) && !(error instanceof Problem && error.code === 'unavailable')) return 'refused'
      await sleep(retryPause)
      return []
    }
  }

  /** All streams that are equally far share what is read. */
  #page (tenant: string, from: string): Promise<Event[]> {
    const place = `${tenant} ${from}`
    const known = this.#pages.get(place)
    if (known !== undefined) return known
    const page = this.#service.feed.read(tenant, from, pageSize).then(({ entries }) => entries.map(readEvent)).finally(() => {
      if (this.#pages.get(place) === page) this.#pages.delete(place)
    })
    this.#pages.set(place, page)
    return page
  }
}

function frameOf ({ id, type, text }: Event): string {
  return `id: ${id}\nevent: ${type}\ndata: ${text}\n\n`
}

/** A stream's sleep: until it is woken, or a time is over. What wakes it while it reads counts. */
class Sleeper {
  isStopped = false
  #isWoken = false
  #resolve = () => {}

  begin (): void {
    this.#isWoken = false
  }

  readonly wake = () => {
    this.#isWoken = true
    this.#resolve()
  }

  readonly stop = () => {
    this.isStopped = true
    this.wake()
  }

  async sleep (milliseconds: number): Promise<void> {
    if (this.#isWoken || this.isStopped) return
    const woken = new Promise<void>(resolve => { this.#resolve = resolve })
    const timer = setTimeout(this.wake, Math.max(0, milliseconds))
    await woken
    clearTimeout(timer)
  }
}
