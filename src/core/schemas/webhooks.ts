import { Type } from '@sinclair/typebox'
import type { Static } from '@sinclair/typebox'
import { urlPattern } from '../callback.ts'
import {
  deliveryStatuses, includable, inboxPattern, typesForPeople, webhookFormats, webhookTypes
} from '../model.ts'
import { labels, labelsToPass, nullable, oneOf, time } from './parts.ts'

/** The schemas of webhooks. */

const exampleWebhookId = 'wh_9dDZKx3PqU0vY5wRr1mT2Q'
const exampleTime = '2026-11-20T09:00:00.000Z'
const types = { items: { type: 'string', enum: webhookTypes }, examples: [['handoff.done', 'handoff.failed']] }
const included = { items: { type: 'string', enum: [...includable] }, examples: [['task']] }
const id = Type.String({ description: 'The webhook’s id.', examples: [exampleWebhookId] })

export const webhookParams = Type.Object({ id })

export const createWebhookBody = Type.Object({
  url: Type.String({
    pattern: urlPattern,
    description: 'Where messages are sent: an https URL with a public address, without userinfo or fragment; or ' +
      'mailto: and an address, where the operator has set up mail.',
    examples: ['https://example.com/handoffs']
  }),
  format: Type.Optional(nullable<string>('string', {
    enum: [...webhookFormats, null],
    description: 'standard, the default: the event, for a program. The others: a short message for a person, in the ' +
      'form that this chat takes. Left out with mailto:, which gets such a message too.',
    examples: ['slack']
  })),
  types: Type.Optional(nullable<string[]>('array', {
    ...types,
    description: 'Types of the events to send; by default all types of handoff events. For people by default ' +
      `${typesForPeople.join(', ')}, the last two only if there is no next attempt.`
  })),
  inbox: Type.Optional(nullable<string>(
    'string', { pattern: inboxPattern, description: 'Only events of handoffs for this inbox.', examples: ['reviewer'] }
  )),
  labels: labelsToPass('Only events of handoffs with all of these labels.'),
  include: Type.Optional(nullable<string[]>('array', {
    ...included,
    description: 'What messages for people have besides: task, the first 200 characters of the task, or of the ' +
      'question. Without it no payload leaves. Not with standard.'
  })),
  updates: Type.Optional(nullable<boolean>('boolean', {
    description: 'Whether a short message follows when a person approved, rejected or answered. Not with standard.',
    examples: [true]
  })),
  timezone: Type.Optional(nullable<string>('string', {
    description: 'The time zone of the times in messages for people, by its IANA name; by default UTC. Not with ' +
      'standard.',
    examples: ['Europe/Berlin']
  })),
}, { additionalProperties: false })
export type CreateWebhookBody = Static<typeof createWebhookBody>

export const rotateBody = Type.Object({
  grace: Type.Optional(nullable<number>('integer', {
    minimum: 0,
    maximum: 2_592_000,
    default: 86_400,
    description: 'For how many seconds messages are signed with the old secret too.',
    examples: [86_400]
  })),
}, { additionalProperties: false })
export type RotateBody = Static<typeof rotateBody>

export const noMembers = Type.Object({}, { additionalProperties: false })

export const replayBody = Type.Object({
  since: Type.String({ description: 'The first event to send again: its id, or a time.', examples: [exampleTime] }),
}, { additionalProperties: false })
export type ReplayBody = Static<typeof replayBody>

export const deliveriesQuery = Type.Object({
  status: Type.Optional(oneOf(
    deliveryStatuses, { description: 'Only deliveries with this status.', examples: ['failed'] }
  )),
}, { additionalProperties: false })
export type DeliveriesQuery = Static<typeof deliveriesQuery>

const webhook = {
  id,
  url: Type.String({ examples: ['https://example.com/handoffs'] }),
  format: Type.Optional(Type.String({
    enum: [...webhookFormats], description: 'What its messages look like; left out for mail.', examples: ['standard']
  })),
  types: nullable<string[]>('array', { ...types, description: 'null: all types of handoff events.' }),
  inbox: nullable<string>(
    'string', { description: 'null: events of every handoff, with or without an inbox.', examples: ['reviewer'] }
  ),
  labels: Type.Optional(labels),
  include: Type.Optional(Type.Array(Type.String({ enum: [...includable], examples: ['task'] }), {
    description: 'What its messages have of the payload, if anything.'
  })),
  updates: Type.Optional(Type.Boolean({
    description: 'Only if true: a message follows when a person approved, rejected or answered.', examples: [true]
  })),
  timezone: Type.Optional(Type.String({
    description: 'The time zone of the times in its messages, if it isn’t UTC.', examples: ['Europe/Berlin']
  })),
  enabled: Type.Boolean({ examples: [true] }),
  disabled_because: Type.Optional(Type.String({
    enum: ['gone', 'failing'],
    description: 'Only on a disabled webhook. gone: the receiver answered 410. failing: no attempt succeeded ' +
      'for 72 hours.',
    examples: ['gone']
  })),
  created_at: time('When it was created.', exampleTime),
}
const secret = Type.String({
  description: 'The secret that signs its messages. It is shown only in this answer.',
  examples: ['whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD8Zz7HcnSkdM=']
})

export const webhookAnswer = Type.Object(webhook, { description: 'The webhook.' })
export const createdWebhook = Type.Object({ ...webhook, secret }, { description: 'Created.' })
export const deletedAnswer = Type.Null({ description: 'Deleted. What is being sent this moment still arrives.' })
export const rotatedWebhook = Type.Object({
  ...webhook, secret, old_secret_until: time('Until then messages are signed with the old secret too.', exampleTime)
}, { description: 'The webhook has a new secret.' })
const oldSecretUntil = time('Until then messages are signed with the old secret too.', exampleTime)
export const callbackSecretAnswer = Type.Object({
  secret, old_secret_until: Type.Optional(oldSecretUntil)
}, { description: 'The secret that signs the callbacks of what this agent passes.' })
export const rotatedCallbackSecret = Type.Object({
  secret, old_secret_until: oldSecretUntil
}, { description: 'The callbacks have a new secret.' })
export const webhooksAnswer = Type.Object(
  { items: Type.Array(Type.Object(webhook), { description: 'Oldest first.' }) },
  { description: 'The tenant’s webhooks.' }
)
export const testAnswer = Type.Object(
  { id: Type.String({ description: 'The delivery’s id.', examples: ['test_1795377044681_VHdDBR3Ox_T_H9gltuUjYQ'] }) },
  { description: 'The test event is queued.' }
)
export const replayAnswer = Type.Object({
  replayed: Type.Integer({
    description: 'Number of events that are sent again, of the first 5,000 events.', examples: [3]
  }),
  more: Type.Optional(Type.Boolean({
    description: 'True if there are more than 5,000 events: those of the webhook are sent again too, but not counted.'
  })),
}, { description: 'The events will be sent.' })

export const deliveriesAnswer = Type.Object({
  items: Type.Array(Type.Object({
    id: Type.String({ description: 'The event’s id, sent in the header webhook-id.', examples: ['1795377044681-0'] }),
    type: Type.String({ examples: ['handoff.done'] }),
    status: Type.String({
      enum: [...deliveryStatuses],
      description: 'summarised: a message for people that was one too many in its minute, so a summary counts it.',
      examples: ['delivered']
    }),
    attempts: Type.Integer({ examples: [1] }),
    last_status: nullable<number>(
      'integer', {
        description: 'The HTTP status of the last response, or the mail server’s reply; null if there was none.',
        examples: [200]
      }
    ),
    last_error: nullable<string>('string', { description: 'Why there was no response.', examples: ['timeout'] }),
    why: Type.Optional(Type.String({
      description: 'Why the last attempt failed, in words.', examples: ['There was no answer within 15 seconds.']
    })),
    last_at: nullable<string>(
      'string', { format: 'date-time', description: 'When the last attempt ended.', examples: [exampleTime] }
    ),
    next_at: nullable<string>('string', {
      format: 'date-time',
      description: 'When the next attempt is due at the latest; only if pending.',
      examples: [exampleTime]
    }),
    summarised: Type.Optional(Type.Integer({
      description: 'Only of a summary (webhook.summary): how many events it counts.', examples: [12]
    })),
  }), { description: 'Newest first, 100 at most.' }),
}, { description: 'Deliveries of this webhook.' })
