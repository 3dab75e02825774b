import type { FastifyInstance } from 'fastify'
import type { ErrorCode } from '../../core/errors.ts'
import { cancelRequestedAnswer, cancelledAnswer, endAnswer, heartbeatAnswer } from '../../core/schemas/attempts.ts'
import {
  catchAnswer, doneAnswer, handoffParams, idempotencyHeaders, ignoredKeyHeaders, noQuery, passAnswer, passHeaders,
  statusAnswer, statusQuery, waitQuery
} from '../../core/schemas/handoffs.ts'
import { problems } from '../../core/schemas/problem.ts'
import { perform } from '../operations.ts'
import type { Operation, Operations } from '../operations.ts'

/** @param base BASE_URL's path */
export function passRoute (app: FastifyInstance, operation: Operation, base: string): void {
  app.post('/api/pass', {
    config: { scope: operation.scope },
    schema: {
      operationId: 'pass',
      summary: 'Pass a task to another agent',
      tags: ['handoffs'],
      querystring: noQuery,
      headers: passHeaders,
      body: operation.body,
      response: {
        201: passAnswer,
        ...problems(
          { body: true }, 'idempotency_key_reused', 'unknown_parent', 'hop_limit', 'loop_detected',
          'result_schema_too_slow'
        )
      },
    },
  }, (request, reply) => perform(operation, request, reply, base))
}

/** @param base BASE_URL's path */
export function catchRoute (app: FastifyInstance, operation: Operation, base: string): void {
  app.get('/api/catch/:id', {
    config: { scope: operation.scope, resumesTrace: true },
    schema: {
      operationId: 'catch',
      summary: 'Catch a handoff; only one agent can',
      description: 'Moves the handoff from pending to caught. wait= waits for a person’s approval and for the end ' +
        'of a delay. Send an Idempotency-Key, so that you can retry when the answer is lost.',
      tags: ['handoffs'],
      params: handoffParams,
      querystring: waitQuery,
      headers: idempotencyHeaders,
      response: {
        200: catchAnswer,
        ...problems(
          { body: false }, 'not_addressee', 'expired', 'cancelled', 'rejected', 'already_caught', 'already_done',
          'already_failed', 'already_declined', 'approval_required', 'not_yet'
        )
      },
    },
  }, (request, reply) => perform(operation, request, reply, base))
}

/** @param base BASE_URL's path */
export function doneRoute (app: FastifyInstance, operation: Operation, base: string): void {
  app.post('/api/done/:id', {
    config: { scope: operation.scope },
    schema: {
      operationId: 'done',
      summary: 'Report a caught handoff done',
      description: 'Only the agent that caught the handoff may do so. If it was passed with a result_schema, the ' +
        'output must satisfy that schema. The body is optional.',
      tags: ['handoffs'],
      params: handoffParams,
      querystring: noQuery,
      headers: idempotencyHeaders,
      body: operation.body,
      response: {
        200: doneAnswer,
        ...problems({ body: true }, ...holderRefusals, 'result_invalid', 'result_schema_too_slow')
      },
    },
  }, (request, reply) => perform(operation, request, reply, base))
}

/** @param base BASE_URL's path */
export function statusRoute (app: FastifyInstance, operation: Operation, base: string): void {
  app.get('/api/status/:id', {
    config: { scope: operation.scope },
    schema: {
      operationId: 'status',
      summary: 'Read a handoff’s status',
      description: 'Changes nothing, and never shows task, output or context: only catch does. With wait=, the ' +
        'answer comes when the handoff has reached the status `until`, a later one or an end, or when the ' +
        'wait is over.',
      tags: ['handoffs'],
      params: handoffParams,
      querystring: statusQuery,
      response: { 200: statusAnswer, ...problems({ body: false }) },
    },
  }, (request, reply) => perform(operation, request, reply, base))
}

/** Why a catcher's report about its work can be refused, in the order in which the reasons are checked. */
export const holderRefusals: ErrorCode[] = [
  'expired', 'rejected', 'cancelled', 'not_caught', 'not_the_catcher', 'already_done', 'already_failed',
  'already_declined'
]

/** A catcher's reports about its work, except done. @param base BASE_URL's path */
export function workRoutes (app: FastifyInstance, { heartbeat, fail, decline }: Operations, base: string): void {
  const common = { tags: ['handoffs'], params: handoffParams, querystring: noQuery }

  app.post('/api/heartbeat/:id', {
    config: { scope: heartbeat.scope, nested: heartbeat.nested },
    schema: {
      ...common,
      operationId: 'heartbeat',
      summary: 'Send a heartbeat while working',
      description: 'Only the agent that caught the handoff may do so. Required if it was passed with ' +
        'heartbeat_within. Can also extend the work’s deadline and report progress. The body is optional.',
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
      description: 'Only the agent that caught the handoff may do so. If attempts are left and retry isn’t false, a ' +
        'successor is made.',
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
      description: 'Only the agent that caught the handoff may do so. If attempts are left, a successor is made, ' +
        'which another agent can catch.',
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
      description: 'Only the agent that passed the handoff may do so. A pending handoff is cancelled at once. A ' +
        'caught one’s catcher is asked to stop, in the answer to its next heartbeat; with force the handoff is ' +
        'taken from it at once. Safe to repeat. The body is optional.',
      body: cancel.body,
      response: {
        200: cancelledAnswer,
        202: cancelRequestedAnswer,
        ...problems(
          { body: true }, 'not_the_passer', 'expired', 'rejected', 'already_done', 'already_failed', 'already_declined'
        ),
      },
    },
  }, (request, reply) => perform(cancel, request, reply, base))

  app.post('/api/reissue/:id', {
    config: { scope: reissue.scope },
    schema: {
      ...common,
      operationId: 'reissue',
      summary: 'Make another attempt at a handoff',
      description: 'Only the agent that passed the handoff may do so. Makes a successor with the same payload, if ' +
        'the handoff failed, was declined, expired after its catch, or is still caught; then it is taken from its ' +
        'catcher. Repeated, it answers the same successor. The body is optional.',
      body: reissue.body,
      response: {
        201: passAnswer,
        ...problems({ body: true }, 'not_the_passer', 'not_caught', 'expired', 'already_done', 'rejected', 'cancelled'),
      },
    },
  }, (request, reply) => perform(reissue, request, reply, base))
}
