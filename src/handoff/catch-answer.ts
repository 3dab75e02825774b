import type { Caught } from '../store/handoffs.ts'
import { approvalText, iso } from './answers.ts'
import { spliceAnswer } from './payload.ts'
import { attemptMembers, lineageMembers, membersText, windowMembers } from './status-answer.ts'

/**
 * The answer of catch: the members that every handoff has, then those that only this one has. The payload and the schema are as they were
 * passed.
 */
export function caughtText (id: string, reply: Caught): Buffer {
  const approval = reply.decision === null ? '' : `,"approval":${approvalText('approved', reply.decision)}`
  return spliceAnswer(`{"handoff_id":"${id}","status":"caught",`, reply.payload, `,"created_at":"${iso(reply.createdAt)}"${approval}${more(reply)}}`)
}

function more ({ record, schema }: Caught): string {
  if (record === null) return ''
  const { to, heartbeatWithin } = record.extra
  const members = {
    ...to !== undefined && { to },
    ...windowMembers(record),
    ...heartbeatWithin !== undefined && { heartbeat_within: heartbeatWithin / 1000 },
    ...attemptMembers(record),
    ...lineageMembers(record),
  }
  return membersText(members) + (schema === null ? '' : `,"result_schema":${schema}`)
}
