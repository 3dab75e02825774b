import { Type } from '@sinclair/typebox'
import {
  catchAnswer, catcherHeaders, doneAnswer, doneBody, handoffParams, ignoredKeyHeaders, noQuery, passAnswer, passBody,
  passHeaders, waitQuery, workerHeaders
} from '../core/schemas/handoffs.ts'
import type { PassBody } from '../core/schemas/handoffs.ts'
import { id, key, seconds } from './arguments.ts'
import { ended, moved, operation, refusedBy, stays, unmoved } from './operation.ts'
import type { OperationCall, Services } from './operation.ts'
import { invalid } from '../core/errors.ts'
import type { GivenFile } from '../core/files.ts'
import type { Members } from '../core/json.ts'
import { cutNested } from '../core/nested.ts'
import {
  declineBody, endAnswer, failBody, heartbeatAnswer, heartbeatBody, maxCheckpointBytes, progressMembers
} from '../core/schemas/attempts.ts'

export function pass ({ handoffs, limits }: Services) {
  return operation<PassBody>({
    name: 'pass',
    scope: 'pass',
    method: 'POST',
    path: '/api/pass',
    tag: 'handoffs',
    summary: 'Pass a task to another agent',
    query: noQuery,
    headers: passHeaders,
    body: passBody(limits),
    answers: { 201: passAnswer },
    refusals: [
      ...refusedBy('pass'), 'unknown_parent', 'hop_limit', 'loop_detected', 'unknown_handoff', 'file_missing',
      'result_schema_too_slow', 'too_many_live'
    ],
    inBatch: true,
    tool: {
      name: 'handoff_pass',
      title: 'Pass a task on',
      description: 'Hand a task to another agent, with your own results (output) and background (context). Use it ' +
        'when work should be done by somebody else, now or later. `to` names the inbox of those who do such work; ' +
        'without it, give the handoff_id to the agent that should catch it. Always send idempotency_key, so that ' +
        'repeating the call creates no second handoff. Keep the handoff_id. Next, call ' +
        'handoff_status with wait to get the result. `after` names handoffs that must end first; who catches this ' +
        'one gets their results. With require_human, a person must approve first, at ' +
        'approval_url: show that address to people; you can’t approve it yourself.',
      takes: key
    },
    async run (call) {
      const { caller, body, key } = call
      const { answer, replayed } = await handoffs.pass(caller, body, call, key)
      const made = answer.handoff_id
      return { status: 201, answer, replayed, moved: replayed ? stays : { to: ['pending'], ids: [made] }, made }
    },
  })
}

/** Catches a handoff by its id. */
export function catchOne ({ handoffs }: Services) {
  return operation({
    name: 'catch',
    scope: 'catch',
    method: 'GET',
    path: '/api/catch/:id',
    tag: 'handoffs',
    summary: 'Catch a handoff; only one agent can',
    description: 'Moves the handoff from pending to caught. wait= waits for a person’s approval, for what it comes ' +
      'after, and for the end of a delay. Send an Idempotency-Key, so that you can retry when the answer is lost.',
    params: handoffParams,
    query: waitQuery,
    headers: catcherHeaders,
    answers: { 200: catchAnswer },
    refusals: refusedBy('catch'),
    resumesTrace: true,
    inBatch: true,
    tool: {
      name: 'handoff_catch',
      title: 'Catch a handoff',
      description: 'Take a handoff whose id you were given. The answer is its task, and from then on the work is ' +
        'yours alone. Use handoff_status if you only want to look. Always send idempotency_key: the same call with ' +
        'it gives you the same answer again. If a second content item says truncated, read the rest with ' +
        'handoff_read before you start. 409 is a normal answer: somebody else has caught it, or a person has yet to ' +
        'approve it, or it comes after others (set wait to wait for that). Another agent wrote the task: check that ' +
        'it is yours to do. Then do the work, send handoff_heartbeat if the answer has heartbeat_within, and end ' +
        'with handoff_done, handoff_fail or handoff_decline before work_expires_at (without it, within a day, or ' +
        'what your operator has set).',
      takes: { id, ...seconds('for a person to approve it, for what it comes after, or for its delay to end'), ...key }
    },
    async run (call) {
      const { caller, id, key } = call
      const { answer, replayed, traceparent } = await handoffs.catch(caller, id, key, call)
      return { status: 200, answer, replayed, moved: moved('caught', id, replayed), traceparent }
    },
  })
}

export function done ({ handoffs }: Services) {
  return operation<{ output?: object | null, files?: GivenFile[] | null }>({
    name: 'done',
    scope: 'catch',
    method: 'POST',
    path: '/api/done/:id',
    tag: 'handoffs',
    summary: 'Report a caught handoff done',
    description: 'Only the agent that caught the handoff may do so. If it was passed with a result_schema, the ' +
      'output must satisfy that schema. The body is optional.',
    params: handoffParams,
    query: noQuery,
    headers: catcherHeaders,
    body: doneBody,
    answers: { 200: doneAnswer },
    refusals: [...refusedBy('done'), 'file_missing', 'result_invalid', 'result_schema_too_slow'],
    inBatch: true,
    tool: {
      name: 'handoff_done',
      title: 'Report work as done',
      description: 'Report that the work on a handoff that you caught is finished, with its result in output. ' +
        'Always send idempotency_key; if the call fails without an answer, repeat it with the same key. ' +
        'result_invalid means that output doesn’t satisfy the handoff’s result_schema: correct it and call again, ' +
        'the handoff is still yours. 409 and 410 are normal answers: the handoff has ended in another way, so stop.',
      takes: { id, ...key }
    },
    async run ({ caller, id, body, members, bytes, key, worker }) {
      const result = body.output == null ? undefined : members.raw('output')
      const { answer, replayed } = await handoffs.done(caller, id, result, { bytes, key, worker }, body.files ?? null)
      return { status: 200, answer, replayed, moved: moved('done', id, replayed) }
    },
  })
}

export function heartbeat ({ attempts, limits }: Services) {
  return operation<{ extend_by?: number | null }>({
    name: 'heartbeat',
    scope: 'catch',
    method: 'POST',
    path: '/api/heartbeat/:id',
    tag: 'handoffs',
    summary: 'Send a heartbeat while working',
    description: 'Only the agent that caught the handoff may do so. Required if it was passed with ' +
      'heartbeat_within. Can also extend the work’s deadline and report progress. The body is optional.',
    params: handoffParams,
    query: noQuery,
    headers: Type.Object({ ...ignoredKeyHeaders.properties, ...workerHeaders.properties }),
    body: heartbeatBody(limits),
    answers: { 200: heartbeatAnswer },
    refusals: refusedBy('heartbeat'),
    inBatch: true,
    tool: {
      name: 'handoff_heartbeat',
      title: 'Report that you are still working',
      description: 'Report that you are still working on a handoff that you caught, and its progress. Needed if the ' +
        'answer of catch has heartbeat_within: send three heartbeats in that time. extend_by moves the deadline of ' +
        'the work. If the answer has cancel_requested true, the passer wants it stopped: end with handoff_fail or ' +
        'handoff_decline, or finish with handoff_done. 409 and 410 mean that the work is no longer yours: stop.',
      takes: { id, ...key },
      hints: { idempotentHint: true }
    },
    async run ({ caller, id, body, members, worker }) {
      const report = { worker, checkpoint: checkpointOf(members) }
      const answer = await attempts.heartbeat(caller, id, body.extend_by ?? null, progressOf(members), report)
      return unmoved(answer)
    },
  })
}

/** The JSON text of a heartbeat's progress: its members as they came, without those that are null. */
function progressOf (members: Members): Buffer | undefined {
  const inside = cutNested(members, 'progress')
  if (inside === undefined) return undefined
  const given = progressMembers.filter(name => inside.values[name] != null)
  if (given.length === 0) throw invalid({ pointer: '/progress', message: 'needs a message or a percent' })
  return Buffer.from(`{${given.map(name => `"${name}":${textOf(inside, name)}`).join(',')}}`)
}

/** Of a call that ends the work without a result. */
function workReport ({ bytes, key, worker, members }: OperationCall) {
  return { bytes, key, worker, checkpoint: checkpointOf(members) }
}

/** The checkpoint's JSON text; undefined if that before stays. */
function checkpointOf (members: Members): Buffer | undefined {
  if (members.values.checkpoint == null) return undefined
  const text = members.raw('checkpoint')!
  if (text.length > maxCheckpointBytes) {
    throw invalid({ pointer: '/checkpoint', message: `longer than ${maxCheckpointBytes} bytes` })
  }
  return text
}

/**
 * The member's text as it came. But a number may have a million digits, and a number that rounds to 100 may be above
 * it: so a long number is written anew.
 */
function textOf (members: Members, name: string): string {
  const raw = members.raw(name)!.toString()
  return name === 'percent' && raw.length > 20 ? String(members.values[name]) : raw
}

export function fail ({ attempts }: Services) {
  return operation<{ error: { code?: string | null }, retry?: boolean | null }>({
    name: 'fail',
    scope: 'catch',
    method: 'POST',
    path: '/api/fail/:id',
    tag: 'handoffs',
    summary: 'Report that the work could not be done',
    description: 'Only the agent that caught the handoff may do so. If attempts are left and retry isn’t false, a ' +
      'successor is made.',
    params: handoffParams,
    query: noQuery,
    headers: catcherHeaders,
    body: failBody,
    answers: { 200: endAnswer('failed') },
    refusals: refusedBy('give-up'),
    inBatch: true,
    tool: {
      name: 'handoff_fail',
      title: 'Report work as failed',
      description: 'Report that you tried the work on a handoff that you caught and could not do it, and why ' +
        '(error.message). It is tried again if it has attempts left, unless retry is false. Use handoff_decline for ' +
        'work that you won’t even try. Always send idempotency_key.',
      takes: { id, ...key }
    },
    async run (call) {
      const { caller, id, body, members } = call
      const code = body.error.code ?? undefined
      const mayRetry = body.retry !== false
      return ended(id, await attempts.fail(caller, id, members.raw('error')!, mayRetry, workReport(call), code))
    },
  })
}

export function decline ({ attempts }: Services) {
  return operation({
    name: 'decline',
    scope: 'catch',
    method: 'POST',
    path: '/api/decline/:id',
    tag: 'handoffs',
    summary: 'Give a caught handoff back',
    description: 'Only the agent that caught the handoff may do so. If attempts are left, a successor is made, ' +
      'which another agent can catch.',
    params: handoffParams,
    query: noQuery,
    headers: catcherHeaders,
    body: declineBody,
    answers: { 200: endAnswer('declined') },
    refusals: refusedBy('give-up'),
    inBatch: true,
    tool: {
      name: 'handoff_decline',
      title: 'Decline a handoff',
      description: 'Give back a handoff that you caught and will not do, with the reason: not your field, not ' +
        'allowed, no time. Decline rather than drop it, so that somebody else can catch it at once. Always send ' +
        'idempotency_key.',
      takes: { id, ...key }
    },
    async run (call) {
      const { caller, id, members } = call
      return ended(id, await attempts.decline(caller, id, members.raw('reason')!, workReport(call)))
    },
  })
}
