import { iso } from '../core/iso.ts'
import type { MessageFormat } from '../core/model.ts'
import type { MessageExcerpts } from './message-excerpts.ts'
import { eventIn, messageText, typeIn } from '../handoffs/feed/feed.ts'
import type { Delivery, Webhook } from '../store/webhook-records.ts'
import type { Claimed } from '../store/webhooks.ts'
import type { Mailer } from './mail.ts'
import { addressIn } from './mail.ts'
import { chatMessages, mailText, summaryOf, summaryOfMany, updateOf, updateTypes } from './messages.ts'
import type { SummaryGroup, Summary } from './messages.ts'
import type { Answer, Sender, WebhookSecrets } from './sender.ts'

export interface PostOptions {
  secrets: WebhookSecrets
  sender: Sender
  /** Null where there is no mail. */
  mailer: Mailer | null
  excerpts: Pick<MessageExcerpts, 'read' | 'decidedBy'>
  /** The beginning of links in messages. */
  baseUrl: () => string
}

/** A claim's part about its webhook: where and when. */
type Address = Pick<Claimed, 'url' | 'format' | 'generation' | 'oldUntil' | 'now'>

/** Writes a delivery in the webhook's format, and sends it once. */
export class Post {
  readonly #options: PostOptions

  constructor (options: PostOptions) {
    this.#options = options
  }

  async send (
    tenant: string, webhook: Pick<Webhook, 'id' | 'withTask' | 'updates' | 'timezone'>, address: Address,
    delivery: Delivery
  ): Promise<Answer> {
    const { sender } = this.#options
    const { id } = webhook
    const { url, format } = address
    if (format === 'standard') {
      const { type, data, labels } = eventIn(delivery.text, this.#options.baseUrl())
      const body = messageText({ type, timestamp: iso(timeOf(delivery.id)) }, data, labels)
      return sender.send(tenant, url, this.#sign(id, address, delivery, body), body)
    }
    const summary = await this.#summaryOf(tenant, delivery, webhook)
    if (format === 'mail') return this.#mail(url, id, delivery, summary)
    // A newer version's.
    if (!Object.hasOwn(chatMessages, format)) return notSent('unknown_format')
    const { headers, body } = chatMessages[format as MessageFormat](summary)
    return sender.send(tenant, url, { ...headers, ...this.#sign(id, address, delivery, body) }, body)
  }

  async #summaryOf (
    tenant: string, { text }: Delivery,
    { withTask, updates, timezone }: Pick<Webhook, 'withTask' | 'updates' | 'timezone'>
  ): Promise<Summary> {
    const { excerpts, baseUrl } = this.#options
    if (typeIn(text) === summaryType) return summaryOfMany(summaryGroups(text), baseUrl())
    const { type, data } = eventIn(text, baseUrl())
    const { handoff_id: id, ask_id: askId, answered_by: answeredBy } =
      data as { handoff_id?: string, ask_id?: string, answered_by?: string }
    if (updates && updateTypes.has(type)) {
      return updateOf(type, data, answeredBy ?? await excerpts.decidedBy(tenant, id!), baseUrl())
    }
    const quote = withTask && id !== undefined ? await excerpts.read(tenant, id, type, askId) : null
    return summaryOf(type, data, quote, baseUrl(), timezone ?? 'UTC')
  }

  async #mail (url: string, webhookId: string, { id }: Delivery, summary: Summary): Promise<Answer> {
    const { mailer } = this.#options
    if (mailer === null) return notSent('mail_off')
    // The same in every attempt, so a program that got two shows one.
    return mailer.send({
      to: addressIn(url)!, id: `${id}.${webhookId}`, at: new Date(timeOf(id)), ...mailText(summary)
    })
  }

  #sign (
    id: string, { generation, oldUntil, now }: Address, delivery: Delivery, body: string
  ): Record<string, string> {
    return this.#options.secrets.sign({ id, generation, oldUntil }, delivery.id, new Date(now), body)
  }
}

function notSent (error: string): Answer {
  return { status: null, error, retryAfter: null, over: Promise.resolve() }
}

/** The type of a message that says what else there was in a minute. */
const summaryType = 'webhook.summary'

/** What a summary counts (lua/webhook-claim.lua). */
function summaryGroups (text: string): SummaryGroup[] {
  return text.split(' ').slice(2).map(word => {
    const [, name, inbox, count] = /^(.*?)\/(.*)=(\d+)$/.exec(word)!
    return { type: name === 'more' ? null : `handoff.${name}`, inbox: inbox || null, count: Number(count) }
  })
}

/** How many events a delivery is of; null for one that is no summary. */
export function summarisedCount (text: string): number | null {
  return typeIn(text) === summaryType ? summaryGroups(text).reduce((sum, { count }) => sum + count, 0) : null
}

/** When a delivery's event happened: an event's id begins with the time, and so does a test's after its name. */
export function timeOf (id: string): number {
  return Number(/\d+/.exec(id)![0])
}
