import { iso } from '../../core/iso.ts'
import type { CallbackStands } from '../../store/replies.ts'

/** What answers show of a callback. */

export function callbackMember ({ url, pending, delivered, failed, last }: CallbackStands): object {
  return {
    url: withoutQuery(url),
    pending,
    delivered,
    failed,
    last_status: last?.status ?? null,
    last_error: last?.error ?? null,
    last_at: last === null ? null : iso(last.at),
  }
}

/** A query may have a secret in it. */
export function withoutQuery (url: string): string {
  return url.split('?', 1)[0]!
}
