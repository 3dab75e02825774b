import { Type } from '@sinclair/typebox'
import type { Static } from '@sinclair/typebox'
import type { Limits } from '../members.ts'
import { asked, inboxPattern } from '../model.ts'
import { reasonRules } from './attempts.ts'
import { askOnStatus, exampleAskId, handoffId, replayedField, wantedLabels } from './handoffs.ts'
import { exampleId, labels, nullable, oneOf, time, to, pageOf, pageQuery } from './parts.ts'

/** The schemas of questions. */

const {
  ask_id: askId, state, of, asked_at: askedAt, answered_at: answeredAt, answered_by: answeredBy
} = askOnStatus.properties
const exampleQuestion = 'Which of these two accounts?'
const exampleSchema = {
  type: 'object', required: ['account'], properties: { account: { enum: ['4711', '4712'] } }
}

const question = Type.String({ description: 'As asked.', examples: [exampleQuestion] })
const askExpiresAt = time('Until when it can be answered.', '2026-11-21T09:05:00.000Z')
const answerUrl = Type.String({
  description: 'The page where a person answers.',
  examples: [`https://handoff.example.com/approvals/${exampleId}`]
})

export const askBody = ({ maxWorkTtl }: Limits) => Type.Object({
  question: Type.String({ ...reasonRules, description: 'The question.', examples: [exampleQuestion] }),
  of: Type.Optional(nullable<'person' | 'passer'>('string', {
    enum: [...asked, null], default: 'person', description: 'Who is asked: a person, or the handoff’s passer.'
  })),
  details: Type.Optional(nullable<object>('object', {
    additionalProperties: true,
    description: 'What one should know to answer.',
    examples: [{ invoice: '2026-118', amount: '1,250.00' }]
  })),
  schema: Type.Optional(nullable<object>('object', {
    additionalProperties: true,
    description: 'A JSON Schema that the answer must satisfy, with the same limits as result_schema. The page makes ' +
      'a form of it.',
    examples: [exampleSchema]
  })),
  expires_in: Type.Optional(nullable<number>('integer', {
    minimum: 1,
    maximum: maxWorkTtl,
    default: Math.min(86_400, maxWorkTtl),
    description: 'How long it can be answered, in seconds.',
    examples: [3600]
  })),
}, { additionalProperties: false })
export type AskBody = Static<ReturnType<typeof askBody>>

export const askAnswer = Type.Object({
  ask_id: askId,
  handoff_id: handoffId,
  state: Type.Literal('open'),
  question,
  asked_at: askedAt,
  expires_at: askExpiresAt,
  answer_url: Type.Optional(answerUrl),
}, { description: 'Asked. The deadlines of the work are paused until it is answered.', headers: replayedField })

export const askedAnswer = Type.Object({
  ask_id: askId,
  handoff_id: handoffId,
  state,
  question,
  of,
  details: nullable<object>(
    'object', { additionalProperties: true, description: 'As asked.', examples: [{ invoice: '2026-118' }] }
  ),
  schema: nullable<object>('object', {
    additionalProperties: true, description: 'What the answer must satisfy.', examples: [exampleSchema]
  }),
  asked_at: askedAt,
  expires_at: askExpiresAt,
  answer: nullable<object>(
    'object', { additionalProperties: true, description: 'As answered.', examples: [{ account: '4711' }] }
  ),
  answered_at: answeredAt,
  answered_by: answeredBy,
  note: nullable<string>('string', { description: 'As sent with the answer.', examples: [null] }),
}, { description: 'The latest question. What isn’t there is null.' })

export const answerBody = Type.Object({
  ask_id: Type.String({ description: 'The question that is answered.', examples: [exampleAskId] }),
  answer: Type.Unsafe<object>({
    type: 'object', additionalProperties: true, description: 'The answer.', examples: [{ account: '4711' }]
  }),
  note: Type.Optional(nullable<string>('string', {
    ...reasonRules, description: 'What else the agent should know.', examples: ['The other one is closed.']
  })),
}, { additionalProperties: false })
export type AnswerBody = Static<typeof answerBody>

export const answeredAnswer = Type.Object({
  ask_id: askId,
  state: Type.Literal('answered'),
  answered_at: time('When it was answered.', '2026-11-20T09:12:00.000Z'),
  answered_by: Type.String({ description: 'Who answered.', examples: ['olga'] }),
}, { description: 'Answered.', headers: replayedField })

export const asksQuery = Type.Object({
  of: Type.Optional(oneOf(asked, { default: 'person', description: 'passer: questions to this agent, as passer.' })),
  inbox: Type.Optional(Type.String({
    pattern: inboxPattern, description: 'Only of handoffs for this inbox.', examples: ['reviewer']
  })),
  labels: wantedLabels,
  ...pageQuery,
}, { additionalProperties: false })
export type AsksQuery = Static<typeof asksQuery>

export const asksAnswer = pageOf(Type.Object({
  ask_id: askId,
  handoff_id: handoffId,
  question: Type.String({ description: 'As asked, truncated to 1,000 characters.', examples: [exampleQuestion] }),
  to: Type.Optional(to),
  labels: Type.Optional(labels),
  asked_by: Type.String({ description: 'The agent that asks: the handoff’s catcher.', examples: ['writer'] }),
  asked_at: askedAt,
  expires_at: askExpiresAt,
  answer_url: Type.Optional(answerUrl),
}), 'Open questions, the oldest first.')
