import { setTimeout as sleep } from 'node:timers/promises'
import { Unavailable } from '../core/errors.ts'
import { randomToken } from '../core/ids.ts'
import { typesForPeople, webhookTypes } from '../core/model.ts'
import { Round, within } from '../core/round.ts'
import { isAfter, passes, readEvent, typeIn } from '../handoffs/feed/feed.ts'
import type { Event } from '../handoffs/feed/feed.ts'
import type { FeedEntry, Events } from '../store/events.ts'
import { inGroups } from '../store/lists.ts'
import type { Delivery, DisabledReason, Webhook } from '../store/webhook-records.ts'
import type { Claimed, Tried, Webhooks } from '../store/webhooks.ts'
import { updateTypes } from './messages.ts'
import type { Post } from './post.ts'
import { disableAfter, pauseAfter } from './sender.ts'
import type { Answer } from './sender.ts'
import type { Permits } from './permits.ts'

/** Events read from a feed at once. */
const pageSize = 500
/** The same for a webhook's replay. */
const replayPageSize = 250
/** How long a look waits until new events are noticed, in milliseconds. */
const maxListenTime = 5000
/** For how many of its webhooks a tenant plans a page at once: each call may make 500 deliveries. */
const plansAtOnce = 4

const allTypes = new Set(webhookTypes)
const peoplesTypes = new Set(typesForPeople)

export interface TenantOptions extends EndpointOptions {
  events: Events
  /** The beginning of links in events. */
  baseUrl: () => string
  /** Runs one step of a replay when it is its turn: tenants take turns. */
  replayTurn (step: () => Promise<void>): Promise<void>
  /** The same for one step of planning what happens. */
  lookTurn (step: () => Promise<void>): Promise<void>
}

/** Makes the deliveries of a tenant's events, for each of its webhooks, as its feed gets them. */
export class TenantWebhooks {
  readonly #tenant: string
  readonly #options: TenantOptions
  readonly #endpoints = new Map<string, WebhookEndpoint>()
  /** Where one fails, the deliverer's next round wakes it. */
  readonly #looks: Round
  /** Replays are planned beside new events. */
  readonly #replays: Round
  /** Whether webhooks may have been made, changed or deleted since they were read. */
  #isStale = true
  #leave: Promise<() => void> | undefined

  constructor (tenant: string, options: TenantOptions) {
    this.#tenant = tenant
    this.#options = options
    const { onFault } = options
    this.#looks = new Round({ interval: Infinity, run: () => this.#look(), onFault })
    this.#replays = new Round({ interval: Infinity, run: () => this.#replayAll(), onFault })
  }

  /** Had it no webhooks when it looked last? */
  get isEmpty (): boolean {
    return !this.#isStale && this.#endpoints.size === 0
  }

  /** Webhooks may have changed, or all of it is to be looked at again. */
  refresh (): void {
    this.#isStale = true
    this.#wake()
  }

  /** Takes no more. Resolves when what is under way has ended. */
  async stop (): Promise<void> {
    this.#leave?.then(leave => leave(), () => {})
    await Promise.all([this.#looks.stop(), this.#replays.stop()])
    await Promise.all([...this.#endpoints.values()].map(endpoint => endpoint.stop()))
  }

  readonly #wake = () => {
    if (this.#isStopped) return
    this.#leave ??= this.#options.events.listen(this.#tenant, this.#wake)
    this.#looks.wake()
  }

  get #isStopped (): boolean {
    return this.#looks.signal.aborted
  }

  async #look (): Promise<void> {
    // Each round looks, notified or not: a subscription without an answer delays looks, and prevents none.
    await within(maxListenTime, this.#leave!)
    if (this.#isStopped) return
    if (this.#isStale) await this.#options.lookTurn(() => this.#read())
    const enabled = [...this.#endpoints.values()].filter(({ webhook, isFull }) => webhook.disabled === null && !isFull)
    // Most are equally far, and share reads.
    const places = new Set(enabled.map(({ readTo }) => readTo))
    const plan = (place: string) => this.#plan(place, enabled.filter(({ readTo }) => readTo === place))
    for (const place of places) await this.#options.lookTurn(() => plan(place))
  }

  /** Which webhooks there are. */
  async #read (): Promise<void> {
    this.#isStale = false
    const { now, webhooks: found } = await this.#options.webhooks.listed(this.#tenant).catch(error => {
      this.#isStale = true
      throw error
    })
    for (const [id, endpoint] of this.#endpoints) {
      if (found.some(webhook => webhook.id === id)) continue
      this.#endpoints.delete(id)
      endpoint.stop().catch(error => this.#options.onFault(error))
    }
    for (const webhook of found) {
      const known = this.#endpoints.get(webhook.id)
      // Another place: a replay was requested, or it was enabled anew.
      if (known === undefined) {
        this.#endpoints.set(webhook.id, new WebhookEndpoint(this.#tenant, webhook, this.#options))
      } else {
        if (known.webhook.cursor !== webhook.cursor) known.readTo = webhook.cursor
        known.webhook = webhook
        known.isFull = known.isReplayFull = false
      }
      this.#endpoints.get(webhook.id)!.expect(webhook.first, now)
    }
    this.#replays.wake()
  }

  /** A step of each webhook that replays. After a failure the next round goes on at the place that Redis has. */
  async #replayAll (): Promise<number> {
    const open = [...this.#endpoints.values()].filter(({ webhook, isReplayFull }) =>
      webhook.replay !== null && webhook.disabled === null && !isReplayFull)
    for (const endpoint of open) await this.#options.replayTurn(() => this.#replaySome(endpoint))
    return open.length > 0 ? 0 : Infinity
  }

  /**
   * One step of a webhook's replay: its place is kept in Redis with the deliveries, so that another replica can go on
   * from there.
   */
  async #replaySome (endpoint: WebhookEndpoint): Promise<void> {
    const { webhook } = endpoint
    if (webhook.replay === null || this.#isStopped) return
    const { from, to } = webhook.replay
    const { entries } = await this.#options.events.read(this.#tenant, from, replayPageSize)
    const within = entries.filter(({ id }) => !isAfter(id, to))
    const place = within.length < replayPageSize ? null : within.at(-1)!.id
    const wanted = within.filter(entry => isFor(webhook, readEvent(entry, this.#options.baseUrl())))
    const { outcome } = await this.#options.webhooks.planReplay(this.#tenant, webhook.id, { from, to }, place, wanted)
    if (outcome === 'deliveries_full') endpoint.isReplayFull = true
    else endpoint.webhook.replay = outcome !== 'planned' || place === null ? null : { from: place, to }
    if (outcome === 'planned') endpoint.wake()
    // Deleted, disabled, or a replay was requested from elsewhere or further: Redis says which.
    else if (outcome !== 'deliveries_full') this.refresh()
  }

  /** Makes the deliveries of events after a place in the feed. */
  async #plan (place: string, endpoints: WebhookEndpoint[]): Promise<void> {
    const { entries } = await this.#options.events.read(this.#tenant, place, pageSize)
    const last = entries.at(-1)
    if (last === undefined) return
    const read = entries.map(entry => ({ entry, event: readEvent(entry, this.#options.baseUrl()) }))
    const planFor = (endpoint: WebhookEndpoint) => {
      const wanted = read.filter(({ event }) => isFor(endpoint.webhook, event)).map(({ entry }) => entry)
      return this.#planFor(endpoint, wanted, last.id, entries.length === pageSize)
    }
    for (const some of inGroups(endpoints, plansAtOnce)) await Promise.all(some.map(planFor))
  }

  /** @param isMore there is more after it: then its place is kept even where nothing was for it */
  async #planFor (endpoint: WebhookEndpoint, wanted: FeedEntry[], last: string, isMore: boolean): Promise<void> {
    if (wanted.length === 0 && !isMore) {
      endpoint.readTo = last
      return
    }
    const planned =
      await this.#options.webhooks.plan(this.#tenant, endpoint.webhook.id, endpoint.webhook.cursor, last, wanted)
    if (planned.outcome === 'gone') this.refresh()
    else if (planned.outcome === 'deliveries_full') endpoint.isFull = true
    else {
      endpoint.webhook.cursor = endpoint.readTo = planned.place
      if (isMore || planned.outcome === 'moved') this.#wake()
      endpoint.wake()
    }
  }
}

/** Is an event for a webhook? What becomes of webhooks themselves is in the feed alone. */
export function isFor (
  { types, inbox, format, labels, updates }: Pick<Webhook, 'types' | 'inbox' | 'format' | 'labels' | 'updates'>,
  event: Event
): boolean {
  const isForPeople = types === null && format !== 'standard'
  // A handoff that is tried again needs no person yet.
  if (!allTypes.has(event.type) || (isForPeople && event.reissuedAs !== null)) return false
  const wanted = updates && updateTypes.has(event.type)
    ? null
    : isForPeople ? peoplesTypes : types === null ? null : new Set(types)
  return passes(event, { types: wanted, handoffId: null, inbox, labels })
}

/** Attempts at one receiver at once. */
const atOnce = 16
/** The same after a failure, until a success: a receiver that hangs holds so many connections of ours. */
const atOnceWhileFailing = 4
/**
 * When another replica may claim a delivery that was claimed and not noted, in milliseconds: longer than an attempt and
 * its note can take.
 */
export const claimLease = 30_000
/** How long to wait before Redis is asked again when it is away, in milliseconds. */
export const retryPause = 1000
/** The longest time that a timer is set to, in milliseconds: a clock may be set. */
export const maxSleep = 60_000

/** Attempts by how they went. */
interface DeliveryCounts { delivered: number, again: number, failed: number }

interface EndpointOptions {
  webhooks: Webhooks
  post: Post
  permits: { posts: Permits, mails: Permits }
  counts: DeliveryCounts
  onDisabled (tenant: string, id: string, reason: DisabledReason): void
  onFault (error: unknown): void
}

/** Delivers to one webhook: claims due deliveries, tries them, notes the results, and sleeps until others are due. */
class WebhookEndpoint {
  readonly #tenant: string
  readonly #options: EndpointOptions
  readonly #underWay = new Set<Promise<void>>()
  readonly #claims: Round
  #isFailing = false
  webhook: Webhook
  /** How far the feed was read; its place in Redis may be behind, where nothing was for it. */
  readTo: string
  /** Too many deliveries are pending. The next round plans more. */
  isFull = false
  /** The same for its replay. */
  isReplayFull = false

  constructor (tenant: string, webhook: Webhook, options: EndpointOptions) {
    this.#tenant = tenant
    this.#options = options
    this.webhook = webhook
    this.readTo = webhook.cursor
    this.#claims = new Round({ interval: retryPause, run: () => this.#claim(), onFault: options.onFault })
  }

  /** @param first when the first pending delivery is due, as of `now`; null if none is pending */
  expect (first: number | null, now: number): void {
    this.#claims.wake(untilDue(first, now))
  }

  /** Something may be due. */
  readonly wake = (): void => this.#claims.wake()

  /** Takes no more. Resolves when what is under way is noted. */
  async stop (): Promise<void> {
    const stopped = this.#claims.stop()
    this.#permits.leave(this.#tenant, this.wake)
    await stopped
    await Promise.all(this.#underWay)
  }

  get #free (): number {
    return (this.#isFailing ? atOnceWhileFailing : atOnce) - this.#underWay.size
  }

  get #permits (): Permits {
    return this.#options.permits[this.webhook.format === 'mail' ? 'mails' : 'posts']
  }

  /** @returns in how many milliseconds the next delivery is due. The end of an attempt wakes it before. */
  async #claim (): Promise<number> {
    if (this.#free <= 0) return Infinity
    // Before they are claimed: a claim doesn't last for long.
    let permits = this.#permits.take(this.#tenant, this.#free, this.wake)
    if (permits === 0) return Infinity
    try {
      const claimed =
        await this.#options.webhooks.claim(this.#tenant, this.webhook, permits, claimLease, randomToken())
      if (claimed === null) return Infinity
      permits -= claimed.deliveries.length
      for (const delivery of claimed.deliveries) this.#begin(claimed, delivery)
      return untilDue(claimed.first, claimed.now)
    } finally {
      this.#permits.giveBack(this.#tenant, permits, this.wake)
    }
  }

  #begin (claimed: Claimed, delivery: Delivery): void {
    const attempt = this.#try(claimed, delivery).catch(this.#options.onFault).finally(() => {
      this.#underWay.delete(attempt)
      this.#permits.giveBack(this.#tenant, 1, this.wake)
      this.wake()
    })
    this.#underWay.add(attempt)
  }

  async #try (claimed: Claimed, delivery: Delivery): Promise<void> {
    const takenAt = performance.now()
    const answer = await this.#options.post.send(this.#tenant, this.webhook, claimed, delivery)
    // Stopping it ends the attempts: another replica makes this one again.
    if (this.#claims.signal.aborted && answer.error === 'timeout') return
    const tried = outcomeOf(answer, typeIn(delivery.text), delivery.attempts + 1)
    this.#isFailing = tried.outcome !== 'delivered'
    await this.#note(delivery, tried, takenAt)
    // It counts as under way until then: who answers at once and then slowly says more would get thousands of
    // connections.
    await answer.over
  }

  /** Notes how it went, also when Redis is away for a while: what isn't noted is delivered again. */
  async #note (delivery: Delivery, tried: Tried, takenAt: number): Promise<void> {
    const { webhooks, counts, onDisabled } = this.#options
    for (;;) {
      try {
        const disabled = await webhooks.tried(this.#tenant, this.webhook.id, delivery, tried, disableAfter)
        counts[tried.outcome === 'gone' ? 'failed' : tried.outcome]++
        if (disabled !== null) onDisabled(this.#tenant, this.webhook.id, disabled)
        return
      } catch (error) {
        const isOver = this.#claims.signal.aborted || performance.now() - takenAt > claimLease
        if (!(error instanceof Unavailable) || isOver) throw error
        await sleep(retryPause)
      }
    }
  }
}

/** @returns milliseconds; Infinity where nothing is pending */
function untilDue (first: number | null, now: number): number {
  return first === null ? Infinity : Math.min(Math.max(0, first - now), maxSleep)
}

export function outcomeOf ({ status, error, retryAfter }: Answer, type: string, tried: number): Tried {
  const how = { status, error }
  if (status !== null && status >= 200 && status < 300) return { outcome: 'delivered', ...how }
  if (status === 410) return { outcome: 'gone', ...how }
  // A test is tried once.
  const after = type === testType ? null : pauseAfter(tried, retryAfter)
  return after === null ? { outcome: 'failed', ...how } : { outcome: 'again', ...how, after }
}

/** The event that tries a webhook. */
export const testType = 'webhook.test'
