import type { Caught, Lifetimes } from './handoffs.ts'
import { readCaught } from './handoffs.ts'
import { handoffOf } from './key-names.ts'
import type { KeyNames } from './key-names.ts'
import type { Lanes } from '../redis/lanes.ts'
import { tagged } from './replies.ts'
import type { Scripts } from '../redis/scripts.ts'

/** One of the partitions where an inbox has a list: its own, or its tenant's home, for what a person approved. */
export interface InboxPlace { tenant: string, inbox: string, tag: string }

/** What is wanted of an inbox. */
export interface Wanted {
  token: string
  agent: string
  /** 0: only what the token took before. */
  most: number
  /** Bytes that the answer has already. */
  size: number
  /** How long what is taken is remembered under the token, in milliseconds; null for as long as a call may be asked again. */
  keptFor: number | null
  /** Stands for the request; '-' for one without an Idempotency-Key. */
  request: string
  /** Who asks: one of those with this token. */
  asker: string
  /** What can be taken elsewhere, ascending, as `turns` told it; null where no turns are to be told. */
  turns: readonly string[] | null
}

/** A request with an Idempotency-Key: its token, what stands for its bytes, who asks, and the partition where that is kept. */
export interface Claim { token: string, request: string, asker: string, tag: string }

export interface Taken extends Caught { id: string, turn: number }
export type TakeReply = {
  outcome: 'taken' | 'replayed'
  /** There may be others. */
  isMore: boolean
  /** How many of the turns elsewhere come before what is left here. */
  elsewhere: number
  items: Taken[]
} | { outcome: 'reused' } | { outcome: 'left' }

/** Of each its turn and its bytes. `isMore`: there may be others behind those that were looked at. */
export interface Turns { turns: string[], isMore: boolean }

/** `oldestAt` is when the oldest entered, in milliseconds; null where there is none. */
export interface Counted { pending: number, waiting: number, oldestAt: number | null }

/** What an item of lua/take.lua's reply takes. */
const partsAnItem = 9

/** Inboxes in Redis: one method a script. */
export class Inboxes {
  readonly #lanes: Lanes
  readonly #scripts: Scripts
  readonly #keyNames: KeyNames
  readonly #workTtl: string
  readonly #retention: string

  constructor (lanes: Lanes, scripts: Scripts, keyNames: KeyNames, { workTtl, retention }: Lifetimes) {
    this.#lanes = lanes
    this.#scripts = scripts
    this.#keyNames = keyNames
    this.#workTtl = String(workTtl)
    this.#retention = String(retention)
  }

  take ({ tag, tenant, inbox }: InboxPlace, { token, agent, most, size, keptFor, request, asker, turns }: Wanted): Promise<TakeReply> {
    const keys = [this.#keyNames.inbox(tag, tenant, inbox), this.#keyNames.due(tag), this.#keyNames.taken(tag, token)]
    const texts = [token, agent, this.#workTtl, this.#retention, this.#keyNames.handoff(tag, ''), String(most), String(size),
      keptFor === null ? '' : String(keptFor), request, turns === null ? '' : turns.join(' ') || '-', asker]
    return this.#lanes.call({ script: this.#scripts.take, tag, keys, texts, decode: readTake })
  }

  /** The turns of the first that can be caught, ascending. */
  turns ({ tag, tenant, inbox }: InboxPlace, most: number): Promise<Turns> {
    const texts = [String(most), this.#keyNames.handoff(tag, '')]
    return this.#lanes.call({ script: this.#scripts.turns, tag, keys: [this.#keyNames.inbox(tag, tenant, inbox)], texts, decode: readTurns })
  }

  count ({ tag, tenant, inbox }: InboxPlace): Promise<Counted> {
    const keys = [this.#keyNames.inbox(tag, tenant, inbox), this.#keyNames.undecided(tag, tenant, inbox)]
    return this.#lanes.call({ script: this.#scripts.inbox, tag, keys, texts: [], decode: readCount })
  }

  /** Keeps which request a token stands for, for so many milliseconds. @returns did another do so before? `reused`: for another request */
  claim ({ tag, token, request, asker }: Claim, keptFor: number): Promise<'claimed' | 'known' | 'reused'> {
    return this.#lanes.call({ script: this.#scripts.claim, tag, keys: [this.#keyNames.request(tag, token)], texts: [request, String(keptFor), asker], decode: readClaim })
  }

  /** Forgets it again, where this one was the first to ask. */
  unclaim ({ tag, token, request, asker }: Claim): Promise<unknown> {
    return this.#forget(tag, this.#keyNames.request(tag, token), `${request} ${asker}`)
  }

  /** Looks no more at the other list for a token, where so many were left to that. */
  stay ({ tag }: InboxPlace, { token, request, asker }: Claim, elsewhere: number): Promise<unknown> {
    return this.#forget(tag, this.#keyNames.taken(tag, token), `${request} ${elsewhere} @${asker} `)
  }

  #forget (tag: string, key: string, kept: string): Promise<unknown> {
    return this.#lanes.call({ script: this.#scripts.unclaim, tag, keys: [key], texts: [kept], decode: tagged })
  }

  /** Where it is told that a token took something here. */
  takenChannelOf ({ tag }: InboxPlace, token: string): string {
    return this.#keyNames.taken(tag, token)
  }

  /** Where it is told that there is more to catch. */
  channelOf ({ tag, tenant, inbox }: InboxPlace): string {
    return this.#keyNames.inbox(tag, tenant, inbox)
  }
}

function readTake (reply: unknown): TakeReply {
  const [outcome, more, elsewhere, ...parts] = tagged(reply)
  if (outcome === 'reused' || outcome === 'left') return { outcome }
  const items: Taken[] = []
  for (let at = 0; at < parts.length; at += partsAnItem) {
    const [turn, member, createdAt, payload, decision, traceparent, record, extra, schema] = parts.slice(at, at + partsAnItem)
    items.push({ turn: turn as number, id: handoffOf(member).id, ...readCaught(createdAt, payload, decision, traceparent, record, extra, schema) })
  }
  return { outcome: outcome as 'taken', isMore: more === 1, elsewhere: elsewhere as number, items }
}

function readTurns (reply: unknown): Turns {
  const [, more, ...turns] = tagged(reply)
  return { turns: turns.map(String), isMore: more === 1 }
}

function readCount (reply: unknown): Counted {
  const [, pending, waiting, oldest] = tagged(reply)
  return { pending: pending as number, waiting: waiting as number, oldestAt: oldest == null ? null : Math.floor(oldest as number / 1000) }
}

function readClaim (reply: unknown): 'claimed' | 'known' | 'reused' {
  return tagged(reply)[0] as 'claimed'
}
