import { TooLarge } from '../core/errors.ts'
import { homeTag } from '../core/ids.ts'
import { personWord, subjectMark } from '../core/model.ts'
import type { Caller, HandoffRecord } from '../core/model.ts'
import { handoffOfMember, memberOf } from './key-names.ts'
import type { KeyNames } from './key-names.ts'
import type { Lanes } from '../redis/lanes.ts'
import { parseRecord, readCallback, readRefusal, readSeen, tagged } from './replies.ts'
import type { CallbackStands, Refused, RefusedReply, Seen } from './replies.ts'
import type { Scripts } from '../redis/scripts.ts'
import type { HandoffPlace } from './handoffs.ts'

export type ApprovalVerdict = 'approved' | 'rejected'

type DecisionReply = { outcome: 'decided', at: number } |
  RefusedReply<Refused<'decide', 'approved' | 'rejected' | 'replayed'>>

/**
 * The handoff that a person saw: when it was passed (ms), and the digest of its content (SHA-256 in base64). A member
 * is undefined if the request doesn't have it.
 */
export interface SeenByPerson { createdAt?: number | undefined, digest?: string | undefined }

/**
 * All of a handoff. The payload is null once it was freed; the digest is empty if no person decides on it; the schema
 * is JSON text, or null if there is none.
 */
export type InspectReply =
  { outcome: 'found', payload: Buffer | null, digest: string, schema: Buffer | null, callback: CallbackStands | null } &
  Seen | { outcome: 'not_found' }

/**
 * A handoff that waits for a person. Its task is as much of the JSON string as the list keeps, the digest is its
 * content's (empty if it has none), and `size` is how many bytes its payload has.
 */
export interface WaitingHandoff {
  id: string
  score: number
  record: HandoffRecord
  task: Buffer
  digest: string
  size: number
}

/** Approvals in Redis: one method per script. store/lists.ts lists them. */
export class Approvals {
  readonly #lanes: Lanes
  readonly #scripts: Scripts
  readonly #keyNames: KeyNames
  readonly #retention: string

  constructor (lanes: Lanes, scripts: Scripts, keyNames: KeyNames, retention: number) {
    this.#lanes = lanes
    this.#scripts = scripts
    this.#keyNames = keyNames
    this.#retention = String(retention)
  }

  /** @param note JSON text: a string or null */
  decide (
    verdict: ApprovalVerdict, place: HandoffPlace, token: string, caller: Pick<Caller, 'agent' | 'subject'>,
    seen: SeenByPerson, note: Buffer
  ): Promise<DecisionReply> {
    const { tag, tenant } = place
    const member = memberOf(tenant, place.id)
    const itsSeen = [seen.createdAt === undefined ? '' : String(seen.createdAt), seen.digest ?? '']
    return this.#lanes.call({
      script: this.#scripts.decide,
      tag,
      keys: [this.#keyNames.handoff(tag, member), this.#keyNames.due(tag, tenant)],
      texts: [
        verdict, token, caller.agent, this.#retention, member, ...itsSeen, subjectMark(caller), personWord(caller)
      ],
      bytes: note,
      decode: readDecision
    })
  }

  /**
   * @param maxBytes how many bytes its payload and its schema may have; left out for any
   * @throws {TooLarge}
   */
  inspect (place: HandoffPlace, maxBytes?: number): Promise<InspectReply> {
    const key = this.#keyNames.handoff(place.tag, memberOf(place.tenant, place.id))
    const texts = maxBytes === undefined ? [] : [String(maxBytes)]
    const { inspect: script } = this.#scripts
    return this.#lanes.call({ script, tag: place.tag, keys: [key], texts, decode: readInspection })
  }

  /**
   * The channel for changes of what waits for people of a tenant. In a Cluster what is for an inbox is announced
   * elsewhere.
   */
  channelOf (tenant: string): string {
    return this.#keyNames.waiting(homeTag(tenant), tenant)
  }
}

function readDecision (reply: unknown): DecisionReply {
  const parts = tagged(reply)
  const [outcome, time] = parts
  return outcome === 'approved' || outcome === 'rejected' || outcome === 'replayed'
    ? { outcome: 'decided', at: time as number }
    : readRefusal(parts)
}

function readInspection (reply: unknown): InspectReply {
  const [outcome, now, record, payload, decision, digest, extra, schema, target] = tagged(reply)
  if (outcome === 'not_found') return { outcome }
  if (outcome === 'larger') throw new TooLarge()
  return {
    outcome: 'found',
    ...readSeen(now, record, extra, decision),
    payload: (payload ?? null) as Buffer | null,
    digest: String(digest ?? ''),
    schema: (schema ?? null) as Buffer | null,
    callback: readCallback([target]),
  }
}

/** @param item as lua/list.lua gives it */
export function readWaiting ([score, member, record, extra, digest, task, size]: unknown[]): WaitingHandoff {
  return {
    id: handoffOfMember(member).id,
    score: Number(score),
    record: parseRecord(record, extra),
    task: (task ?? Buffer.from('""')) as Buffer,
    digest: String(digest ?? ''),
    size: size as number
  }
}
