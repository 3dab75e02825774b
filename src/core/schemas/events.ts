import { Type } from '@sinclair/typebox'
import type { Static, TProperties } from '@sinclair/typebox'
import { shownOn } from '../members.ts'
import { eventTypes, expiryReasons, happenings } from '../model.ts'
import type { Status } from '../model.ts'
import { wantedLabels } from './handoffs.ts'
import { exampleId, scheduled } from './parts.ts'

/** The schemas of events. */

const exampleEventId = '1795377044681-0'

export const eventsQuery = Type.Object({
  after: Type.Optional(Type.String({
    description: 'Id of the event after which to start: the last one read, or ' +
    '`next` of the previous answer. 0-0 starts at the oldest event kept. Without it, only new events are sent.',
    examples: [exampleEventId]
  })),
  types: Type.Optional(Type.String({
    description: `Only events of these types, separated by commas: ${eventTypes.join(', ')}.`,
    examples: ['handoff.done,handoff.failed']
  })),
  handoff_id: Type.Optional(Type.String({ description: 'Only events of this handoff.', examples: [exampleId] })),
  inbox: Type.Optional(Type.String({ description: 'Only events of handoffs for this inbox.', examples: ['reviewer'] })),
  labels: wantedLabels,
  limit: Type.Optional(Type.Integer({
    minimum: 1,
    maximum: 100,
    default: 100,
    description: 'Largest number of events in the answer. Not for a stream.',
    examples: [100]
  })),
  wait: Type.Optional(Type.Integer({
    minimum: 0,
    maximum: 60,
    description: 'How long to wait for an event at most, in seconds. Not for a stream.',
    examples: [30]
  })),
}, { additionalProperties: false })
export type EventsQuery = Static<typeof eventsQuery>

export const eventsHeaders = Type.Object({
  'last-event-id': Type.Optional(Type.String({
    description: 'For a stream: id of the last event that was read. It takes precedence over `after`.',
    examples: [exampleEventId]
  })),
})

const optionalText = (
  description: string, example: string
) => Type.Optional(Type.String({ description, examples: [example] }))

const { to, labels, ...onEvent } = shownOn('event')

/** What the data of all events of handoffs have. */
const handoff = {
  handoff_id: Type.String({ examples: [exampleId] }),
  to,
  labels,
  passed_by: Type.String({ description: 'The agent that passed the handoff.', examples: ['writer'] }),
  ...onEvent,
  attempt: Type.Optional(
    Type.Integer({ description: 'Number of this attempt, from the second one on.', examples: [2] })
  ),
  reissue_of: optionalText('Id of the previous attempt.', exampleId),
  ...scheduled,
}
const catcher = Type.String({ description: 'The agent that caught the handoff.', examples: ['reviewer'] })
const caught = { caught_by: catcher }
const perhapsCaught = { caught_by: Type.Optional(catcher) }
const successor = Type.String({ description: 'Id of the next attempt, the successor.', examples: [exampleId] })
const perhapsTriedAgain = { reissued_as: Type.Optional(successor) }
const expiredBecause = Type.String({
  enum: expiryReasons,
  description: 'What was missed: not_decided if a person still had to decide.',
  examples: ['stalled']
})

const askId = Type.String({ description: 'Id of the question.', examples: ['ask_9dDZKx3PqU0vY5wRr1mT2Q'] })
const until = (description: string) =>
  Type.String({ format: 'date-time', description, examples: ['2026-11-21T09:00:00.000Z'] })

/** The statuses that a handoff may have when its event is written, and what else its data have, by the type. */
const dataOf: Record<typeof happenings[number], [statuses: readonly Status[], members: TProperties]> = {
  passed: [['pending'], {}],
  approval_requested: [['pending'], {
    approval_url: Type.String({
      description: 'The page where a person decides.', examples: [`https://handoff.example/approvals/${exampleId}`]
    }),
    expires_at: until('When the handoff expires if no agent has caught it by then.'),
  }],
  approved: [['pending'], {}],
  rejected: [['rejected'], {}],
  caught: [['caught'], caught],
  asked: [['caught'], {
    ...caught,
    ask_id: askId,
    of: Type.String({ enum: ['person', 'passer'], description: 'Who is asked.', examples: ['person'] }),
    answer_url: Type.Optional(Type.String({
      description: 'The page where a person answers; only if a person is asked.',
      examples: [`https://handoff.example/approvals/${exampleId}`]
    })),
    expires_at: until('When the question expires.'),
  }],
  answered: [['caught'], {
    ...caught,
    ask_id: askId,
    answered_by: Type.String({
      description: 'The agent that answered: a person’s key, or the passer.', examples: ['approver']
    }),
  }],
  ask_ended: [['caught', 'done', 'failed', 'declined', 'cancelled', 'expired'], {
    ...caught,
    ask_id: askId,
    state: Type.String({
      enum: ['expired', 'withdrawn'], description: 'How it ended without an answer.', examples: ['expired']
    }),
    expired_because: Type.Optional(expiredBecause),
  }],
  done: [['done'], caught],
  failed: [['failed'], { ...caught, ...perhapsTriedAgain }],
  declined: [['declined'], { ...caught, ...perhapsTriedAgain }],
  cancelled: [['cancelled'], perhapsCaught],
  cancel_requested: [['caught'], caught],
  expired: [['expired'], { ...perhapsCaught, ...perhapsTriedAgain, expired_because: expiredBecause }],
  reissued: [
    ['failed', 'declined', 'cancelled', 'expired'],
    { ...perhapsCaught, reissued_as: successor, expired_because: Type.Optional(expiredBecause) }
  ],
}

function eventOf (type: string, data: TProperties) {
  return Type.Object({
    id: Type.String({ examples: [exampleEventId] }),
    type: Type.String({ enum: [type], examples: [type] }),
    time: Type.String({
      format: 'date-time',
      description: 'When it was written to the feed. It never decreases in a feed.',
      examples: ['2026-11-20T09:00:00.000Z']
    }),
    data: Type.Object(data),
  })
}

const events = happenings.map(name => {
  const [found, members] = dataOf[name]
  return eventOf(
    `handoff.${name}`, { ...handoff, status: Type.String({ enum: [...found], examples: [found[0]] }), ...members }
  )
})
const webhookDisabled = eventOf('webhook.disabled', {
  webhook_id: Type.String({ description: 'The webhook’s id.', examples: ['wh_9dDZKx3PqU0vY5wRr1mT2Q'] }),
  reason: Type.String({
    enum: ['gone', 'failing'],
    description: 'gone: the receiver answered 410. failing: no attempt succeeded for 72 hours.',
    examples: ['gone']
  }),
})

/** An event. Its data depend on its type. */
const event = Type.Union([...events, webhookDisabled])

export const eventsAnswer = Type.Object({
  items: Type.Array(event, { description: 'In the order of the feed, each event once.' }),
  next: Type.String({
    description: 'The value of `after` for the next request; there even if items is empty.', examples: [exampleEventId]
  }),
  reset: Type.Optional(Type.Boolean({
    description: 'True if `after` is older than what is kept, or beyond both the ' +
    'newest event and Redis’s clock. Events may be missing then, and items starts with the oldest event kept.'
  })),
}, { description: 'Events. With Accept: text/event-stream, the answer is a stream of server-sent events.' })
