import type { Redis } from 'ioredis'
import type { Lanes } from '../redis/lanes.ts'
import type { ScriptName } from '../redis/outcomes.ts'
import type { Scripts } from '../redis/scripts.ts'
import { homeTagOf } from './partitions.ts'
import type { DeliveryStatus, WebhookFormat } from '../core/model.ts'
import type { KeyNames } from './key-names.ts'
import { tagged } from './replies.ts'
import type { Replied } from './replies.ts'
import { addressOf, pairs, readAddress, readDelivery, readWebhook } from './webhook-records.ts'
import type { Delivery, DisabledReason, Webhook } from './webhook-records.ts'

/** Webhooks that a tenant may have. */
export const maxWebhooks = 20
/** Deliveries of a webhook that may be pending; further events wait in the feed. */
const maxPending = 10_000
/** The same for replayed deliveries: fewer, so that new events always fit. */
const maxReplaying = 5000
/** Messages to people that may begin within a minute; the rest is summarised. */
const messagesAMinute = 5

/** A webhook of a list, and when the first of its pending deliveries is due; null if none is pending. */
interface ListedWebhook extends Webhook { first: number | null }

/** A new webhook. Members that are left out don't restrict it; the format is then `standard`. */
type NewWebhook = Pick<Webhook, 'url' | 'types' | 'inbox'> &
  Partial<Pick<Webhook, 'format' | 'labels' | 'withTask' | 'updates' | 'timezone'>>

export interface ListedDelivery extends Delivery { status: DeliveryStatus, nextAt: number | null }

/** The claimed deliveries. `first` is when the next one is due. */
export interface Claimed {
  now: number
  first: number | null
  url: string
  format: WebhookFormat
  generation: number
  oldUntil: number | null
  deliveries: Delivery[]
}

/** How an attempt went: `after` says in how many milliseconds another one follows. */
export interface Tried {
  outcome: 'delivered' | 'again' | 'failed' | 'gone'
  status: number | null
  error: string | null
  after?: number
}

/** `place` is where the webhook is in the feed, where it was planned or moved. */
interface Planned { outcome: Replied<'webhook-plan'>, place: string }

/** Where the service that delivers may send: what WEBHOOK_ALLOW says, and MAIL_ALLOW where there is mail. */
export interface Allowed { webhooks: readonly string[], mail: readonly string[] | null }

/** How long this is known once no service says it any more, in milliseconds. */
const allowedKept = 60_000

interface WebhooksOptions {
  /** Every partition's hash tag. */
  tags: readonly string[]
  /** For how long feeds keep events, in milliseconds. */
  retention: number
  /** The connection to a partition's master, for messages that may be lost and for looks: they need no script. */
  connectionTo (tag: string): Redis | undefined
}

/** The webhooks of tenants in Redis: one method a script. */
export class Webhooks {
  readonly #lanes: Lanes
  readonly #scripts: Scripts
  readonly #keyNames: KeyNames
  readonly #options: WebhooksOptions

  constructor (lanes: Lanes, scripts: Scripts, keyNames: KeyNames, options: WebhooksOptions) {
    this.#lanes = lanes
    this.#scripts = scripts
    this.#keyNames = keyNames
    this.#options = options
  }

  /** Where it is announced that webhooks of any tenant changed. */
  get channel (): string {
    return this.#keyNames.webhookTenants(this.#options.tags[0]!)
  }

  /**
   * Notifies the deliverer that webhooks of a tenant changed, or of any. It may be lost: then it is found later.
   * Resolves when it is said: who ends before says nothing.
   */
  async notify (tenant = ''): Promise<void> {
    await this.#options.connectionTo(this.#options.tags[0]!)?.spublish(this.channel, tenant).catch(() => {})
  }

  /**
   * The tenants that have webhooks in these partitions, without partitions that can't be read now: a slot moves, or a
   * master is away.
   */
  async tenants (tags: readonly string[]): Promise<string[]> {
    const found = await Promise.all(tags.map(tag =>
      this.#options.connectionTo(tag)?.zrange(this.#keyNames.webhookTenants(tag), '0', '-1').catch(() => []) ?? []))
    return found.flat()
  }

  /** Tells the command, which checks targets itself, where they may be. */
  noteAllowed (allowed: Allowed): Promise<void> {
    const tag = this.#options.tags[0]!
    const texts = [JSON.stringify(allowed), String(allowedKept)]
    return this.#call('set', tag, [this.#keyNames.allowed(tag)], texts, () => {})
  }

  /** @returns null: no service delivers now, as far as known */
  allowed (): Promise<Allowed | null> {
    const tag = this.#options.tags[0]!
    return this.#call('get', tag, [this.#keyNames.allowed(tag)], [], ([outcome, text]) =>
      outcome === 'found' ? JSON.parse(String(text)) as Allowed : null)
  }

  /** @returns null: the tenant has as many as it may have */
  create (
    tenant: string, id: string,
    { url, types, inbox, format = 'standard', labels, withTask, updates, timezone }: NewWebhook
  ): Promise<Webhook | null> {
    const { tag, webhook, webhooks, tenants, feed } = this.#keysOf(tenant, id)
    return this.#call('webhook-create', tag, [
      webhook, webhooks, tenants, feed
    ], [
      tenant, id, addressOf(url, format), types?.join() ?? '', inbox ?? '', String(maxWebhooks), labels?.join() ?? '',
      withTask === true ? 'task' : '', updates === true ? '1' : '', timezone ?? ''
    ],
    ([outcome, fields]) => outcome === 'created' ? readWebhook(id, fields) : null)
  }

  /** The oldest first. */
  async list (tenant: string): Promise<Webhook[]> {
    return (await this.listed(tenant)).webhooks
  }

  /** The same, and when that was by Redis's clock. */
  listed (tenant: string): Promise<{ now: number, webhooks: ListedWebhook[] }> {
    const { tag, webhooks, prefix } = this.#keysOf(tenant, '')
    return this.#call('webhook-list', tag, [webhooks], [prefix], ([, now, ...parts]) => ({
      now: now as number,
      webhooks: Array.from({ length: parts.length / 3 }, (_, at) => {
        const [id, fields, first] = parts.slice(3 * at, 3 * at + 3)
        return { ...readWebhook(String(id), fields), first: Number(first) || null }
      })
    }))
  }

  /** @returns null: there is none */
  rotate (tenant: string, id: string, token: string, grace: number): Promise<Webhook | null> {
    return this.#change(tenant, id, ['rotated', token, String(grace)])
  }

  /** @returns null: there is none */
  enable (tenant: string, id: string): Promise<Webhook | null> {
    return this.#change(tenant, id, ['enabled', '', ''])
  }

  #change (tenant: string, id: string, texts: string[]): Promise<Webhook | null> {
    const { tag, webhook, due, pending, feed } = this.#keysOf(tenant, id)
    return this.#call(
      'webhook-change', tag, [webhook, due, pending, feed], texts,
      ([outcome, fields]) => outcome === 'not_found' ? null : readWebhook(id, fields)
    )
  }

  delete (tenant: string, id: string): Promise<void> {
    const { tag, webhook, due, pending, delivered, failed, summarised, webhooks, tenants } = this.#keysOf(tenant, id)
    const keys = [webhook, due, pending, delivered, failed, webhooks, tenants, summarised]
    return this.#call('webhook-delete', tag, keys, [tenant, id], () => {})
  }

  /**
   * Makes deliveries of these events, and moves the webhook's place in the feed on.
   * @param before where its place is; null for what isn't of the feed: then it stays
   */
  plan (
    tenant: string, id: string, before: string | null, place: string,
    events: ReadonlyArray<{ id: string, text: string }>
  ): Promise<Planned> {
    return this.#plan(tenant, id, [before ?? '', place, String(maxPending), linesOf(events), 'cursor', ''])
  }

  /**
   * The same for events that the webhook replays.
   * @param before where its replay is, and its end @param place where it is from now on; null: it has replayed all
   */
  planReplay (
    tenant: string, id: string, before: { from: string, to: string }, place: string | null,
    events: ReadonlyArray<{ id: string, text: string }>
  ): Promise<Planned> {
    return this.#plan(
      tenant, id, [before.from, place ?? '', String(maxReplaying), linesOf(events), 'replay', before.to]
    )
  }

  /** The webhook is to get the events after this id again. The deliverer plans it, some at a time. */
  replay (tenant: string, id: string, after: string): Promise<Replied<'webhook-replay'>> {
    const { tag, webhook } = this.#keysOf(tenant, id)
    return this.#call('webhook-replay', tag, [webhook], [after], ([outcome]) => outcome)
  }

  /**
   * Claims due deliveries. Of messages to people it takes few in a minute, and counts the rest.
   * @param lease in milliseconds: then the claimed deliveries are due again
   * @param token of this claim
   * @returns null: there is no such webhook
   */
  claim (
    tenant: string, { id, format }: Pick<Webhook, 'id' | 'format'>, max: number, lease: number, token: string
  ): Promise<Claimed | null> {
    const { tag, webhook, due, pending, summarised } = this.#keysOf(tenant, id)
    const isLimited = format !== 'standard'
    const keys = [webhook, due, pending, ...isLimited ? [summarised] : []]
    const texts = [String(max), String(lease), token, ...isLimited ? [String(messagesAMinute)] : []]
    return this.#call('webhook-claim', tag, keys, texts, ([outcome, ...parts]) => {
      if (outcome === 'gone') return null
      const [now, first, url, generation, oldUntil] = parts.map(String)
      const deliveries = pairs(parts.slice(5)).filter(([, text]) => text !== null).map(([id, text]) =>
        readDelivery(String(id), String(text)))
      return {
        now: Number(now),
        first: Number(first) || null,
        ...readAddress(url!),
        generation: Number(generation),
        oldUntil: Number(oldUntil) || null,
        deliveries
      }
    })
  }

  /**
   * Notes how an attempt went.
   * @param disableAfter milliseconds without a success
   * @returns why the webhook is disabled by it, or null
   */
  tried (
    tenant: string, id: string, { id: delivery, attempts }: Delivery, { outcome, status, error, after = 0 }: Tried,
    disableAfter: number
  ): Promise<DisabledReason | null> {
    const { tag, webhook, due, pending, delivered, failed, feed } = this.#keysOf(tenant, id)
    const texts = [
      id, delivery, String(attempts), outcome, String(status ?? '-'), error ?? '-', String(after), String(disableAfter),
      String(this.#options.retention)
    ]
    return this.#call('webhook-tried', tag, [webhook, due, pending, delivered, failed, feed], texts,
      ([outcome, reason]) => outcome === 'disabled' ? String(reason) as DisabledReason : null)
  }

  /** The deliveries that are over, the newest last, and when the pending ones are due. */
  deliveries (tenant: string, id: string): Promise<{ due: Array<{ id: string, at: number }>, over: ListedDelivery[] }> {
    const { tag, due, pending, delivered, failed, summarised } = this.#keysOf(tenant, id)
    const over = (
      lines: unknown, status: DeliveryStatus
    ): ListedDelivery[] => (lines as unknown[]).map(String).map(line => {
      const space = line.indexOf(' ')
      return { ...readDelivery(line.slice(0, space), line.slice(space + 1)), status, nextAt: null }
    })
    return this.#call('webhook-deliveries', tag, [due, pending, delivered, failed, summarised], [''], (
      [, dues, delivered, failed, summarised]
    ) => ({
      due: pairs(dues as unknown[]).map(([id, at]) => ({ id: String(id), at: Number(at) })),
      over: [...over(delivered, 'delivered'), ...over(failed, 'failed'), ...over(summarised, 'summarised')],
    }))
  }

  /** Pending deliveries by their ids, without finished ones. */
  pending (tenant: string, id: string, ids: readonly string[]): Promise<ListedDelivery[]> {
    if (ids.length === 0) return Promise.resolve([])
    const { tag, due, pending, delivered, failed, summarised } = this.#keysOf(tenant, id)
    const keys = [due, pending, delivered, failed, summarised]
    return this.#call('webhook-deliveries', tag, keys, [ids.join(' ')], ([, texts, dues]) =>
      (texts as unknown[]).flatMap((text, at) => {
        if (text === null) return []
        const nextAt = Number((dues as unknown[])[at])
        return [{ ...readDelivery(ids[at]!, String(text)), status: 'pending' as const, nextAt }]
      }))
  }

  #plan (tenant: string, id: string, texts: string[]): Promise<Planned> {
    const { tag, webhook, due, pending } = this.#keysOf(tenant, id)
    return this.#call(
      'webhook-plan', tag, [webhook, due, pending], texts,
      ([outcome, at]) => ({ outcome, place: String(at) })
    )
  }

  #call<Name extends ScriptName, T> (
    name: Name, tag: string, keys: string[], texts: string[],
    decode: (reply: [Replied<Name>, ...unknown[]]) => T
  ): Promise<T> {
    return this.#lanes.call({
      script: this.#scripts[name], tag, keys, texts, decode: reply => decode(tagged<Replied<Name>>(reply))
    })
  }

  #keysOf (tenant: string, id: string) {
    const names = this.#keyNames
    const tag = homeTagOf(tenant, this.#options.tags)
    const deliveries = (status: DeliveryStatus) => names.deliveries(tag, tenant, id, status)
    return {
      tag,
      webhook: names.webhook(tag, tenant, id),
      prefix: names.webhook(tag, tenant, ''),
      webhooks: names.webhooks(tag, tenant),
      tenants: names.webhookTenants(tag),
      feed: names.feed(tag, tenant),
      due: names.webhookDue(tag, tenant, id),
      pending: deliveries('pending'),
      delivered: deliveries('delivered'),
      failed: deliveries('failed'),
      summarised: deliveries('summarised'),
    }
  }
}

function linesOf (events: ReadonlyArray<{ id: string, text: string }>): string {
  return events.map(({ id, text }) => `${id} ${text}\n`).join('')
}
