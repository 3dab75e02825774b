import { Type } from '@sinclair/typebox'
import type { Static } from '@sinclair/typebox'
import { namePattern } from '../model.ts'
import { catchAnswer, nullable } from './handoff.ts'

/** The schemas of inboxes. */

export const takeBody = Type.Object({
  inbox: Type.Optional(nullable<string>('string', { pattern: namePattern, description: 'Whose handoffs; by default the inbox that is called like the agent.', examples: ['reviewer'] })),
  max: Type.Optional(nullable<number>('integer', { minimum: 1, maximum: 100, default: 1, description: 'How many at the most.', examples: [10] })),
}, { additionalProperties: false })
export type TakeBody = Static<typeof takeBody>

export const takeAnswer = Type.Object({
  items: Type.Array(Type.Object(catchAnswer.properties), { description: 'The earliest first, each as a catch by its id answers it; fewer than max when there are fewer, or when together they would be over 4 MiB.' }),
}, { description: 'Caught: they are the asker’s. No items when nothing came in time.', headers: catchAnswer.headers as object })

export const inboxParams = Type.Object({ name: Type.String({ description: 'The inbox’s name.', examples: ['reviewer'] }) })

export const inboxAnswer = Type.Object({
  inbox: Type.String({ examples: ['reviewer'] }),
  pending: Type.Integer({ description: 'How many can be caught now.', examples: [3] }),
  oldest_at: nullable<string>('string', { format: 'date-time', description: 'When the oldest of them entered; null when there is none.', examples: ['2026-11-20T09:00:00.000Z'] }),
  waiting_approval: Type.Integer({ description: 'How many wait for a person.', examples: [0] }),
}, { description: 'What is in it. An inbox that was never used has nothing.' })
