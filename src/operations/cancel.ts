import { cancelBody, cancelRequestedAnswer, cancelledAnswer } from '../core/schemas/attempts.ts'
import { handoffParams, ignoredKeyHeaders, noQuery } from '../core/schemas/handoffs.ts'
import { id, key } from './arguments.ts'
import { moved, operation, refusedBy } from './operation.ts'
import type { Services } from './operation.ts'

export function cancel ({ attempts }: Services) {
  return operation<{ force?: boolean | null, reason?: string | null }>({
    name: 'cancel',
    scope: ['pass', 'operate'],
    method: 'POST',
    path: '/api/cancel/:id',
    tag: 'handoffs',
    summary: 'Cancel a handoff',
    description: 'Only the agent that passed the handoff may do so, or a key with the scope operate. A pending ' +
      'handoff is cancelled at once. A caught one’s catcher is asked to stop, in the answer to its next heartbeat; ' +
      'with force the handoff is taken from it at once. Safe to repeat. The body is optional.',
    params: handoffParams,
    query: noQuery,
    headers: ignoredKeyHeaders,
    body: cancelBody,
    answers: { 200: cancelledAnswer, 202: cancelRequestedAnswer },
    refusals: refusedBy('cancel', 'cancelled'),
    inBatch: true,
    tool: {
      name: 'handoff_cancel',
      title: 'Take a handoff back',
      description: 'Take back a handoff that you passed and no longer need. If nobody has caught it, it is ' +
        'cancelled at once. If somebody is working on it, they are asked to stop and may still finish: see ' +
        'handoff_status. force takes it from them. A key with the scope operate can do so with any agent’s handoff.',
      takes: { id, ...key },
      hints: { destructiveHint: true, idempotentHint: true }
    },
    async run ({ caller, id, body, members }) {
      const reason = body.reason == null ? undefined : members.raw('reason')
      const force = body.force === true
      const { answer, replayed, ofAnother } = await attempts.cancel(caller, id, force, reason)
      const isRequested = answer.status === 'caught'
      // A cancel may be repeated with a key or without, so no answer counts as a replay.
      return {
        status: isRequested ? 202 : 200,
        answer,
        replayed: false,
        moved: moved('cancelled', id, replayed),
        operated: ofAnother ? { action: 'cancel', asked: { handoff_id: id, force }, changed: 1 } : undefined
      }
    },
  })
}
