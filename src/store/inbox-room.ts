import type { Lanes } from '../redis/lanes.ts'
import type { Scripts } from '../redis/scripts.ts'
import type { KeyNames } from './key-names.ts'
import { tagged } from './replies.ts'
import type { Replied } from './replies.ts'

/**
 * How many of an inbox's handoffs are caught in its other partition, and when that was counted, in that Redis's
 * milliseconds; or there is `room` that is kept for this take.
 */
export type CaughtElsewhere = { caught: number, at: number } | 'room'

interface OwnPlace { tag: string, tenant: string, inbox: string }

/** As lua/take.lua takes it. */
export function elsewhereText (known: CaughtElsewhere | undefined): string {
  if (known === undefined) return '?'
  return known === 'room' ? '' : `${known.caught}/${known.at}`
}

/**
 * In a Cluster, the room that an inbox with max_caught keeps for what is taken from its home partition: while a call
 * takes there, no other one counts on it. The version after this one may leave this out (lua/lib/taking.lua).
 */
export class InboxRoom {
  readonly #lanes: Lanes
  readonly #scripts: Scripts
  readonly #keyNames: KeyNames

  constructor (lanes: Lanes, scripts: Scripts, keyNames: KeyNames) {
    this.#lanes = lanes
    this.#scripts = scripts
    this.#keyNames = keyNames
  }

  /**
   * @param own the inbox in its own partition
   * @param token of the call that is to take
   * @param max how many at most
   * @returns how many it may take; or why none
   */
  keep (
    own: OwnPlace, token: string, max: number, caughtElsewhere: CaughtElsewhere
  ): Promise<number | 'closed' | 'limited'> {
    return this.#call(own, [token, String(max), elsewhereText(caughtElsewhere)], reply => {
      const [outcome, most] = tagged<Replied<'inbox-room'>>(reply)
      return outcome === 'closed' || outcome === 'limited' ? outcome : most as number
    })
  }

  /** @param takenAt when the handoffs were caught, by their Redis (ms); null if none was */
  give (own: OwnPlace, token: string, takenAt: number | null): Promise<unknown> {
    return this.#call(own, [token, '0', takenAt === null ? '' : String(takenAt)], tagged)
  }

  #call<T> ({ tag, tenant, inbox }: OwnPlace, texts: string[], decode: (reply: unknown) => T): Promise<T> {
    const keys = [this.#keyNames.inbox(tag, tenant, inbox)]
    return this.#lanes.call({ script: this.#scripts['inbox-room'], tag, keys, texts, decode })
  }
}
