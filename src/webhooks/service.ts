import { urlPattern } from '../core/callback.ts'
import { NotLookedUp } from '../core/lookups.ts'
import { fromOldest, isAfter, isEventId, readEvent, typeIn } from '../handoffs/feed/feed.ts'
import { homeTag, randomToken } from '../core/ids.ts'
import { Problem, invalid } from '../core/errors.ts'
import type { Fault } from '../core/errors.ts'
import { iso } from '../core/iso.ts'
import { labelsObject } from '../core/labels.ts'
import type { Labels } from '../core/labels.ts'
import { mailFault } from '../core/mail.ts'
import type { MailSettings } from '../core/mail.ts'
import { includable, isInbox, typesForPeople, webhookFormats, webhookTypes } from '../core/model.ts'
import type { DeliveryStatus, WebhookFormat } from '../core/model.ts'
import { faultsOfNames } from '../core/validator.ts'
import { readTime } from '../clients/typescript/command/common/time.ts'
import type { Events } from '../store/events.ts'
import { Reads } from '../store/reads.ts'
import { maxWebhooks } from '../store/webhooks.ts'
import type { Webhook } from '../store/webhook-records.ts'
import type { ListedDelivery, Webhooks } from '../store/webhooks.ts'
import { addressIn } from './mail.ts'
import { summarisedCount, timeOf } from './post.ts'
import { whyFailed } from './reasons.ts'
import { isFor, testType } from './tenant-webhooks.ts'
import type { WebhookSecrets } from './sender.ts'
import { notAllowed } from './targets.ts'
import type { Targets } from './targets.ts'

/** How long the old secret signs as well by default, in seconds. */
export const defaultGrace = 86_400
const maxGrace = 2_592_000
/** How many names of webhooks that a tenant makes are looked up at once. */
export const madeAtOnce = 16
const maxListed = 100
const pageSize = 500
/** How many pages are counted before a replay is answered: 5,000 events. The rest is replayed all the same. */
const pagesCounted = 10
const busy =
  'The URL’s name was not looked up: others of this tenant are, or the service stops. Send the request again.'
const lastOfMillisecond = '18446744073709551615'

interface WebhookParts {
  events: Events
  webhooks: Webhooks
  secrets: WebhookSecrets
  targets: Targets
  /** Undefined: there is no mail. */
  mail: Pick<MailSettings, 'allow'> | undefined
}
/** Members that are null were left out. */
interface NewWebhook {
  url: string
  format: string | null
  types: string[] | null
  inbox: string | null
  labels: Labels | null
  include: string[] | null
  updates: boolean | null
  timezone: string | null
}

/** Operations on webhooks, over HTTP or with the command. */
export class WebhookService {
  readonly #parts: WebhookParts | null
  readonly #reads: Reads

  /** @param parts null where webhooks are off @param reads for what reads many events */
  constructor (parts: WebhookParts | null, reads = new Reads()) {
    this.#parts = parts
    this.#reads = reads
  }

  /**
   * @param inboxes the inboxes that the key is held to; null for any
   * @throws {Problem} a wrong member; tasks of inboxes that the key may not catch from; too many webhooks
   */
  async create (tenant: string, asked: NewWebhook, inboxes: ReadonlySet<string> | null = null): Promise<object> {
    const { webhooks, secrets } = this.#on
    const { url, format, types, inbox, labels, include, updates, timezone } = asked
    const faults = faultsOf(asked)
    const wrongUrl = await this.#faultOf(tenant, url)
    if (wrongUrl !== null) faults.unshift({ pointer: '/url', message: wrongUrl })
    if (faults.length > 0) throw invalid(...faults)
    const withTask = include !== null
    if (withTask && inboxes !== null && (inbox === null || !inboxes.has(inbox))) {
      throw new Problem(
        'not_addressee', { detail: 'This key is held to inboxes: name one of them, or leave out `include`.' }
      )
    }
    const made = await webhooks.create(tenant, `wh_${randomToken()}`, {
      url: addressIn(url) === null ? new URL(url).href : `mailto:${addressIn(url)!}`,
      format: addressIn(url) === null ? (format ?? 'standard') as WebhookFormat : 'mail',
      types: types === null ? null : [...new Set(types)],
      inbox,
      labels,
      withTask,
      updates: updates === true,
      timezone
    })
    if (made === null) {
      throw new Problem(
        'too_many_webhooks',
        { detail: `This tenant has ${maxWebhooks} webhooks, and no more are allowed; delete one first.` }
      )
    }
    await webhooks.notify(tenant)
    return { ...members(made), secret: secrets.secretOf(made.id, made.generation) }
  }

  async list (tenant: string): Promise<object> {
    return { items: (await this.#on.webhooks.list(tenant)).map(members) }
  }

  async get (tenant: string, id: string): Promise<object> {
    return members(await this.#find(tenant, id))
  }

  async delete (tenant: string, id: string): Promise<void> {
    // First, so that a retry after a lost reply doesn't find it unknown.
    await this.#find(tenant, id)
    await this.#on.webhooks.delete(tenant, id)
    await this.#on.webhooks.notify(tenant)
  }

  /** @param grace how long the old secret signs as well, in seconds */
  async rotate (tenant: string, id: string, grace: number): Promise<object> {
    const { webhooks, secrets } = this.#on
    if (grace > maxGrace) throw invalid({ pointer: '/grace', message: `must be <= ${maxGrace}` })
    const rotated = found(isWebhookId(id) ? await webhooks.rotate(tenant, id, randomToken(), grace * 1000) : null)
    return {
      ...members(rotated), secret: secrets.secretOf(id, rotated.generation), old_secret_until: iso(rotated.oldUntil!)
    }
  }

  async enable (tenant: string, id: string): Promise<object> {
    const enabled = found(isWebhookId(id) ? await this.#on.webhooks.enable(tenant, id) : null)
    await this.#on.webhooks.notify(tenant)
    return members(enabled)
  }

  /** Has a message delivered that is no event's, also where the webhook is disabled. */
  async test (tenant: string, id: string): Promise<object> {
    const { webhooks } = this.#on
    const { now, webhooks: all } = await webhooks.listed(tenant)
    found(all.find(webhook => webhook.id === id))
    const testId = `test_${now}_${randomToken()}`
    const { outcome } = await webhooks.plan(tenant, id, null, '', [{ id: testId, text: `${testType} ${id}` }])
    if (outcome === 'gone') throw new Problem('not_found')
    if (outcome === 'deliveries_full') {
      throw new Problem('unavailable', {
        detail: 'Too many deliveries of this webhook are pending; list them, and test it again once fewer are.'
      })
    }
    await webhooks.notify(tenant)
    return { id: testId }
  }

  /** The newest deliveries, of all or with this status. */
  async deliveries (tenant: string, id: string, status: DeliveryStatus | undefined): Promise<object> {
    const { webhooks } = this.#on
    const webhook = await this.#find(tenant, id)
    const { due, over } = await webhooks.deliveries(tenant, id)
    const wanted = due.sort(newestFirst).slice(0, maxListed)
    const pending = await webhooks.pending(tenant, id, wanted.map(({ id }) => id))
    // Of a replayed delivery the last time counts.
    const byId = new Map(
      [...over.sort((one, other) => one.lastAt! - other.lastAt!), ...pending].map(one => [one.id, one])
    )
    const listed = [...byId.values()].filter(one => status === undefined || one.status === status).sort(newestFirst)
      .slice(0, maxListed)
    return { items: listed.map(one => deliveryMembers(one, webhook.format === 'mail')) }
  }

  /**
   * Has all events from `since` on delivered again that are for the webhook. A disabled one has to be enabled first.
   * The answer doesn't wait for them: it counts those among the first events alone, and says where there are more.
   */
  async replay (tenant: string, id: string, since: string): Promise<object> {
    const { webhooks } = this.#on
    const place = placeBefore(since)
    if (place === null) {
      throw invalid({
        pointer: '/since', message: 'must be the id of an event, or a time like 2026-11-20T09:00:00.000Z'
      })
    }
    const webhook = await this.#find(tenant, id)
    if (webhook.disabled !== null) return { replayed: 0 }
    const { count, isMore } = await this.#count(tenant, webhook, place)
    const outcome = await webhooks.replay(tenant, id, place)
    if (outcome === 'not_found') throw new Problem('not_found')
    if (outcome === 'disabled') return { replayed: 0 }
    await webhooks.notify(tenant)
    return { replayed: count, ...isMore && { more: true } }
  }

  get #on (): WebhookParts {
    if (this.#parts === null) throw new Problem('events_off')
    return this.#parts
  }

  async #find (tenant: string, id: string): Promise<Webhook> {
    const { webhooks } = this.#on
    return found(isWebhookId(id) ? (await webhooks.list(tenant)).find(webhook => webhook.id === id) : null)
  }

  async #faultOf (tenant: string, url: string): Promise<string | null> {
    const { targets, mail } = this.#on
    if (!new RegExp(urlPattern).test(url)) return 'must be 1 to 2,048 visible ASCII characters'
    const address = addressIn(url)
    if (address !== null) {
      return mail === undefined
        ? 'can’t be mailto: unless the service’s operator sets SMTP_URL, MAIL_FROM and MAIL_ALLOW'
        : mailFault(mail, address)
    }
    const fault = targets.faultOf(url)
    if (fault !== null) return fault
    return targets.check(tenant, new URL(url)).then(() => null, error => {
      if (error instanceof NotLookedUp) {
        throw new Problem('unavailable', { detail: busy, headers: { 'retry-after': '5' } })
      }
      return notAllowed
    })
  }

  async #count (tenant: string, webhook: Webhook, place: string): Promise<{ count: number, isMore: boolean }> {
    let count = 0
    let from = place
    for (let pages = 0; pages < pagesCounted; pages++) {
      const read = () => this.#on.events.read(tenant, from, pageSize)
      const { entries } = await this.#reads.page(tenant, [homeTag(tenant)], read)
      count += entries.filter(entry => isFor(webhook, readEvent(entry, ''))).length
      if (entries.length < pageSize) return { count, isMore: false }
      from = entries.at(-1)!.id
    }
    return { count, isMore: true }
  }
}

/** Can it be a webhook's id? One that can't never reaches Redis. */
function isWebhookId (text: string): boolean {
  return /^wh_[A-Za-z0-9_-]{22}$/.test(text)
}

function found (webhook: Webhook | null | undefined): Webhook {
  if (webhook == null) throw new Problem('not_found')
  return webhook
}

function faultsOf ({ url, format, types, inbox, include, updates, timezone }: NewWebhook): Fault[] {
  const faults = faultsOfNames(types ?? [], webhookTypes, '/types')
  if (types?.length === 0) faults.push({ pointer: '/types', message: 'must name a type; leave it out to get all' })
  if (inbox !== null && !isInbox(inbox)) faults.push({ pointer: '/inbox', message: 'must be the name of an inbox' })
  const isMail = addressIn(url) !== null
  if (isMail && format !== null) faults.push({ pointer: '/format', message: 'must be left out with a mailto: URL' })
  if (format !== null && !(webhookFormats as readonly string[]).includes(format)) {
    faults.push({ pointer: '/format', message: `must be one of ${webhookFormats.join(', ')}` })
  }
  if (!isMail && (format ?? 'standard') === 'standard') {
    for (const [name, value] of Object.entries({ include, updates, timezone })) {
      const why = name === 'include' ? 'which has no payload' : 'but for people'
      if (value !== null) faults.push({ pointer: `/${name}`, message: `is not for the format standard, ${why}` })
    }
  }
  if (timezone !== null && !isTimezone(timezone)) {
    faults.push({ pointer: '/timezone', message: 'must be the name of a time zone, like Europe/Berlin' })
  }
  if (include === null) return faults
  if (include.length === 0) faults.push({ pointer: '/include', message: `must name at least one of ${includable.join(', ')}; leave it out for none` })
  return [...faults, ...faultsOfNames(include, includable, '/include')]
}

/** Is it a zone's name in the IANA database? It is in messages, so what isn't ASCII isn't one. */
function isTimezone (text: string): boolean {
  try {
    return /^[A-Za-z][A-Za-z0-9_+/-]{0,63}$/.test(text) && Intl.DateTimeFormat('en', { timeZone: text }) !== null
  } catch {
    return false
  }
}

/** The place in a feed right before an event, or all from a time on. */
function placeBefore (since: string): string | null {
  if (isEventId(since)) {
    const [time, count] = since.split('-').map(BigInt) as [bigint, bigint]
    return count > 0n ? `${time}-${count - 1n}` : beforeTime(time)
  }
  const time = readTime(since) ?? -1
  return time < 0 ? null : beforeTime(BigInt(time))
}

function beforeTime (time: bigint): string {
  return time > 0n ? `${time - 1n}-${lastOfMillisecond}` : fromOldest
}

/** A webhook as the API answers it. */
function members (
  { id, url, format, types, inbox, labels, withTask, updates, timezone, disabled, createdAt }: Webhook
): object {
  return {
    id,
    url,
    ...format !== 'mail' && { format },
    types: types ?? (format === 'standard' ? null : typesForPeople),
    inbox,
    ...labels !== null && { labels: labelsObject(labels) },
    ...withTask && { include: includable },
    ...updates && { updates },
    ...timezone !== null && { timezone },
    enabled: disabled === null,
    ...disabled !== null && { disabled_because: disabled },
    created_at: iso(createdAt)
  }
}

function deliveryMembers (
  { id, text, status, attempts, lastStatus, lastError, lastAt, nextAt }: ListedDelivery, isMail: boolean
): object {
  const time = (at: number | null) => at === null ? null : iso(at)
  const summarised = summarisedCount(text)
  const why = whyFailed(lastStatus, lastError, isMail)
  return {
    id,
    type: typeIn(text),
    status,
    attempts,
    last_status: lastStatus,
    last_error: lastError,
    ...why !== null && { why },
    // Of one that was summarised it is when that was.
    last_at: time(attempts === 0 ? null : lastAt),
    next_at: time(nextAt),
    ...summarised !== null && { summarised }
  }
}

function newestFirst (one: { id: string }, other: { id: string }): number {
  const difference = timeOf(other.id) - timeOf(one.id)
  if (difference !== 0 || !isEventId(one.id) || !isEventId(other.id)) return difference
  return isAfter(one.id, other.id) ? -1 : 1
}
