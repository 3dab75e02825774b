import { TooLarge } from '../core/errors.ts'
import type { Decision, HandoffRecord } from '../core/model.ts'
import { PayloadKeys } from '../core/payload-keys.ts'
import { Seal } from '../core/seal.ts'
import type { SealedMember } from '../core/seal.ts'
import type { Lanes } from '../redis/lanes.ts'
import type { Scripts } from '../redis/scripts.ts'
import { answerIn } from './asks.ts'
import type { HandoffPlace } from './handoffs.ts'
import type { AgentTexts } from './replies.ts'
import { memberOf } from './key-names.ts'
import type { KeyNames } from './key-names.ts'
import { parseDecision, parseProgress, readCallback, readSeen, sealedRecord, tagged, textOf } from './replies.ts'
import type { CallbackStands, Seen } from './replies.ts'

/** A JSON text; how many bytes it has, if it is longer than was asked for; null if there is none. */
type Long = Buffer | number | null

/** All that Redis has of a handoff. */
export type EverythingReply = {
  outcome: 'found'
  /** The text of JSON members; null once it was freed. */
  payload: Buffer | null
  result: Long
  /** The error given to fail, or the reason given to decline. */
  fault: Long
  texts: Pick<AgentTexts, 'cancelReason' | 'progress'>
  question: Buffer | null
  answer: Long
  checkpoint: Buffer | null
  callback: CallbackStands | null
} & Seen | { outcome: 'not_found' }

export interface Attempt { id: string, record: HandoffRecord, decision: Decision | null }

/** `next`: the id of the attempt to go on from; null at the end. */
interface AttemptsPart { items: Attempt[], next: string | null, now: number }

/** Handoffs as those read them who may read everything. */
export class EverythingReads {
  readonly #lanes: Lanes
  readonly #scripts: Scripts
  readonly #keyNames: KeyNames
  readonly #payloadKeys: PayloadKeys

  constructor (lanes: Lanes, scripts: Scripts, keyNames: KeyNames, payloadKeys = new PayloadKeys()) {
    this.#payloadKeys = payloadKeys
    this.#lanes = lanes
    this.#scripts = scripts
    this.#keyNames = keyNames
  }

  /**
   * @param most how many bytes each text but the payload may have
   * @param maxBytes how many all may have together; left out for any
   * @throws {TooLarge} they have more
   */
  read (place: HandoffPlace, most: number, maxBytes = Number.MAX_SAFE_INTEGER): Promise<EverythingReply> {
    return this.#lanes.call({
      script: this.#scripts.everything,
      tag: place.tag,
      keys: [this.#keyOf(place)],
      texts: [String(maxBytes), String(most)],
      decode: reply => readEverything(reply, new Seal(this.#payloadKeys, place))
    })
  }

  /** This attempt, and those after it or before it, in the order of `direction`. */
  attempts (place: HandoffPlace, direction: 'later' | 'earlier', limit: number): Promise<AttemptsPart> {
    const prefix = this.#keyNames.handoff(place.tag, memberOf(place.tenant, ''))
    return this.#lanes.call({
      script: this.#scripts.attempts,
      tag: place.tag,
      keys: [this.#keyOf(place)],
      texts: [direction === 'later' ? 'i' : 'o', String(limit), prefix],
      decode: reply => readAttempts(reply, id => new Seal(this.#payloadKeys, { ...place, id }, undefined, true))
    })
  }

  #keyOf ({ tag, tenant, id }: HandoffPlace): string {
    return this.#keyNames.handoff(tag, memberOf(tenant, id))
  }
}

function readEverything (reply: unknown, seal: Seal): EverythingReply {
  const [
    outcome, now, record, payload, result, decision, extra, fault, cancelReason, progress, question, answer, checkpoint,
    target, counts
  ] = tagged(reply)
  if (outcome === 'larger') throw new TooLarge()
  if (outcome === 'not_found') return { outcome }
  const seen = readSeen(now, record, extra, decision, seal)
  seal.refuseIfLocked()
  const opened = <Else> (member: SealedMember, text: Else | Buffer) =>
    Buffer.isBuffer(text) ? seal.open(member, text) : text ?? null
  return {
    outcome: 'found',
    ...seen,
    payload: opened('payload', payload as Buffer | null),
    result: opened('result', result as Long),
    fault: opened('fault', fault as Long),
    texts: {
      cancelReason: textOf(opened('cancel', cancelReason)), progress: parseProgress(textOf(progress), seal)
    },
    question: opened('question', question as Buffer | null),
    answer: Buffer.isBuffer(answer) ? answerIn(answer, seal).answer : (answer ?? null) as number | null,
    checkpoint: opened('checkpoint', checkpoint as Buffer | null),
    callback: readCallback([target, counts]),
  }
}

function readAttempts (reply: unknown, sealOf: (id: string) => Seal): AttemptsPart {
  const [outcome, now, next, ...parts] = tagged(reply)
  if (outcome === 'not_found') return { items: [], next: null, now: 0 }
  const items: Attempt[] = []
  for (let at = 0; at < parts.length; at += 4) {
    const [id, record, extra, decision] = parts.slice(at, at + 4)
    const seal = sealOf(String(id))
    items.push({
      id: String(id), record: sealedRecord(record, extra, seal), decision: parseDecision(decision, seal)
    })
  }
  return { items, next: textOf(next), now: now as number }
}
