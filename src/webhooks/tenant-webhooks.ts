import { isBehind, passes, readEvent } from '../handoff/event-answer.ts'
import type { Event } from '../handoff/event-answer.ts'
import { webhookTypes } from '../model.ts'
import { Unavailable } from '../redis/lanes.ts'
import type { Entry, Events } from '../store/events.ts'
import type { Webhook } from '../store/webhooks.ts'
import { Endpoint } from './endpoint.ts'
import type { EndpointOptions } from './endpoint.ts'

/** Events read from a feed at once. */
const pageSize = 500
/** The same for what a webhook replays. */
const replayPageSize = 250

const allTypes = new Set(webhookTypes)

export interface TenantOptions extends EndpointOptions {
  events: Events
  /** Runs one step of a replay when it is its turn: tenants take turns. */
  replayTurn (step: () => Promise<void>): Promise<void>
}

/** Makes the deliveries of a tenant's events, for each of its webhooks, as its feed gets them. */
export class TenantWebhooks {
  readonly #tenant: string
  readonly #options: TenantOptions
  readonly #endpoints = new Map<string, Endpoint>()
  #looking: Promise<void> | undefined
  #replaying: Promise<void> | undefined
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
    await Promise.all([this.#looking, this.#replaying])
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
        known.isFull = known.isReplayFull = false
      }
      this.#endpoints.get(webhook.id)!.wake()
    }
    this.#replay()
  }

  get #replays (): Endpoint[] {
    return this.#isStopped ? [] : [...this.#endpoints.values()].filter(({ webhook, isReplayFull }) => webhook.replay !== null && webhook.disabled === null && !isReplayFull)
  }

  /** Plans what webhooks replay, beside what happens meanwhile. */
  #replay (): void {
    if (this.#replaying !== undefined || this.#replays.length === 0) return
    this.#replaying = this.#replayAll().then(() => true, error => {
      // The next round goes on where Redis says that it was.
      if (!(error instanceof Unavailable)) this.#options.onFault(error)
      return false
    }).then(isWell => {
      this.#replaying = undefined
      if (isWell) this.#replay()
    })
  }

  async #replayAll (): Promise<void> {
    for (let open = this.#replays; open.length > 0; open = this.#replays) {
      for (const endpoint of open) await this.#options.replayTurn(() => this.#replaySome(endpoint))
    }
  }

  /** One step of a webhook's replay: its place is kept in Redis with the deliveries, so that another replica can go on from there. */
  async #replaySome (endpoint: Endpoint): Promise<void> {
    const { webhook } = endpoint
    if (webhook.replay === null || this.#isStopped) return
    const { from, to } = webhook.replay
    const { entries } = await this.#options.events.read(this.#tenant, from, replayPageSize)
    const within = entries.filter(({ id }) => !isBehind(id, to))
    const place = within.length < replayPageSize ? null : within.at(-1)!.id
    const wanted = within.filter(entry => isFor(webhook, readEvent(entry)))
    const { outcome } = await this.#options.webhooks.planReplay(this.#tenant, webhook.id, { from, to }, place, wanted)
    if (outcome === 'full') endpoint.isReplayFull = true
    else endpoint.webhook.replay = outcome !== 'planned' || place === null ? null : { from: place, to }
    if (outcome === 'planned') endpoint.wake()
    // Deleted, disabled, or somebody has it replay from elsewhere or further: Redis says which.
    else if (outcome !== 'full') this.refresh()
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
