import type { Caller } from '../model.ts'
import type { Lookup } from '../store/key-records.ts'

/** A key from Redis as it was when it was looked up. */
export class KnownKey {
  readonly lookup: Lookup
  readonly caller: Caller
  /** When that was asked for, by this process's monotonic clock. */
  readonly begun: number
  /** When the first look-up was asked for since something became of it last: what this key's secrets were found to be since is so still. */
  readonly unchangedSince: number
  /** Something became of it since. */
  isStale = false
  /** Its secrets as they came, once they were right, each with when it opens the key no more, by Redis's clock. Two at most. */
  readonly secrets = new Map<string, number>()

  /** @param before what was known of it until now */
  constructor (lookup: Lookup, begun: number, before?: KnownKey) {
    const { id, tenant, agent, scopes, ratePerMinute, inboxes } = lookup.record
    this.lookup = lookup
    this.caller = { tenant, agent, scopes: new Set(scopes), keyId: id, ratePerMinute, inboxes: inboxes && new Set(inboxes) }
    this.begun = begun
    this.unchangedSince = before === undefined || before.isStale ? begun : before.unchangedSince
  }

  /** Did what has this digest open it when it was looked up? */
  opens (digested: string): boolean {
    const end = this.endOf(digested)
    return end !== undefined && this.lookup.now < end
  }

  /** When what has this digest opens it no more, by Redis's clock; undefined where it doesn't at all. */
  endOf (digested: string): number | undefined {
    const { record, digest, previous } = this.lookup
    if (record.revokedAt !== null) return undefined
    const end = record.endsAt ?? Infinity
    if (digested === digest) return end
    return digested === previous ? Math.min(end, record.previousEndsAt as number) : undefined
  }
}
