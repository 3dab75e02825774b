import { deadlineOf, expiryOf, isTriedAgain, statusAt } from '../model.ts'
import type { HandoffRecord } from '../model.ts'
import type { StatusReply, Told } from '../store/handoffs.ts'
import { approvalText, endOf, iso } from './answers.ts'
import { spliceAnswer } from './payload.ts'

type Found = Extract<StatusReply, { outcome: 'found' }>

const noResult = Buffer.from('null')

/** The answer of status: the members that every handoff has, then those that only this one has. Agents' texts are as they were sent. */
export function statusText (id: string, found: Found): Buffer {
  const { record, now, decision, result, told } = found
  const { caught } = record
  const known = JSON.stringify({
    handoff_id: id,
    status: statusAt(record, now),
    require_human: record.approval !== 'none',
    created_at: iso(record.createdAt),
    expires_at: iso(record.expiresAt),
    caught_at: caught && iso(caught.at),
    caught_by: caught && caught.by,
    completed_at: record.completedAt === null ? null : iso(record.completedAt),
  }).slice(0, -1)
  return spliceAnswer(`${known},"approval":${approvalText(record.approval, decision)},"result":`, result ?? noResult, `${membersText(moreMembers(record, now))}${toldText(told, record)}}`)
}

/** The members that only some handoffs have. */
export function moreMembers (record: HandoffRecord, now: number): object {
  const { extra } = record
  const end = endOf(record, now)
  return {
    ...extra.to !== undefined && { to: extra.to, priority: extra.priority ?? 0 },
    ...extra.availableAt !== undefined && { available_at: iso(extra.availableAt) },
    ...windowMembers(record),
    ...extra.cancelRequestedAt !== undefined && { cancel_requested_at: iso(extra.cancelRequestedAt) },
    ...end !== null && { ended_at: iso(end.at), ended_by: end.by },
    ...statusAt(record, now) === 'expired' && { expired_because: expiryOf(record).because },
    ...attemptMembers(record),
    ...willBeTriedAgain(record, now) && { reissued_as: null },
    ...extra.reissuedAs !== undefined && { reissued_as: extra.reissuedAs },
    ...lineageMembers(record),
  }
}

/** Has its time run out, and will the sweep make its successor, but hasn't yet? */
export function willBeTriedAgain (record: HandoffRecord, now: number): boolean {
  return record.status === 'caught' && now >= deadlineOf(record) && isTriedAgain(record)
}

/** The text of these members, to be appended to an object that has others. */
export function membersText (members: object): string {
  const text = JSON.stringify(members)
  return text === '{}' ? '' : `,${text.slice(1, -1)}`
}

/** The deadlines of its work, if they differ from the default. */
export function windowMembers ({ caught, extra }: HandoffRecord): object {
  const { workWithin, heartbeatWithin, extended, heartbeatDeadline } = extra
  const isShown = caught !== null && (workWithin !== undefined || heartbeatWithin !== undefined || extended === true)
  return {
    ...isShown && { work_expires_at: iso(caught.deadline) },
    ...heartbeatDeadline !== undefined && { heartbeat_expires_at: iso(heartbeatDeadline) },
  }
}

export function attemptMembers ({ extra: { attempt, reissueOf } }: HandoffRecord): object {
  return attempt === undefined ? {} : { attempt, reissue_of: reissueOf }
}

export function lineageMembers ({ extra: { parent, root, hops } }: HandoffRecord): object {
  return parent === undefined ? {} : { parent, root, hops }
}

/** The other terms that it was passed with, for people who decide on it or look after it. Durations in seconds. */
export function agreedMembers ({ extra: { to, priority, parent, workWithin, heartbeatWithin, maxAttempts, availableAt } }: HandoffRecord): object {
  return {
    ...to !== undefined && { to },
    ...priority !== undefined && { priority },
    ...parent !== undefined && { parent },
    ...workWithin !== undefined && { work_within: workWithin / 1000 },
    ...heartbeatWithin !== undefined && { heartbeat_within: heartbeatWithin / 1000 },
    ...maxAttempts !== undefined && { max_attempts: maxAttempts },
    ...availableAt !== undefined && { available_at: iso(availableAt) },
  }
}

/** What agents said about it, in their own bytes: members to be appended to an object that has others. */
export function toldText (told: Told | null, { status }: HandoffRecord): string {
  if (told === null) return ''
  const { fault, cancelReason, progress } = told
  return (progress === null ? '' : `,"progress":${progress.told.slice(0, -1)},"at":"${iso(progress.at)}"}`) +
    (cancelReason === null ? '' : `,"cancel_reason":${cancelReason}`) +
    (fault === null ? '' : `,"${status === 'failed' ? 'error' : 'reason'}":${fault}`)
}
