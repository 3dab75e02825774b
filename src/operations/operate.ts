import { Type } from '@sinclair/typebox'
import { handoffParams, ignoredKeyHeaders, noQuery, passAnswer } from '../core/schemas/handoffs.ts'
import { dryAnswer, purgeAnswer, purgeBody, redriveAnswer, redriveBody } from '../core/schemas/lists.ts'
import type { PurgeBody, RedriveBody } from '../core/schemas/lists.ts'
import type { Steered } from '../handoffs/lifecycle/operate.ts'
import { moved, operation, refusedBy, stays, unmoved } from './operation.ts'
import type { Moved, OperationOutcome, Services } from './operation.ts'
import { cancelBody, cancelRequestedAnswer, cancelledAnswer, reissueBody } from '../core/schemas/attempts.ts'
import { id, key } from './arguments.ts'

/** Operators' changes of many handoffs at once. */

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
    answers: { 200: Type.Union([redriveAnswer, dryAnswer]) },
    async run ({ caller, body, members, requester }) {
      const steered = await operate.redrive(caller, body, members, requester)
      return body.dry_run === true ? counted(steered) : redriven(steered, body)
    },
  })
}

/** The same for handoffs that a person has ticked in the console's list, which alone has it. */
export function redriveChosen ({ operate }: Services) {
  return operation<{ ids: string[] }>({
    name: 'redriveChosen',
    scope: 'operate',
    method: 'POST',
    path: null,
    tag: 'operating',
    summary: 'Reissue these, of what failed',
    body: Type.Object({ ids: Type.Array(Type.String(), { maxItems: 100 }) }, { additionalProperties: false }),
    answers: {},
    async run ({ caller, body: { ids } }) {
      return redriven(await operate.redriveThese(caller, ids), { chosen: ids.length })
    },
  })
}

function redriven ({ changed, skipped, more }: Steered, asked: object): OperationOutcome {
  const to = changed.map(() => 'pending' as const)
  const moved = { to, ids: changed, reissued: changed.map(() => 'requested' as const) }
  return outcomeOf('redrive', { reissued: changed.length, skipped, more }, moved, asked)
}

export function purge ({ operate }: Services) {
  return operation<PurgeBody>({
    name: 'purge',
    scope: 'operate',
    method: 'POST',
    path: '/api/purge',
    tag: 'operating',
    summary: 'Cancel what is pending in an inbox or a run',
    description: 'What is pending in the inbox, or of the run that `labels` name, is cancelled, as its passer would ' +
      'cancel it: also what is delayed, blocked or waits for a person. With caught also what is caught. Send it ' +
      'until `more` is false.',
    query: noQuery,
    headers: ignoredKeyHeaders,
    body: purgeBody,
    answers: { 200: Type.Union([purgeAnswer, dryAnswer]) },
    async run ({ caller, body, members, requester }) {
      const steered = await operate.purge(caller, body, members, requester)
      if (body.dry_run === true) return counted(steered)
      const { changed, requested, more } = steered
      const moved = { to: changed.map(() => 'cancelled' as const), ids: changed }
      const answer = { cancelled: changed.length, ...body.caught === 'ask' && { requested }, more }
      return outcomeOf('purge', answer, moved, { ...body, reason: undefined }, changed.length + requested)
    },
  })
}

function counted ({ changed, more }: Steered): OperationOutcome {
  return unmoved({ would_change: changed.length, more })
}

/** @param asked the call's members, for the log */
function outcomeOf (
  action: string, answer: object, moved: Moved, asked: object, changed = moved.to.length
): OperationOutcome {
  const operated = { action, asked: { ...asked }, changed }
  return { status: 200, answer, replayed: false, moved, ...changed > 0 && { operated } }
}

export function cancel ({ attempts }: Services) {
  return operation<{ force?: boolean | null, reason?: string | null }>({
    name: 'cancel',
    scope: ['pass', 'operate'],
    method: 'POST',
    path: '/api/cancel/:id',
    tag: 'handoffs',
    summary: 'Cancel a handoff',
    description: 'Only the agent that passed the handoff may do so, or a key with the scope operate. A pending ' +
      'handoff is cancelled at once. A caught one’s catcher is asked to stop, in the answer to its next heartbeat; ' +
      'with force the handoff is taken from it at once. Safe to repeat. The body is optional.',
    params: handoffParams,
    query: noQuery,
    headers: ignoredKeyHeaders,
    body: cancelBody,
    answers: { 200: cancelledAnswer, 202: cancelRequestedAnswer },
    refusals: refusedBy('cancel', 'cancelled'),
    inBatch: true,
    tool: {
      name: 'handoff_cancel',
      title: 'Take a handoff back',
      description: 'Take back a handoff that you passed and no longer need. If nobody has caught it, it is ' +
        'cancelled at once. If somebody is working on it, they are asked to stop and may still finish: see ' +
        'handoff_status. force takes it from them. A key with the scope operate can do so with any agent’s handoff.',
      takes: { id, ...key },
      hints: { destructiveHint: true, idempotentHint: true }
    },
    async run ({ caller, id, body, members }) {
      const reason = body.reason == null ? undefined : members.raw('reason')
      const force = body.force === true
      const { answer, replayed, ofAnother } = await attempts.cancel(caller, id, force, reason)
      const isRequested = answer.status === 'caught'
      // A cancel may be repeated with a key or without, so no answer counts as a replay.
      return {
        status: isRequested ? 202 : 200,
        answer,
        replayed: false,
        moved: moved('cancelled', id, replayed),
        operated: ofAnother ? { action: 'cancel', asked: { handoff_id: id, force }, changed: 1 } : undefined
      }
    },
  })
}

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
    async run ({ caller, id, requester }) {
      const { answer, replayed, ofAnother, isTaken } = await attempts.reissue(caller, id, requester)
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
