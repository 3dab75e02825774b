import { setTimeout as sleep } from 'node:timers/promises'
import { iso } from '../handoff/answers.ts'
import { toldIn } from '../handoff/event-answer.ts'
import { randomToken } from '../handoff/id.ts'
import { Unavailable } from '../redis/lanes.ts'
import type { Claimed, Delivery, DisabledReason, Tried, Webhook, Webhooks } from '../store/webhooks.ts'
import { disableAfter, pauseAfter } from './schedule.ts'
import type { WebhookSecrets } from './secrets.ts'
import type { Answer, Sender } from './sender.ts'

/** Attempts at one receiver at once. */
const atOnce = 16
/** The same after a failure, until a success: a receiver that hangs holds so many connections of ours. */
const atOnceWhileFailing = 4
/** When another replica may take what was claimed and not noted, in milliseconds: longer than an attempt, and noting it, can take. */
const claimLease = 30_000
/** How long to wait before Redis is asked again when it is away, in milliseconds. */
const retryPause = 1000
/** The longest time that a timer is set to, in milliseconds: a clock may be set. */
const longestSleep = 60_000

/** Attempts by how they went. */
export interface DeliveryCounts { delivered: number, again: number, failed: number }

export interface EndpointOptions {
  webhooks: Webhooks
  secrets: WebhookSecrets
  sender: Sender
  counts: DeliveryCounts
  onDisabled (tenant: string, id: string, reason: DisabledReason): void
  onFault (error: unknown): void
}

/** Delivers to one webhook: takes what is due, tries it, notes how it went, and sleeps until more is due. */
export class Endpoint {
  readonly #tenant: string
  readonly #options: EndpointOptions
  readonly #underWay = new Set<Promise<void>>()
  #isFailing = false
  #isClaiming = false
  #isAsked = false
  #isStopped = false
  #timer: NodeJS.Timeout | undefined
  webhook: Webhook
  /** How far the feed was read; its place in Redis may be behind, where nothing was for it. */
  readTo: string
  /** Too many deliveries are pending. The next round plans more. */
  isFull = false
  /** The same for what it replays. */
  isReplayFull = false

  constructor (tenant: string, webhook: Webhook, options: EndpointOptions) {
    this.#tenant = tenant
    this.#options = options
    this.webhook = webhook
    this.readTo = webhook.cursor
  }

  /** Something may be due. */
  wake (): void {
    this.#isAsked = true
    if (this.#isClaiming || this.#isStopped) return
    this.#isClaiming = true
    clearTimeout(this.#timer)
    this.#claimAll().catch(error => this.#failed(error)).finally(() => {
      this.#isClaiming = false
      if (this.#isAsked && this.#free > 0) this.wake()
    })
  }

  /** Takes no more. Resolves when what is under way is noted. */
  async stop (): Promise<void> {
    this.#isStopped = true
    clearTimeout(this.#timer)
    await Promise.all(this.#underWay)
  }

  get #free (): number {
    return (this.#isFailing ? atOnceWhileFailing : atOnce) - this.#underWay.size
  }

  async #claimAll (): Promise<void> {
    while (this.#isAsked && !this.#isStopped) {
      this.#isAsked = false
      if (this.#free <= 0) return
      const claimed = await this.#options.webhooks.claim(this.#tenant, this.webhook.id, this.#free, claimLease, randomToken())
      if (claimed === null) return
      for (const delivery of claimed.deliveries) this.#begin(claimed, delivery)
      this.#sleep(claimed)
    }
  }

  /** Until the first of what is left is due. Whatever ends before asks again by itself. */
  #sleep ({ now, first }: Claimed): void {
    clearTimeout(this.#timer)
    if (first === null || this.#isStopped) return
    this.#timer = setTimeout(() => this.wake(), Math.min(Math.max(0, first - now), longestSleep))
    this.#timer.unref()
  }

  #begin (claimed: Claimed, delivery: Delivery): void {
    const attempt = this.#try(claimed, delivery).catch(error => this.#failed(error)).finally(() => {
      this.#underWay.delete(attempt)
      this.wake()
    })
    this.#underWay.add(attempt)
  }

  async #try ({ url, generation, oldUntil, now }: Claimed, delivery: Delivery): Promise<void> {
    const { secrets, sender } = this.#options
    const { type, data } = toldIn(delivery.text)
    const body = JSON.stringify({ type, timestamp: iso(timeOf(delivery.id)), data })
    const headers = secrets.sign({ id: this.webhook.id, generation, oldUntil }, delivery.id, new Date(now), body)
    const takenAt = performance.now()
    const answer = await sender.send(this.#tenant, url, headers, body)
    // Whoever stops it ends the attempts: another replica makes this one again.
    if (this.#isStopped && answer.error === 'timeout') return
    const tried = outcomeOf(answer, type, delivery.attempts + 1)
    this.#isFailing = tried.outcome !== 'delivered'
    await this.#note(delivery, tried, takenAt)
    // It counts as under way until then: who answers at once and then slowly says more would get thousands of connections.
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
        if (!(error instanceof Unavailable) || this.#isStopped || performance.now() - takenAt > claimLease) throw error
        await sleep(retryPause)
      }
    }
  }

  #failed (error: unknown): void {
    if (!(error instanceof Unavailable)) this.#options.onFault(error)
    if (this.#isStopped) return
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.wake(), retryPause)
    this.#timer.unref()
  }
}

function outcomeOf ({ status, error, retryAfter }: Answer, type: string, tried: number): Tried {
  const how = { status, error }
  if (status !== null && status >= 200 && status < 300) return { outcome: 'delivered', ...how }
  if (status === 410) return { outcome: 'gone', ...how }
  // A test is tried once.
  const after = type === testType ? null : pauseAfter(tried, retryAfter)
  return after === null ? { outcome: 'failed', ...how } : { outcome: 'again', ...how, after }
}

/** What somebody sends to try a webhook. */
export const testType = 'webhook.test'

/** When what a delivery is of happened: an event's id begins with it, and so does a test's behind its name. */
export function timeOf (id: string): number {
  return Number(/\d+/.exec(id)![0])
}
