import { handoffsAnswer, handoffsQuery } from '../core/schemas/lists.ts'
import type { HandoffsQuery } from '../core/schemas/lists.ts'
import { operation, stays } from './operation.ts'
import type { Services } from './operation.ts'

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
    async run ({ caller, query, asker }) {
      return { status: 200, answer: await lists.page(caller, query, asker), replayed: false, moved: stays }
    },
  })
}
