import { noQuery } from '../core/schemas/handoffs.ts'
import { inboxAnswer, inboxParams } from '../core/schemas/inboxes.ts'
import { operation, stays } from './operation.ts'
import type { Services } from './operation.ts'

export function inbox ({ inboxes }: Services) {
  return operation({
    name: 'inbox',
    scope: 'status',
    method: 'GET',
    path: '/api/inboxes/:name',
    tag: 'inboxes',
    summary: 'Count what is in an inbox',
    description: 'Changes nothing, and shows no contents.',
    params: inboxParams,
    query: noQuery,
    answers: { 200: inboxAnswer },
    async run ({ caller, id: name }) {
      return { status: 200, answer: await inboxes.count(caller.tenant, name), replayed: false, moved: stays }
    },
  })
}
