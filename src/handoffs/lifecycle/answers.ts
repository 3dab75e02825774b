import { createHash } from 'node:crypto'
import { Problem, errorTable } from '../../core/errors.ts'
import type { ErrorCode, ProblemMore } from '../../core/errors.ts'
import { isId, tagOf } from '../../core/ids.ts'
import { iso } from '../../core/iso.ts'
import type { Members } from '../../core/json.ts'
import { labelsMember } from '../../core/labels.ts'
import { answers, members } from '../../core/members.ts'
import type { Answer } from '../../core/members.ts'
import {
  askAt, deadlineOf, expiryOf, isBlocked, isResting, isTriedAgain, mayReadTexts, noExtra, statusAt
} from '../../core/model.ts'
import type { Approval, Caller, Decision, Extra, HandoffRecord } from '../../core/model.ts'
import type { StatusReply } from '../../store/handoffs.ts'
import type { AgentTexts } from '../../store/replies.ts'
import type { RefusedReply, Seen } from '../../store/replies.ts'
import { callbackMember } from './callback.ts'

/** The parts that operations' answers share. */

/** An answer. `replayed`: it is the answer to an operation that was already made. */
export interface Answered<T> { answer: T, replayed: boolean }

/**
 * Where a handoff of the caller's tenant is stored. A text that can't be an id gets the same answer as an unknown id,
 * without a call to Redis.
 */
export function placeOf (caller: Caller, id: string) {
  if (!isId(id)) throw new Problem('not_found')
  return { tenant: caller.tenant, id, tag: tagOf(id) }
}

/** Turns a script's refusal into a Problem: the error code, and the handoff's state. */
export function refusal ({ outcome, seen }: RefusedReply<ErrorCode>, more: ProblemMore = {}): Problem {
  return new Problem(
    outcome, seen === null ? more : { ...more, members: { ...standing(outcome, seen), ...more.members } }
  )
}

/**
 * A refusal's members about the handoff: its status, when it ended if it has ended, and, unless it is another agent's,
 * its successor.
 */
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

/**
 * When and by whom it was ended. Null while it hasn't ended; also for done and rejected, which report their end in
 * members of their own.
 */
export function endOf (record: HandoffRecord, now: number): { at: number, by: string | null } | null {
  const { endedAt, endedBy } = record.extra
  if (statusAt(record, now) === 'expired') return { at: expiryOf(record).at, by: null }
  return endedAt === undefined ? null : { at: endedAt, by: endedBy ?? null }
}

/** The answer to a second decision: the decision that stands. */
export function alreadyDecided (refused: RefusedReply<ErrorCode>): Problem {
  const { seen, isLocked } = refused
  const approval = JSON.parse(approvalText(seen!.record.approval, seen!.decision)) as object
  return refusal(refused, { members: { approval, ...isLocked === true && { locked: true } } })
}

/** The page where a person decides on a handoff, or answers its catcher's question. */
export function pageFor (baseUrl: string, id: string): string {
  return `${baseUrl}/approvals/${id}`
}

/** The `approval` member of a handoff, as JSON text; null if it needs no approval. */
export function approvalText (approval: Approval, decision: Decision | null): string {
  if (approval === 'none') return 'null'
  if (decision === null) return `{"state":"${approval}","decided_at":null,"decided_by":null,"note":null}`
  const { at, by, person, note, digest, signature } = decision
  return `{"state":"${approval}","decided_at":"${iso(at)}","decided_by":"${by}"${person},"note":${note}${digest === undefined
    ? ''
    : `,"digest":"${digestText(digest)}"`}${signature === undefined ? '' : `,"signature":"${signature}"`}}`
}

/** The digest of the content that a person saw, in the form of RFC 9530. @param digest SHA-256 in base64 */
export function digestText (digest: string): string {
  return `sha-256=:${digest}:`
}

// An agent's payload is never parsed and serialised again. JSON.parse rounds integers beyond 2^53, turns `1.0` into 1
// and `1e400` into Infinity, moves names that look like numbers to the front, keeps only the last of repeated names and
// loses a `__proto__`; and a lone surrogate that came as an escape is lost when strings are written as UTF-8. So the
// bytes are kept: cut out of pass's body, stored in Redis as they are, and copied into the answer of catch.

/** The members that each payload has, in order, with their values if they are absent or null. Files follow them. */
export const payloadMembers = Object.entries(members).flatMap(([name, row]) =>
  row.kept === 'payload' && row.absent !== null ? [[name, row.absent] as const] : [])

const pieces = payloadMembers.map(([name, absent], at) =>
  ({ name, before: Buffer.from(`${at === 0 ? '' : ','}"${name}":`), absent: Buffer.from(absent) }))

/**
 * A payload as Redis keeps it and catch returns it: `"task":…,"output":…,"context":…,"constraints":…`, and `,"files":…`
 * if it has some; the inside of a JSON object.
 * @param given the members of a body that the schema has accepted, so it has a task @param files the member
 */
export function joinPayload (given: Members, files: Buffer = nothing): Buffer {
  const parts: Buffer[] = []
  for (const { name, before, absent } of pieces) {
    parts.push(before, (given.values[name] === null ? undefined : given.raw(name)) ?? absent)
  }
  if (files.length > 0) parts.push(files)
  return Buffer.concat(parts)
}

/** The digest of a payload that a person decides on: SHA-256 in base64, of an object with exactly these members. */
export function digestOf (payload: Buffer): string {
  return createHash('sha256').update('{').update(payload).update('}').digest('base64')
}

/** The bytes of an answer: JSON text, the payload as it is, and JSON text. */
export function spliceAnswer (head: string, payload: Buffer, tail: string): Buffer {
  const headLength = Buffer.byteLength(head)
  const answer = Buffer.allocUnsafe(headLength + payload.length + Buffer.byteLength(tail))
  answer.write(head, 0)
  answer.set(payload, headLength)
  answer.write(tail, headLength + payload.length)
  return answer
}

type Found = Extract<StatusReply, { outcome: 'found' }>
export const withoutTexts = { result: null, longer: null, isFaultLonger: false, lockedBy: null, broken: null } as const

/**
 * A handoff as a caller may see it. If the key is held to other inboxes than the handoff's, it sees how the handoff
 * stands, and no text: no result, error, reason, progress or note.
 */
export function shownTo (caller: Caller, found: Found): Found {
  if (mayReadTexts(caller, found.record)) return found
  return {
    ...found, ...withoutTexts, texts: null, decision: withoutNote(found.decision)
  }
}

/** A decision as it is shown to a key that may not read its note, which the signature has too. */
export function withoutNote (decision: Decision | null): Decision | null {
  if (decision === null) return null
  const { signature, ...others } = decision
  return { ...others, note: 'null' }
}

export const noResult = Buffer.from('null')
const nothing = Buffer.alloc(0)

/** The answers that were made of large replies: those who share a reply share its answer's memory too. */
const largeAnswers = new WeakMap<Found, { urls: string, answer: Buffer }>()
/** From how many bytes on an answer is large. */
const large = 16 * 1024

/**
 * The answer of status: the members of every handoff, then this one's optional ones. Agents' texts are as they were
 * sent.
 * @param urls the member with those of the result's files (`HandoffFiles.urls`)
 */
export function statusText (id: string, found: Found, urls: string): string | Buffer {
  const { result, texts } = found
  const isLarge = Math.max(result?.length ?? 0, texts?.fault?.length ?? 0) > large
  const before = isLarge ? largeAnswers.get(found) : undefined
  if (before?.urls === urls) return before.answer
  const { head, tail } = itemParts(id, id, found, 'shown')
  // A text needs no copy into a buffer, and Node sends it in one piece with its head.
  if (result === null && !isLarge) return `${head}null${tail}`
  const answer = spliceAnswer(head, result ?? noResult, urls + tail)
  if (isLarge) largeAnswers.set(found, { urls, answer })
  return answer
}

/** The same for one of many: the handoff that was asked for, at its last attempt. @param shown of its result */
export function itemText (asked: string, id: string, found: Found, shown: Shown): Buffer {
  const { head, tail } = itemParts(asked, id, found, shown)
  return spliceAnswer(head, shown === 'shown' ? found.result ?? noResult : nothing, tail)
}

type Shown = 'shown' | 'omitted' | 'none'

/** The members that each handoff has. */
export function firstMembers (id: string, record: HandoffRecord, now: number): object {
  const { caught } = record
  return {
    handoff_id: id,
    status: statusAt(record, now),
    require_human: record.approval !== 'none',
    created_at: iso(record.createdAt),
    expires_at: iso(record.expiresAt),
    caught_at: caught && iso(caught.at),
    caught_by: caught && caught.by,
    completed_at: record.completedAt === null ? null : iso(record.completedAt),
  }
}

/** The parts of an item before and after its result. */
function itemParts (asked: string, id: string, found: Found, shown: Shown): { head: string, tail: string } {
  const { record, now, decision, texts } = found
  const known = JSON.stringify(firstMembers(id, record, now)).slice(0, -1)
  const head = `${known},"approval":${approvalText(record.approval, decision)}${shown === 'shown' ? ',"result":' : ''}`
  // Most have nothing of what follows.
  const isPlain = record.extra === noExtra && statusAt(record, now) !== 'expired' && found.lockedBy === null
  if (isPlain && asked === id && shown !== 'omitted') return { head, tail: `${agentMembers(texts, record)}}` }
  const more = {
    ...moreMembers(record, now),
    ...found.callback != null && { callback: callbackMember(found.callback) },
    ...asked !== id && { asked_as: asked },
    ...shown === 'omitted' && { result_omitted: true },
    ...found.lockedBy !== null && { locked: true }
  }
  const tail = `${membersText(more)}${labelsMember(record.extra.labels)}` +
    `${shown === 'omitted' ? '' : agentMembers(texts, record)}}`
  return { head, tail }
}

/** How each answer shows the members of pass that have words of their own, by the names that they have there. */
const shownTerms = Object.fromEntries(answers.map(answer => [answer, Object.entries(members).flatMap(([name, row]) => {
  if (row.on[answer] === undefined || (row.kept !== 'word' && row.kept !== 'made')) return []
  const { key, unit, as = name } = row
  return key === undefined || unit?.show === undefined ? [] : [{ name: as, key, show: unit.show }]
})])) as Record<Answer, Array<{ name: string, key: string, show: (value: unknown) => unknown }>>

/**
 * The terms that a handoff was passed with, as an answer has them. Labels, schemas and the handoffs that it comes after
 * are JSON text, and spliced in elsewhere.
 */
export function termsOn (answer: Answer, extra: Extra): Record<string, unknown> {
  const shown: Record<string, unknown> = {}
  for (const { name, key, show } of shownTerms[answer]) {
    const value = extra[key as keyof Extra]
    if (value !== undefined) shown[name] = show(value)
  }
  return shown
}

/** The members that only some handoffs have. */
export function moreMembers (record: HandoffRecord, now: number): object {
  const { extra } = record
  const end = endOf(record, now)
  const { to, priority = 0, group, parent, ...terms } = termsOn('status', extra)
  return {
    ...to !== undefined && { to, priority, group },
    ...terms,
    ...blockedMember(record, now),
    ...windowMembers(record, now),
    ...extra.heartbeatAt !== undefined && { heartbeat_at: iso(extra.heartbeatAt) },
    worker: extra.worker,
    ...checkpointMember(extra),
    ...extra.cancelRequestedAt !== undefined && { cancel_requested_at: iso(extra.cancelRequestedAt) },
    ...end !== null && { ended_at: iso(end.at), ended_by: end.by },
    ...expiryMember(record, now),
    ...attemptMembers(record),
    ...askMember(record, now),
    ...willBeTriedAgain(record, now) && { reissued_as: null },
    ...extra.reissuedAs !== undefined && { reissued_as: extra.reissuedAs },
    parent,
    ...lineageMembers(record),
    ...scheduleMembers(record),
  }
}

/** What everybody may know of its checkpoint. */
export function checkpointMember ({ checkpoint }: Extra): object {
  return checkpoint === undefined ? {} : { checkpoint_at: iso(checkpoint.at) }
}

/** How many others it still waits for. */
export function blockedMember (record: HandoffRecord, now: number): object {
  return isBlocked(record) && statusAt(record, now) === 'pending' ? { blocked_by: record.extra.after!.open } : {}
}

/** Its catcher's question. */
function askMember (record: HandoffRecord, now: number): object {
  const { ask } = record.extra
  if (ask === undefined) return {}
  const state = askAt(ask, record, now)
  return {
    ask: {
      ask_id: ask.id,
      state,
      of: ask.of,
      asked_at: iso(ask.askedAt),
      answered_at: state === 'answered' ? iso(ask.endedAt!) : null,
      answered_by: ask.answeredBy
    }
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

/** The deadlines of its work, if they differ from the default. They rest while its question is open. */
export function windowMembers (record: HandoffRecord, now: number): object {
  const { caught, extra } = record
  if (isResting(record, now)) return { work_expires_at: null, heartbeat_expires_at: null }
  const { workWithin, heartbeatWithin, extended, heartbeatDeadline } = extra
  const isShown = caught !== null && (workWithin !== undefined || heartbeatWithin !== undefined || extended === true)
  return {
    ...isShown && { work_expires_at: iso(caught.deadline) },
    ...heartbeatDeadline !== undefined && { heartbeat_expires_at: iso(heartbeatDeadline) },
  }
}

export function expiryMember (record: HandoffRecord, now: number): object {
  return statusAt(record, now) === 'expired' ? { expired_because: expiryOf(record).because } : {}
}

export function attemptMembers ({ extra: { attempt, reissueOf } }: HandoffRecord): object {
  return attempt === undefined ? {} : { attempt, reissue_of: reissueOf }
}

/** Of a schedule's run. */
export function scheduleMembers ({ extra: { schedule, scheduledFor } }: HandoffRecord): object {
  return schedule === undefined ? {} : { schedule, scheduled_for: iso(scheduledFor!) }
}

/** Of a handoff with a parent, besides that one. */
export function lineageMembers ({ extra: { parent, root, hops } }: HandoffRecord): object {
  return parent === undefined ? {} : { root, hops }
}

/** The terms that it was passed with, for people who decide on it or look after it. */
export function agreedMembers ({ extra }: HandoffRecord): Record<string, unknown> {
  const { to, priority, group, parent, available_at: availableAt, ...terms } = termsOn('approval', extra)
  return { to, priority, group, parent, ...terms, available_at: availableAt }
}

/** The terms that reports and pages for people have in words of their own. */
const worded: ReadonlySet<string> = new Set([
  'to', 'priority', 'group', 'parent', 'work_within', 'heartbeat_within', 'max_attempts', 'available_at'
])

/** The others, which people see by their names. */
export function otherTerms (record: HandoffRecord): Array<[name: string, value: string]> {
  return Object.entries(agreedMembers(record)).filter(([name]) => !worded.has(name))
    .map(([name, value]) => [name, String(value)])
}

/** Agents' texts about it, in their own bytes: members to be appended to an object that has others. */
export function agentMembers (texts: AgentTexts | null, { status }: HandoffRecord): string {
  if (texts === null) return ''
  const { fault, cancelReason, progress } = texts
  return progressMember(progress) +
    (cancelReason === null ? '' : `,"cancel_reason":${cancelReason}`) +
    (fault === null ? '' : `,"${status === 'failed' ? 'error' : 'reason'}":${fault}`)
}

export function progressMember (progress: AgentTexts['progress']): string {
  return progress === null ? '' : `,"progress":${progress.text.slice(0, -1)},"at":"${iso(progress.at)}"}`
}
