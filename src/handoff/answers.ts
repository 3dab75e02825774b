import { errorTable, Problem } from '../errors.ts'
import type { ErrorCode, ProblemMore } from '../errors.ts'
import { expiryOf, statusAt } from '../model.ts'
import type { Approval, Caller, Decision, HandoffRecord } from '../model.ts'
import type { Refused, Seen } from '../store/replies.ts'
import { isId, tagOf } from './id.ts'

/** What the answers of all operations share. */

/** An answer. `replayed`: it is the answer to an operation that was already made. */
export interface Answered<T> { answer: T, replayed: boolean }

/**
 * Where a handoff of the caller's tenant is stored. A text that can't be an id gets the same answer as an unknown id, without a call to
 * Redis.
 */
export function placeOf (caller: Caller, id: string) {
  if (!isId(id)) throw new Problem('not_found')
  return { tenant: caller.tenant, id, tag: tagOf(id) }
}

/** Turns a script's refusal into a Problem: its error code, and what the script found the handoff to be. */
export function refusal ({ outcome, seen }: Refused<ErrorCode>, more: ProblemMore = {}): Problem {
  return new Problem(outcome, seen === null ? more : { ...more, members: { ...standing(outcome, seen), ...more.members } })
}

/** What every refusal says about the handoff: its status, when it ended if it has ended, and, unless it is another agent's, its successor. */
function standing (outcome: ErrorCode, { now, record, decision }: Seen): Record<string, string> {
  const status = statusAt(record, now)
  const { reissuedAs } = record.extra
  const end = endOf(record, now)
  return {
    handoff_status: status,
    ...record.completedAt !== null && { completed_at: iso(record.completedAt) },
    ...end !== null && { ended_at: iso(end.at) },
    ...status === 'rejected' && decision !== null && { ended_at: iso(decision.at) },
    ...reissuedAs !== undefined && errorTable[outcome].status !== 403 && { reissued_as: reissuedAs },
  }
}

/** When and by whom it was ended. Null while it hasn't ended; also for done and rejected, which report their end in members of their own. */
export function endOf (record: HandoffRecord, now: number): { at: number, by: string | null } | null {
  const { endedAt, endedBy } = record.extra
  if (statusAt(record, now) === 'expired') return { at: expiryOf(record).at, by: null }
  return endedAt === undefined ? null : { at: endedAt, by: endedBy! }
}

/** The answer to a second decision: the decision that stands. */
export function alreadyDecided (refused: Refused<ErrorCode>): Problem {
  const { record, decision } = refused.seen!
  return refusal(refused, { members: { approval: JSON.parse(approvalText(record.approval, decision)) as object } })
}

/** Timestamps without their milliseconds, by second. Few seconds occur, and formatting this part is most of the cost of a timestamp. */
const beginnings = new Map<number, string>()
const beginningsKept = 100

/** A timestamp: ISO 8601, UTC, with milliseconds. */
export function iso (milliseconds: number): string {
  const second = Math.floor(milliseconds / 1000)
  let beginning = beginnings.get(second)
  if (beginning === undefined) {
    if (beginnings.size === beginningsKept) beginnings.clear()
    beginning = new Date(second * 1000).toISOString().slice(0, -'000Z'.length)
    beginnings.set(second, beginning)
  }
  return `${beginning}${String(milliseconds - second * 1000).padStart(3, '0')}Z`
}

/** The `approval` member of a handoff, as JSON text; null if it needs no approval. */
export function approvalText (approval: Approval, decision: Decision | null): string {
  if (approval === 'none') return 'null'
  if (decision === null) return `{"state":"${approval}","decided_at":null,"decided_by":null,"note":null}`
  const { at, by, note, digest } = decision
  return `{"state":"${approval}","decided_at":"${iso(at)}","decided_by":"${by}","note":${note}${digest === undefined ? '' : `,"digest":"${digestText(digest)}"`}}`
}

/** The digest of what a person saw, in the form of RFC 9530. @param digest SHA-256 in base64 */
export function digestText (digest: string): string {
  return `sha-256=:${digest}:`
}
