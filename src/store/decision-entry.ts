import { personMembers } from '../core/model.ts'
import type { DecisionState, Extra } from '../core/model.ts'
import type { Seal } from '../core/seal.ts'
import { handoffOfMember } from './key-names.ts'
import { parseExtra } from './replies.ts'

/**
 * What a person decided, or answered. `id` is the entry's: the handoff's, a slash, and the moment. The texts are null
 * once they were forgotten: the note, JSON, and the beginning of the task or of the question, a JSON string.
 */
export interface DecisionEntry {
  id: string
  score: number
  state: DecisionState
  by: string
  /** Members of JSON, of who signed in by an issuer. */
  person: string
  passedBy: string
  askId: string | null
  digest: string | null
  extra: Extra
  texts: { note: string, text: Buffer | null } | null
  /** A compact JWS; null if it wasn't signed, or the signature was forgotten with the texts. */
  signature: string | null
  /** This replica doesn't have the key of some text, which is null then. */
  isLocked: boolean
}

const factsShape = /^(\S+) (\S+) (\S+) (\S+) (\S+)(.*)$/

/** As lua/lib/decisions.lua has it. */
export function readEntry ([score, member, facts, texts, signature]: unknown[], seal: Seal): DecisionEntry {
  const [, state, by, passedBy, askId, digest, words] = factsShape.exec(String(facts)) as string[]
  const extra = parseExtra(words!)
  if (extra.first !== undefined) seal.first = extra.first
  const entry: DecisionEntry = {
    id: handoffOfMember(member).id,
    score: Number(score),
    state: state as DecisionState,
    by: by!,
    person: personMembers(/ @(\S+)/.exec(words!)?.[1]),
    passedBy: passedBy!,
    askId: askId === '-' ? null : askId!,
    digest: digest === '-' ? null : seal.tryText('digest', digest!),
    extra,
    texts: texts == null ? null : textsIn(texts as Buffer, seal, state === 'answered'),
    signature: signature == null ? null : seal.tryText('signature', String(signature)),
    isLocked: false,
  }
  entry.isLocked = seal.isLocked
  return entry
}

function textsIn (texts: Buffer, seal: Seal, isAnswer: boolean): { note: string, text: Buffer | null } {
  const noteAt = texts.indexOf(' ') + 1
  const textAt = noteAt + Number(texts.toString('latin1', 0, noteAt))
  const note = seal.tryText(isAnswer ? 'answer_note' : 'note', texts.subarray(noteAt, textAt))
  const text = seal.tryOpen(isAnswer ? 'question' : 'beginning', texts.subarray(textAt))
  return { note: note ?? 'null', text }
}
