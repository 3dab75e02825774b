import type { Members } from '../core/json.ts'
import { labelsIn } from '../core/labels.ts'
import { noQuery } from '../core/schemas/handoffs.ts'
import {
  createWebhookBody, createdWebhook, deletedAnswer, deliveriesAnswer, deliveriesQuery, noMembers, replayAnswer,
  replayBody, rotateBody, rotatedWebhook, testAnswer, webhookAnswer, webhookParams, webhooksAnswer
} from '../core/schemas/webhooks.ts'
import type { CreateWebhookBody, DeliveriesQuery, ReplayBody, RotateBody } from '../core/schemas/webhooks.ts'
import { defaultGrace } from '../webhooks/service.ts'
import { operation, refusedBy, unmoved } from './operation.ts'
import type { Services } from './operation.ts'

/** Where a tenant's events are sent. */

const all = { scope: 'webhooks', tag: 'webhooks', query: noQuery, refusals: ['events_off'] } as const
const one = { ...all, params: webhookParams }

export function createWebhook ({ webhooks }: Services) {
  return operation<CreateWebhookBody>({
    ...all,
    name: 'createWebhook',
    method: 'POST',
    path: '/api/webhooks',
    summary: 'Have events sent to a URL, or to people in a chat or by mail',
    description: 'From now on. Each message except mail is signed (Standard Webhooks); the secret is shown only in ' +
      'this answer.',
    body: createWebhookBody,
    // The service checks the elements of its lists, with all else that is wrong at once.
    nested: ['labels'],
    answers: { 201: createdWebhook },
    refusals: ['events_off', 'not_addressee', ...refusedBy('webhook-create')],
    async run ({ caller: { tenant, inboxes }, body, members }) {
      const { url, format, types, inbox, labels, include, updates, timezone } = body
      const answer = await webhooks.create(tenant, {
        url,
        format: format ?? null,
        types: types == null ? null : elementsOf(members, 'types'),
        inbox: inbox ?? null,
        labels: labels == null ? null : labelsIn(members.raw('labels')!),
        include: include == null ? null : elementsOf(members, 'include'),
        updates: updates ?? null,
        timezone: timezone ?? null,
      }, inboxes)
      return unmoved(answer, 201)
    },
  })
}

/** The elements of a list in the body, which was checked for being one, and never parsed. */
function elementsOf (members: Members, name: string): string[] {
  return JSON.parse(members.raw(name)!.toString()) as string[]
}

export function listWebhooks ({ webhooks }: Services) {
  return operation({
    ...all,
    name: 'listWebhooks',
    method: 'GET',
    path: '/api/webhooks',
    summary: 'List the tenant’s webhooks',
    answers: { 200: webhooksAnswer },
    run: async ({ caller }) => unmoved(await webhooks.list(caller.tenant)),
  })
}

export function getWebhook ({ webhooks }: Services) {
  return operation({
    ...one,
    name: 'getWebhook',
    method: 'GET',
    path: '/api/webhooks/:id',
    summary: 'Read a webhook',
    answers: { 200: webhookAnswer },
    run: async ({ caller, id }) => unmoved(await webhooks.get(caller.tenant, id)),
  })
}

export function deleteWebhook ({ webhooks }: Services) {
  return operation({
    ...one,
    name: 'deleteWebhook',
    method: 'DELETE',
    path: '/api/webhooks/:id',
    summary: 'Delete a webhook with its deliveries',
    answers: { 204: deletedAnswer },
    async run ({ caller, id }) {
      await webhooks.delete(caller.tenant, id)
      return unmoved(undefined, 204)
    },
  })
}

export function rotateWebhook ({ webhooks }: Services) {
  return operation<RotateBody>({
    ...one,
    name: 'rotateWebhook',
    method: 'POST',
    path: '/api/webhooks/:id/rotate',
    summary: 'Give a webhook a new secret',
    description: 'For the time of grace both secrets sign. The body may be left out.',
    body: rotateBody,
    answers: { 200: rotatedWebhook },
    run: async ({ caller, id, body }) => unmoved(await webhooks.rotate(caller.tenant, id, body.grace ?? defaultGrace)),
  })
}

export function enableWebhook ({ webhooks }: Services) {
  return operation({
    ...one,
    name: 'enableWebhook',
    method: 'POST',
    path: '/api/webhooks/:id/enable',
    summary: 'Enable a webhook that was disabled',
    description: 'It begins anew, with the events from now on. Replay what it missed. The body may be left out.',
    body: noMembers,
    answers: { 200: webhookAnswer },
    run: async ({ caller, id }) => unmoved(await webhooks.enable(caller.tenant, id)),
  })
}

export function testWebhook ({ webhooks }: Services) {
  return operation({
    ...one,
    name: 'testWebhook',
    method: 'POST',
    path: '/api/webhooks/:id/test',
    summary: 'Send a message of type webhook.test, once',
    description: 'The body may be left out.',
    body: noMembers,
    answers: { 202: testAnswer },
    run: async ({ caller, id }) => unmoved(await webhooks.test(caller.tenant, id), 202),
  })
}

export function listDeliveries ({ webhooks }: Services) {
  return operation<unknown, DeliveriesQuery>({
    ...one,
    name: 'listDeliveries',
    method: 'GET',
    path: '/api/webhooks/:id/deliveries',
    summary: 'List the newest deliveries of a webhook',
    query: deliveriesQuery,
    answers: { 200: deliveriesAnswer },
    run: async ({ caller, id, query }) => unmoved(await webhooks.deliveries(caller.tenant, id, query.status)),
  })
}

export function replayWebhook ({ webhooks }: Services) {
  return operation<ReplayBody>({
    ...one,
    name: 'replayWebhook',
    method: 'POST',
    path: '/api/webhooks/:id/replay',
    summary: 'Send events again',
    description: 'Those that passed the webhook’s filters and are still kept. A disabled webhook replays none: ' +
      'enable it first.',
    body: replayBody,
    answers: { 202: replayAnswer },
    run: async ({ caller, id, body }) => unmoved(await webhooks.replay(caller.tenant, id, body.since), 202),
  })
}
