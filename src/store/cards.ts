import { inboxTag } from '../core/ids.ts'
import type { Lanes } from '../redis/lanes.ts'
import type { Scripts } from '../redis/scripts.ts'
import { inAscii } from './asks.ts'
import type { KeyNames } from './key-names.ts'
import { tagged } from './replies.ts'

/** An inbox's A2A card as it was given, JSON text, and when (ms). */
export interface StoredCard { setAt: number, text: string }

/** The A2A cards of inboxes in Redis. */
export class Cards {
  readonly #lanes: Lanes
  readonly #scripts: Scripts
  readonly #keyNames: KeyNames

  constructor (lanes: Lanes, scripts: Scripts, keyNames: KeyNames) {
    this.#lanes = lanes
    this.#scripts = scripts
    this.#keyNames = keyNames
  }

  /** @returns null if the inbox has none */
  get (tenant: string, inbox: string): Promise<StoredCard | null> {
    const tag = inboxTag(tenant, inbox)
    const keys = [this.#keyNames.card(tag, tenant, inbox)]
    return this.#lanes.share({ script: this.#scripts.get, tag, keys, texts: [], decode: readCard })
  }

  /** @param text JSON; null takes it away @returns whether it was another before */
  set (tenant: string, inbox: string, text: string | null): Promise<boolean> {
    const tag = inboxTag(tenant, inbox)
    const keys = [this.#keyNames.card(tag, tenant, inbox)]
    const texts = [text === null ? '' : inAscii(text)]
    const decode = (reply: unknown) => tagged(reply)[1] === 1
    return this.#lanes.call({ script: this.#scripts['card-set'], tag, keys, texts, decode })
  }
}

function readCard (reply: unknown): StoredCard | null {
  const [outcome, note] = tagged(reply)
  if (outcome === 'not_found') return null
  const text = String(note)
  const space = text.indexOf(' ')
  return { setAt: Number(text.slice(0, space)), text: text.slice(space + 1) }
}
