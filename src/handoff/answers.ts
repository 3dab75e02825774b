import { Problem } from '../errors.ts'
import type { ErrorCode } from '../errors.ts'
import { operations, statusAt } from '../model.ts'
import type { Approval, Caller, Decision, HandoffRecord, Status } from '../model.ts'
import { isId, tagOf } from './id.ts'

/** What the operations' answers have in common. */

/** An answer, and whether the operation was recognised as one made before. */
export interface Answered<T> { answer: T, replayed: boolean }

/** Where a handoff of the caller's tenant lies. What can't be an id is answered like one that never was, without asking Redis. */
export function placeOf (caller: Caller, id: string) {
  if (!isId(id)) throw new Problem('not_found')
  return { tenant: caller.tenant, id, tag: tagOf(id) }
}

/** The status that each refusal tells of, by the table of states; those without one are no conflict of states. */
const standing: Partial<Record<ErrorCode, Status>> = {
  self_approval: 'pending',
  content_changed: 'pending',
  ...Object.fromEntries(Object.values(operations).flatMap(({ refusals }) => Object.entries(refusals))
    .filter(([where]) => where !== 'absent').map(([where, code]) => [code, where === 'waiting' ? 'pending' : where])),
}

/** A script's refusal carries its error's code. */
export function refusal (code: ErrorCode): Problem {
  const status = standing[code]
  return new Problem(code, status === undefined ? {} : { members: { handoff_status: status } })
}

/** The second decision's answer: the one that stands. */
export function alreadyDecided (record: HandoffRecord, now: number, decision: Decision): Problem {
  const approval = JSON.parse(approvalText(record.approval, decision)) as object
  return new Problem('already_decided', { members: { handoff_status: statusAt(record, now), approval } })
}

/** What the timestamps of a second begin with. Most are of few seconds, and to make this is most of making one. */
const beginnings = new Map<number, string>()
const beginningsKept = 100

/** Timestamps: ISO 8601 UTC with milliseconds. */
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

/** The `approval` of a handoff, as JSON text: null where none was asked for. */
export function approvalText (approval: Approval, decision: Decision | null): string {
  if (approval === 'none') return 'null'
  if (decision === null) return `{"state":"${approval}","decided_at":null,"decided_by":null,"note":null}`
  return `{"state":"${approval}","decided_at":"${iso(decision.at)}","decided_by":"${decision.by}","note":${decision.note}}`
}
