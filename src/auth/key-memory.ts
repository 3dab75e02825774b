import { LRUCache } from 'lru-cache'
import type { KnownKey } from './known-key.ts'

/** The cache's size: at most so many keys, and as many unknown ids. */
const remembered = 10_000

/** Look-ups of keys: those under way, and a replica's cache. StoredKeys decides whether a cached one is recent enough. */
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
   * When the look-up began that found this secret invalid; undefined if there is none. A rotation may just have made the secret valid, so
   * an invalid digest counts only as long as its key hasn't changed.
   */
  wrongSince (id: string, digest: string): number | undefined {
    const nobodysSince = this.#wrong.get(id)
    if (nobodysSince !== undefined) return nobodysSince
    const since = this.#wrong.get(digest)
    const entry = this.#known.peek(id)
    return since !== undefined && entry !== undefined && !entry.isStale && since >= entry.unchangedSince ? since : undefined
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
