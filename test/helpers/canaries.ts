import { isId } from '../../src/core/ids.ts'

/** Shorter texts occur in lines by chance. */
const shortest = 12
const longest = 100
/** Names of the API's members, which are no secrets. */
const ordinary = new Set(['require_human', 'application/json'])

/** Texts that no log line may contain. However many there are, a line is searched once. */
export class Canaries {
  readonly #byBeginning = new Map<string, Set<string>>()

  /** Ignores short texts, and handoff ids, which a log may contain. Of a long text only the beginning is searched for. */
  add (...texts: string[]): void {
    for (const text of texts) {
      if (text.length < shortest || isId(text) || ordinary.has(text)) continue
      const canary = text.slice(0, longest)
      const beginning = canary.slice(0, shortest)
      const alike = this.#byBeginning.get(beginning) ?? new Set()
      this.#byBeginning.set(beginning, alike.add(canary))
    }
  }

  /** The texts that the line contains. */
  in (line: string): string | undefined {
    // Secrets of every test, whether declared or not.
    const known = /canary|\b(Bearer|Basic) /i.exec(line)?.[0]
    if (known !== undefined) return known
    for (let at = 0; at + shortest <= line.length; at++) {
      const alike = this.#byBeginning.get(line.slice(at, at + shortest))
      for (const canary of alike ?? []) if (line.startsWith(canary, at)) return canary
    }
    return undefined
  }
}

/** The beginnings of the strings at the beginning of a JSON text, well-formed or not: as much as a log line would contain unchanged. */
export function stringsIn (text: string): string[] {
  return [...text.slice(0, 100_000).matchAll(/"([^"\\]{12,100})/g)].map(([, string]) => string!)
}
