import { Type } from '@sinclair/typebox'
import type { Static } from '@sinclair/typebox'
import { inboxPattern } from '../model.ts'
import { catchAnswer, keyPattern } from './handoffs.ts'
import { nullable, pageOf, pageQuery } from './parts.ts'
import { rateFields } from './problem.ts'

/** The schemas of inboxes. */

/** How many inboxes one catch can name. */
const maxInboxes = 10

export const takeBody = Type.Object({
  inbox: Type.Optional(nullable<string>('string', {
    pattern: inboxPattern,
    description: 'The inbox to catch from; by default the one with the agent’s own name.',
    examples: ['reviewer']
  })),
  inboxes: Type.Optional(nullable<string[]>('array', {
    minItems: 1,
    maxItems: maxInboxes,
    items: { type: 'string', pattern: inboxPattern },
    description: 'Instead of inbox: catch from the first of these, in this order, that has something. All items of ' +
      'the answer are from one inbox.'
  })),
  max: Type.Optional(nullable<number>(
    'integer',
    { minimum: 1, maximum: 100, default: 1, description: 'Largest number of handoffs to catch.', examples: [10] }
  )),
  // Not what its members' examples make together: it has inbox or inboxes, not both.
}, { additionalProperties: false, examples: [{ inbox: 'reviewer', max: 10 }] })
export type TakeBody = Static<typeof takeBody>

export const takeAnswer = Type.Object({
  items: Type.Array(Type.Object(catchAnswer.properties), {
    description: 'In order of their turn, each as in the ' +
    'answer of a catch by id. Fewer than max if the inbox has fewer, or if the answer would be larger than 4 MiB.'
  }),
}, {
  description: 'Caught: the work is yours. items is empty if nothing came in time.',
  headers: catchAnswer.headers as object
})

export const inboxParams = Type.Object({
  name: Type.String({ description: 'The inbox’s name.', examples: ['reviewer'] })
})

const count = (description: string, example: number) => Type.Integer({ description, examples: [example] })

export const inboxAnswer = Type.Object({
  inbox: Type.String({ examples: ['reviewer'] }),
  pending: count('Number of handoffs that can be caught now.', 3),
  oldest_at: nullable<string>('string', {
    format: 'date-time',
    description: 'When the oldest of them entered the inbox; null if there is none.',
    examples: ['2026-11-20T09:00:00.000Z']
  }),
  waiting_approval: count('Number of handoffs that wait for approval.', 0),
  delayed: count('Number of handoffs that can be caught later.', 2),
  blocked: count('Number of handoffs that wait for others.', 0),
  caught: count('Number of handoffs that are caught.', 1),
  failed: count('Number of handoffs in the list of those that failed.', 0),
  groups: count(
    'Number of groups that have something pending, those at their limit too; what has no group is one.', 2
  ),
  listening: count('Number of requests that wait for its handoffs, at all replicas; at most 10 s old.', 1),
  paused: Type.Boolean({ description: 'Whether nothing can be caught from the inbox now.', examples: [false] }),
  max_caught: nullable<number>('integer', {
    description: 'How many of its handoffs may be caught for the inbox to give more; null for any number.',
    examples: [10]
  }),
  max_pending: nullable<number>('integer', {
    description: 'How many may be pending for it to take more; null for any number.', examples: [null]
  }),
  max_caught_per_group: nullable<number>('integer', {
    description: 'How many of a group may be caught for the inbox to give more of it; null for any number.',
    examples: [2]
  }),
}, { description: 'The state of the inbox. One that was never used is empty.' })
export type InboxAnswer = Static<typeof inboxAnswer>

export const workersAnswer = Type.Object({
  items: Type.Array(Type.Object({
    agent: Type.String({ description: 'Name of the agent.', examples: ['reviewer'] }),
    worker: nullable<string>('string', {
      description: 'What it calls itself (Handoff-Worker); null if it says nothing.', examples: ['host-7:4211']
    }),
    waiting: count('Number of its requests that wait for this inbox.', 1),
    caught: count('Number of handoffs of this inbox that it has caught.', 2),
    last_seen_at: Type.String({
      format: 'date-time', description: 'When it was heard of last.', examples: ['2026-11-20T09:02:00.000Z']
    }),
    last_caught_at: nullable<string>('string', {
      format: 'date-time',
      description: 'When it last caught one of its handoffs, as far as is known.',
      examples: ['2026-11-20T09:01:00.000Z']
    }),
  }), { description: 'The one that was heard of last first; at most 1,000.' }),
  more: Type.Boolean({ description: 'Whether there are more.', examples: [false] }),
}, { description: 'Who has handoffs of the inbox caught, waits for some, or asked for some within a minute.' })
export type WorkersAnswer = Static<typeof workersAnswer>

export const groupsQuery = Type.Object(pageQuery, { additionalProperties: false })
export type GroupsQuery = Static<typeof groupsQuery>

export const groupsAnswer = pageOf(
  Type.Object({
    group: nullable<string>(
      'string', { description: 'The group; null for what has none.', examples: ['customer-7'] }
    ),
    pending: count('Number of its handoffs that can be caught now.', 3),
    caught: count('Number of its handoffs that are caught.', 1),
    oldest_at: nullable<string>('string', {
      format: 'date-time',
      description: 'When the oldest of its pending handoffs entered the inbox; null if there is none.',
      examples: ['2026-11-20T09:00:00.000Z']
    }),
  }),
  'The inbox’s groups that have something pending or caught.',
  'First what has no group, then by name. '
)
export type GroupsAnswer = Static<typeof groupsAnswer>

export const inboxSettingsBody = Type.Object({
  paused: Type.Optional(Type.Boolean({
    description: 'true: nothing can be caught from the inbox until it is false again.', examples: [true]
  })),
  max_caught: Type.Optional(nullable<number>('integer', {
    minimum: 1,
    maximum: 100_000,
    description: 'Catch from the inbox only while fewer of its handoffs are caught; null removes the limit.',
    examples: [10]
  })),
  max_pending: Type.Optional(nullable<number>('integer', {
    minimum: 1,
    maximum: 10_000_000,
    description: 'Refuse to pass to the inbox while this many are pending; null removes the limit.',
    examples: [null]
  })),
  max_caught_per_group: Type.Optional(nullable<number>('integer', {
    minimum: 1,
    maximum: 100_000,
    description: 'Catch of a group from the inbox only while fewer of it are caught; null removes the limit.',
    examples: [2]
  })),
  card: Type.Optional(nullable<object>('object', {
    additionalProperties: true,
    description: 'What the inbox says of itself as an agent of A2A (docs/a2a.md): description, skills and more; null ' +
      'takes it away, and the inbox is no agent any more.',
    examples: [{
      description: 'Reviews drafts.', skills: [{ id: 'r', name: 'Review', description: 'Reads.', tags: ['text'] }]
    }]
  })),
}, { additionalProperties: false, description: 'What is left out stays as it is.' })
export type InboxSettingsBody = Static<typeof inboxSettingsBody>

export const inboxesQuery = Type.Object(pageQuery, { additionalProperties: false })
export type InboxesQuery = Static<typeof inboxesQuery>

export const inboxesAnswer = pageOf(
  Type.Object(inboxAnswer.properties), 'The tenant’s inboxes that hold something or have settings.', 'By name. '
)
export type InboxesAnswer = Static<typeof inboxesAnswer>

/** The schemas of a batch, for the OpenAPI document. http/batch-body.ts validates the body. */

/** @param operations the names of the operations that a batch may contain */
export const batchBody = (operations: readonly string[]) => Type.Object({
  operations: Type.Array(Type.Object({
    op: Type.Union(
      operations.map(name => Type.Literal(name)),
      { description: 'The operation. It does what the request of that name does.', examples: ['done'] }
    ),
    id: Type.Optional(nullable<string>('string', {
      description: 'The handoff’s id: required, except for pass, which takes none.',
      examples: ['AVHdDBR3Ox_T_H9gltuUjYVhg']
    })),
    body: Type.Optional(nullable<object>('object', {
      additionalProperties: true,
      description: 'The body that the single request takes. catch and status take none.',
      examples: [{ output: { total: 3 } }]
    })),
    idempotency_key: Type.Optional(nullable<string>(
      'string', { pattern: keyPattern, description: 'The operation’s Idempotency-Key.', examples: ['report-42-done'] }
    )),
  }, { additionalProperties: false }), {
    minItems: 1,
    maxItems: 100,
    description: 'They run concurrently, in no particular order.',
    examples: [[{ op: 'pass', body: { task: 'Summarise the figures.' } }]]
  }),
}, { additionalProperties: false })

export const batchAnswer = Type.Object({
  results: Type.Array(Type.Object({
    status: Type.Integer({ description: 'The status that the single request would have had.', examples: [201] }),
    body: Type.Unsafe<object>({
      type: 'object',
      additionalProperties: true,
      description: 'The body of its response: the answer, or a problem document.',
      examples: [{ status: 'pending' }]
    }),
    replayed: Type.Optional(
      Type.Literal(true, { description: 'Only on a replayed answer: the operation had been carried out already.' })
    ),
  }), { description: 'One for each operation, in the order of the request.' }),
}, {
  description: 'The answers of the operations. One that fails does not affect the others. If one was rate ' +
  'limited, the header fields say when to retry.',
  headers: rateFields
})
