import { iso } from '../../core/iso.ts'
import { labelsMember } from '../../core/labels.ts'
import type { Caught } from '../../store/handoffs.ts'
import type { TakenHandoff } from '../../store/inboxes.ts'
import {
  approvalText, attemptMembers, checkpointMember, lineageMembers, membersText, scheduleMembers, spliceAnswer, termsOn,
  windowMembers
} from './answers.ts'
import { urlsMember } from './files.ts'
import type { Urls } from './files.ts'

/** The answers of those who catch, and of those who read again what they caught. */

/**
 * The answer of catch: the members of every handoff, then this one's optional ones. Payload and schema are as passed.
 * @param urls whether it has those of its files
 */
export function caughtText (id: string, reply: Caught, urls: Urls = 'withUrls'): Buffer {
  const approval = reply.decision === null ? '' : `,"approval":${approvalText('approved', reply.decision)}`
  return spliceAnswer(
    `{"handoff_id":"${id}","status":"caught",`, reply.payload,
    `,"created_at":"${iso(reply.createdAt)}"${approval}${more(reply)}` +
      `${urls === 'withUrls' ? urlsMember('files', reply.payload) : ''}}`
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

/** The answer of a catch from an inbox, with the payloads as they were passed. */
export function takenText (items: readonly TakenHandoff[]): Buffer {
  const texts = items.flatMap((item, at) => [at === 0 ? opening : comma, caughtText(item.id, item)])
  return Buffer.concat(texts.length === 0 ? [empty] : [...texts, closing])
}

const [opening, comma, closing, empty] = ['{"items":[', ',', ']}', '{"items":[]}'].map(text => Buffer.from(text)) as [
  Buffer, Buffer, Buffer, Buffer
]
