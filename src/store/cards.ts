import { LRUCache } from 'lru-cache'
import { inboxTag } from '../core/ids.ts'
import type { Lanes } from '../redis/lanes.ts'
import type { Scripts } from '../redis/scripts.ts'
import { inAscii } from './asks.ts'
import type { KeyNames } from './key-names.ts'
import { tagged } from './replies.ts'

/** An inbox's A2A card as it was given, JSON text, and when (ms). */
export interface StoredCard { setAt: number, text: string }

/** How long a card that was looked up is remembered (ms), how many are, and how many are looked up in such a time. */
const glances = { within: 1000, max: 1000, looks: 100 } as const
/** How old a card may be where no more are looked up (ms): as old as caches may have it. */
const oldest = 60_000

/** The A2A cards of inboxes in Redis. */
export class Cards {
  readonly #lanes: Lanes
  readonly #scripts: Scripts
  readonly #keyNames: KeyNames
  /** The cards that were glanced at, or that there was none. */
  readonly #glanced = new LRUCache<string, Promise<StoredCard | null>>({ max: glances.max, ttl: glances.within })
  /** Those of them that there were. */
  readonly #found = new LRUCache<string, StoredCard>({ max: glances.max, ttl: oldest })
  /** How many were looked up for that since then. */
  #looks = 0
  #looksBegan = -Infinity

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

  /**
   * The same for an unknown caller: not older than a second, and few ask Redis. While strangers ask for many, a
   * card that was found lately is given as it was.
   * @returns undefined if too many cards were looked up in this second
   */
  async glance (tenant: string, inbox: string): Promise<StoredCard | null | undefined> {
    const name = `${tenant} ${inbox}`
    const known = this.#glanced.get(name)
    if (known !== undefined) return await known
    const now = performance.now()
    if (now - this.#looksBegan >= glances.within) [this.#looks, this.#looksBegan] = [0, now]
    if (this.#looks++ >= glances.looks) return this.#found.get(name)
    const looked = this.get(tenant, inbox)
    this.#glanced.set(name, looked)
    looked.catch(() => this.#glanced.delete(name))
    const found = await looked
    if (found === null) this.#found.delete(name)
    else this.#found.set(name, found)
    return found
  }

  /** @param text JSON; null takes it away @returns whether it was another before */
  async set (tenant: string, inbox: string, text: string | null): Promise<boolean> {
    const tag = inboxTag(tenant, inbox)
    const keys = [this.#keyNames.card(tag, tenant, inbox)]
    const texts = [text === null ? '' : inAscii(text)]
    const decode = (reply: unknown) => tagged(reply)[1] === 1
    const isNew = await this.#lanes.call({ script: this.#scripts['card-set'], tag, keys, texts, decode })
    for (const known of [this.#glanced, this.#found]) known.delete(`${tenant} ${inbox}`)
    return isNew
  }
}

function readCard (reply: unknown): StoredCard | null {
  const [outcome, note] = tagged(reply)
  if (outcome === 'not_found') return null
  const text = String(note)
  const space = text.indexOf(' ')
  return { setAt: Number(text.slice(0, space)), text: text.slice(space + 1) }
}
