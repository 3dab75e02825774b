import { setTimeout as sleep } from 'node:timers/promises'
import pLimit from 'p-limit'
import type { LimitFunction } from 'p-limit'
import { Unavailable } from '../core/errors.ts'
import { Round, within } from '../core/round.ts'
import type { Store } from '../store/store.ts'
import type { Allowed, Webhooks } from '../store/webhooks.ts'
import { CallbackDeliverer } from './callbacks.ts'
import type { PushSource } from './callbacks.ts'
import type { Mailer } from './mail.ts'
import { Post } from './post.ts'
import type { PostOptions } from './post.ts'
import { Sender } from './sender.ts'
import { Permits } from './permits.ts'
import type { Targets } from './targets.ts'
import { TenantWebhooks } from './tenant-webhooks.ts'
import type { TenantOptions } from './tenant-webhooks.ts'

/** How often the lease is renewed, and how long a replica that died holds the others off, in milliseconds. */
const renewal = 1000
const leaseDuration = 3000
/** How often everything is looked at that a lost message may have hidden, in milliseconds. */
const slowRound = 5000
/** How long a stopping service waits for attempts under way, in milliseconds. An attempt cut off is made again. */
const maxStopTime = 1000
/**
 * How long replays rest after each step, as a multiple of its time, and in milliseconds at most: so replays take a
 * quarter of the time.
 */
const replayRest = 3
const maxReplayRest = 200
/** How many tenants read their webhooks, or plan a page of their feed, at once. */
const looksAtOnce = 8
/**
 * How long a step keeps its turn, in milliseconds. A longer step (its master doesn't answer) goes on by itself, and its
 * tenant gets no other turn meanwhile.
 */
const maxTurn = 250
/** Attempts: with twenty webhooks, as many as a tenant may have, 128 of one tenant. */
const attempts = { total: 512, each: 4, shared: 48, always: 4 }
/** Mails: all go to one server, which takes a limited number of connections from this service. */
const mails = { total: 16, each: 0, shared: 2, always: 0 }

interface DelivererOptions extends Omit<PostOptions, 'sender'> {
  store: Pick<Store, 'events' | 'callbacks' | 'subscriptions' | 'takeDelivering' | 'reachedTags'>
  /** Null where there are callbacks alone. */
  webhooks: Webhooks | null
  pushes: PushSource
  targets: Targets
  /** What makes these targets, as settings. */
  allowed: Allowed
  log: { warn (details: object, message: string): void, error (details: object, message: string): void }
  /** How long an attempt may take, in milliseconds; tests have a shorter one. */
  attemptTimeout?: number | undefined
}

/**
 * Delivers to the webhooks of all tenants, and their callbacks, at one replica at a time. Two at once would deliver no
 * more: each takes what it delivers first.
 */
export class Deliverer {
  /** Attempts by how they went, and webhooks that were disabled, by why. */
  readonly counts = { delivered: 0, again: 0, failed: 0 }
  readonly disabled = { gone: 0, failing: 0 }
  readonly callbacks: CallbackDeliverer
  readonly #options: DelivererOptions
  readonly #sender: Sender
  readonly #mailer: Mailer | null
  readonly #post: Post
  readonly #tenants = new Map<string, TenantWebhooks>()
  /** One step of a replay at a time, for all tenants in turn. */
  readonly #replayTurn = pLimit(1)
  /** The same for what happens, some at a time. */
  readonly #lookTurn = pLimit(looksAtOnce)
  readonly #permits = { posts: new Permits(attempts), mails: new Permits(mails) }
  readonly #rounds: Round
  /** Tenants whose webhooks changed, as far as messages say. */
  readonly #notified = new Set<string>()
  /** Whether messages may have been lost, or name no tenant, as those of an older version. */
  #isLost = true
  #lookedAt = -Infinity
  readonly #leave: Array<Promise<() => void>> = []

  constructor (options: DelivererOptions) {
    this.#options = options
    this.#sender = new Sender(options.targets, options.attemptTimeout)
    this.#mailer = options.mailer
    this.#post = new Post({ ...options, sender: this.#sender })
    this.callbacks = new CallbackDeliverer({
      callbacks: options.store.callbacks,
      secrets: options.secrets,
      pushes: options.pushes,
      sender: this.#sender,
      baseUrl: options.baseUrl,
      onFault: error => this.#failed(error)
    })
    this.#rounds = new Round({
      interval: renewal,
      isMine: () => options.store.takeDelivering(leaseDuration),
      notMine: () => {
        this.#lookedAt = -Infinity
        this.#notified.clear()
        this.#forget().catch(error => this.#failed(error))
      },
      run: () => this.#goRound(),
      onFault: error => this.#failed(error),
    })
  }

  start (): void {
    const { store, webhooks } = this.#options
    if (webhooks !== null) {
      this.#leave.push(store.subscriptions.listen(webhooks.channel, (tenant = '') => {
        if (tenant === '') this.#isLost = true
        else this.#notified.add(tenant)
        this.#rounds.wake()
      }))
    }
    if (store.callbacks.areAnnounced) {
      this.#leave.push(store.subscriptions.listen(
        store.callbacks.channel, (message = '') => this.callbacks.heard(message)
      ))
    }
    this.#rounds.wake()
  }

  async stop (): Promise<void> {
    for (const left of this.#leave) left.then(leave => leave(), () => {})
    await this.#rounds.stop()
    const stopped = this.#forget()
    const cut = setTimeout(() => this.#cut(), maxStopTime)
    await stopped
    clearTimeout(cut)
    this.#cut()
  }

  /** Ends the attempts under way. */
  #cut (): void {
    this.#sender.close()
    this.#mailer?.close()
  }

  async #goRound (): Promise<void> {
    const { store, webhooks } = this.#options
    await this.callbacks.look(store.reachedTags())
    if (webhooks === null) return
    const isLost = this.#isLost
    const notified = [...this.#notified]
    this.#isLost = false
    this.#notified.clear()
    if (!isLost && performance.now() - this.#lookedAt < slowRound) {
      for (const tenant of notified) this.#tenant(tenant).refresh()
      return
    }
    const tenants = new Set(await webhooks.tenants(store.reachedTags()))
    this.#lookedAt = performance.now()
    webhooks.noteAllowed(this.#options.allowed).catch(error => this.#failed(error))
    for (const tenant of tenants) this.#tenant(tenant)
    for (const [name, tenant] of this.#tenants) {
      if (tenants.has(name) || !tenant.isEmpty) {
        tenant.refresh()
        continue
      }
      // It has found out that it has none any more. Once there are some again, a new one is made.
      this.#tenants.delete(name)
      tenant.stop().catch(error => this.#failed(error))
    }
  }

  #tenant (name: string): TenantWebhooks {
    const tenant = this.#tenants.get(name) ?? new TenantWebhooks(name, this.#tenantOptions())
    this.#tenants.set(name, tenant)
    return tenant
  }

  #tenantOptions (): TenantOptions {
    const { store, webhooks, baseUrl, log } = this.#options
    return {
      webhooks: webhooks!,
      baseUrl,
      post: this.#post,
      events: store.events!,
      permits: this.#permits,
      replayTurn: step => inTurn(this.#replayTurn, step, replayRest),
      lookTurn: step => inTurn(this.#lookTurn, step),
      counts: this.counts,
      onDisabled: (tenant, id, reason) => {
        this.disabled[reason]++
        log.warn({ tenant, webhook_id: id, reason }, 'webhook disabled')
      },
      onFault: error => this.#failed(error),
    }
  }

  /** Another replica delivers, or this one stops. */
  async #forget (): Promise<void> {
    const tenants = [...this.#tenants.values()]
    this.#tenants.clear()
    await Promise.all([...tenants.map(tenant => tenant.stop()), this.callbacks.forget()])
  }

  #failed (error: unknown): void {
    if (!(error instanceof Unavailable)) this.#options.log.error({ err: error }, 'delivering to webhooks failed')
  }
}

/** @param rest the pause before the next turn, as a multiple of the step's time */
async function inTurn (limit: LimitFunction, step: () => Promise<void>, rest = 0): Promise<void> {
  let under: Promise<void> | undefined
  await limit(async () => {
    const began = performance.now()
    under = step()
    // Its tenant sees how it went.
    await within(maxTurn, under.catch(() => {}))
    if (rest > 0) await sleep(Math.min(maxReplayRest, rest * (performance.now() - began)))
  })
  await under
}
