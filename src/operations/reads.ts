import { Type } from '@sinclair/typebox'
import type { Static, TSchema } from '@sinclair/typebox'
import {
  explainedStatusAnswer, handoffParams, ignoredKeyHeaders, noQuery, statusAnswer, statusQuery, waitQuery
} from '../core/schemas/handoffs.ts'
import { exampleId, nullable } from '../core/schemas/parts.ts'
import type { StatusQuery } from '../core/schemas/handoffs.ts'
import { id, offset, optionalOffset, seconds } from './arguments.ts'
import { operation, refusedBy, unmoved } from './operation.ts'
import type { Services } from './operation.ts'
import { everythingAnswer } from '../core/schemas/everything.ts'
import { handoffsAnswer, handoffsQuery } from '../core/schemas/lists.ts'
import type { HandoffsQuery } from '../core/schemas/lists.ts'
import { runsAnswer, runsQuery } from '../core/schemas/runs.ts'
import type { RunsQuery } from '../core/schemas/runs.ts'

const until = Type.Optional(nullable<string>('string', {
  enum: ['caught', 'done', null],
  description: 'What to wait for: that an agent caught it, or (by default) that it has ended.'
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
      'comes when the handoff has reached the status `until`, a later one or an end, or when the wait is over. With ' +
      'explain=true it says what a pending handoff waits for.',
    params: handoffParams,
    query: statusQuery,
    answers: { 200: explainedStatusAnswer },
    inBatch: true,
    tool: {
      name: 'handoff_status',
      title: 'Look at a handoff',
      description: 'See the status of a handoff and, once it is done, its result. Changes nothing. Don’t poll: set ' +
        'wait to 50 and until to "done" (or "caught"), and the answer comes as soon as that happens; call again if ' +
        'it hasn’t yet. If it failed, was declined or expired, reissued_as is the id of the next attempt: continue ' +
        'with that one. If a second content item says truncated, call again with offset at next_offset.',
      takes: { id, ...seconds('for what until names'), until, offset: optionalOffset },
      hints: { readOnlyHint: true }
    },
    async run (call) {
      const { caller, id, query: { until = 'done', explain } } = call
      const answer = await (explain === undefined
        ? handoffs.status(caller, id, until, call)
        : handoffs.explained(caller, id, until, call))
      return unmoved(answer)
    },
  })
}

/** Reads a catcher's handoff again. It is only a tool: a request's answer has no limit of length. */
export function read ({ handoffs }: Services) {
  return operation({
    name: 'read',
    scope: 'catch',
    method: 'GET',
    path: null,
    tag: 'handoffs',
    summary: 'Read a caught handoff',
    params: handoffParams,
    answers: {},
    refusals: refusedBy('read'),
    tool: {
      name: 'handoff_read',
      title: 'Read the rest of a long handoff',
      description: 'Read a long handoff that you have caught: the text of catch’s answer from `offset` on. Use it ' +
        'when an answer was followed by {"truncated":true,…,"next_offset":N}, with that number, until none follows; ' +
        'the parts joined are one JSON text. Offset 0 starts at the beginning. It works while you have the handoff ' +
        'caught, and changes nothing.',
      takes: { id, offset },
      hints: { readOnlyHint: true }
    },
    async run ({ caller, id, requester }) {
      return unmoved(await handoffs.read(caller, id, requester))
    },
  })
}

/** All of a handoff. No tool and no batch has it: what one reads so is logged, a line for each. */
export function get ({ everything }: Services) {
  return operation({
    name: 'get',
    scope: 'read',
    method: 'GET',
    path: '/api/handoffs/:id',
    tag: 'handoffs',
    summary: 'Read all of a handoff',
    description: 'For people and programs that look after the work: what was passed, what came of it, and its ' +
      'attempts. Changes nothing. The service logs who reads what.',
    params: handoffParams,
    query: noQuery,
    answers: { 200: everythingAnswer },
    refusals: ['not_addressee'],
    async run ({ caller, id, requester }) {
      const { answer, isFirst } = await everything.read(caller, id, requester)
      return { ...unmoved(answer), isRead: isFirst }
    },
  })
}

/** The query as a tool's arguments, where null means absent. */
const toolBody = Type.Object(Object.fromEntries(Object.entries(handoffsQuery.properties).map(([name, property]) => {
  const { type, enum: values, ...more } = property as TSchema & { type: string, enum?: string[] }
  return [name, Type.Optional(nullable(type, { ...more, ...values !== undefined && { enum: [...values, null] } }))]
})))

/** Lists live handoffs, failed ones, or ended ones. */
export function list ({ lists }: Services) {
  return operation<unknown, HandoffsQuery>({
    name: 'list',
    scope: 'status',
    method: 'GET',
    path: '/api/handoffs',
    tag: 'handoffs',
    summary: 'List handoffs',
    description: 'Only this tenant’s. state=live (default): what is pending or caught, by the time at which the ' +
      'service looks at it next, the earliest first. state=failed: what failed, was declined, expired after its ' +
      'catch or expired in an inbox, and has no successor, the latest end first. state=ended: what ended in any way, ' +
      'of what was passed with to or labels, the latest end first, until it is gone. Go on until next_cursor is ' +
      'null: before that, a page may have fewer items than `limit`, or none.',
    query: handoffsQuery,
    answers: { 200: handoffsAnswer },
    refusals: ['ended_off'],
    tool: {
      name: 'handoff_list',
      title: 'List handoffs',
      description: 'Find handoffs whose id you don’t have, of your tenant: what is pending or caught, or with state ' +
        '"failed" what went wrong and was not tried again, or with "ended" what is over. Narrow it by inbox, labels, ' +
        'passed_by or caught_by. Go on with cursor at next_cursor until that is null: a page may have fewer items ' +
        'than limit, even none. Changes nothing. If a second content item says truncated, call again with offset at ' +
        'next_offset, or a lower limit.',
      takes: { offset: optionalOffset },
      hints: { readOnlyHint: true },
      body: toolBody,
      async run ({ caller, body, requester }) {
        const query = Object.fromEntries(Object.entries(body as object).filter(([, value]) => value !== null))
        return unmoved(await lists.page(caller, query, requester))
      }
    },
    async run ({ caller, query, requester }) {
      return unmoved(await lists.page(caller, query, requester))
    },
  })
}

/** Lists the runs of a tenant. */
export function listRuns ({ runs }: Services) {
  return operation<unknown, RunsQuery>({
    name: 'listRuns',
    scope: 'status',
    method: 'GET',
    path: '/api/runs',
    tag: 'handoffs',
    summary: 'List runs',
    description: 'The values of a label that RUN_LABELS names (`run` by default), of this tenant, the value that was ' +
      'passed last first, with how many works are live, done, failed or ended otherwise. The 10,000 values passed ' +
      'last are there. A run is gone RETENTION after its last change.',
    query: runsQuery,
    answers: { 200: runsAnswer },
    async run ({ caller, query, requester }) {
      return unmoved(await runs.page(caller, query, requester))
    },
  })
}

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
    async run ({ caller, body: { ids, until, results }, waiting, requester }) {
      const answer = await many.wait(caller, ids, until ?? 'all', results !== false, { waiting, requester })
      return unmoved(answer)
    },
  })
}
