import { catchAnswer, handoffParams, idempotencyHeaders, waitQuery } from '../core/schemas/handoffs.ts'
import { id, key, wait } from './arguments.ts'
import { moved, operation, refusedBy } from './operation.ts'
import type { Services } from './operation.ts'

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
    headers: idempotencyHeaders,
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
      takes: { id, ...wait('for a person to approve it, for what it comes after, or for its delay to end'), ...key }
    },
    async run (call) {
      const { caller, id, key } = call
      const { answer, replayed, traceparent } = await handoffs.catch(caller, id, key, call)
      return { status: 200, answer, replayed, moved: moved('caught', id, replayed), traceparent }
    },
  })
}
