import { createHmac } from 'node:crypto'
import { Webhook as Signer } from 'standardwebhooks'

/** Who signs: a webhook's newest secret, and the one before it until `oldUntil`. */
export interface Signing { id: string, generation: number, oldUntil: number | null }

/** Secrets of webhooks. None is kept anywhere: each is derived from the service's own, so who reads Redis can sign nothing. */
export class WebhookSecrets {
  readonly #root: string

  /** @param root WEBHOOK_SECRET, the same at all replicas */
  constructor (root: string) {
    this.#root = root
  }

  /** As its receiver gets it (Standard Webhooks, "Signature scheme"). */
  secretOf (id: string, generation: number): string {
    return `whsec_${createHmac('sha256', this.#root).update(`webhook ${id} ${generation}`).digest('base64')}`
  }

  /** The header fields of a message. @param at when it is sent, by the clock that `oldUntil` is of: Redis's */
  sign ({ id, generation, oldUntil }: Signing, messageId: string, at: Date, body: string): Record<string, string> {
    const generations = oldUntil !== null && at.getTime() < oldUntil ? [generation, generation - 1] : [generation]
    return {
      'webhook-id': messageId,
      'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
      'webhook-signature': generations.map(one => new Signer(this.secretOf(id, one)).sign(messageId, at, body)).join(' '),
    }
  }
}
