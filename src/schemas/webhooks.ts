import { Type } from '@sinclair/typebox'
import type { Static } from '@sinclair/typebox'
import { namePattern, urlPattern, webhookTypes } from '../model.ts'
import { nullable, time } from './handoff.ts'

/** The schemas of webhooks. */

const exampleWebhookId = 'wh_9dDZKx3PqU0vY5wRr1mT2Q'
const exampleTime = '2026-11-20T09:00:00.000Z'
const types = { items: { type: 'string', enum: webhookTypes }, examples: [['handoff.done', 'handoff.failed']] }
const id = Type.String({ description: 'The webhook’s id.', examples: [exampleWebhookId] })

export const webhookParams = Type.Object({ id })

export const createWebhookBody = Type.Object({
  url: Type.String({ pattern: urlPattern, description: 'Where events are sent: an https URL of a public address, without user and fragment.', examples: ['https://example.com/handoffs'] }),
  types: Type.Optional(nullable<string[]>('array', { ...types, description: 'The types of the events that are sent; all of handoffs by default.' })),
  inbox: Type.Optional(nullable<string>('string', { pattern: namePattern, description: 'Only events of handoffs for this inbox.', examples: ['reviewer'] })),
}, { additionalProperties: false })
export type CreateWebhookBody = Static<typeof createWebhookBody>

export const rotateBody = Type.Object({
  grace: Type.Optional(nullable<number>('integer', { minimum: 0, maximum: 2_592_000, default: 86_400, description: 'How long the old secret signs as well, in seconds.', examples: [86_400] })),
}, { additionalProperties: false })
export type RotateBody = Static<typeof rotateBody>

export const noMembers = Type.Object({}, { additionalProperties: false })

export const replayBody = Type.Object({
  since: Type.String({ description: 'From where on, that one included: an event’s id, or a time.', examples: [exampleTime] }),
}, { additionalProperties: false })
export type ReplayBody = Static<typeof replayBody>

export const deliveriesQuery = Type.Object({
  status: Type.Optional(Type.Union([Type.Literal('pending'), Type.Literal('delivered'), Type.Literal('failed')], { description: 'Only deliveries with this status.', examples: ['failed'] })),
}, { additionalProperties: false })
export type DeliveriesQuery = Static<typeof deliveriesQuery>

const webhook = {
  id,
  url: Type.String({ examples: ['https://example.com/handoffs'] }),
  types: nullable<string[]>('array', { ...types, description: 'null: all of handoffs.' }),
  inbox: nullable<string>('string', { description: 'null: any, and none.', examples: ['reviewer'] }),
  enabled: Type.Boolean({ examples: [true] }),
  disabled_because: Type.Optional(Type.String({ enum: ['gone', 'failing'], description: 'Only where it is disabled. gone: it answered 410. failing: no attempt succeeded for 72 hours.', examples: ['gone'] })),
  created_at: time('When it was created.', exampleTime),
}
const secret = Type.String({ description: 'What its messages are signed with. Shown only now.', examples: ['whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD8Zz7HcnSkdM='] })

export const webhookAnswer = Type.Object(webhook, { description: 'The webhook.' })
export const createdWebhook = Type.Object({ ...webhook, secret }, { description: 'Created.' })
export const rotatedWebhook = Type.Object({ ...webhook, secret, old_secret_until: time('Until then the old secret signs as well.', exampleTime) }, { description: 'It has a new secret.' })
export const webhooksAnswer = Type.Object({ items: Type.Array(Type.Object(webhook), { description: 'The oldest first.' }) }, { description: 'The tenant’s webhooks.' })
export const testAnswer = Type.Object({ id: Type.String({ description: 'The delivery’s id.', examples: ['test_1795377044681_VHdDBR3Ox_T_H9gltuUjYQ'] }) }, { description: 'It will be sent.' })
export const replayAnswer = Type.Object({ replayed: Type.Integer({ description: 'How many events will be sent again.', examples: [3] }) }, { description: 'They will be sent.' })

export const deliveriesAnswer = Type.Object({
  items: Type.Array(Type.Object({
    id: Type.String({ description: 'The event’s id, which is webhook-id in its header.', examples: ['1795377044681-0'] }),
    type: Type.String({ examples: ['handoff.done'] }),
    status: Type.String({ enum: ['pending', 'delivered', 'failed'], examples: ['delivered'] }),
    attempts: Type.Integer({ examples: [1] }),
    last_status: nullable<number>('integer', { description: 'The HTTP status of the last answer; null where there was none.', examples: [200] }),
    last_error: nullable<string>('string', { description: 'Why there was no answer.', examples: ['timeout'] }),
    last_at: nullable<string>('string', { format: 'date-time', description: 'When the last attempt ended.', examples: [exampleTime] }),
    next_at: nullable<string>('string', { format: 'date-time', description: 'When the next attempt is due, at the latest; only of pending ones.', examples: [exampleTime] }),
  }), { description: 'The newest first, 100 at most.' }),
}, { description: 'Deliveries of this webhook.' })
