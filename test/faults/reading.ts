import { overloaded } from '../../src/http/overload.ts'
import { objectsIn } from './batches.ts'
import type { Wish } from './asking.ts'
import { clock } from './history.ts'
import type { Answer, Answered, AskSeen, History, Kind, Operation } from './history.ts'
import type { Reply } from '../../bench/http-client.ts'
import { faultOf, givenOf, reasonOf, resultOf } from './payloads.ts'

/** Reads an answer of the service for a history. */

export function read ({ status, body, replayed }: Reply, { kind, id, payload }: Wish): Answered {
  // The payload is compared as text; the rest is parsed as JSON.
  const at = payload === undefined || status !== 200 ? -1 : body.indexOf(payload)
  const members = parse(at === -1 ? body : `${body.slice(0, at)}"payload":0${body.slice(at + payload!.length)}`)
  const same = payload !== undefined && status === 200 ? at !== -1 && members !== null && !('task' in members || 'output' in members) : null
  const code = typeof members?.code === 'string' ? members.code : null
  if (members === null) return { status, code, answer: null, same, replayed }
  if (code === null && (kind === 'ask' || kind === 'asked' || kind === 'answer')) return { status, code, answer: { id, ask: askOf(members, body, kind) }, same, replayed }
  const answer = answerOf(members, body)
  return { status, code, answer: kind === 'reissue' && code === null ? ofSuccessor(id, answer) : answer, same, replayed }
}

/** A handoff that a catch from an inbox gave; `name` is that of its first attempt in the history. */
export interface Found { name: string, answer: Answer, same: boolean }

/**
 * Records what came of a catch from an inbox. @param reply null for none @param payloadOf what was passed with this name; undefined if nothing was
 * @returns what it caught; null if nobody knows
 */
export function settle (history: History, operation: Operation, reply: Reply | null, payloadOf: (name: string) => string | undefined, at = clock()): Found[] | null {
  operation.ended = at
  if (reply?.status === 200) {
    const found = readItems(reply.body, payloadOf)
    history.answeredByInbox(operation, found, reply.replayed, at)
    return found
  }
  if (reply !== null) {
    const members = parse(reply.body)
    const code = typeof members?.code === 'string' ? members.code : null
    Object.assign(operation, { answered: at, status: reply.status, code, answer: members === null ? null : answerOf(members, reply.body) })
  }
  history.untold.push(operation)
  return null
}

/**
 * What a wait for several handoffs told of the last attempt of each. @param names of their first attempts, as they were asked for
 * @property isComplete whether it says that what was waited for has ended
 */
export function readMany (body: string, names: readonly string[]): { items: Array<{ name: string, answered: Answered }>, isComplete: boolean } {
  const items = objectsIn(body).map((text, at) => {
    const members = JSON.parse(text) as Record<string, any>
    const answered = members.status === 'unknown' ? { status: 404, code: 'not_found', answer: null } : { status: 200, code: null, answer: answerOf(members, text) }
    return { name: names[at]!, answered }
  })
  return { items, isComplete: (JSON.parse(body) as { complete: boolean }).complete }
}

/** Whether a status answer tells of an end. */
export function hasEnded (answer: Answer | null): boolean {
  return answer?.status !== 'pending' && answer?.status !== 'caught'
}

function readItems (body: string, payloadOf: (name: string) => string | undefined): Found[] {
  const { items } = JSON.parse(body) as { items: Array<Record<string, any>> }
  return items.map(members => {
    const name = String(members.task).split(' ', 1)[0]!
    const payload = payloadOf(name)
    const same = payload !== undefined && body.includes(`{"handoff_id":"${members.handoff_id}","status":"caught",${payload},"created_at":`)
    return { name, answer: answerOf(members, body), same }
  })
}

/** @param kind an ask that is replayed answers as it did: that says nothing of how the question stands */
function askOf (members: Record<string, any>, body: string, kind?: Kind): AskSeen {
  const { ask_id: id, state, answer } = members
  const ask: Record<string, unknown> = { id, ...state !== undefined && kind !== 'ask' && { state } }
  for (const [name, as] of Object.entries(askTimes)) if (members[name] !== undefined) ask[as] = members[name] === null ? null : Date.parse(members[name])
  if (members.answered_by !== undefined) ask.answeredBy = members.answered_by
  if (answer !== undefined) ask.by = answer === null ? null : literally(body, `"answer":${givenOf(answer.by)}`, answer.by)
  return ask as unknown as AskSeen
}

/** A reissue's answer describes the successor. */
function ofSuccessor (id: string, { id: successor, status, createdAt }: Answer): Answer {
  return { id, ...status !== undefined && { status }, ...successor !== undefined && { reissuedAs: successor }, ...createdAt !== undefined && { reissuedAt: createdAt } }
}

function parse (body: string): Record<string, any> | null {
  try {
    const value = JSON.parse(body) as unknown
    return typeof value === 'object' ? value as Record<string, any> : null
  } catch {
    return null // a proxy's page
  }
}

const asTheyAre = {
  handoff_id: 'id', caught_by: 'caughtBy', ended_by: 'endedBy', expired_because: 'expiredBecause', reissued_as: 'reissuedAs', reissue_of: 'reissueOf', attempt: 'attempt', cancel_requested: 'cancelRequested', blocked_by: 'blockedBy',
} as const
const times = {
  created_at: 'createdAt',
  expires_at: 'expiresAt',
  available_at: 'availableAt',
  caught_at: 'caughtAt',
  completed_at: 'completedAt',
  ended_at: 'endedAt',
  work_expires_at: 'workExpiresAt',
  heartbeat_expires_at: 'heartbeatExpiresAt',
  cancel_requested_at: 'cancelRequestedAt',
} as const
const askTimes = { asked_at: 'askedAt', expires_at: 'expiresAt', answered_at: 'answeredAt' } as const

function answerOf (members: Record<string, any>, body: string): Answer {
  const { status, approval, result, error, reason, labels, group } = members
  const answer: Record<string, unknown> = {}
  // A problem's `status` is the HTTP status.
  if (typeof status === 'string') answer.status = status
  if (members.code === 'unavailable' && members.detail === overloaded.detail) answer.overloaded = true
  for (const [name, as] of Object.entries(asTheyAre)) if (members[name] !== undefined) answer[as] = members[name]
  for (const [name, as] of Object.entries(times)) if (members[name] !== undefined) answer[as] = members[name] === null ? null : Date.parse(members[name])
  if ('caught_at' in members || 'constraints' in members || 'payload' in members) Object.assign(answer, { tries: labels?.tries ?? null, group: group ?? null })
  if (members.ask !== undefined) answer.ask = askOf(members.ask, body)
  else if (members.ask_id !== undefined) answer.ask = { id: members.ask_id }
  if (approval !== undefined) {
    answer.approval = approval?.state ?? null
    answer.decidedAt = approval?.decided_at ? Date.parse(approval.decided_at) : null
  }
  if (result !== undefined) answer.result = result === null ? null : literally(body, `"result":${resultOf(result.by)}`, result.by)
  if (error !== undefined) answer.told = literally(body, `"error":${faultOf(error.data?.by)}`, error.data?.by)
  if (reason !== undefined) answer.told = literally(body, `"reason":${reasonOf(reason)}`, reason)
  return answer
}

function literally (body: string, text: string, by: string): string {
  return body.includes(text) ? by : 'other'
}
