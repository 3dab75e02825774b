import { LRUCache } from 'lru-cache'
import type { Caller } from '../core/model.ts'
import type { KeyRecord, Lookup } from '../store/api-keys.ts'

/** The cache's size: at most so many keys, and as many unknown ids. */
const remembered = 10_000

/**
 * Look-ups of keys: those under way, and a replica's cache. StoredKeys decides whether a cached one is recent enough.
 */
export class KeyMemory {
  /** Look-ups under way, by id, so that simultaneous requests cause one look-up. */
  readonly underWay = new Map<string, Promise<KnownKey | null>>()
  readonly #known = new LRUCache<string, KnownKey>({ max: remembered })
  /** Unknown ids and invalid digests, with the time of their look-up. Separate, so that they can't evict keys. */
  readonly #wrong = new LRUCache<string, number>({ max: remembered })

  get (id: string): KnownKey | undefined {
    return this.#known.get(id)
  }

  /** Like `get`, without counting as a use. */
  peek (id: string): KnownKey | undefined {
    return this.#known.peek(id)
  }

  /** @param entry null for an unknown key @param begun when the look-up began */
  remember (id: string, entry: KnownKey | null, begun: number): void {
    if (entry === null) this.#wrong.set(id, begun)
    else this.#known.set(id, entry)
  }

  /** @param digest of a secret that is invalid, by this look-up */
  rememberWrong (digest: string, { begun }: KnownKey): void {
    this.#wrong.set(digest, begun)
  }

  /**
   * When the look-up began that found this secret invalid; undefined if there is none. A rotation may just have made
   * the secret valid, so an invalid digest counts only as long as its key hasn't changed.
   */
  wrongSince (id: string, digest: string): number | undefined {
    const nobodysSince = this.#wrong.get(id)
    if (nobodysSince !== undefined) return nobodysSince
    const since = this.#wrong.get(digest)
    const entry = this.#known.peek(id)
    return since !== undefined && entry !== undefined && !entry.isStale && since >= entry.unchangedSince
      ? since
      : undefined
  }

  /** This key has changed. */
  forget (id: string): void {
    const entry = this.#known.peek(id)
    if (entry !== undefined) entry.isStale = true
    this.#wrong.delete(id)
    // A look-up under way may have read the old state: it answers its current callers, and isn't cached.
    this.underWay.delete(id)
  }

  /** Any key may have changed. */
  forgetAll (): void {
    for (const entry of this.#known.values()) entry.isStale = true
    this.#wrong.clear()
    this.underWay.clear()
  }
}

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
    this.lookup = lookup
    // As long as the key may do the same, its caller is the same object.
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

/** May a key do the same as of both records? */
function isAlike (one: KeyRecord, other: KeyRecord): boolean {
  return one.ratePerMinute === other.ratePerMinute && String(one.scopes) === String(other.scopes) &&
    String(one.inboxes) === String(other.inboxes)
}

/**
 * `ended`: the secret is no longer valid. `changed`: the key may do something else than before, or that isn't known.
 */
export interface KeyListener { ended: () => void, changed: () => void }
interface Listener extends KeyListener { digest: string }

/**
 * Open requests that must learn of the end of their key, or of a change, by key id. They are notified in the same tick
 * in which this replica learns of it, so none acts on a key that is known here to have ended.
 */
export class KeyEnds {
  readonly #byId = new Map<string, Set<Listener>>()

  /** @param digest of the request's secret, which may end before its key @returns a function that stops it */
  listen (id: string, digest: string, { ended, changed }: KeyListener): () => void {
    const listeners = this.#byId.get(id) ?? new Set()
    const listener = { digest, ended, changed }
    this.#byId.set(id, listeners.add(listener))
    return () => {
      listeners.delete(listener)
      if (listeners.size === 0 && this.#byId.get(id) === listeners) this.#byId.delete(id)
    }
  }

  /**
   * @param isGood whether the cache confirms that the secret with this digest is valid
   * @returns the keys to look up, because it doesn't
   */
  doubtful (isGood: (id: string, digest: string) => boolean): string[] {
    const ids: string[] = []
    for (const [id, listeners] of this.#byId) {
      for (const { digest } of listeners) {
        if (isGood(id, digest)) continue
        ids.push(id)
        break
      }
    }
    return ids
  }

  /**
   * Notifies the requests whose secret is no longer valid after a look-up, and all of a key that may do something else.
   * @param entry null if the key doesn't exist @param before as of the previous look-up, if that is known
   */
  learn (id: string, entry: KnownKey | null, before: KnownKey | undefined): void {
    const listeners = this.#byId.get(id)
    if (listeners === undefined) return
    for (const listener of listeners) {
      if (entry?.opens(listener.digest) === true) {
        if (entry.caller !== before?.caller) listener.changed()
        continue
      }
      listeners.delete(listener)
      listener.ended()
    }
    if (listeners.size === 0) this.#byId.delete(id)
  }
}
