import { isId } from '../../src/handoff/id.ts'

/** Shorter texts are found in lines by chance. */
const shortest = 12
const longest = 100
/** Members of the API's own, which say nothing. */
const ordinary = new Set(['require_human', 'application/json'])

/** Texts that no log line may hold, however many: a line is looked through once, not once for each. */
export class Canaries {
  readonly #byBeginning = new Map<string, Set<string>>()

  /** Shorter ones are passed over, as is what a log may say: a handoff's id. Of a longer one its beginning counts. */
  add (...texts: string[]): void {
    for (const text of texts) {
      if (text.length < shortest || isId(text) || ordinary.has(text)) continue
      const canary = text.slice(0, longest)
      const beginning = canary.slice(0, shortest)
      const alike = this.#byBeginning.get(beginning) ?? new Set()
      this.#byBeginning.set(beginning, alike.add(canary))
    }
  }

  /** What of them a line holds. */
  in (line: string): string | undefined {
    // What is one in any test, whether or not it was told of.
    const known = /canary|\b(Bearer|Basic) /i.exec(line)?.[0]
    if (known !== undefined) return known
    for (let at = 0; at + shortest <= line.length; at++) {
      const alike = this.#byBeginning.get(line.slice(at, at + shortest))
      for (const canary of alike ?? []) if (line.startsWith(canary, at)) return canary
    }
    return undefined
  }
}

/** The strings in a JSON text, well-formed or not, in so far as a log line would hold them as they are: their beginnings, of a text's beginning. */
export function stringsIn (text: string): string[] {
  return [...text.slice(0, 100_000).matchAll(/"([^"\\]{12,100})/g)].map(([, string]) => string!)
}
