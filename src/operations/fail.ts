import { endAnswer, failBody } from '../core/schemas/attempts.ts'
import { handoffParams, idempotencyHeaders, noQuery } from '../core/schemas/handoffs.ts'
import { id, key } from './arguments.ts'
import { ended, operation, refusedBy } from './operation.ts'
import type { Services } from './operation.ts'

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
    headers: idempotencyHeaders,
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
    async run ({ caller, id, body, members, bytes, key }) {
      const code = body.error.code ?? undefined
      return ended(
        id, await attempts.fail(caller, id, members.raw('error')!, body.retry !== false, { bytes, key }, code)
      )
    },
  })
}
