import { TooLarge } from '../core/errors.ts'
import type { PayloadBroken, PayloadLocked } from '../core/errors.ts'
import { homeTag } from '../core/ids.ts'
import { personWord, subjectMark } from '../core/model.ts'
import type { Caller, HandoffRecord } from '../core/model.ts'
import { handoffOfMember, memberOf } from './key-names.ts'
import type { KeyNames } from './key-names.ts'
import { PayloadKeys, textLength } from '../core/payload-keys.ts'
import { Seal } from '../core/seal.ts'
import type { Lanes } from '../redis/lanes.ts'
import { readCallback, readRefusal, readSeen, sealedRecord, tagged } from './replies.ts'
import type { CallbackStands, Refused, RefusedReply, Seen } from './replies.ts'
import type { Scripts } from '../redis/scripts.ts'
import type { HandoffPlace } from './handoffs.ts'
import { whileOriginMoves } from './sealing.ts'
import type { OtherOrigin } from './sealing.ts'

export type ApprovalVerdict = 'approved' | 'rejected'

type DecisionReply = { outcome: 'decided', at: number } | { outcome: 'outdated' } |
  RefusedReply<Refused<'decide', 'approved' | 'rejected' | 'replayed' | 'outdated'>>

/**
 * A compact JWS, for which moment and which handoff it was made (ms; the field as in `InspectReply`), and its digest.
 * @property fault there if it could not be made: why its content can't be read
 */
export interface Signed {
  at: number
  createdAt: number
  field: string
  digest: string
  signature: string
  fault?: PayloadLocked | PayloadBroken
}

/**
 * The handoff that a person saw: when it was passed (ms), and the digest of its content (SHA-256 in base64). A member
 * is undefined if the request doesn't have it.
 */
export interface SeenByPerson { createdAt?: number | undefined, digest?: string | undefined }

/**
 * All of a handoff. The payload is null once it was freed; the digest is empty if no person decides on it, and `field`
 * is what Redis has in its place; the schema is JSON text, or null if there is none.
 */
export type InspectReply = {
  outcome: 'found'
  payload: Buffer | null
  digest: string
  field: string
  schema: Buffer | null
  callback: CallbackStands | null
} & Seen | { outcome: 'not_found' }

/**
 * A handoff that waits for a person. Its task is as much of the JSON string as the list keeps, the digest is its
 * content's (empty if it has none), and `size` is how many bytes its payload has.
 */
export interface WaitingHandoff {
  id: string
  score: number
  record: HandoffRecord
  /** Null where this replica doesn't have its key. */
  task: Buffer | null
  digest: string
  size: number
}

/** Approvals in Redis: one method per script. store/lists.ts lists them. */
export class Approvals {
  readonly #lanes: Lanes
  readonly #scripts: Scripts
  readonly #keyNames: KeyNames
  readonly #retention: string
  readonly #payloadKeys: PayloadKeys

  constructor (
    lanes: Lanes, scripts: Scripts, keyNames: KeyNames, retention: number, payloadKeys = new PayloadKeys()
  ) {
    this.#payloadKeys = payloadKeys
    this.#lanes = lanes
    this.#scripts = scripts
    this.#keyNames = keyNames
    this.#retention = String(retention)
  }

  /**
   * @param note JSON text: a string or null
   * @param signed null where decisions aren't signed; `outdated` if the handoff is another, or the moment is over
   */
  async decide (
    verdict: ApprovalVerdict, place: HandoffPlace, token: string, caller: Pick<Caller, 'agent' | 'subject'>,
    seen: SeenByPerson, note: Buffer, signed: Signed | null = null
  ): Promise<DecisionReply> {
    const seal = new Seal(this.#payloadKeys, place)
    const { tag, tenant } = place
    const member = memberOf(tenant, place.id)
    return whileOriginMoves(seal, () => this.#lanes.call({
      script: this.#scripts.decide,
      tag,
      keys: [this.#keyNames.handoff(tag, member), this.#keyNames.due(tag, tenant)],
      texts: [
        verdict, token, caller.agent, this.#retention, member,
        seen.createdAt === undefined ? '' : String(seen.createdAt),
        seen.digest === undefined ? '' : seal.marks('digest', seen.digest).join(), subjectMark(caller),
        personWord(caller), seal.origin,
        signed === null
          ? ''
          : `${signed.at} ${signed.createdAt} ${signed.field} ${seal.word('signature', signed.signature)}`
      ],
      bytes: Buffer.from(seal.word('note', note.toString())),
      decode: reply => readDecision(reply, seal)
    }))
  }

  /**
   * @param maxBytes how many bytes its payload and its schema may have; left out for any
   * @throws {TooLarge}
   */
  inspect (place: HandoffPlace, maxBytes?: number): Promise<InspectReply> {
    const key = this.#keyNames.handoff(place.tag, memberOf(place.tenant, place.id))
    const texts = maxBytes === undefined ? [] : [String(maxBytes)]
    const { inspect: script } = this.#scripts
    const decode = (reply: unknown) => readInspection(reply, new Seal(this.#payloadKeys, place))
    return this.#lanes.call({ script, tag: place.tag, keys: [key], texts, decode })
  }

  /**
   * The channel for changes of what waits for people of a tenant. In a Cluster what is for an inbox is announced
   * elsewhere.
   */
  channelOf (tenant: string): string {
    return this.#keyNames.waiting(homeTag(tenant), tenant)
  }
}

function readDecision (reply: unknown, seal: Seal): DecisionReply | OtherOrigin {
  const parts = tagged(reply)
  const [outcome, time] = parts
  if (outcome === 'origin') return { outcome, first: String(time) }
  if (outcome === 'outdated') return { outcome }
  return outcome === 'approved' || outcome === 'rejected' || outcome === 'replayed'
    ? { outcome: 'decided', at: time as number }
    : readRefusal(parts, seal)
}

function readInspection (reply: unknown, seal: Seal): InspectReply {
  const [outcome, now, record, payload, decision, field, extra, schema, target] = tagged(reply)
  if (outcome === 'not_found') return { outcome }
  if (outcome === 'larger') throw new TooLarge()
  const seen = readSeen(now, record, extra, decision, seal)
  const digest = openedDigest(field, seal) ?? ''
  seal.refuseIfLocked()
  return {
    outcome: 'found',
    ...seen,
    payload: payload == null ? null : seal.open('payload', payload as Buffer),
    digest,
    field: String(field ?? ''),
    schema: schema == null ? null : seal.open('schema', schema as Buffer),
    callback: readCallback([target]),
  }
}

/** @param item as lua/list.lua gives it */
export function readWaiting (
  [score, member, record, extra, digest, task, size]: unknown[], seal: Seal
): WaitingHandoff {
  const parsed = sealedRecord(record, extra, seal)
  const its = seal.tryOpen('beginning', (task ?? Buffer.from('""')) as Buffer)
  return {
    id: handoffOfMember(member).id,
    score: Number(score),
    record: parsed,
    task: its,
    digest: openedDigest(digest, seal) ?? '',
    size: sealedSize(size as number, parsed)
  }
}

/** Of a sealed payload, the size of the text. */
function sealedSize (size: number, { extra }: HandoffRecord): number {
  return extra.sealedBy === undefined ? size : textLength(size)
}

/** Field `h`: the digest, or what it is compared by, a dot, and the sealed digest. Null where it is locked. */
function openedDigest (field: unknown, seal: Seal): string | null {
  const text = String(field ?? '')
  return text.startsWith('~') ? seal.tryText('digest', text.slice(text.indexOf('.') + 1)) : text
}
