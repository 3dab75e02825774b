import type { KnownKey } from './known-key.ts'

interface Listener { digest: string, ended: () => void }

/**
 * Who is to be told when a key ends: whatever stays open by it, by the key's id. Each is told in the step in which this replica
 * learns of it, so nobody acts on a key that is known here to have ended.
 */
export class KeyEnds {
  readonly #byId = new Map<string, Set<Listener>>()

  /** @param digest of the secret that it was opened by: it may end before its key @returns what stops it */
  listen (id: string, digest: string, ended: () => void): () => void {
    const listeners = this.#byId.get(id) ?? new Set()
    const listener = { digest, ended }
    this.#byId.set(id, listeners.add(listener))
    return () => {
      listeners.delete(listener)
      if (listeners.size === 0 && this.#byId.get(id) === listeners) this.#byId.delete(id)
    }
  }

  /** @param isGood does memory say that this key is still opened by what has this digest? @returns keys that are to be looked up: it doesn't */
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

  /** Tells those whose secret opens the key no more, as it was looked up now; null where there is no such key. */
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
