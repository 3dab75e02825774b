import { invalid } from '../core/errors.ts'
import { cutNested } from '../core/json.ts'
import type { Members } from '../core/json.ts'
import { heartbeatAnswer, heartbeatBody, progressMembers } from '../core/schemas/attempts.ts'
import { handoffParams, ignoredKeyHeaders, noQuery } from '../core/schemas/handoffs.ts'
import { id, key } from './arguments.ts'
import { operation, refusedBy, unmoved } from './operation.ts'
import type { Services } from './operation.ts'

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
    headers: ignoredKeyHeaders,
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
    async run ({ caller, id, body, members }) {
      const answer = await attempts.heartbeat(caller, id, body.extend_by ?? null, progressOf(members))
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

/**
 * The member's text as it came. But a number may have a million digits, and one that is rounded to 100 may be above it;
 * so a long one is written anew.
 */
function textOf (members: Members, name: string): string {
  const raw = members.raw(name)!.toString()
  return name === 'percent' && raw.length > 20 ? String(members.values[name]) : raw
}
