import { Type } from '@sinclair/typebox'
import { handoffParams, statusAnswer, statusQuery } from '../core/schemas/handoffs.ts'
import { nullable } from '../core/schemas/parts.ts'
import type { StatusQuery } from '../core/schemas/handoffs.ts'
import { id, optionalOffset, wait } from './arguments.ts'
import { operation, unmoved } from './operation.ts'
import type { Services } from './operation.ts'

const until = Type.Optional(nullable<string>('string', {
  enum: ['caught', 'done', null],
  description: 'What to wait for: that somebody caught it, or (by default) that it has ended.'
}))

export function status ({ handoffs }: Services) {
  return operation<unknown, StatusQuery>({
    name: 'status',
    scope: 'status',
    method: 'GET',
    path: '/api/status/:id',
    tag: 'handoffs',
    summary: 'Read a handoff’s status',
    description: 'Changes nothing, and never shows task, output or context: only catch does. With wait=, the answer ' +
      'comes when the handoff has reached the status `until`, a later one or an end, or when the wait is over.',
    params: handoffParams,
    query: statusQuery,
    answers: { 200: statusAnswer },
    inBatch: true,
    tool: {
      name: 'handoff_status',
      title: 'Look at a handoff',
      description: 'See the status of a handoff and, once it is done, its result. Changes nothing. Don’t poll: set ' +
        'wait to 50 and until to "done" (or "caught"), and the answer comes as soon as that happens; call again if ' +
        'it hasn’t yet. If it failed, was declined or expired, reissued_as is the id of the next attempt: continue ' +
        'with that one. If a second content item says truncated, call again with offset at next_offset.',
      takes: { id, ...wait('for what until names'), until, offset: optionalOffset },
      hints: { readOnlyHint: true }
    },
    async run (call) {
      const { caller, id, query: { until = 'done' } } = call
      const answer = await handoffs.status(caller, id, until, call)
      return unmoved(answer)
    },
  })
}
