import { Type } from '@sinclair/typebox'
import type { Static } from '@sinclair/typebox'
import { namePattern } from '../model.ts'
import { catchAnswer, nullable } from './handoff.ts'

/** The schemas of inboxes. */

export const takeBody = Type.Object({
  inbox: Type.Optional(nullable<string>('string', { pattern: namePattern, description: 'The inbox to catch from; by default the one with the agent’s own name.', examples: ['reviewer'] })),
  max: Type.Optional(nullable<number>('integer', { minimum: 1, maximum: 100, default: 1, description: 'Largest number of handoffs to catch.', examples: [10] })),
}, { additionalProperties: false })
export type TakeBody = Static<typeof takeBody>

export const takeAnswer = Type.Object({
  items: Type.Array(Type.Object(catchAnswer.properties), { description: 'In order of their turn, each as in the answer of a catch by id. Fewer than max if the inbox has fewer, or if the answer would be larger than 4 MiB.' }),
}, { description: 'Caught: the work is yours. items is empty if nothing came in time.', headers: catchAnswer.headers as object })

export const inboxParams = Type.Object({ name: Type.String({ description: 'The inbox’s name.', examples: ['reviewer'] }) })

export const inboxAnswer = Type.Object({
  inbox: Type.String({ examples: ['reviewer'] }),
  pending: Type.Integer({ description: 'Number of handoffs that can be caught now.', examples: [3] }),
  oldest_at: nullable<string>('string', { format: 'date-time', description: 'When the oldest of them entered the inbox; null if there is none.', examples: ['2026-11-20T09:00:00.000Z'] }),
  waiting_approval: Type.Integer({ description: 'Number of handoffs that wait for approval.', examples: [0] }),
}, { description: 'The state of the inbox. One that was never used is empty.' })
