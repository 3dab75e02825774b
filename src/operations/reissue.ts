import { reissueBody } from '../core/schemas/attempts.ts'
import { handoffParams, ignoredKeyHeaders, noQuery } from '../core/schemas/handoffs.ts'
import { passAnswer } from '../core/schemas/pass.ts'
import { id, key } from './arguments.ts'
import { operation, refusedBy, stays } from './operation.ts'
import type { Moved, Services } from './operation.ts'

export function reissue ({ attempts }: Services) {
  return operation({
    name: 'reissue',
    scope: ['pass', 'operate'],
    method: 'POST',
    path: '/api/reissue/:id',
    tag: 'handoffs',
    summary: 'Make another attempt at a handoff',
    description: 'Only the agent that passed the handoff may do so, or a key with the scope operate. Makes a ' +
      'successor with the same payload, passed by the same agent, if the handoff failed, was declined, expired after ' +
      'its catch or in an inbox, or is still caught; then it is taken from its catcher. Repeated, it answers the ' +
      'same successor. The body is optional.',
    params: handoffParams,
    query: noQuery,
    headers: ignoredKeyHeaders,
    body: reissueBody,
    answers: { 201: passAnswer },
    refusals: refusedBy('reissue'),
    inBatch: true,
    tool: {
      name: 'handoff_reissue',
      title: 'Try a handoff again',
      description: 'Pass a handoff of yours again if it failed, was declined, ran out of time or is stuck with its ' +
        'catcher (it is taken from them): the same task under a new handoff_id. Check with handoff_status first. ' +
        'Next, call handoff_status with the new handoff_id and wait. A key with the scope operate can do so with any ' +
        'agent’s handoff.',
      takes: { id, ...key },
      hints: { destructiveHint: true, idempotentHint: true }
    },
    async run ({ caller, id, asker }) {
      const { answer, replayed, ofAnother, isTaken } = await attempts.reissue(caller, id, asker)
      const made = answer.handoff_id
      const change: Moved = isTaken
        ? { to: ['cancelled', 'pending'], ids: [id, made] }
        : { to: ['pending'], ids: [made] }
      return {
        status: 201,
        answer,
        replayed,
        moved: replayed ? stays : { ...change, reissued: ['requested'] },
        made,
        operated: ofAnother ? { action: 'reissue', asked: { handoff_id: id }, changed: 1 } : undefined
      }
    },
  })
}
