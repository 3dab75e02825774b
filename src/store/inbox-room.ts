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

/** Of a request with an Idempotency-Key: the token of the note, the request's digest. */
interface KeyedTake { token: string, request: string }

/** How an attempt went to take from the home partition. */
interface HomeTake {
  /** How many handoffs. */
  taken: number
  /** In a Cluster: when they were caught, by their Redis (ms), 0 if none were. Else null. */
  at: number | null
  /** For how long the answer is to be the same with an Idempotency-Key (ms). */
  keptFor: number
}

/**
 * What the own partition of an inbox knows of a call that takes from its home partition. While it takes there, in a
 * Cluster, it has room that no other one counts on; and with an Idempotency-Key no other request with
 * this key takes. The version after this one may leave this out (lua/lib/taking.lua).
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
   * @param call what tells this call from others
   * @param max how many at most
   * @param caughtElsewhere null on one Redis, which counts both when it takes
   * @returns how many it may take; or why none
   */
  keep (
    own: OwnPlace, call: string, max: number, caughtElsewhere: Exclude<CaughtElsewhere, 'room'> | null,
    keyed: KeyedTake | null
  ): Promise<number | Exclude<Replied<'inbox-room'>, 'kept'>> {
    const texts = [call, String(max), caughtElsewhere === null ? '' : elsewhereText(caughtElsewhere)]
    if (keyed !== null) texts.push(keyed.request)
    return this.#call(own, keyed, texts, reply => {
      const [outcome, most] = tagged<Replied<'inbox-room'>>(reply)
      return outcome === 'kept' ? most as number : outcome
    })
  }

  give (own: OwnPlace, call: string, { taken, at, keptFor }: HomeTake, keyed: KeyedTake | null): Promise<unknown> {
    const texts = [call, '0', at === null ? '' : String(at)]
    if (keyed !== null) texts.push(keyed.request, String(taken), String(keptFor))
    return this.#call(own, keyed, texts, tagged)
  }

  #call<T> (
    { tag, tenant, inbox }: OwnPlace, keyed: KeyedTake | null, texts: string[], decode: (reply: unknown) => T
  ): Promise<T> {
    const keys = [this.#keyNames.inbox(tag, tenant, inbox)]
    if (keyed !== null) keys.push(this.#keyNames.taken(tag, keyed.token))
    return this.#lanes.call({ script: this.#scripts['inbox-room'], tag, keys, texts, decode })
  }
}
