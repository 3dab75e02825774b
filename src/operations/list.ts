import { Type } from '@sinclair/typebox'
import type { TSchema } from '@sinclair/typebox'
import { nullable } from '../core/schemas/parts.ts'
import { handoffsAnswer, handoffsQuery } from '../core/schemas/lists.ts'
import type { HandoffsQuery } from '../core/schemas/lists.ts'
import { optionalOffset } from './arguments.ts'
import { operation, unmoved } from './operation.ts'
import type { Services } from './operation.ts'

/** The query as a tool's arguments, where null means absent. */
const toolBody = Type.Object(Object.fromEntries(Object.entries(handoffsQuery.properties).map(([name, property]) => {
  const { type, enum: values, ...more } = property as TSchema & { type: string, enum?: string[] }
  return [name, Type.Optional(nullable(type, { ...more, ...values !== undefined && { enum: [...values, null] } }))]
})))

/** Lists the handoffs that are live, or those that failed. */
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
      'catch or expired in an inbox, and has no successor, the latest end first. Go on until next_cursor is null: ' +
      'before that, a page may have fewer items than `limit`, or none.',
    query: handoffsQuery,
    answers: { 200: handoffsAnswer },
    tool: {
      name: 'handoff_list',
      title: 'List handoffs',
      description: 'Find handoffs whose id you don’t have, of your tenant: what is pending or caught, or with state ' +
        '"failed" what went wrong and was not tried again. Narrow it by inbox, labels, passed_by or caught_by. Go on ' +
        'with cursor at next_cursor until that is null: a page may have fewer items than limit, even none. Changes ' +
        'nothing. If a second content item says truncated, call again with offset at next_offset, or a lower limit.',
      takes: { offset: optionalOffset },
      hints: { readOnlyHint: true },
      body: toolBody,
      async run ({ caller, body, asker }) {
        const query = Object.fromEntries(Object.entries(body as object).filter(([, value]) => value !== null))
        return unmoved(await lists.page(caller, query, asker))
      }
    },
    async run ({ caller, query, asker }) {
      return unmoved(await lists.page(caller, query, asker))
    },
  })
}
