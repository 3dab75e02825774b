import { Type } from '@sinclair/typebox'
import type { Static } from '@sinclair/typebox'
import { ignoredKeyHeaders, statusAnswer, waitQuery } from '../core/schemas/handoffs.ts'
import { exampleId, nullable } from '../core/schemas/parts.ts'
import { optionalOffset, wait as seconds } from './arguments.ts'
import { operation, unmoved } from './operation.ts'
import type { Services } from './operation.ts'

const body = Type.Object({
  ids: Type.Array(Type.String(), {
    minItems: 1,
    maxItems: 100,
    description: 'Ids of handoffs. A repeated one is answered each time.',
    examples: [[exampleId]]
  }),
  until: Type.Optional(nullable<'all' | 'any'>('string', {
    enum: ['all', 'any', null], description: 'What to wait for: that all have ended for good (default), or any.'
  })),
  results: Type.Optional(nullable<boolean>('boolean', {
    description: 'Whether the items have results; true by default.'
  })),
}, { additionalProperties: false })

const unknown = Type.Object({
  handoff_id: Type.String(), status: Type.Literal('unknown', { description: 'There is no such handoff.' })
})
const known = Type.Object({
  ...statusAnswer.properties,
  result: Type.Optional(statusAnswer.properties.result),
  asked_as: Type.Optional(Type.String({
    description: 'The id that was asked for, if this is a later attempt.', examples: [exampleId]
  })),
  result_omitted: Type.Optional(Type.Literal(true, {
    description: 'What agents said would be larger than 4 MiB in all, so the result, error or reason is left out.'
  })),
})

const answer = Type.Object({
  items: Type.Array(Type.Union([known, unknown]), {
    description: 'What has become of each, in the order of ids: the status of its last attempt.'
  }),
  complete: Type.Boolean({ description: 'Whether what was waited for is so.', examples: [true] }),
}, { description: 'What is true now.' })

/** Waits for many handoffs with one request. */
export function wait ({ many }: Services) {
  return operation<Static<typeof body>>({
    name: 'wait',
    scope: 'status',
    method: 'POST',
    path: '/api/wait',
    tag: 'handoffs',
    summary: 'Wait for many handoffs',
    description: 'With wait=, the answer comes when all of them have ended for good, their further attempts ' +
      'included (until=any: when one has), or when the wait is over. An id that is not there counts as ended. ' +
      'It counts as one request.',
    query: waitQuery,
    headers: ignoredKeyHeaders,
    body,
    answers: { 200: answer },
    tool: {
      name: 'handoff_wait',
      title: 'Wait for several handoffs',
      description: 'See what has become of up to 100 handoffs in one call, instead of one handoff_status each. Set ' +
        'wait to 50 and call again until complete is true: then all of them have ended (with until "any", one has). ' +
        'Each item is as in the answer of handoff_status, for the last attempt of that handoff. Set results to false ' +
        'if you only want to know how they stand. If a second content item says truncated, call again with offset at ' +
        'next_offset.',
      takes: { ...seconds('until all of them have ended'), offset: optionalOffset },
      hints: { readOnlyHint: true }
    },
    async run ({ caller, body: { ids, until, results }, waiting, asker }) {
      const answer = await many.wait(caller, ids, until ?? 'all', results !== false, { waiting, asker })
      return unmoved(answer)
    },
  })
}
