import type { FastifyInstance } from 'fastify'
import type { ErrorCode } from '../../errors.ts'
import { cancelRequestedAnswer, cancelledAnswer, endAnswer, handoffParams, heartbeatAnswer, idempotencyHeaders, ignoredKeyHeaders, noQuery, passAnswer } from '../../schemas/handoff.ts'
import { problems } from '../../schemas/problem.ts'
import type { Operations } from '../operations.ts'
import { perform } from '../perform.ts'

/** Why a catcher's report about its work can be refused, in the order in which the reasons are checked. */
export const holderRefusals: ErrorCode[] = ['expired', 'rejected', 'cancelled', 'not_caught', 'not_the_catcher', 'already_done', 'already_failed', 'already_declined']

/** A catcher's reports about its work, except done. @param base BASE_URL's path */
export function workRoutes (app: FastifyInstance, { heartbeat, fail, decline }: Operations, base: string): void {
  const common = { tags: ['handoffs'], params: handoffParams, querystring: noQuery }

  app.post('/api/heartbeat/:id', {
    config: { scope: heartbeat.scope, nested: heartbeat.nested },
    schema: {
      ...common,
      operationId: 'heartbeat',
      summary: 'Send a heartbeat while working',
      description: 'Only the agent that caught the handoff may do so. Required if it was passed with heartbeat_within. Can also extend the work’s deadline and report progress. The body is optional.',
      headers: ignoredKeyHeaders,
      body: heartbeat.body,
      response: { 200: heartbeatAnswer, ...problems({ body: true }, ...holderRefusals) },
    },
  }, (request, reply) => perform(heartbeat, request, reply, base))

  app.post('/api/fail/:id', {
    config: { scope: fail.scope, nested: fail.nested },
    schema: {
      ...common,
      operationId: 'fail',
      summary: 'Report that the work could not be done',
      description: 'Only the agent that caught the handoff may do so. If attempts are left and retry isn’t false, a successor is made.',
      headers: idempotencyHeaders,
      body: fail.body,
      response: { 200: endAnswer('failed'), ...problems({ body: true }, ...holderRefusals) },
    },
  }, (request, reply) => perform(fail, request, reply, base))

  app.post('/api/decline/:id', {
    config: { scope: decline.scope },
    schema: {
      ...common,
      operationId: 'decline',
      summary: 'Give a caught handoff back',
      description: 'Only the agent that caught the handoff may do so. If attempts are left, a successor is made, which another agent can catch.',
      headers: idempotencyHeaders,
      body: decline.body,
      response: { 200: endAnswer('declined'), ...problems({ body: true }, ...holderRefusals) },
    },
  }, (request, reply) => perform(decline, request, reply, base))
}

/** What a passer can ask for about what it passed. @param base BASE_URL's path */
export function passerRoutes (app: FastifyInstance, { cancel, reissue }: Operations, base: string): void {
  const common = { tags: ['handoffs'], params: handoffParams, querystring: noQuery, headers: ignoredKeyHeaders }

  app.post('/api/cancel/:id', {
    config: { scope: cancel.scope },
    schema: {
      ...common,
      operationId: 'cancel',
      summary: 'Cancel a handoff',
      description: 'Only the agent that passed the handoff may do so. A pending handoff is cancelled at once. A caught one’s catcher is asked to stop, in the answer to its next heartbeat; with force the handoff is taken from it at once. Safe to repeat. The body is optional.',
      body: cancel.body,
      response: {
        200: cancelledAnswer,
        202: cancelRequestedAnswer,
        ...problems({ body: true }, 'not_the_passer', 'expired', 'rejected', 'already_done', 'already_failed', 'already_declined'),
      },
    },
  }, (request, reply) => perform(cancel, request, reply, base))

  app.post('/api/reissue/:id', {
    config: { scope: reissue.scope },
    schema: {
      ...common,
      operationId: 'reissue',
      summary: 'Make another attempt at a handoff',
      description: 'Only the agent that passed the handoff may do so. Makes a successor with the same payload, if the handoff failed, was declined, expired after its catch, or is still caught; then it is taken from its catcher. Repeated, it answers the same successor. The body is optional.',
      body: reissue.body,
      response: {
        201: passAnswer,
        ...problems({ body: true }, 'not_the_passer', 'not_caught', 'expired', 'already_done', 'rejected', 'cancelled'),
      },
    },
  }, (request, reply) => perform(reissue, request, reply, base))
}
