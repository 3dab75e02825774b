import type { Labels } from '../core/labels.ts'
import type { WebhookFormat } from '../core/model.ts'

/** Webhooks and their deliveries as Redis keeps them. */

/** Why a webhook is disabled: its receiver answered 410, or failed for too long. */
export type DisabledReason = 'gone' | 'failing'

/** A webhook as Redis keeps it (lua/webhook-create.lua). Times are milliseconds since the epoch by Redis's clock. */
export interface Webhook {
  id: string
  url: string
  /** Null for all. */
  types: string[] | null
  inbox: string | null
  /** The form of its messages. */
  format: WebhookFormat
  /** `name:value` each; null for any. */
  labels: Labels | null
  /** Whether its messages have the beginning of the task, or of the question. */
  withTask: boolean
  /** Does a message follow decisions and answers? */
  updates: boolean
  /** Of the times in its messages; null for UTC. */
  timezone: string | null
  createdAt: number
  /** Which of its secrets is the newest. */
  generation: number
  /** How long the secret before signs as well. */
  oldUntil: number | null
  disabled: DisabledReason | null
  /** The last event of the feed that was looked at. */
  cursor: string
  /** After which event and up to which it still has to replay; null where it replays nothing. */
  replay: { from: string, to: string } | null
}

/** A delivery, pending or over. `text` is the event's, as the feed keeps it. */
export interface Delivery {
  id: string
  attempts: number
  lastStatus: number | null
  lastError: string | null
  lastAt: number | null
  text: string
}

export function pairs (parts: readonly unknown[]): Array<[unknown, unknown]> {
  return Array.from({ length: parts.length / 2 }, (_, at) => [parts[2 * at], parts[2 * at + 1]])
}

/**
 * The URL as it is kept: in front of it is the format, unless it is `standard`. So a replica of an older version, which
 * knows no formats, sends nothing there: it takes it for a wrong URL, and a newer one tries again.
 */
export function addressOf (url: string, format: WebhookFormat): string {
  return format === 'standard' || format === 'mail' ? url : `${format}+${url}`
}

export function readAddress (address: string): { url: string, format: WebhookFormat } {
  const [, format, url] = /^([a-z]+)\+(.*)$/.exec(address) ?? []
  if (format !== undefined && url !== undefined) return { url, format: format as WebhookFormat }
  return { url: address, format: address.startsWith('mailto:') ? 'mail' : 'standard' }
}

export function readWebhook (id: string, reply: unknown): Webhook {
  const fields = Object.fromEntries(pairs(reply as unknown[]).map(([name, value]) => [String(name), String(value)]))
  const {
    url, types, inbox, labels, include, updates, timezone, created, generation, old_until: oldUntil, disabled, cursor,
    replay, replay_to: replayTo
  } = fields as Record<string, string>
  return {
    id,
    ...readAddress(url!),
    types: types ? types.split(',') : null,
    inbox: inbox || null,
    labels: labels ? labels.split(',') : null,
    withTask: include === 'task',
    updates: updates === '1',
    timezone: timezone || null,
    createdAt: Number(created),
    generation: Number(generation),
    oldUntil: Number(oldUntil) || null,
    disabled: (disabled as DisabledReason | undefined) ?? null,
    cursor: cursor!,
    replay: replay === undefined || replayTo === undefined ? null : { from: replay, to: replayTo },
  }
}

export function readDelivery (id: string, record: string): Delivery {
  const [attempts, status, error, at] = record.split(' ', 4) as [string, string, string, string]
  const text = record.slice(attempts.length + status.length + error.length + at.length + 4)
  return {
    id,
    attempts: Number(attempts),
    lastStatus: status === '-' ? null : Number(status),
    lastError: error === '-' ? null : error,
    lastAt: at === '-' ? null : Number(at),
    text
  }
}
