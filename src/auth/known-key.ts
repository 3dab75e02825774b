import type { Caller } from '../core/model.ts'
import type { KeyRecord, Lookup } from '../store/api-keys.ts'
import type { Grant } from './grant.ts'

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
  /** The grants of its valid secrets, by secret as sent, each with its end by Redis's clock. At most two. */
  readonly grants = new Map<string, Grant & { readonly ends: number }>()

  /** @param before the previously cached state */
  constructor (lookup: Lookup, begun: number, before?: KnownKey) {
    this.lookup = lookup
    // The caller stays the same object as long as its rights don't change.
    this.caller = before !== undefined && isAlike(before.lookup.record, lookup.record)
      ? before.caller
      : callerOfRecord(lookup.record)
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

function callerOfRecord ({ id, tenant, agent, scopes, ratePerMinute, inboxes }: KeyRecord): Caller {
  return { tenant, agent, scopes: new Set(scopes), keyId: id, ratePerMinute, inboxes: inboxes && new Set(inboxes) }
}

/** Do both records of a key give the same rights? */
function isAlike (one: KeyRecord, other: KeyRecord): boolean {
  return one.ratePerMinute === other.ratePerMinute && String(one.scopes) === String(other.scopes) &&
    String(one.inboxes) === String(other.inboxes)
}
