import { noQuery } from '../core/schemas/handoffs.ts'
import { passAnswer, passBody, passHeaders } from '../core/schemas/pass.ts'
import type { PassBody } from '../core/schemas/pass.ts'
import { key } from './arguments.ts'
import { operation, stays } from './operation.ts'
import type { Services } from './operation.ts'

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
      'idempotency_key_reused', 'unknown_parent', 'hop_limit', 'loop_detected', 'unknown_handoff',
      'result_schema_too_slow', 'inbox_full'
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
