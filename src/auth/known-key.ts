import type { Caller } from '../model.ts'
import type { Lookup } from '../store/key-records.ts'

/** A key from Redis, as of its look-up. */
export class KnownKey {
  readonly lookup: Lookup
  readonly caller: Caller
  /** When the look-up began, by this process's monotonic clock. */
  readonly begun: number
  /** When the first look-up since the key's last change began: results about its secrets since then are still true. */
  readonly unchangedSince: number
  /** Whether the key has changed since. */
  isStale = false
  /** Its valid secrets as sent, each with its end by Redis's clock. At most two. */
  readonly secrets = new Map<string, number>()

  /** @param before the previously cached state */
  constructor (lookup: Lookup, begun: number, before?: KnownKey) {
    const { id, tenant, agent, scopes, ratePerMinute, inboxes } = lookup.record
    this.lookup = lookup
    this.caller = { tenant, agent, scopes: new Set(scopes), keyId: id, ratePerMinute, inboxes: inboxes && new Set(inboxes) }
    this.begun = begun
    this.unchangedSince = before === undefined || before.isStale ? begun : before.unchangedSince
  }

  /** Whether the secret with this digest was valid at the look-up. */
  opens (digested: string): boolean {
    const end = this.endOf(digested)
    return end !== undefined && this.lookup.now < end
  }

  /** When the secret with this digest ends, by Redis's clock; undefined if it isn't valid. */
  endOf (digested: string): number | undefined {
    const { record, digest, previous } = this.lookup
    if (record.revokedAt !== null) return undefined
    const end = record.endsAt ?? Infinity
    if (digested === digest) return end
    return digested === previous ? Math.min(end, record.previousEndsAt as number) : undefined
  }
}
