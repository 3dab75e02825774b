import { TooLarge } from '../core/errors.ts'
import type { Labels } from '../core/labels.ts'
import { personWord, subjectMark } from '../core/model.ts'
import type { Caller, HandoffRecord } from '../core/model.ts'
import { handoffOfMember, memberOf } from './key-names.ts'
import type { KeyNames } from './key-names.ts'
import { wordsOf } from './lists.ts'
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
export interface Waiting { id: string, record: HandoffRecord, task: Buffer, digest: string, size: number }
/** Which handoffs are listed: for this inbox, and with all of these labels. */
export interface WantedWaiting { inbox?: string | undefined, labels?: Labels | undefined }
/**
 * How many members a call looks at if it lists only some. A call that lists all may look at more: it takes long only
 * after many have expired, which no client can bring about at will.
 */
const looksForSome = 128

/** A position in the list: the last handoff seen. */
export interface ListPlace { createdAt: number, id: string }
/**
 * A call's part of the list, perhaps empty, and the position to go on from; null at the end of the list. `count` is how
 * many wait in all, with those that have expired since the last sweep. By Redis’s clock it was `now`.
 */
interface WaitingPart { items: Waiting[], next: ListPlace | null, count: number, now: number }

/** Approvals in Redis: one method per script. */
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
      keys: [
        this.#keyNames.handoff(tag, member), this.#keyNames.waiting(tag, tenant), this.#keyNames.due(tag, tenant)
      ],
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

  /** The channel for changes of a tenant's list. */
  channelOf (tenant: string, tag: string): string {
    return this.#keyNames.waiting(tag, tenant)
  }

  /**
   * The handoffs that wait for a person of this tenant, oldest first, after the position `after`. One call looks at a
   * limited number.
   */
  list (
    tenant: string, tag: string, after: ListPlace | null, limit: number, wanted: WantedWaiting = {}
  ): Promise<WaitingPart> {
    const from = after === null ? ['0', ''] : [String(after.createdAt), memberOf(tenant, after.id)]
    return this.#lanes.call({
      script: this.#scripts.waiting,
      tag,
      keys: [this.#keyNames.waiting(tag, tenant)],
      texts: [...from, String(limit), this.#keyNames.partition(tag), ...narrowing(wanted)],
      decode: readList,
    })
  }
}

/** Are only some wanted? */
export function isNarrow (wanted: WantedWaiting): boolean {
  return wordsOf(wanted) !== ''
}

/** The script's arguments if only some are wanted: their words, and how many members to look at. */
function narrowing (wanted: WantedWaiting): string[] {
  return isNarrow(wanted) ? [wordsOf(wanted), String(looksForSome)] : []
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

function readList (reply: unknown): WaitingPart {
  const [, now, since, after, count, ...parts] = tagged(reply)
  const items: Waiting[] = []
  for (let at = 0; at < parts.length; at += 6) {
    items.push({
      id: handoffOfMember(parts[at]).id,
      record: parseRecord(parts[at + 1], parts[at + 3]),
      task: parts[at + 2] as Buffer,
      digest: String(parts[at + 4] ?? ''),
      size: parts[at + 5] as number
    })
  }
  return {
    items,
    next: after === null ? null : { createdAt: Number(since), id: handoffOfMember(after).id },
    count: count as number,
    now: now as number,
  }
}
