import { Type } from '@sinclair/typebox'
import type { Static } from '@sinclair/typebox'
import { decisionStates, inboxPattern, namePattern } from '../model.ts'
import {
  decidedByPerson, decisionSignature, exampleId, isLocked, labels, nullable, oneOf, pageOf, pageQuery
} from './parts.ts'

/** The schemas of what people decided. */

const time = (description: string) =>
  Type.Optional(Type.String({ maxLength: 64, description, examples: ['2026-11-20T09:00:00.000Z'] }))

export const decisionsQuery = Type.Object({
  by: Type.Optional(Type.String({ pattern: namePattern, description: 'Who decided.', examples: ['carol'] })),
  inbox: Type.Optional(Type.String({
    pattern: inboxPattern, description: 'The inbox of the handoff.', examples: ['reviewer']
  })),
  state: Type.Optional(oneOf(decisionStates, { description: 'What was decided; answered: a question.' })),
  since: time('It was decided then or later.'),
  until: time('It was decided before that.'),
  format: Type.Optional(oneOf(['json', 'csv'], {
    default: 'json',
    description: 'csv: the same page as a file, RFC 4180. Its next page is in the Link field. A cell that a ' +
      'spreadsheet would take for a formula begins with an apostrophe.'
  })),
  ...pageQuery,
}, { additionalProperties: false })
export type DecisionsQuery = Static<typeof decisionsQuery>

const forgotten = 'Null once its texts were forgotten'

export const decisionsAnswer = pageOf(
  Type.Object({
    handoff_id: Type.String({ examples: [exampleId] }),
    state: Type.Union(decisionStates.map(state => Type.Literal(state)), { examples: ['approved'] }),
    decided_at: Type.String({ format: 'date-time', examples: ['2026-11-20T09:02:00.000Z'] }),
    decided_by: Type.String({ description: 'The name of the person’s key.', examples: ['carol'] }),
    ...decidedByPerson,
    note: nullable<string>('string', {
      description: `What the person wrote; null if nothing. ${forgotten}.`, examples: ['Go ahead, but read only.']
    }),
    digest: nullable<string>('string', {
      description: 'The digest of what was decided on; null for an answer.',
      examples: ['sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:']
    }),
    to: nullable<string>('string', { description: 'Its inbox; null if it was for none.', examples: ['reviewer'] }),
    labels: Type.Optional(labels),
    passed_by: Type.String({ description: 'The agent that passed it.', examples: ['planner'] }),
    task: Type.Optional(nullable<string>('string', {
      description: `Of approved and rejected: the task, truncated to 200 characters. ${forgotten}.`,
      examples: ['Delete the old reports']
    })),
    ask_id: Type.Optional(Type.String({ description: 'Of answered: the question’s id.', examples: [exampleId] })),
    question: Type.Optional(nullable<string>('string', {
      description: `Of answered: the question, truncated to 200 characters. ${forgotten}.`,
      examples: ['Which quarter?']
    })),
    signature: decisionSignature,
    locked: isLocked,
  }),
  'What people decided, and which questions they answered, the latest first.'
)
