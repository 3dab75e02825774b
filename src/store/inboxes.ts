import type { Caught } from './handoffs.ts'
import { readCaught } from './handoffs.ts'
import { handoffOfMember } from './key-names.ts'
import type { KeyNames } from './key-names.ts'
import type { Lanes } from '../redis/lanes.ts'
import { tagged } from './replies.ts'
import type { Lifetimes, Scripts } from '../redis/scripts.ts'

/**
 * One of the two partitions where an inbox has a list: its own, or its tenant's home partition, for what a person
 * approved.
 */
export interface InboxPlace { tenant: string, inbox: string, tag: string }

/** What a request wants from an inbox. */
export interface Wanted {
  token: string
  agent: string
  /** How many at most; 0: only what this token took before. */
  max: number
  /** How many bytes the answer has already. */
  size: number
  /** How long the record of what this token took is kept, in milliseconds; null: as long as a call may be retried. */
  lifetime: number | null
  /** The request's digest; '-' without an Idempotency-Key. */
  request: string
  /** Distinguishes the requests that have this token. */
  asker: string
  /** The turns in the home list, ascending, as `turns` read them; null if the reply needn't have turns. */
  turns: readonly string[] | null
}

/**
 * A request with an Idempotency-Key: the key's token, the request's digest, what tells it from others with this key,
 * and the partition of the claim.
 */
export interface Claim { token: string, request: string, asker: string, tag: string }

export interface TakenHandoff extends Caught { id: string, turn: number }
export type TakeReply = {
  outcome: 'taken' | 'replayed'
  /** There may be more. */
  isMore: boolean
  /** How many of the home list's turns come before what is left in this list. */
  elsewhere: number
  items: TakenHandoff[]
} | { outcome: 'reused' } | { outcome: 'left' }

/** Each entry is a turn and a length in bytes. `isMore`: there may be more after those that were looked at. */
export interface InboxTurns { turns: string[], isMore: boolean }

/** `oldestAt`: when the oldest one entered, in milliseconds; null if there is none. */
export interface Counted { pending: number, waiting: number, oldestAt: number | null }

/** How many parts of lua/take.lua's reply one item takes. */
const partsAnItem = 9

/** The inboxes in Redis: one method per script. */
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

  take (
    { tag, tenant, inbox }: InboxPlace, { token, agent, max, size, lifetime, request, asker, turns }: Wanted
  ): Promise<TakeReply> {
    const keys = [this.#keyNames.inbox(tag, tenant, inbox), this.#keyNames.due(tag), this.#keyNames.taken(tag, token)]
    const texts = [
      token, agent, this.#workTtl, this.#retention, this.#keyNames.handoff(tag, ''), String(max), String(size),
      lifetime === null ? '' : String(lifetime), request, turns === null ? '' : turns.join(' ') || '-', asker
    ]
    return this.#lanes.call({ script: this.#scripts.take, tag, keys, texts, decode: readTake })
  }

  /** The turns of the first handoffs that can be caught, ascending. */
  turns ({ tag, tenant, inbox }: InboxPlace, max: number): Promise<InboxTurns> {
    const texts = [String(max), this.#keyNames.handoff(tag, '')]
    return this.#lanes.call({
      script: this.#scripts.turns, tag, keys: [this.#keyNames.inbox(tag, tenant, inbox)], texts, decode: readTurns
    })
  }

  count ({ tag, tenant, inbox }: InboxPlace): Promise<Counted> {
    const keys = [this.#keyNames.inbox(tag, tenant, inbox), this.#keyNames.undecided(tag, tenant, inbox)]
    return this.#lanes.call({ script: this.#scripts.inbox, tag, keys, texts: [], decode: readCount })
  }

  /**
   * Claims an Idempotency-Key for this request, for so many milliseconds.
   * @returns `known`: another request with the same bytes claimed it before; `reused`: one with other bytes did
   */
  claim ({ tag, token, request, asker }: Claim, lifetime: number): Promise<'claimed' | 'known' | 'reused'> {
    return this.#lanes.call({
      script: this.#scripts.claim,
      tag,
      keys: [this.#keyNames.request(tag, token)],
      texts: [request, String(lifetime), asker],
      decode: readClaim
    })
  }

  /** Releases the claim, if this request was the first to make it. */
  unclaim ({ tag, token, request, asker }: Claim): Promise<unknown> {
    return this.#forget(tag, this.#keyNames.request(tag, token), `${request} ${asker}`)
  }

  /** Removes the note that this request is taking from the home list, where `elsewhere` handoffs were left to it. */
  stay ({ tag }: InboxPlace, { token, request, asker }: Claim, elsewhere: number): Promise<unknown> {
    return this.#forget(tag, this.#keyNames.taken(tag, token), `${request} ${elsewhere} @${asker} `)
  }

  #forget (tag: string, key: string, expected: string): Promise<unknown> {
    return this.#lanes.call({ script: this.#scripts.unclaim, tag, keys: [key], texts: [expected], decode: tagged })
  }

  /** The channel that announces when a token has taken something here. */
  takenChannelOf ({ tag }: InboxPlace, token: string): string {
    return this.#keyNames.taken(tag, token)
  }

  /** The channel that announces when something has entered this list. */
  channelOf ({ tag, tenant, inbox }: InboxPlace): string {
    return this.#keyNames.inbox(tag, tenant, inbox)
  }
}

function readTake (reply: unknown): TakeReply {
  const [outcome, more, elsewhere, ...parts] = tagged(reply)
  if (outcome === 'reused' || outcome === 'left') return { outcome }
  const items: TakenHandoff[] = []
  for (let at = 0; at < parts.length; at += partsAnItem) {
    const [turn, member, createdAt, payload, decision, traceparent, record, extra, schema] = parts.slice(
      at, at + partsAnItem
    )
    items.push({
      turn: turn as number,
      id: handoffOfMember(member).id,
      ...readCaught(createdAt, payload, decision, traceparent, record, extra, schema)
    })
  }
  return { outcome: outcome as 'taken', isMore: more === 1, elsewhere: elsewhere as number, items }
}

function readTurns (reply: unknown): InboxTurns {
  const [, more, ...turns] = tagged(reply)
  return { turns: turns.map(String), isMore: more === 1 }
}

function readCount (reply: unknown): Counted {
  const [, pending, waiting, oldest] = tagged(reply)
  return {
    pending: pending as number,
    waiting: waiting as number,
    oldestAt: oldest == null ? null : Math.floor(oldest as number / 1000)
  }
}

function readClaim (reply: unknown): 'claimed' | 'known' | 'reused' {
  return tagged(reply)[0] as 'claimed'
}
