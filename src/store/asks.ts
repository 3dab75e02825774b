import { personWord } from '../core/model.ts'
import type { Asked, Caller, HandoffRecord } from '../core/model.ts'
import { PayloadKeys } from '../core/payload-keys.ts'
import { Seal } from '../core/seal.ts'
import type { Lanes } from '../redis/lanes.ts'
import type { Lifetimes, Scripts } from '../redis/scripts.ts'
import type { HandoffPlace } from './handoffs.ts'
import { memberOf } from './key-names.ts'
import type { KeyNames } from './key-names.ts'
import { readRefusal, sealedRecord, tagged } from './replies.ts'
import type { Refused, RefusedReply, Seen } from './replies.ts'

/** A new question. The texts are JSON; a text that is left out is empty. */
interface Question {
  token: string
  /** What the worker that asks calls itself. */
  worker?: string | undefined
  id: string
  of: Asked
  /** Milliseconds from now. */
  openFor: number
  question: string
  details: Buffer
  schema: Buffer
  /** The schema's; empty for none. */
  digest: string
}

type AskReply = { outcome: 'asked' | 'replayed', id: string, askedAt: number, expiresAt: number } |
  RefusedReply<Refused<'ask', 'asked' | 'replayed'>>

/** An answer as it is given. */
interface Answer {
  token: string
  id: string
  /** In whose name the key may answer. */
  as: readonly Asked[]
  /** The digest of the schema that it was checked against; empty if it wasn't. */
  satisfied: string
  /** JSON text: a string or null. */
  note: string
  answer: Buffer
}

type AnswerReply = { outcome: 'answered' | 'replayed', at: number } |
  /** The answer must satisfy this schema first. */
  { outcome: 'unchecked', satisfied: string, schema: Buffer } |
  RefusedReply<Refused<'answer', 'answered' | 'replayed' | 'unchecked'>>

/** The texts of a question and its answer, JSON; null where there is none. */
export interface AskTexts {
  question: Buffer
  details: Buffer | null
  schema: Buffer | null
  answer: Buffer | null
  note: string | null
}

/**
 * `texts` is null if nothing was asked. `isLarger`: they have more bytes than may be, and all but the question are left
 * out.
 */
export type AskedReply = { outcome: 'found', texts: AskTexts | null, isLarger: boolean } & Omit<Seen, 'decision'> |
  { outcome: 'not_found' }

/** Questions in Redis: one method per script. store/lists.ts lists them. */
export class Asks {
  readonly #lanes: Lanes
  readonly #scripts: Scripts
  readonly #keyNames: KeyNames
  readonly #retention: string
  readonly #isOneRedis: boolean
  readonly #payloadKeys: PayloadKeys

  constructor (
    lanes: Lanes, scripts: Scripts, keyNames: KeyNames, { retention }: Lifetimes, isOneRedis: boolean,
    payloadKeys = new PayloadKeys()
  ) {
    this.#lanes = lanes
    this.#scripts = scripts
    this.#keyNames = keyNames
    this.#retention = String(retention)
    this.#isOneRedis = isOneRedis
    this.#payloadKeys = payloadKeys
  }

  /** @param maxWorkTtl milliseconds */
  ask (
    place: HandoffPlace, agent: string, maxWorkTtl: number,
    { token, worker = '', id, of, openFor, digest, ...texts }: Question
  ): Promise<AskReply> {
    const seal = new Seal(this.#payloadKeys, place)
    const [details, schema] = [seal.bytes('details', texts.details), seal.bytes('ask_schema', texts.schema)]
    return this.#lanes.call({
      script: this.#scripts.ask,
      tag: place.tag,
      keys: this.#keys(place),
      texts: [
        agent, this.#retention, memberOf(place.tenant, place.id), String(maxWorkTtl), seal.token('ask', token),
        id, letters[of],
        String(openFor), digest === '' ? '-' : seal.marks('schema', digest)[0], `${details.length} ${schema.length}`,
        worker, seal.word('question', inAscii(texts.question))
      ],
      bytes: Buffer.concat([details, schema]),
      decode: reply => readAsk(reply, seal)
    })
  }

  answer (
    place: HandoffPlace, caller: Pick<Caller, 'agent' | 'subject'>,
    { token, id, as, satisfied, note, answer }: Answer
  ): Promise<AnswerReply> {
    const seal = new Seal(this.#payloadKeys, place)
    const [said, given] = [seal.word('answer_note', inAscii(note)), seal.bytes('answer', answer)]
    return this.#lanes.call({
      script: this.#scripts.answer,
      tag: place.tag,
      keys: this.#keys(place),
      texts: [
        caller.agent, this.#retention, memberOf(place.tenant, place.id), seal.token('answer', token), id,
        as.map(of => letters[of]).join(''), satisfied, personWord(caller), said
      ],
      bytes: given,
      decode: reply => readAnswer(reply, seal)
    })
  }

  /** @param maxBytes how many bytes the texts but the question may have; left out for any */
  asked (place: HandoffPlace, maxBytes?: number): Promise<AskedReply> {
    const [key] = this.#keys(place)
    const texts = maxBytes === undefined ? [] : [String(maxBytes)]
    const decode = (reply: unknown) => readAsked(reply, new Seal(this.#payloadKeys, place))
    return this.#lanes.call({ script: this.#scripts.asked, tag: place.tag, keys: [key!], texts, decode })
  }

  /** The channel for this handoff's changes. */
  channelOf (place: HandoffPlace): string {
    return this.#keys(place)[0]!
  }

  /** The channel for changes of a tenant's list of questions to people; null where no channel has them all. */
  listChannelOf (tenant: string): string | null {
    return this.#isOneRedis ? this.#keyNames.asksChannel(tenant) : null
  }

  #keys ({ tag, tenant, id }: HandoffPlace): string[] {
    return [this.#keyNames.handoff(tag, memberOf(tenant, id)), this.#keyNames.due(tag, tenant)]
  }
}

/** The same JSON with all else escaped: an argument that isn't bytes must be ASCII (redis/call.ts). */
export function inAscii (json: string): string {
  return json.replace(/[^\0-\x7f]/g, character => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

const letters = { person: 'p', passer: 'r' } as const

function readAsk (reply: unknown, seal: Seal): AskReply {
  const parts = tagged(reply)
  const [outcome, id, askedAt, expiresAt] = parts
  return outcome === 'asked' || outcome === 'replayed'
    ? { outcome, id: String(id), askedAt: askedAt as number, expiresAt: expiresAt as number }
    : readRefusal(parts, seal)
}

function readAnswer (reply: unknown, seal: Seal): AnswerReply {
  const parts = tagged(reply)
  const [outcome, first, second] = parts
  if (outcome === 'unchecked') {
    return { outcome, satisfied: String(first), schema: seal.open('ask_schema', second as Buffer) }
  }
  return outcome === 'answered' || outcome === 'replayed'
    ? { outcome, at: first as number }
    : readRefusal(parts, seal)
}

function readAsked (reply: unknown, seal: Seal): AskedReply {
  const [outcome, now, record, extra, question, texts, answer] = tagged(reply)
  if (outcome === 'not_found') return { outcome }
  const seen: { now: number, record: HandoffRecord } = { now: now as number, record: sealedRecord(record, extra, seal) }
  if (seen.record.extra.ask === undefined || question == null || texts == null) {
    return { outcome: 'found', ...seen, texts: null, isLarger: false }
  }
  if (typeof texts === 'number') {
    const none = { details: null, schema: null, answer: null, note: null }
    const texts = { question: seal.open('question', question as Buffer), ...none }
    return { outcome: 'found', ...seen, texts, isLarger: true }
  }
  const [asks, answered] = [texts as Buffer, (answer ?? null) as Buffer | null]
  return { outcome: 'found', ...seen, isLarger: false, texts: questionIn(question as Buffer, asks, answered, seal) }
}

/** Fields `q`, `u` and `a`. */
export function questionIn (question: Buffer, field: Buffer, answer: Buffer | null, seal: Seal): AskTexts {
  const [, , detailsLength, schemaLength, both] = wordsBefore(field, 4)
  const schemaAt = Number(detailsLength)
  return {
    question: seal.open('question', question),
    details: schemaAt === 0 ? null : seal.open('details', (both as Buffer).subarray(0, schemaAt)),
    schema: Number(schemaLength) === 0 ? null : seal.open('ask_schema', (both as Buffer).subarray(schemaAt)),
    ...answer === null ? { answer: null, note: null } : answerIn(answer, seal)
  }
}

/** Field `a`: the answer and its note, JSON texts. */
export function answerIn (field: Buffer, seal: Seal): { answer: Buffer, note: string } {
  const [, noteLength, both] = wordsBefore(field, 2) as [string, string, Buffer]
  const answerAt = Number(noteLength)
  return {
    answer: seal.open('answer', both.subarray(answerAt)),
    note: seal.openText('answer_note', both.subarray(0, answerAt))
  }
}

/** So many words, each before a space, and the bytes after them. */
function wordsBefore (text: Buffer, count: number): Array<string | Buffer> {
  const words: Array<string | Buffer> = []
  let at = 0
  while (words.length < count) {
    const end = text.indexOf(' ', at)
    words.push(text.toString('latin1', at, end))
    at = end + 1
  }
  return [...words, text.subarray(at)]
}
