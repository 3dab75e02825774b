import type { KnownKey } from './known-key.ts'

interface Listener { digest: string, ended: () => void }

/**
 * Open requests that must learn of the end of their key, by key id. They are told in the same tick in which this replica learns of the
 * end, so none acts on a key that is known here to have ended.
 */
export class KeyEnds {
  readonly #byId = new Map<string, Set<Listener>>()

  /** @param digest of the request's secret, which may end before its key @returns a function that stops it */
  listen (id: string, digest: string, ended: () => void): () => void {
    const listeners = this.#byId.get(id) ?? new Set()
    const listener = { digest, ended }
    this.#byId.set(id, listeners.add(listener))
    return () => {
      listeners.delete(listener)
      if (listeners.size === 0 && this.#byId.get(id) === listeners) this.#byId.delete(id)
    }
  }

  /** @param isGood whether the cache confirms that the secret with this digest is valid @returns the keys to look up, because it doesn't */
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

  /** Tells the requests whose secret is no longer valid, after a look-up; null if the key doesn't exist. */
  learn (id: string, entry: KnownKey | null): void {
    const listeners = this.#byId.get(id)
    if (listeners === undefined) return
    for (const listener of listeners) {
      if (entry?.opens(listener.digest) === true) continue
      listeners.delete(listener)
      listener.ended()
    }
    if (listeners.size === 0) this.#byId.delete(id)
  }
}
