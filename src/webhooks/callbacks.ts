import { setTimeout as sleep } from 'node:timers/promises'
import { PayloadLocked, Unavailable } from '../core/errors.ts'
import { iso } from '../core/iso.ts'
import { Round } from '../core/round.ts'
import { eventIn, messageText } from '../handoffs/feed/feed.ts'
import type { Callback, CallbackPlace, Callbacks } from '../store/callbacks.ts'
import { claimLease, maxSleep, outcomeOf, retryPause } from './tenant-webhooks.ts'
import { Permits } from './permits.ts'
import type { Answer, Sender, WebhookSecrets } from './sender.ts'

/** Attempts: a tenant has a share, however many addresses its callbacks go to. */
const callbackPermits = { total: 512, each: 0, shared: 48, always: 4 }
/** In how many partitions it takes what is due at once. */
const claimsAtOnce = 16
/** How often all partitions are asked, in milliseconds: where callbacks are announced, for what was missed. */
const lookEvery = { announced: 5000, otherwise: 2000 }

/** A message to be sent. `noteSent` notes that its receiver has it. */
export interface PushMessage {
  id: string
  url: string
  headers: Record<string, string>
  body: string | Buffer
  noteSent (): Promise<void>
}

/** Makes the messages of what isn't an event: what A2A tasks send to their push configs (a2a/push-messages.ts). */
export interface PushSource { of (tag: string, tenant: string, callback: Callback): Promise<PushMessage[]> }

interface CallbackOptions {
  callbacks: Callbacks
  pushes: PushSource
  secrets: WebhookSecrets
  sender: Pick<Sender, 'send'>
  /** What the links in events start with. */
  baseUrl: () => string
  onFault (error: unknown): void
}

/** Delivers what handoffs send to their passers' addresses: those of all tenants. The deliverer says when. */
export class CallbackDeliverer {
  /** Attempts by how they went; `gone`: those of the failed ones that got a 410. */
  readonly counts = { delivered: 0, retried: 0, failed: 0, gone: 0 }
  readonly #options: CallbackOptions
  readonly #permits = new Permits(callbackPermits)
  readonly #tenants = new Map<string, TenantCallbacks>()
  #lookedAt = -Infinity

  constructor (options: CallbackOptions) {
    this.#options = options
  }

  /** A message of the channel. */
  heard (message: string): void {
    const [tag, tenant] = message.split(' ') as [string, string]
    if (this.#lookedAt > -Infinity && tenant !== undefined) this.#tenant(tenant).expect(tag, null)
  }

  /** Looks for what is due, if it is time. */
  async look (tags: readonly string[]): Promise<void> {
    const { callbacks } = this.#options
    const every = callbacks.areAnnounced ? lookEvery.announced : lookEvery.otherwise
    if (performance.now() - this.#lookedAt < every) return
    this.#lookedAt = performance.now()
    for (const { tag, tenant, first } of await callbacks.places(tags)) this.#tenant(tenant).expect(tag, first)
    for (const [name, tenant] of this.#tenants) {
      if (!tenant.isIdle) continue
      this.#tenants.delete(name)
      tenant.stop().catch(this.#options.onFault)
    }
  }

  /** Another replica delivers, or this one stops. Resolves when what is under way is noted. */
  async forget (): Promise<void> {
    this.#lookedAt = -Infinity
    const tenants = [...this.#tenants.values()]
    this.#tenants.clear()
    await Promise.all(tenants.map(tenant => tenant.stop()))
  }

  #tenant (name: string): TenantCallbacks {
    const tenant = this.#tenants.get(name) ??
      new TenantCallbacks(name, { ...this.#options, permits: this.#permits, counts: this.counts })
    this.#tenants.set(name, tenant)
    return tenant
  }
}

interface TenantCallbackOptions extends CallbackOptions {
  permits: Permits
  counts: CallbackDeliverer['counts']
}

/** A tenant's callbacks: takes what is due, tries it, notes how it went, and sleeps until more is due. */
class TenantCallbacks {
  readonly #tenant: string
  readonly #options: TenantCallbackOptions
  readonly #claims: Round
  readonly #underWay = new Set<Promise<void>>()
  /** By partition: when the first is due by Redis's clock, and when that is here. */
  readonly #places = new Map<string, { first: number, at: number }>()
  /** Where something came while a claim was under way. */
  readonly #news = new Set<string>()

  constructor (tenant: string, options: TenantCallbackOptions) {
    this.#tenant = tenant
    this.#options = options
    this.#claims = new Round({ interval: retryPause, run: () => this.#claim(), onFault: options.onFault })
  }

  /** Had it nothing to deliver when it looked last? */
  get isIdle (): boolean {
    return this.#places.size === 0 && this.#underWay.size === 0 && !this.#claims.isUnderWay
  }

  /** @param first when the first is due there; null: now */
  expect (tag: string, first: CallbackPlace['first'] | null): void {
    const known = this.#places.get(tag)
    if (known !== undefined && first !== null && known.first <= first) return
    this.#places.set(tag, { first: first ?? 0, at: performance.now() })
    this.#news.add(tag)
    this.#wake()
  }

  /** Takes no more. Resolves when what is under way is noted. */
  async stop (): Promise<void> {
    const stopped = this.#claims.stop()
    this.#options.permits.leave(this.#tenant, this.#wake)
    await stopped
    await Promise.all(this.#underWay)
  }

  readonly #wake = (): void => this.#claims.wake()

  /** @returns in how many milliseconds the first of what is left is due. Whatever ends before wakes it. */
  async #claim (): Promise<number> {
    const { permits } = this.#options
    for (;;) {
      const now = performance.now()
      const due: string[] = []
      let next = Infinity
      for (const [tag, { at }] of this.#places) {
        if (at > now) next = Math.min(next, at)
        else if (due.push(tag) === claimsAtOnce) break
      }
      if (this.#claims.signal.aborted) return Infinity
      if (due.length === 0) return Math.min(next - now, maxSleep)
      // Before they are claimed: a claim doesn't last for long.
      let free = permits.take(this.#tenant, callbackPermits.shared, this.#wake)
      if (free === 0) return Infinity
      const some = due.slice(0, free)
      const each = Math.floor(free / some.length)
      const claimed = await Promise.allSettled(some.map(tag => this.#claimAt(tag, each)))
      for (const one of claimed) if (one.status === 'fulfilled') free -= one.value
      permits.giveBack(this.#tenant, free, this.#wake)
      for (const one of claimed) if (one.status === 'rejected') throw one.reason
    }
  }

  /** @returns how many it took */
  async #claimAt (tag: string, max: number): Promise<number> {
    this.#news.delete(tag)
    const { now, first, callbacks } = await this.#options.callbacks.claim(tag, this.#tenant, max, claimLease)
    for (const callback of callbacks) this.#begin(tag, now, callback)
    const { at, first: known } = this.#places.get(tag) ?? { at: 0, first: 0 }
    // The others have their turns first.
    this.#places.delete(tag)
    if (this.#news.has(tag)) this.#places.set(tag, { first: known, at })
    else if (first !== null) this.#places.set(tag, { first, at: performance.now() + first - now })
    return callbacks.length
  }

  #begin (tag: string, now: number, callback: Callback): void {
    const attempt = this.#try(tag, now, callback).catch(this.#options.onFault).finally(() => {
      this.#underWay.delete(attempt)
      this.#options.permits.giveBack(this.#tenant, 1, this.#wake)
      this.#wake()
    })
    this.#underWay.add(attempt)
  }

  async #try (tag: string, now: number, callback: Callback): Promise<void> {
    const takenAt = performance.now()
    const answer = await this.#send(tag, now, callback)
    // Stopping it ends the attempts: another replica makes this one again. So does what takes too long for its claim.
    if (answer === null || (this.#claims.signal.aborted && answer.error === 'timeout')) return
    await this.#note(tag, callback, answer, takenAt)
    // It counts as under way until then.
    await answer.over
  }

  /**
   * Sends its messages one after the other, up to the first that isn't taken.
   * @returns null if some are left: once the claim has ended they are sent
   */
  async #send (tag: string, now: number, callback: Callback): Promise<Answer | null> {
    const { callbacks, secrets, sender } = this.#options
    const agent = passerIn(callback.text)
    const secret = { id: secretName(this.#tenant, agent), ...await callbacks.secret(this.#tenant, agent) }
    const messages = await this.#messages(tag, callback)
    if (!Array.isArray(messages)) return messages
    const began = performance.now()
    let answer = nothingToSend
    for (const { id, url, headers, body, noteSent } of messages) {
      await answer.over
      const elapsed = performance.now() - began
      if (answer !== nothingToSend && (this.#claims.signal.aborted || elapsed > claimLease / 3)) return null
      const signed = secrets.sign(secret, id, new Date(now + elapsed), String(body))
      answer = await sender.send(this.#tenant, url, { ...signed, ...headers }, body)
      if (outcomeOf(answer, '', 1).outcome !== 'delivered') return answer
      await noteSent()
    }
    return answer
  }

  /** @returns an answer if they can't be made: what is wrong is reported, and the attempt counts, so that it ends */
  async #messages (tag: string, callback: Callback): Promise<PushMessage[] | Answer> {
    try {
      return callback.text.startsWith('a2a ')
        ? await this.#options.pushes.of(tag, this.#tenant, callback)
        : [this.#eventMessage(callback)]
    } catch (error) {
      if (error instanceof Unavailable) throw error
      if (error instanceof PayloadLocked) return keyIsAway
      this.#options.onFault(error)
      return cannotBeMade
    }
  }

  #eventMessage (callback: Callback): PushMessage {
    const { id, text, at, isOmitted } = callback
    const { type, data, labels } = eventIn(text, this.#options.baseUrl())
    const { url, token, result } = this.#options.callbacks.open(this.#tenant, callback)
    const name = type === 'handoff.failed' ? 'error' : 'result'
    const more = result !== null ? `,"${name}":${result}` : isOmitted ? `,"${name}_omitted":true` : ''
    const body = `${messageText({ type, timestamp: iso(at) }, data, labels).slice(0, -1)}${more}}`
    const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` }
    return { id, url, headers, body, noteSent: async () => {} }
  }

  /** Notes how it went, also when Redis is away for a while: what isn't noted is delivered again. */
  async #note (tag: string, callback: Callback, answer: Answer, takenAt: number): Promise<void> {
    const { callbacks, counts } = this.#options
    const tried = outcomeOf(answer, '', callback.attempts + 1)
    for (;;) {
      try {
        await callbacks.tried(tag, this.#tenant, handoffIn(callback.text), callback, tried)
        if (answer !== nothingToSend) {
          counts[tried.outcome === 'delivered' ? 'delivered' : tried.outcome === 'again' ? 'retried' : 'failed']++
          if (tried.outcome === 'gone') counts.gone++
        }
        if (tried.outcome === 'again') this.expect(tag, null)
        return
      } catch (error) {
        const isOver = this.#claims.signal.aborted || performance.now() - takenAt > claimLease
        if (!(error instanceof Unavailable) || isOver) throw error
        await sleep(retryPause)
      }
    }
  }
}

const cannotBeMade: Answer = { status: null, error: 'failed', retryAfter: null, over: Promise.resolve() }
/** Its texts can't be opened here. The next attempt may be made by a replica that has the key. */
const keyIsAway: Answer = { ...cannotBeMade, error: 'payload_locked' }
/** How it counts where a later change was sent, or its receiver is gone: it is over. */
const nothingToSend: Answer = { status: 204, error: null, retryAfter: null, over: Promise.resolve() }

/** An event's text (lua/lib/events.lua): type, status, id, passed_by; an A2A task's is in the same order. */
function handoffIn (text: string): string {
  return text.split(' ', 3)[2]!
}

function passerIn (text: string): string {
  return text.split(' ', 4)[3]!
}

/** What the secrets of an agent's callbacks are derived from. */
export function secretName (tenant: string, agent: string): string {
  return `callbacks ${tenant}/${agent}`
}
