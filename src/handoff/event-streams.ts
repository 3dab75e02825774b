import { setTimeout as sleep } from 'node:timers/promises'
import type { Grant } from '../auth/grant.ts'
import { Problem } from '../errors.ts'
import { Unavailable } from '../redis/lanes.ts'
import { passes } from './event-answer.ts'
import type { Event, EventFilter } from './event-answer.ts'
import type { EventService } from './events.ts'
import type { Place, Read } from './feed-reader.ts'
import type { WaitOptions } from './waiter.ts'

/** How long a stream is silent at most, in milliseconds: then it says how far it has read. */
const keepAlive = 15_000
/** When a stream ends by itself, in milliseconds; its client goes on with another, at any replica. */
const longestStream = 3_600_000
/** How long a client waits before it connects again, in milliseconds (`retry:`). */
const reconnectAfter = 2000
const streamsPerKey = 10
/** How long a stream waits before it asks Redis again, when Redis is away, in milliseconds. */
const retryPause = 1000

const reset = 'event: reset\ndata: {}\n\n'

/** What a stream sends, and what is to be called when it is over. */
export interface OpenStream { text: AsyncGenerator<string>, close: () => void }

/** Streams of server-sent events (the HTML standard, 9.2). A stream has a place in the feed and no queue: a slow client reads later. */
export class EventStreams {
  readonly #service: EventService
  readonly #byKey = new Map<unknown, number>()
  readonly #open = new Set<() => void>()
  #draining = false

  constructor (service: EventService) {
    this.#service = service
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
   * The text of a stream. Call `close` when it is over, also where nobody has begun to read the text.
   * @param key who may have ten at once
   * @throws {Problem} that key has as many
   */
  open (tenant: string, key: unknown, filter: EventFilter, start: Place, { grant, onGone }: Pick<WaitOptions, 'grant' | 'onGone'>): OpenStream {
    const open = this.#byKey.get(key) ?? 0
    if (open >= streamsPerKey) {
      throw new Problem('rate_limited', { detail: `This key has ${streamsPerKey} streams open at this replica; close one.`, headers: { 'retry-after': '2' } })
    }
    const stream = new Sleeper()
    const text = this.#stream(tenant, filter, start, stream, grant(), onGone)
    this.#byKey.set(key, open + 1)
    this.#open.add(stream.wake)
    const close = () => {
      if (!this.#open.delete(stream.wake)) return
      stream.stop()
      const left = this.#byKey.get(key)! - 1
      if (left > 0) this.#byKey.set(key, left)
      else this.#byKey.delete(key)
    }
    return { text, close }
  }

  async * #stream (tenant: string, filter: EventFilter, start: Place, stream: Sleeper, grant: Grant, onGone: WaitOptions['onGone']): AsyncGenerator<string> {
    const leave = [onGone(stream.stop)]
    try {
      yield `retry: ${reconnectAfter}\n\n`
      const changed = () => {
        this.#service.reader.changed(tenant)
        stream.wake()
      }
      leave.push(await this.#service.feed.listen(tenant, changed), await grant.onEnd(stream.stop))
      yield * this.#frames(tenant, filter, start, stream, grant)
    } finally {
      for (const stop of leave) stop()
    }
  }

  async * #frames (tenant: string, filter: EventFilter, start: Place, stream: Sleeper, grant: Grant): AsyncGenerator<string> {
    const { retention } = this.#service.feed
    const end = performance.now() + longestStream
    let told = performance.now()
    let isMore = false
    for (let place = start; !stream.isStopped && !this.#draining && performance.now() < end;) {
      stream.begin()
      const read = await this.#read(tenant, place, isMore, grant)
      if (read === 'refused' || stream.isStopped) return
      place = read?.place ?? place
      isMore = read?.isMore ?? false
      const frames = (read?.isReset === true ? reset : '') + (read?.events ?? []).filter(event => passes(event, filter)).map(frameOf).join('')
      const silence = performance.now() - told
      if (frames !== '' || silence >= keepAlive) {
        yield frames || `: keep-alive\nid: ${place.next}\n\n`
        told = performance.now()
      } else if (read !== undefined && !isMore) {
        await stream.sleep(Math.min(keepAlive - silence, retention / 2))
      }
    }
  }

  /** The next events; undefined while Redis is away: a client that reads a 503 may not come back. */
  async #read (tenant: string, place: Place, isMore: boolean, grant: Grant): Promise<Read | undefined | 'refused'> {
    try {
      await grant.authorise()
      return await this.#service.reader.next(tenant, place, isMore)
    } catch (error) {
      if (!(error instanceof Unavailable) && !(error instanceof Problem && error.code === 'unavailable')) return 'refused'
      await sleep(retryPause)
      return undefined
    }
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
