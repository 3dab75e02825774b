import { declineBody, endAnswer } from '../core/schemas/attempts.ts'
import { handoffParams, idempotencyHeaders, noQuery } from '../core/schemas/handoffs.ts'
import { id, key } from './arguments.ts'
import { ended, operation, refusedBy } from './operation.ts'
import type { Services } from './operation.ts'

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
    headers: idempotencyHeaders,
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
    async run ({ caller, id, members, bytes, key }) {
      return ended(id, await attempts.decline(caller, id, members.raw('reason')!, { bytes, key }))
    },
  })
}
