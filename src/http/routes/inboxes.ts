import type { FastifyInstance } from 'fastify'
import type { InboxService } from '../../handoffs/inboxes.ts'
import { takenText } from '../../handoffs/answers.ts'
import { idempotencyHeaders, noQuery, waitQuery } from '../../core/schemas/handoffs.ts'
import type { WaitQuery } from '../../core/schemas/handoffs.ts'
import { inboxAnswer, inboxParams, takeAnswer, takeBody } from '../../core/schemas/inboxes.ts'
import type { TakeBody } from '../../core/schemas/inboxes.ts'
import { problems } from '../../core/schemas/problem.ts'
import { idempotencyKey, markReplayed, waitOptions } from '../operations.ts'
import { jsonType } from '../body.ts'

export function inboxRoutes (app: FastifyInstance, service: InboxService): void {
  app.post<{ Body: TakeBody, Querystring: WaitQuery }>('/api/catch', {
    config: { scope: 'catch', resumesTrace: true },
    schema: {
      operationId: 'catchNext',
      summary: 'Catch the next handoffs from an inbox',
      description: 'The earliest first; each step of priority counts as a minute. With wait=, the answer comes as ' +
        'soon as there is a handoff. The body is optional. Send an Idempotency-Key, so that you can retry when the ' +
        'answer is lost: you get the same handoffs.',
      tags: ['inboxes'],
      querystring: waitQuery,
      headers: idempotencyHeaders,
      body: takeBody,
      response: { 200: takeAnswer, ...problems({ body: true }, 'not_addressee', 'idempotency_key_reused') },
    },
  }, async (request, reply) => {
    const { caller, body, bytes: raw } = request
    const asked = { inbox: body.inbox ?? caller.agent, most: body.max ?? 1, raw }
    const batch = await service.catch(caller, asked, idempotencyKey(request), waitOptions(request))
    markReplayed(reply, batch.replayed)
    const { items, replayed } = batch
    request.moved = { to: replayed ? [] : items.map(() => 'caught'), ids: items.map(({ id }) => id) }
    // A single handoff's trace can be continued; several handoffs may each have their own.
    const [first] = items
    if (items.length === 1 && first!.traceparent !== undefined) reply.header('traceparent', first!.traceparent)
    reply.header('content-type', jsonType)
    return takenText(items)
  })

  app.get<{ Params: { name: string } }>('/api/inboxes/:name', {
    config: { scope: 'status' },
    schema: {
      operationId: 'inbox',
      summary: 'Count what is in an inbox',
      description: 'Changes nothing, and shows no contents.',
      tags: ['inboxes'],
      params: inboxParams,
      querystring: noQuery,
      response: { 200: inboxAnswer, ...problems({ body: false }) },
    },
  }, async request => service.count(request.caller.tenant, request.params.name))
}
