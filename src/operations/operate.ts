import { ignoredKeyHeaders, noQuery } from '../core/schemas/handoffs.ts'
import { purgeAnswer, purgeBody, redriveAnswer, redriveBody } from '../core/schemas/lists.ts'
import type { PurgeBody, RedriveBody } from '../core/schemas/lists.ts'
import { operation } from './operation.ts'
import type { Moved, OperationOutcome, Services } from './operation.ts'

/** What operators do to many handoffs at once. */

export function redrive ({ operate }: Services) {
  return operation<RedriveBody>({
    name: 'redrive',
    scope: 'operate',
    method: 'POST',
    path: '/api/redrive',
    tag: 'operating',
    summary: 'Reissue what failed',
    description: 'Each handoff of the failed list that matches is reissued, the earliest end first, as its own ' +
      'passer would reissue it. No handoff is reissued twice. Send it until `more` is false.',
    query: noQuery,
    headers: ignoredKeyHeaders,
    body: redriveBody,
    answers: { 200: redriveAnswer },
    async run ({ caller, body, members, asker }) {
      const { changed, skipped, more } = await operate.redrive(caller, body, members, asker)
      const to = changed.map(() => 'pending' as const)
      const moved = { to, ids: changed, reissued: changed.map(() => 'requested' as const) }
      return outcomeOf('redrive', { reissued: changed.length, skipped, more }, moved, body)
    },
  })
}

export function purge ({ operate }: Services) {
  return operation<PurgeBody>({
    name: 'purge',
    scope: 'operate',
    method: 'POST',
    path: '/api/purge',
    tag: 'operating',
    summary: 'Cancel what is pending in an inbox',
    description: 'What is pending in the inbox is cancelled, as its passer would cancel it: also what is delayed, ' +
      'blocked or waits for a person. Send it until `more` is false.',
    query: noQuery,
    headers: ignoredKeyHeaders,
    body: purgeBody,
    answers: { 200: purgeAnswer },
    async run ({ caller, body, members, asker }) {
      const { changed, more } = await operate.purge(caller, body, members, asker)
      const moved = { to: changed.map(() => 'cancelled' as const), ids: changed }
      return outcomeOf('purge', { cancelled: changed.length, more }, moved, { ...body, reason: undefined })
    },
  })
}

/** @param asked what the log says of the call */
function outcomeOf (action: string, answer: object, moved: Moved, asked: object): OperationOutcome {
  const operated = { action, asked: { ...asked }, changed: moved.to.length }
  return { status: 200, answer, replayed: false, moved, ...moved.to.length > 0 && { operated } }
}
