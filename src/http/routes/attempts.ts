import type { FastifyInstance } from 'fastify'
import type { ErrorCode } from '../../errors.ts'
import { cancelRequestedAnswer, cancelledAnswer, endAnswer, handoffParams, heartbeatAnswer, idempotencyHeaders, ignoredKeyHeaders, noQuery, passAnswer } from '../../schemas/handoff.ts'
import { problems } from '../../schemas/problem.ts'
import type { Operations } from '../operations.ts'
import { perform } from '../perform.ts'

/** What can be in the way of whoever says how the work goes, in the order in which it is told. */
export const holderRefusals: ErrorCode[] = ['expired', 'rejected', 'cancelled', 'not_caught', 'not_the_catcher', 'already_done', 'already_failed', 'already_declined']

/** What a catcher says of its work beside done. @param base BASE_URL's path */
export function workRoutes (app: FastifyInstance, { heartbeat, fail, decline }: Operations, base: string): void {
  const common = { tags: ['handoffs'], params: handoffParams, querystring: noQuery }

  app.post('/api/heartbeat/:id', {
    config: { scope: heartbeat.scope, nested: heartbeat.nested },
    schema: {
      ...common,
      operationId: 'heartbeat',
      summary: 'Say that the work goes on',
      description: 'Only by the agent that caught it. Needed where it was passed with heartbeat_within; it can also move the deadline of the work and tell how far it is. The body may be left out.',
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
      description: 'Only by the agent that caught it. Where it has attempts left and retry isn’t false, a successor is made.',
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
      summary: 'Give a caught handoff back undone',
      description: 'Only by the agent that caught it. Where it has attempts left, a successor is made, which another agent can catch.',
      headers: idempotencyHeaders,
      body: decline.body,
      response: { 200: endAnswer('declined'), ...problems({ body: true }, ...holderRefusals) },
    },
  }, (request, reply) => perform(decline, request, reply, base))
}

/** What a passer wants of what it passed. @param base BASE_URL's path */
export function passerRoutes (app: FastifyInstance, { cancel, reissue }: Operations, base: string): void {
  const common = { tags: ['handoffs'], params: handoffParams, querystring: noQuery, headers: ignoredKeyHeaders }

  app.post('/api/cancel/:id', {
    config: { scope: cancel.scope },
    schema: {
      ...common,
      operationId: 'cancel',
      summary: 'Take a handoff back',
      description: 'Only by the agent that passed it. What somebody has caught is only asked to stop, and its catcher told by its heartbeats; with force it is taken. It may be asked again. The body may be left out.',
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
      summary: 'Have a handoff tried again',
      description: 'Only by the agent that passed it. Makes a successor with the same payload of what failed, was declined, ran out of time after its catch, or is still caught, which is taken from its catcher. What has a successor is answered with that one. The body may be left out.',
      body: reissue.body,
      response: {
        201: passAnswer,
        ...problems({ body: true }, 'not_the_passer', 'not_caught', 'expired', 'already_done', 'rejected', 'cancelled'),
      },
    },
  }, (request, reply) => perform(reissue, request, reply, base))
}
