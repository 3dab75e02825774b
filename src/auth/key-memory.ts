import { LRUCache } from 'lru-cache'
import type { KnownKey } from './known-key.ts'

/** Keys that are remembered, and beside them ids that were asked for and are nobody's: at most so many of each. */
const remembered = 10_000

/** Look-ups of keys, those under way and those that a replica remembers. Whether one is recent enough to be believed is for StoredKeys to say. */
export class KeyMemory {
  /** Look-ups under way, by id: however many ask meanwhile, Redis is asked once. */
  readonly underWay = new Map<string, Promise<KnownKey | null>>()
  readonly #known = new LRUCache<string, KnownKey>({ max: remembered })
  /** Ids that are nobody's and digests that open nothing, and when that was asked for. Apart, so that they push no key out. */
  readonly #wrong = new LRUCache<string, number>({ max: remembered })

  get (id: string): KnownKey | undefined {
    return this.#known.get(id)
  }

  /** As `get`, and it isn't used by that. */
  peek (id: string): KnownKey | undefined {
    return this.#known.peek(id)
  }

  /** @param entry null for nobody's @param begun when it was asked for */
  remember (id: string, entry: KnownKey | null, begun: number): void {
    if (entry === null) this.#wrong.set(id, begun)
    else this.#known.set(id, entry)
  }

  /** @param digest of a secret that opens nothing, by this look-up */
  rememberWrong (digest: string, { begun }: KnownKey): void {
    this.#wrong.set(digest, begun)
  }

  /**
   * When it was asked for what says that this secret is wrong; undefined where nobody knows. A wrong one may be what the key got
   * just now, so a digest counts for as long as nothing became of its key since.
   */
  wrongSince (id: string, digest: string): number | undefined {
    const nobodysSince = this.#wrong.get(id)
    if (nobodysSince !== undefined) return nobodysSince
    const since = this.#wrong.get(digest)
    const entry = this.#known.peek(id)
    return since !== undefined && entry !== undefined && !entry.isStale && since >= entry.unchangedSince ? since : undefined
  }

  /** Something became of this key. */
  forget (id: string): void {
    const entry = this.#known.peek(id)
    if (entry !== undefined) entry.isStale = true
    this.#wrong.delete(id)
    // What is under way may have been read before that: it answers those who ask now, and isn't remembered.
    this.underWay.delete(id)
  }

  /** Something may have become of any. */
  forgetAll (): void {
    for (const entry of this.#known.values()) entry.isStale = true
    this.#wrong.clear()
    this.underWay.clear()
  }
}
