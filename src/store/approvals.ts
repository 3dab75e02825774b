import type { HandoffRecord } from '../model.ts'
import { handoffOf, memberOf } from './key-names.ts'
import type { KeyNames } from './key-names.ts'
import type { Lanes } from '../redis/lanes.ts'
import { parseRecord, readRefusal, readSeen, tagged } from './replies.ts'
import type { Refused, Seen } from './replies.ts'
import type { Scripts } from '../redis/scripts.ts'
import type { Place } from './handoffs.ts'

export type Verdict = 'approved' | 'rejected'

export type DecisionRefusal = 'not_found' | 'no_approval_required' | 'already_decided' | 'cancelled' | 'expired' | 'self_approval' | 'content_changed'
export type DecisionReply = { outcome: 'decided', at: number } | Refused<DecisionRefusal>

/** What a decision is about: when it was passed (ms), and what stands for its content (SHA-256 in base64); undefined where that isn't said. */
export interface SeenByPerson { createdAt?: number | undefined, digest?: string | undefined }

/** Everything of a handoff; the payload is null once freed, the digest where an older version passed it, the schema (JSON text) where there is none. */
export type InspectReply =
  { outcome: 'found', payload: Buffer | null, digest: string | null, schema: Buffer | null } & Seen | { outcome: 'not_found' }

/** One that waits for a person; the task as JSON text, which over 12,000 bytes has no end: what is of use is for the reader to cut. */
export interface Waiting { id: string, record: HandoffRecord, task: Buffer }
/** A place in the list: the last one seen. */
export interface ListPlace { createdAt: number, id: string }
/** As much of the list as one call reads, perhaps nothing, and the place behind which it goes on; null at its end. */
export interface WaitingPart { items: Waiting[], next: ListPlace | null }

/** What people decide, in Redis: one method a script. */
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

  /**
   * @param note JSON text: a string or null
   */
  decide (verdict: Verdict, place: Place, token: string, by: string, seen: SeenByPerson, note: Buffer): Promise<DecisionReply> {
    const { tag, tenant } = place
    const member = memberOf(tenant, place.id)
    const keys = [this.#keyNames.handoff(tag, member), this.#keyNames.waiting(tag, tenant)]
    const itsSeen = [seen.createdAt === undefined ? '' : String(seen.createdAt), seen.digest ?? '']
    const itsCall = { tag, bytes: note, decode: readDecision }
    return verdict === 'approved'
      ? this.#lanes.call({ ...itsCall, script: this.#scripts.approve, keys, texts: [token, by, member, ...itsSeen] })
      : this.#lanes.call({ ...itsCall, script: this.#scripts.reject, keys: [...keys, this.#keyNames.due(tag)], texts: [token, by, this.#retention, member, ...itsSeen] })
  }

  inspect (place: Place): Promise<InspectReply> {
    const key = this.#keyNames.handoff(place.tag, memberOf(place.tenant, place.id))
    return this.#lanes.call({ script: this.#scripts.inspect, tag: place.tag, keys: [key], texts: [], decode: readInspection })
  }

  /** Where it is told that a tenant's list changed. */
  channelOf (tenant: string, tag: string): string {
    return this.#keyNames.waiting(tag, tenant)
  }

  /** What waits for a person of this tenant, oldest first, behind `after`. */
  list (tenant: string, tag: string, after: ListPlace | null, limit: number): Promise<WaitingPart> {
    const from = after === null ? ['0', ''] : [String(after.createdAt), memberOf(tenant, after.id)]
    return this.#lanes.call({
      script: this.#scripts.waiting,
      tag,
      keys: [this.#keyNames.waiting(tag, tenant)],
      texts: [...from, String(limit), this.#keyNames.partition(tag)],
      decode: readList,
    })
  }
}

function readDecision (reply: unknown): DecisionReply {
  const parts = tagged(reply)
  const [outcome, time] = parts
  return outcome === 'approved' || outcome === 'rejected' || outcome === 'replayed' ? { outcome: 'decided', at: time as number } : readRefusal(parts)
}

function readInspection (reply: unknown): InspectReply {
  const [outcome, now, record, payload, decision, digest, extra, schema] = tagged(reply)
  if (outcome === 'not_found') return { outcome }
  return {
    outcome: 'found',
    ...readSeen(now, record, extra, decision),
    payload: (payload ?? null) as Buffer | null,
    digest: digest == null ? null : String(digest),
    schema: (schema ?? null) as Buffer | null,
  }
}

function readList (reply: unknown): WaitingPart {
  const [, since, after, ...parts] = tagged(reply)
  const items: Waiting[] = []
  for (let at = 0; at < parts.length; at += 4) {
    items.push({ id: handoffOf(parts[at]).id, record: parseRecord(parts[at + 1], parts[at + 3]), task: parts[at + 2] as Buffer })
  }
  return { items, next: after === null ? null : { createdAt: Number(since), id: handoffOf(after).id } }
}
