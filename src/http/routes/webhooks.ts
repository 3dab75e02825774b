import type { FastifyInstance, FastifyRequest } from 'fastify'
import { labelsIn } from '../../core/labels.ts'
import { noQuery } from '../../core/schemas/handoffs.ts'
import { problems } from '../../core/schemas/problem.ts'
import {
  createWebhookBody, createdWebhook, deliveriesAnswer, deliveriesQuery, noMembers, replayAnswer, replayBody,
  rotateBody, rotatedWebhook, testAnswer, webhookAnswer, webhookParams, webhooksAnswer
} from '../../core/schemas/webhooks.ts'
import type { CreateWebhookBody, DeliveriesQuery, ReplayBody, RotateBody } from '../../core/schemas/webhooks.ts'
import { defaultGrace } from '../../webhooks/service.ts'
import type { WebhookService } from '../../webhooks/service.ts'

interface OneWebhook { Params: { id: string } }

const config = { scope: 'webhooks' as const }
const tags = ['webhooks']
const one = { tags, params: webhookParams, querystring: noQuery }
const bodiless = problems({ body: false }, 'events_off')
const withBody = problems({ body: true }, 'events_off')

/** The elements of a list in the body, which was checked for being one, and never parsed. */
function elementsOf ({ members }: FastifyRequest, name: string): string[] {
  return JSON.parse(members.raw(name)!.toString()) as string[]
}

/** Where a tenant's events are sent. */
export function webhookRoutes (app: FastifyInstance, service: WebhookService): void {
  app.post<{ Body: CreateWebhookBody }>('/api/webhooks', {
    config: { ...config, nested: ['labels'] },
    schema: {
      operationId: 'createWebhook',
      summary: 'Have events sent to a URL, or to people in a chat or by mail',
      description: 'From now on. Each message except mail is signed (Standard Webhooks); the secret is shown only in ' +
        'this answer.',
      tags,
      querystring: noQuery,
      body: createWebhookBody,
      response: {
        201: createdWebhook, ...problems({ body: true }, 'events_off', 'not_addressee', 'too_many_webhooks')
      },
    },
  }, async (request, reply) => {
    const { caller: { tenant, inboxes }, members } = request
    const { url, format, types, inbox, labels, include } = request.body
    const elements = (list: unknown, name: string) =>
      list == null ? null : elementsOf(request as FastifyRequest, name)
    const answer = await service.create(tenant, {
      url,
      format: format ?? null,
      types: elements(types, 'types'),
      inbox: inbox ?? null,
      labels: labels == null ? null : labelsIn(members.raw('labels')!),
      include: elements(include, 'include'),
    }, inboxes)
    reply.code(201)
    return answer
  })

  app.get('/api/webhooks', {
    config,
    schema: {
      operationId: 'listWebhooks',
      summary: 'List the tenant’s webhooks',
      tags,
      querystring: noQuery,
      response: { 200: webhooksAnswer, ...bodiless }
    },
  }, async request => service.list(request.caller.tenant))

  app.get<OneWebhook>('/api/webhooks/:id', {
    config,
    schema: {
      operationId: 'getWebhook', summary: 'Read a webhook', ...one, response: { 200: webhookAnswer, ...bodiless }
    },
  }, async request => service.get(request.caller.tenant, request.params.id))

  app.delete<OneWebhook>('/api/webhooks/:id', {
    config,
    schema: {
      operationId: 'deleteWebhook',
      summary: 'Delete a webhook with its deliveries',
      ...one,
      response: {
        204: { type: 'null', description: 'Deleted. What is being sent this moment still arrives.' }, ...bodiless
      },
    },
  }, async (request, reply) => {
    await service.delete(request.caller.tenant, request.params.id)
    reply.code(204)
  })

  app.post<OneWebhook & { Body: RotateBody }>('/api/webhooks/:id/rotate', {
    config,
    schema: {
      operationId: 'rotateWebhook',
      summary: 'Give a webhook a new secret',
      description: 'For the time of grace both secrets sign. The body may be left out.',
      ...one,
      body: rotateBody,
      response: { 200: rotatedWebhook, ...withBody },
    },
  }, async request => service.rotate(request.caller.tenant, request.params.id, request.body.grace ?? defaultGrace))

  app.post<OneWebhook>('/api/webhooks/:id/enable', {
    config,
    schema: {
      operationId: 'enableWebhook',
      summary: 'Enable a webhook that was disabled',
      description: 'It begins anew, with the events from now on. Replay what it missed. The body may be left out.',
      ...one,
      body: noMembers,
      response: { 200: webhookAnswer, ...withBody },
    },
  }, async request => service.enable(request.caller.tenant, request.params.id))

  app.post<OneWebhook>('/api/webhooks/:id/test', {
    config,
    schema: {
      operationId: 'testWebhook',
      summary: 'Send a message of type webhook.test, once',
      description: 'The body may be left out.',
      ...one,
      body: noMembers,
      response: { 202: testAnswer, ...withBody },
    },
  }, async (request, reply) => {
    const answer = await service.test(request.caller.tenant, request.params.id)
    reply.code(202)
    return answer
  })

  app.get<OneWebhook & { Querystring: DeliveriesQuery }>('/api/webhooks/:id/deliveries', {
    config,
    schema: {
      operationId: 'listDeliveries',
      summary: 'List the newest deliveries of a webhook',
      ...one,
      querystring: deliveriesQuery,
      response: { 200: deliveriesAnswer, ...bodiless }
    },
  }, async request => service.deliveries(request.caller.tenant, request.params.id, request.query.status))

  app.post<OneWebhook & { Body: ReplayBody }>('/api/webhooks/:id/replay', {
    config,
    schema: {
      operationId: 'replayWebhook',
      summary: 'Send events again',
      description: 'Those that passed the webhook’s filters and are still kept. A disabled webhook replays none: ' +
        'enable it first.',
      ...one,
      body: replayBody,
      response: { 202: replayAnswer, ...withBody },
    },
  }, async (request, reply) => {
    const answer = await service.replay(request.caller.tenant, request.params.id, request.body.since)
    reply.code(202)
    return answer
  })
}
