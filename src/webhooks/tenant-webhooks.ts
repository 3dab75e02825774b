import { passes, readEvent } from '../handoff/event-answer.ts'
import type { Event } from '../handoff/event-answer.ts'
import { webhookTypes } from '../model.ts'
import { Unavailable } from '../redis/lanes.ts'
import type { Entry, Events } from '../store/events.ts'
import type { Webhook } from '../store/webhooks.ts'
import { Endpoint } from './endpoint.ts'
import type { EndpointOptions } from './endpoint.ts'

/** Events read from a feed at once. */
const pageSize = 500

const allTypes = new Set(webhookTypes)

export interface TenantOptions extends EndpointOptions {
  events: Events
}

/** Makes the deliveries of a tenant's events, for each of its webhooks, as its feed gets them. */
export class TenantWebhooks {
  readonly #tenant: string
  readonly #options: TenantOptions
  readonly #endpoints = new Map<string, Endpoint>()
  #looking: Promise<void> | undefined
  #isAsked = false
  #isStopped = false
  /** Whether webhooks may have been made, changed or deleted since they were read. */
  #isStale = true
  #leave: Promise<() => void> | undefined

  constructor (tenant: string, options: TenantOptions) {
    this.#tenant = tenant
    this.#options = options
  }

  /** Webhooks may have changed, or somebody wants all of it looked at again. */
  refresh (): void {
    this.#isStale = true
    this.#wake()
  }

  /** Takes no more. Resolves when what is under way has ended. */
  async stop (): Promise<void> {
    this.#isStopped = true
    this.#leave?.then(leave => leave(), () => {})
    await this.#looking
    await Promise.all([...this.#endpoints.values()].map(endpoint => endpoint.stop()))
  }

  readonly #wake = () => {
    this.#isAsked = true
    if (this.#isStopped) return
    this.#leave ??= this.#options.events.listen(this.#tenant, this.#wake)
    this.#looking ??= this.#look().catch(error => {
      // The next round looks again.
      if (!(error instanceof Unavailable)) this.#options.onFault(error)
    }).finally(() => {
      this.#looking = undefined
      // Asked after the last look, and before this.
      if (this.#isAsked) this.#wake()
    })
  }

  async #look (): Promise<void> {
    await this.#leave
    while (this.#isAsked && !this.#isStopped) {
      this.#isAsked = false
      if (this.#isStale) await this.#read()
      const enabled = [...this.#endpoints.values()].filter(({ webhook, isFull }) => webhook.disabled === null && !isFull)
      // Most are equally far, and share what is read.
      const places = new Set(enabled.map(({ readTo }) => readTo))
      for (const place of places) await this.#plan(place, enabled.filter(({ readTo }) => readTo === place))
    }
  }

  /** Which webhooks there are. */
  async #read (): Promise<void> {
    this.#isStale = false
    const found = await this.#options.webhooks.list(this.#tenant).catch(error => {
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
      // Another place: somebody has it replay, or it was enabled anew.
      if (known === undefined) this.#endpoints.set(webhook.id, new Endpoint(this.#tenant, webhook, this.#options))
      else {
        if (known.webhook.cursor !== webhook.cursor) known.readTo = webhook.cursor
        known.webhook = webhook
        known.isFull = false
      }
      this.#endpoints.get(webhook.id)!.wake()
    }
  }

  /** Makes the deliveries of what is behind a place in the feed. */
  async #plan (place: string, endpoints: Endpoint[]): Promise<void> {
    const { entries } = await this.#options.events.read(this.#tenant, place, pageSize)
    const last = entries.at(-1)
    if (last === undefined) return
    const read = entries.map(entry => ({ entry, event: readEvent(entry) }))
    await Promise.all(endpoints.map(endpoint => {
      const wanted = read.filter(({ event }) => isFor(endpoint.webhook, event)).map(({ entry }) => entry)
      return this.#planFor(endpoint, wanted, last.id, entries.length === pageSize)
    }))
  }

  /** @param isMore there is more behind it: then its place is kept even where nothing was for it */
  async #planFor (endpoint: Endpoint, wanted: Entry[], last: string, isMore: boolean): Promise<void> {
    if (wanted.length === 0 && !isMore) {
      endpoint.readTo = last
      return
    }
    const planned = await this.#options.webhooks.plan(this.#tenant, endpoint.webhook.id, endpoint.webhook.cursor, last, wanted)
    if (planned.outcome === 'gone') this.#isStale = this.#isAsked = true
    else if (planned.outcome === 'full') endpoint.isFull = true
    else {
      endpoint.webhook.cursor = endpoint.readTo = planned.place
      if (isMore || planned.outcome === 'moved') this.#isAsked = true
      endpoint.wake()
    }
  }
}

/** Is an event for a webhook? What becomes of webhooks themselves is in the feed alone. */
export function isFor ({ types, inbox }: Pick<Webhook, 'types' | 'inbox'>, event: Event): boolean {
  return allTypes.has(event.type) && passes(event, { types: types === null ? null : new Set(types), handoffId: null, inbox })
}
