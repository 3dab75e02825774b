import { iso } from '../../core/iso.ts'
import { labelsMember } from '../../core/labels.ts'
import type { Caught } from '../../store/handoffs.ts'
import type { TakenHandoff } from '../../store/inboxes.ts'
import {
  approvalText, attemptMembers, checkpointMember, lineageMembers, membersText, scheduleMembers, spliceAnswer, termsOn,
  windowMembers
} from './answers.ts'

/** The answers of those who catch, and of those who read again what they caught. */

/**
 * The answer of catch: the members of every handoff, then this one's optional ones. Payload and schema are as passed.
 * @param urls the member with those of its files (`HandoffFiles.urls`)
 */
export function caughtText (id: string, reply: Caught, urls: string): Buffer {
  const approval = reply.decision === null ? '' : `,"approval":${approvalText('approved', reply.decision)}`
  return spliceAnswer(
    `{"handoff_id":"${id}","status":"caught",`, reply.payload,
    `,"created_at":"${iso(reply.createdAt)}"${approval}${more(reply)}${urls}}`
  )
}

function more ({ record, schema, checkpoint, after }: Caught): string {
  if (record === null) return ''
  const { to, parent, ...terms } = termsOn('catch', record.extra)
  const more = {
    to,
    // The reply has no time: a question that has run out may read as open until the sweep.
    ...windowMembers(record, 0),
    ...terms,
    ...attemptMembers(record),
    parent,
    ...lineageMembers(record),
    ...checkpointMember(record.extra),
    checkpoint_by: record.extra.checkpoint?.by,
    ...scheduleMembers(record),
  }
  return membersText(more) + labelsMember(record.extra.labels) + (schema === null ? '' : `,"result_schema":${schema}`) +
    (checkpoint === null ? '' : `,"checkpoint":${checkpoint}`) + (after === undefined ? '' : `,"after":${after}`)
}

/** The answer of a catch from an inbox, with the payloads as passed. @param urls as in `caughtText`, of each */
export function takenText (items: readonly TakenHandoff[], urls: readonly string[]): Buffer {
  const texts = items.flatMap((item, at) => [at === 0 ? opening : comma, caughtText(item.id, item, urls[at]!)])
  return Buffer.concat(texts.length === 0 ? [empty] : [...texts, closing])
}

const [opening, comma, closing, empty] = ['{"items":[', ',', ']}', '{"items":[]}'].map(text => Buffer.from(text)) as [
  Buffer, Buffer, Buffer, Buffer
]
