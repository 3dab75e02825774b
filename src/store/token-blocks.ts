import type { Lanes } from '../redis/lanes.ts'
import type { Scripts } from '../redis/scripts.ts'
import type { KeyNames } from './key-names.ts'
import { authorBytes } from './limits.ts'
import { tagged } from './replies.ts'

/** How many subjects may be blocked: each replica knows all of them. */
export const maxBlocks = 10_000

/** Whose tokens are blocked. @property until by Redis's clock (ms); Infinity for good */
export interface TokenBlock { issuer: string, subject: string, until: number }

/** Whose tokens operators blocked, in Redis: beside the API keys, whose log has their changes too. */
export class TokenBlocks {
  readonly #lanes: Lanes
  readonly #scripts: Scripts
  readonly #tag: string
  readonly #blocked: string
  readonly #log: string

  /** @param tag of the partition with the API keys */
  constructor (lanes: Lanes, scripts: Scripts, keyNames: KeyNames, tag: string) {
    this.#lanes = lanes
    this.#scripts = scripts
    this.#tag = tag
    this.#blocked = keyNames.blockedTokens(tag)
    this.#log = keyNames.apiKeysLog(tag)
  }

  /**
   * @param lasts milliseconds; Infinity for good, null: no longer
   * @param by its author, for the log
   * @returns until when it was blocked before, and is now: null for not; or that there are too many
   * @throws {Unavailable}
   */
  async set (
    issuer: string, subject: string, lasts: number | null, by: string
  ): Promise<{ outcome: 'set', before: number | null, until: number | null } | { outcome: 'blocks_full' }> {
    const given = lasts === null ? '' : lasts === Infinity ? 'inf' : String(lasts)
    const [outcome, before, until] = await this.#lanes.call({
      script: this.#scripts['token-block'],
      tag: this.#tag,
      keys: [this.#blocked, this.#log],
      texts: [subjectName(issuer, subject), given, String(maxBlocks)],
      bytes: authorBytes(by),
      decode: tagged
    })
    return outcome === 'blocks_full' ? { outcome } : { outcome: 'set', before: endIn(before), until: endIn(until) }
  }

  /** All that are blocked now. @throws {Unavailable} */
  async list (): Promise<TokenBlock[]> {
    const [, , found] = await this.#lanes.call({
      script: this.#scripts['token-blocks'], tag: this.#tag, keys: [this.#blocked], texts: [], decode: tagged
    })
    const parts = (found as Buffer[]).map(String)
    return parts.filter((_, at) => at % 2 === 0).map((name, at) => {
      const [issuer, subject] = name.split(' ').map(decodeURIComponent) as [string, string]
      return { issuer, subject, until: blockEnd(parts[2 * at + 1]!) }
    })
  }
}

/** A subject of an issuer, as one word of ASCII. Both must be well-formed Unicode. */
export function subjectName (issuer: string, subject: string): string {
  return `${encodeURIComponent(issuer)} ${encodeURIComponent(subject)}`
}

function endIn (reply: unknown): number | null {
  return reply == null ? null : blockEnd(String(reply))
}

/** Until when, as Redis writes it. */
export function blockEnd (text: string): number {
  return text === 'inf' ? Infinity : Number(text)
}
