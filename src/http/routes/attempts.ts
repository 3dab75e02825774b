import type { FastifyInstance } from 'fastify'
import { invalid } from '../../errors.ts'
import type { ErrorCode } from '../../errors.ts'
import type { AttemptService } from '../../handoff/attempts.ts'
import { cutNested } from '../../handoff/json.ts'
import type { Members } from '../../handoff/json.ts'
import {
  cancelBody, cancelRequestedAnswer, cancelledAnswer, declineBody, endAnswer, failBody, handoffParams, heartbeatAnswer, heartbeatBody, idempotencyHeaders, ignoredKeyHeaders, noQuery, passAnswer,
  reissueBody
} from '../../schemas/handoff.ts'
import type { EndAnswer, Limits } from '../../schemas/handoff.ts'
import { problems } from '../../schemas/problem.ts'
import { idempotencyKey, markReplayed } from '../idempotency.ts'
import { jsonType } from '../media.ts'
import type { Moved } from '../requests.ts'

/** What can be in the way of whoever says how the work goes, in the order in which it is told. */
export const holderRefusals: ErrorCode[] = ['expired', 'rejected', 'cancelled', 'not_caught', 'not_the_catcher', 'already_done', 'already_failed', 'already_declined']

interface OneHandoff { Params: { id: string } }

/** What a catcher says of its work beside done. */
export function workRoutes (app: FastifyInstance, service: AttemptService, limits: Limits): void {
  const config = { scope: 'catch' as const }
  const common = { tags: ['handoffs'], params: handoffParams, querystring: noQuery }

  app.post<OneHandoff & { Body: { extend_by?: number | null } }>('/api/heartbeat/:id', {
    config: { ...config, nested: ['progress'] },
    schema: {
      ...common,
      operationId: 'heartbeat',
      summary: 'Send a heartbeat while working',
      description: 'Only the agent that caught the handoff may do so. Required if it was passed with heartbeat_within. Can also extend the work’s deadline and report progress. The body is optional.',
      headers: ignoredKeyHeaders,
      body: heartbeatBody(limits),
      response: { 200: heartbeatAnswer, ...problems({ body: true }, ...holderRefusals) },
    },
  }, async (request, reply) => {
    const { caller, params, body, members } = request
    reply.header('content-type', jsonType)
    return service.heartbeat(caller, params.id, body.extend_by ?? null, progressOf(members))
  })

  app.post<OneHandoff & { Body: { retry?: boolean | null } }>('/api/fail/:id', {
    config: { ...config, nested: ['error'] },
    schema: {
      ...common,
      operationId: 'fail',
      summary: 'Report that the work could not be done',
      description: 'Only the agent that caught the handoff may do so. If attempts are left and retry isn’t false, a successor is made.',
      headers: idempotencyHeaders,
      body: failBody,
      response: { 200: endAnswer('failed'), ...problems({ body: true }, ...holderRefusals) },
    },
  }, async (request, reply) => {
    const { caller, params, body, bytes: raw, members } = request
    const { answer, replayed } = await service.fail(caller, params.id, members.raw('error')!, body.retry !== false, { raw, key: idempotencyKey(request) })
    markReplayed(reply, replayed)
    request.moved = ended(answer, replayed)
    return answer
  })

  app.post<OneHandoff>('/api/decline/:id', {
    config,
    schema: {
      ...common,
      operationId: 'decline',
      summary: 'Give a caught handoff back',
      description: 'Only the agent that caught the handoff may do so. If attempts are left, a successor is made, which another agent can catch.',
      headers: idempotencyHeaders,
      body: declineBody,
      response: { 200: endAnswer('declined'), ...problems({ body: true }, ...holderRefusals) },
    },
  }, async (request, reply) => {
    const { caller, params, bytes: raw, members } = request
    const { answer, replayed } = await service.decline(caller, params.id, members.raw('reason')!, { raw, key: idempotencyKey(request) })
    markReplayed(reply, replayed)
    request.moved = ended(answer, replayed)
    return answer
  })
}

/** What a passer wants of what it passed. @param base BASE_URL's path */
export function passerRoutes (app: FastifyInstance, service: AttemptService, base: string): void {
  const config = { scope: 'pass' as const }
  const common = { tags: ['handoffs'], params: handoffParams, querystring: noQuery, headers: ignoredKeyHeaders }

  app.post<OneHandoff & { Body: { force?: boolean | null, reason?: string | null } }>('/api/cancel/:id', {
    config,
    schema: {
      ...common,
      operationId: 'cancel',
      summary: 'Cancel a handoff',
      description: 'Only the agent that passed the handoff may do so. A pending handoff is cancelled at once. A caught one’s catcher is asked to stop, in the answer to its next heartbeat; with force the handoff is taken from it at once. Safe to repeat. The body is optional.',
      body: cancelBody,
      response: {
        200: cancelledAnswer,
        202: cancelRequestedAnswer,
        ...problems({ body: true }, 'not_the_passer', 'expired', 'rejected', 'already_done', 'already_failed', 'already_declined'),
      },
    },
  }, async (request, reply) => {
    const { caller, params, body, members } = request
    const reason = body.reason == null ? undefined : members.raw('reason')
    const { answer, replayed } = await service.cancel(caller, params.id, body.force === true, reason)
    request.moved = { to: replayed ? [] : ['cancelled'] }
    return reply.code(answer.status === 'caught' ? 202 : 200).send(answer)
  })

  app.post<OneHandoff>('/api/reissue/:id', {
    config,
    schema: {
      ...common,
      operationId: 'reissue',
      summary: 'Make another attempt at a handoff',
      description: 'Only the agent that passed the handoff may do so. Makes a successor with the same payload, if the handoff failed, was declined, expired after its catch, or is still caught; then it is taken from its catcher. Repeated, it answers the same successor. The body is optional.',
      body: reissueBody,
      response: {
        201: passAnswer,
        ...problems({ body: true }, 'not_the_passer', 'not_caught', 'expired', 'already_done', 'rejected', 'cancelled'),
      },
    },
  }, async (request, reply) => {
    const { answer, replayed, isTaken } = await service.reissue(request.caller, request.params.id)
    markReplayed(reply, replayed)
    request.moved = replayed ? { to: [] } : { to: isTaken ? ['cancelled', 'pending'] : ['pending'], reissued: 'requested', successor: answer.handoff_id }
    reply.code(201).header('location', `${base}/api/status/${answer.handoff_id}`)
    return answer
  })
}

function ended ({ status, reissued_as: successor }: EndAnswer, replayed: boolean): Moved {
  if (replayed) return { to: [] }
  return successor === undefined ? { to: [status] } : { to: [status, 'pending'], reissued: status, successor }
}

/** What was said of the progress, an object's JSON text: its members as they came, without those that are null. */
function progressOf (members: Members): Buffer | undefined {
  const inside = cutNested(members, 'progress')
  if (inside === undefined) return undefined
  const said = ['message', 'percent'].filter(name => inside.values[name] != null)
  if (said.length === 0) throw invalid({ pointer: '/progress', message: 'needs a message or a percent' })
  return Buffer.from(`{${said.map(name => `"${name}":${textOf(inside, name)}`).join(',')}}`)
}

/** As it came; but a number may come in a million digits, and one that is as near to 100 as numbers are be more than that. */
function textOf (members: Members, name: string): string {
  const raw = members.raw(name)!.toString()
  return name === 'percent' && raw.length > 20 ? String(members.values[name]) : raw
}
