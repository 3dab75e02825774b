import { Type } from '@sinclair/typebox'
import type { Static } from '@sinclair/typebox'
import { eventTypes, statuses } from '../model.ts'
import { exampleId } from './handoff.ts'

/** The schemas of events. */

const exampleEventId = '1795377044681-0'

export const eventsQuery = Type.Object({
  after: Type.Optional(Type.String({ description: 'Id of the event after which to start: the last one read, or `next` of the previous answer. 0-0 starts at the oldest event kept. Without it, only new events are sent.', examples: [exampleEventId] })),
  types: Type.Optional(Type.String({ description: `Only events of these types, separated by commas: ${eventTypes.join(', ')}.`, examples: ['handoff.done,handoff.failed'] })),
  handoff_id: Type.Optional(Type.String({ description: 'Only events of this handoff.', examples: [exampleId] })),
  inbox: Type.Optional(Type.String({ description: 'Only events of handoffs for this inbox.', examples: ['reviewer'] })),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, default: 100, description: 'Largest number of events in the answer. Not for a stream.', examples: [100] })),
  wait: Type.Optional(Type.Integer({ minimum: 0, maximum: 60, description: 'How long to wait for an event at most, in seconds. Not for a stream.', examples: [30] })),
}, { additionalProperties: false })
export type EventsQuery = Static<typeof eventsQuery>

export const eventsHeaders = Type.Object({
  'last-event-id': Type.Optional(Type.String({ description: 'For a stream: id of the last event that was read. It takes precedence over `after`.', examples: [exampleEventId] })),
})

const optionalText = (description: string, example: string) => Type.Optional(Type.String({ description, examples: [example] }))

export const event = Type.Object({
  id: Type.String({ examples: [exampleEventId] }),
  type: Type.String({ enum: eventTypes as string[], examples: ['handoff.done'] }),
  time: Type.String({ format: 'date-time', description: 'When it was written to the feed. It never decreases in a feed.', examples: ['2026-11-20T09:00:00.000Z'] }),
  data: Type.Object({
    handoff_id: Type.Optional(Type.String({ examples: [exampleId] })),
    status: Type.Optional(Type.String({ enum: [...statuses], examples: ['done'] })),
    to: optionalText('The handoff’s inbox.', 'reviewer'),
    passed_by: optionalText('The agent that passed the handoff.', 'writer'),
    caught_by: optionalText('The agent that caught the handoff.', 'reviewer'),
    parent: optionalText('Id of the handoff that this one is a part of.', exampleId),
    attempt: Type.Optional(Type.Integer({ description: 'Number of this attempt, from the second one on.', examples: [2] })),
    reissue_of: optionalText('Id of the previous attempt.', exampleId),
    reissued_as: optionalText('Id of the next attempt, the successor.', exampleId),
    expired_because: optionalText('The deadline that was missed: not_caught, not_done or stalled.', 'stalled'),
    webhook_id: optionalText('Only in webhook.disabled: the webhook’s id.', 'wh_2mMvzYxZ'),
    reason: optionalText('Only in webhook.disabled: gone or failing.', 'gone'),
  }),
})

export const eventsAnswer = Type.Object({
  items: Type.Array(event, { description: 'In the order of the feed, each event once.' }),
  next: Type.String({ description: 'The value of `after` for the next request; there even if items is empty.', examples: [exampleEventId] }),
  reset: Type.Optional(Type.Boolean({ description: 'True if `after` is older than the oldest event kept, or newer than the newest. Events may be missing then, and items starts with the oldest event kept.' })),
}, { description: 'Events. With Accept: text/event-stream, the answer is a stream of server-sent events.' })
