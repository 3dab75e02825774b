import { personMembers } from '../core/model.ts'
import type { DecisionState, Extra } from '../core/model.ts'
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
  texts: { note: string, text: Buffer } | null
}

const factsShape = /^(\S+) (\S+) (\S+) (\S+) (\S+)(.*)$/

/** As lua/lib/decisions.lua has it. */
export function readEntry ([score, member, facts, texts]: unknown[]): DecisionEntry {
  const [, state, by, passedBy, askId, digest, words] = factsShape.exec(String(facts)) as string[]
  return {
    id: handoffOfMember(member).id,
    score: Number(score),
    state: state as DecisionState,
    by: by!,
    person: personMembers(/ @(\S+)/.exec(words!)?.[1]),
    passedBy: passedBy!,
    askId: askId === '-' ? null : askId!,
    digest: digest === '-' ? null : digest!,
    extra: parseExtra(words!),
    texts: texts == null ? null : textsIn(texts as Buffer),
  }
}

function textsIn (texts: Buffer): { note: string, text: Buffer } {
  const noteAt = texts.indexOf(' ') + 1
  const textAt = noteAt + Number(texts.toString('latin1', 0, noteAt))
  return { note: texts.toString('utf8', noteAt, textAt), text: texts.subarray(textAt) }
}
