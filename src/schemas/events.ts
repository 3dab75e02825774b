import { Type } from '@sinclair/typebox'
import type { Static } from '@sinclair/typebox'
import { eventTypes, statuses } from '../model.ts'
import { exampleId } from './handoff.ts'

/** The schemas of events. */

const exampleEventId = '1795377044681-0'

export const eventsQuery = Type.Object({
  after: Type.Optional(Type.String({ description: 'The event behind which to go on: its id, or next of the answer before. 0-0: from the oldest that is kept. Left out: from now on.', examples: [exampleEventId] })),
  types: Type.Optional(Type.String({ description: `Only events of these types, separated by commas: ${eventTypes.join(', ')}.`, examples: ['handoff.done,handoff.failed'] })),
  handoff_id: Type.Optional(Type.String({ description: 'Only events of this handoff.', examples: [exampleId] })),
  inbox: Type.Optional(Type.String({ description: 'Only events of handoffs for this inbox.', examples: ['reviewer'] })),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, default: 100, description: 'How many events at most. Not for a stream.', examples: [100] })),
  wait: Type.Optional(Type.Integer({ minimum: 0, maximum: 60, description: 'How long to wait for an event at most, in seconds. Not for a stream.', examples: [30] })),
}, { additionalProperties: false })
export type EventsQuery = Static<typeof eventsQuery>

export const eventsHeaders = Type.Object({
  'last-event-id': Type.Optional(Type.String({ description: 'For a stream: where to go on. It counts where after is sent too.', examples: [exampleEventId] })),
})

const optionalText = (description: string, example: string) => Type.Optional(Type.String({ description, examples: [example] }))

export const event = Type.Object({
  id: Type.String({ examples: [exampleEventId] }),
  type: Type.String({ enum: eventTypes as string[], examples: ['handoff.done'] }),
  time: Type.String({ format: 'date-time', description: 'When it was written to the feed. It never decreases in a feed.', examples: ['2026-11-20T09:00:00.000Z'] }),
  data: Type.Object({
    handoff_id: Type.Optional(Type.String({ examples: [exampleId] })),
    status: Type.Optional(Type.String({ enum: [...statuses], examples: ['done'] })),
    to: optionalText('The inbox that it is for.', 'reviewer'),
    passed_by: optionalText('The agent that passed it.', 'writer'),
    caught_by: optionalText('The agent that caught it.', 'reviewer'),
    parent: optionalText('The handoff that its work is a part of.', exampleId),
    attempt: Type.Optional(Type.Integer({ description: 'Which attempt it is, from the second on.', examples: [2] })),
    reissue_of: optionalText('The attempt before it.', exampleId),
    reissued_as: optionalText('The attempt after it.', exampleId),
    expired_because: optionalText('not_caught, not_done or stalled.', 'stalled'),
    webhook_id: optionalText('Of webhook.disabled: which webhook.', 'wh_2mMvzYxZ'),
    reason: optionalText('Of webhook.disabled: why.', 'gone'),
  }),
})

export const eventsAnswer = Type.Object({
  items: Type.Array(event, { description: 'In the order in which they happened; each event once.' }),
  next: Type.String({ description: 'What to send as after to go on; also where there is no event.', examples: [exampleEventId] }),
  reset: Type.Optional(Type.Boolean({ description: 'True where after is older than what is kept, or newer than the newest event: then events may be missing, and the items are the oldest that are kept.' })),
}, { description: 'Events. With Accept: text/event-stream, a stream of server-sent events instead.' })
