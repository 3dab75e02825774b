import { doneAnswer, doneBody, handoffParams, idempotencyHeaders, noQuery } from '../core/schemas/handoffs.ts'
import { id, key } from './arguments.ts'
import { moved, operation, refusedBy } from './operation.ts'
import type { Services } from './operation.ts'

export function done ({ handoffs }: Services) {
  return operation<{ output?: object | null }>({
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
    headers: idempotencyHeaders,
    body: doneBody,
    answers: { 200: doneAnswer },
    refusals: [...refusedBy('done'), 'result_invalid', 'result_schema_too_slow'],
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
    async run ({ caller, id, body, members, bytes, key }) {
      const result = body.output == null ? undefined : members.raw('output')
      const { answer, replayed } = await handoffs.done(caller, id, result, bytes, key)
      return { status: 200, answer, replayed, moved: moved('done', id, replayed) }
    },
  })
}
